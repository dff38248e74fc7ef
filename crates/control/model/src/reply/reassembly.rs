//! Answer to [`crate::Query::Reassembly`].

use crate::addr::Family;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Full reassembly of one IP version: its limits, and how full the workers' stores are.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ReassemblyReply {
    /// IP version.
    pub family: Family,
    /// Datagrams that may wait on each worker.
    pub max_reassemblies: u32,
    /// Fragments that one datagram may have.
    pub max_reassembly_length: u32,
    /// Fragments that may wait on each worker.
    pub max_buffers: u32,
    /// Seconds that a datagram waits.
    pub timeout: u32,
    /// By worker.
    pub workers: Vec<ReassemblyRow>,
}

/// What waits on one worker.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ReassemblyRow {
    /// The worker.
    pub worker: u32,
    /// Datagrams, those given up and remembered included.
    pub reassemblies: u32,
    /// Fragments.
    pub buffers: u32,
    /// Milliseconds that the oldest datagram has waited.
    pub oldest_ms: u64,
}
