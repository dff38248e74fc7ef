//! The engine: the control thread's side of the graph. It knows the nodes and their edges, and makes every change.
//!
//! Nodes can be added, arcs changed and traces started before and while workers run. A change is prepared here, and
//! each worker applies it between two vectors; [`crate::Engine::settled`] reports when all workers use it.
//!
//! This folder may import all other folders, but not [`crate::harness`].

pub(crate) mod arcs;
mod changes;
pub(crate) mod events;
mod features;
pub(crate) mod foreign;
mod graph;
mod handoff;
mod node_order;
mod numbers;
pub(crate) mod periodic;
mod placement;
pub(crate) mod process;
pub(crate) mod reports;
mod shares;
pub(crate) mod state;
pub(crate) mod stats;
mod texts;
pub(crate) mod traces;
pub(crate) mod wired;
mod workers;
