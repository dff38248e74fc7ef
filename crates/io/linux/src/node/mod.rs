//! The nodes of Linux interfaces; drivers differ only in how a queue is read and written.

pub mod input;
pub mod transmit;
