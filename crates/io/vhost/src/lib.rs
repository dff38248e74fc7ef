//! vhost-user and virtio-user.
#![deny(unsafe_code)]

pub mod batch;
pub mod device;
pub mod driver;
pub mod fault;
pub mod memory;
#[allow(unsafe_code)]
pub mod ring;
#[allow(unsafe_code)]
pub mod sys;
