//! A worker: its round, its sleep, its thread, and the instances of nodes that it runs.
//!
//! This folder imports [`crate::data`], [`crate::queues`] and [`crate::node_api`] only.

pub(crate) mod agenda;
pub(crate) mod body;
pub(crate) mod counted;
pub(crate) mod deliver;
pub(crate) mod guarded;
pub(crate) mod handoff_stub;
pub(crate) mod marks;
pub(crate) mod round;
pub(crate) mod sleep;
pub(crate) mod threads;
