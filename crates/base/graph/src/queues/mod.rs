//! Queues between nodes and between threads: pending frames, handoff rings, channels to workers, records of traces and
//! drops, and the tables of feature arcs.
//!
//! This folder imports [`crate::data`] only.

pub(crate) mod arcs;
pub(crate) mod channel;
pub(crate) mod dispatch;
pub(crate) mod drop_table;
pub(crate) mod handoff;
pub(crate) mod holders;
pub(crate) mod meter;
pub(crate) mod pending_nodes;
pub(crate) mod trace;
pub(crate) mod wakeup;
