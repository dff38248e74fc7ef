//! The nodes of the generator and of the sink.

pub mod lab_delay;
pub mod lab_generator;
pub mod lab_sink;
