//! The nodes of ping and traceroute.

pub mod ping_input;
pub mod ping_output;
