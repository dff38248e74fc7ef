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

pub(super) fn reassembly(r: &ReassemblyReply) -> String {
    let ip = name(r.family);
    let mut out = format!(
        "{ip} full reassembly, on each worker: at most {} datagrams, {} fragments of one, {} of all; they wait {} s\n\n",
        r.max_reassemblies, r.max_reassembly_length, r.max_buffers, r.timeout
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
    out += &table(
        &[">Worker", ">Datagrams", ">Fragments", ">Oldest (s)"],
        &rows,
    );
    out
}

pub(super) fn virtual_reassembly(r: &VirtualReassemblyReply) -> String {
    let mut out = format!(
        "{} virtual reassembly, on each worker: at most {} datagrams, {} fragments of one and {} of all wait; they wait {} ms\n\n",
        name(r.family),
        r.max_reassemblies,
        r.max_reassembly_length,
        r.max_buffers,
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
