//! `show ip4-full-reassembly`, `show ip4-sv-reassembly`, and the same for IPv6.

use super::table::table;
use volley_model::Family;
use volley_model::reply::{ReassemblyReply, VirtualReassemblyReply};

fn name(family: Family) -> &'static str {
    match family {
        Family::V4 => "IPv4",
        Family::V6 => "IPv6",
    }
}

/// The limit of buffers that applies, and where it comes from.
fn buffers(configured: u32, share: u32) -> String {
    if configured <= share {
        return configured.to_string();
    }
    format!("{share} (their share of the pool; configured are {configured})")
}

pub(super) fn reassembly(r: &ReassemblyReply) -> String {
    let ip = name(r.family);
    let mut out = format!(
        "{ip} full reassembly, on each worker: at most {} datagrams, {} fragments of one, {} buffers of all; they wait {} s\n\n",
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

pub(super) fn virtual_reassembly(r: &VirtualReassemblyReply) -> String {
    let mut out = format!(
        "{} virtual reassembly, on each worker: at most {} datagrams, {} fragments of one and {} buffers of all wait; they wait {} ms\n\n",
        name(r.family),
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
