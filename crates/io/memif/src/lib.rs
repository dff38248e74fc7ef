//! memif
mod fault;
mod link;
pub mod node;
#[allow(unsafe_code)]
mod ring;
mod socket;
#[allow(unsafe_code)]
mod sys;
mod wire;
