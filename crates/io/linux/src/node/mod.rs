//! The nodes of Linux interfaces, the same for every driver but for how a queue is read and written.

pub mod input;
pub mod transmit;
