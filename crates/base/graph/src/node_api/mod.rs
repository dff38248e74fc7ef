//! The API for nodes: the traits of nodes, sources and stages, the context, the vector that a node runs on, and the
//! output of a source.
//!
//! This folder imports [`crate::data`] and [`crate::queues`] only.

pub(crate) mod context;
pub(crate) mod device_buffers;
pub(crate) mod drop_node;
pub(crate) mod edges;
pub(crate) mod handoff;
pub(crate) mod held_packet;
pub(crate) mod lend;
mod macros;
pub(crate) mod node;
pub(crate) mod output;
pub(crate) mod receive;
pub(crate) mod replicate;
pub(crate) mod rows;
pub(crate) mod stage;
pub(crate) mod trace_rows;
pub(crate) mod vector;
