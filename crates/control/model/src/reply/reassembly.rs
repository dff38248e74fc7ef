//! Answers to [`crate::Query::Reassembly`] and [`crate::Query::VirtualReassembly`].

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
    /// Buffers that fragments may take on each worker, as configured.
    pub max_buffers: u32,
    /// Buffers that they may take there at most by their share of the pool, whatever is configured.
    pub share: u32,
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
    /// Buffers that their fragments take.
    pub buffers: u32,
    /// Milliseconds that the oldest datagram has waited.
    pub oldest_ms: u64,
}

/// Virtual reassembly of one IP version: its limits, and what the workers know of fragments in transit.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct VirtualReassemblyReply {
    /// IP version.
    pub family: Family,
    /// Datagrams that may be known and awaited on each worker.
    pub max_reassemblies: u32,
    /// Fragments of one datagram that may wait for the first one.
    pub max_reassembly_length: u32,
    /// Buffers that fragments may take on each worker, as configured.
    pub max_buffers: u32,
    /// Buffers that they may take there at most by their share of the pool, whatever is configured.
    pub share: u32,
    /// Milliseconds that fragments wait, and that a flow is known after the last one.
    pub timeout_ms: u32,
    /// By worker.
    pub workers: Vec<VirtualReassemblyRow>,
}

/// Fragments in transit on one worker.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct VirtualReassemblyRow {
    /// The worker.
    pub worker: u32,
    /// Datagrams whose first fragment came.
    pub known: u32,
    /// Datagrams whose first fragment is awaited.
    pub awaited: u32,
    /// Buffers of fragments that wait.
    pub buffers: u32,
    /// Fragments so far whose flow was known when they came.
    pub fragments_known: u64,
    /// Fragments so far that waited for the first one.
    pub fragments_held: u64,
    /// Fragments so far that were dropped.
    pub fragments_dropped: u64,
}
