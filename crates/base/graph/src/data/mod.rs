//! The data that pass through the graph: columns, frames, packets, offload requests, identifiers, limits, clocks.
//!
//! This folder imports no other folder.

pub(crate) mod clock;
pub(crate) mod col;
pub(crate) mod column;
pub(crate) mod counters;
pub(crate) mod error;
pub(crate) mod events;
pub(crate) mod frame;
pub(crate) mod ids;
pub(crate) mod lost;
pub(crate) mod numa;
pub(crate) mod offload;
pub(crate) mod packet;
pub(crate) mod shares;
pub(crate) mod stats;
pub(crate) mod worker_set;
