//! The node of software RSS.

pub mod worker_handoff;
