//! The packet generator's nodes.

pub mod pg_input;
