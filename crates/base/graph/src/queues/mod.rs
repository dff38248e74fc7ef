//! Queues between nodes and between threads: pending frames, handoff rings, channels to workers, records of traces and
//! drops, and the tables of feature arcs.
//!
//! This room imports [`crate::data`] only.

pub(crate) mod channel;
