//! Version, buffers, process.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Version of the daemon and what it runs on.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct VersionReply {
    /// `0.1.0`.
    pub version: String,
    /// Commit it was built from, when known.
    pub commit: Option<String>,
    /// Compiler and build profile.
    pub build: String,
    /// Processor's name.
    pub cpu: String,
    /// Instruction-set level in use.
    pub isa: String,
    /// Packets per vector.
    pub vector_size: u32,
    /// Worker threads.
    pub workers: u32,
    /// Seconds since start.
    pub uptime_s: f64,
    /// Process id.
    pub pid: u32,
}

/// Buffer arenas.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct BuffersReply {
    /// One per NUMA node.
    pub arenas: Vec<ArenaRow>,
    /// Buffers that are for forwarding alone, whatever holders do.
    #[serde(default)]
    pub reserve: u64,
    /// Who keeps packets outside the graph, and how many buffers.
    #[serde(default)]
    pub holders: Vec<HolderRow>,
}

/// One kind of holder of buffers: its share of the pool, and what it holds.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct HolderRow {
    /// The holder: a node, or `neighbors`.
    pub name: String,
    /// Buffers that it may hold on all workers together.
    pub limit: u64,
    /// Buffers that it may hold on each worker.
    pub limit_each: u64,
    /// Buffers that it holds.
    pub held: u64,
    /// Packets that yielded to newer ones.
    pub evicted: u64,
    /// Packets that found the share full.
    pub refused: u64,
}

/// One arena. `total = free + cached + used`.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ArenaRow {
    /// Its name.
    pub name: String,
    /// NUMA node.
    pub numa: u32,
    /// Bytes of a slot, metadata and headroom included.
    pub slot_bytes: u32,
    /// Bytes of data in a slot.
    pub data_bytes: u32,
    /// Buffers.
    pub total: u64,
    /// On the shared free list.
    pub free: u64,
    /// In workers' free caches.
    pub cached: u64,
    /// Held by packets.
    pub used: u64,
    /// Allocations that failed.
    pub failures: u64,
    /// What backs it: `hugetlb`, `thp`, `pages`.
    pub backing: String,
}

/// Answer to [`crate::Query::Process`].
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ProcessReply {
    /// Number of the process.
    pub pid: u32,
    /// Number of its user.
    pub uid: u32,
    /// Number of its group.
    pub gid: u32,
    /// Numbers of its further groups.
    pub groups: Vec<u32>,
    /// Its threads by number; the first is the control thread.
    pub threads: Vec<ThreadRow>,
}

/// What one thread may do.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ThreadRow {
    /// Number of the thread.
    pub id: u32,
    /// Its name.
    pub name: String,
    /// Its effective capabilities.
    pub capabilities: Vec<String>,
    /// Whether no program that it starts gets more privileges.
    pub no_new_privileges: bool,
    /// Filter of system calls: off, filter or strict.
    pub seccomp: String,
    /// How many filters it has, those of the service manager included; none before Linux 5.9.
    pub filters: Option<u32>,
}
