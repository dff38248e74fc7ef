//! `show ip4-full-reassembly`, `show ip4-sv-reassembly`, and the same for IPv6: the queries, their replies, and their text.

use schemars::JsonSchema;
use serde::Serialize;
use volley_model::Family;
use volley_object::Query;
use volley_show::table;

/// Datagrams for the router that wait for fragments, of one IP version: limits, and how many on each worker.
#[derive(Clone, Debug, PartialEq, Query)]
#[query(name = "reassembly", example = "show ip4-full-reassembly")]
#[query(show = "show (ip4-full-reassembly@family=ip4 | ip6-full-reassembly@family=ip6)")]
#[query(reply = ReassemblyReply, text = text)]
pub struct ShowReassembly {
    /// IP version.
    pub family: Family,
}

/// Datagrams in transit that come in fragments, of one IP version: limits, and how many each worker knows and awaits.
#[derive(Clone, Debug, PartialEq, Query)]
#[query(name = "virtual-reassembly", example = "show ip4-sv-reassembly")]
#[query(show = "show (ip4-sv-reassembly@family=ip4 | ip6-sv-reassembly@family=ip6)")]
#[query(reply = VirtualReassemblyReply, text = virtual_text)]
pub struct ShowVirtualReassembly {
    /// IP version.
    pub family: Family,
}

/// Full reassembly of one IP version: its limits, and the usage of the workers' stores.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct ReassemblyReply {
    /// IP version.
    pub family: Family,
    /// Datagrams that may wait on each worker.
    pub max_reassemblies: u32,
    /// Fragments that one datagram may have.
    pub max_reassembly_length: u32,
    /// Buffers that fragments may take on each worker, as configured.
    pub max_buffers: u32,
    /// Largest number of buffers that fragments may take on each worker by their share of the pool, whatever is configured.
    pub share: u32,
    /// Seconds that a datagram waits.
    pub timeout: u32,
    /// Usage by worker.
    pub workers: Vec<ReassemblyRow>,
}

/// Datagrams that wait on one worker.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct ReassemblyRow {
    /// The worker.
    pub worker: u32,
    /// Number of datagrams, including those that were given up and are remembered.
    pub reassemblies: u32,
    /// Buffers that the fragments take.
    pub buffers: u32,
    /// Milliseconds that the oldest datagram has waited.
    pub oldest_ms: u64,
}

/// Virtual reassembly of one IP version: its limits, and what each worker knows of fragments in transit.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct VirtualReassemblyReply {
    /// IP version.
    pub family: Family,
    /// Datagrams that may be known and awaited on each worker.
    pub max_reassemblies: u32,
    /// Fragments of one datagram that may wait for the first one.
    pub max_reassembly_length: u32,
    /// Buffers that fragments may take on each worker, as configured.
    pub max_buffers: u32,
    /// Largest number of buffers that fragments may take on each worker by their share of the pool, whatever is configured.
    pub share: u32,
    /// Milliseconds that fragments wait, and that a flow is known after the last one.
    pub timeout_ms: u32,
    /// State by worker.
    pub workers: Vec<VirtualReassemblyRow>,
}

/// Fragments in transit on one worker.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, JsonSchema)]
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

/// The limit of buffers that applies, and where it comes from.
fn buffers(configured: u32, share: u32) -> String {
    if configured <= share {
        return configured.to_string();
    }
    format!("{share} (their share of the pool; configured are {configured})")
}

fn text(r: &ReassemblyReply) -> String {
    let mut out = format!(
        "{} full reassembly, on each worker: at most {} datagrams, {} fragments of one, {} buffers of all; they wait {} s\n\n",
        r.family,
        r.max_reassemblies,
        r.max_reassembly_length,
        buffers(r.max_buffers, r.share),
        r.timeout
    );
    let rows: Vec<Vec<String>> = r
        .workers
        .iter()
        .map(|w| {
            let oldest = format!("{}.{:03}", w.oldest_ms / 1000, w.oldest_ms % 1000);
            let numbers = [w.worker, w.reassemblies, w.buffers].map(|n| n.to_string());
            numbers.into_iter().chain([oldest]).collect()
        })
        .collect();
    out += &table(&[">Worker", ">Datagrams", ">Buffers", ">Oldest (s)"], &rows);
    out
}

fn virtual_text(r: &VirtualReassemblyReply) -> String {
    let mut out = format!(
        "{} virtual reassembly, on each worker: at most {} datagrams, {} fragments of one and {} buffers of all wait; they wait {} ms\n\n",
        r.family,
        r.max_reassemblies,
        r.max_reassembly_length,
        buffers(r.max_buffers, r.share),
        r.timeout_ms
    );
    let rows: Vec<Vec<String>> = r
        .workers
        .iter()
        .map(|w| {
            let now = [w.worker, w.known, w.awaited, w.buffers].map(|n| n.to_string());
            let totals = [w.fragments_known, w.fragments_held, w.fragments_dropped];
            now.into_iter()
                .chain(totals.map(|n| n.to_string()))
                .collect()
        })
        .collect();
    out += &table(
        &[
            ">Worker",
            ">Known",
            ">Awaited",
            ">Waiting",
            ">With flow",
            ">Held",
            ">Dropped",
        ],
        &rows,
    );
    out
}
