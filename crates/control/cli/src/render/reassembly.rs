//! `show ip4-full-reassembly`, `show ip6-full-reassembly`.

use super::table::table;
use volley_model::Family;
use volley_model::reply::ReassemblyReply;

pub(super) fn reassembly(r: &ReassemblyReply) -> String {
    let ip = match r.family {
        Family::V4 => "IPv4",
        Family::V6 => "IPv6",
    };
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
