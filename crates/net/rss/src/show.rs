//! `show rss`: the query, its reply, its text and its metrics.

use schemars::JsonSchema;
use serde::Serialize;
use std::fmt::Write;
use volley_object::{Instance, Query};
use volley_show::{COUNTER, Page, table};

/// How packets go from worker to worker: interfaces that are spread, nodes on workers of their own, rings.
#[derive(Clone, Debug, PartialEq, Query)]
#[query(name = "rss", show = "show rss", example = "show rss")]
#[query(reply = RssReply, text = text, figures = figures)]
pub struct ShowRss;

/// How packets go from worker to worker.
#[derive(Clone, Debug, PartialEq, Default, Serialize, JsonSchema)]
pub struct RssReply {
    /// Interfaces whose packets are spread, or may be.
    pub interfaces: Vec<RssRow>,
    /// Nodes that run on one worker only.
    pub nodes: Vec<NodeWorkerRow>,
    /// Handoffs between workers.
    pub handoffs: Vec<HandoffRow>,
}

/// State of the spreading of an interface's packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RssState {
    /// Packets are spread over the workers.
    Spread,
    /// Packets stay on the receiving worker: no bucket is overloaded, or no other worker can take one.
    #[default]
    Waits,
    /// Packets stay on the receiving worker: several receive queues spread them already.
    Queues,
    /// Spreading ends, while other workers process their last packets.
    Leaves,
}

/// One interface.
#[derive(Clone, Debug, PartialEq, Default, Serialize, JsonSchema)]
pub struct RssRow {
    /// Name of the interface.
    pub interface: String,
    /// Configured settings.
    pub settings: Option<Instance>,
    /// State of the spreading.
    pub state: RssState,
    /// Times that entries were given to other workers because of the load.
    pub rebalanced: u64,
    /// Entries and packets by worker.
    pub workers: Vec<RssWorkerRow>,
}

/// Share of one worker in an interface.
#[derive(Clone, Debug, PartialEq, Default, Serialize, JsonSchema)]
pub struct RssWorkerRow {
    /// The worker.
    pub worker: u32,
    /// Entries of the indirection table.
    pub entries: u32,
    /// Packets of those entries so far.
    pub packets: u64,
}

/// A node that runs on one worker only.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct NodeWorkerRow {
    /// Node.
    pub node: String,
    /// Worker.
    pub worker: u32,
}

/// Handoffs from one worker to another.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct HandoffRow {
    /// The worker that handed over.
    pub from: u32,
    /// The worker that took.
    pub to: u32,
    /// Vectors and parts of vectors.
    pub vectors: u64,
    /// Packets.
    pub packets: u64,
    /// Packets dropped because the other worker had too much waiting.
    pub drops: u64,
}

fn text(r: &RssReply) -> String {
    let mut out = String::new();
    if r.interfaces.is_empty() {
        out += "No interface's packets are spread over workers.\n";
    }
    r.interfaces.iter().for_each(|row| interface(row, &mut out));
    for row in &r.nodes {
        let _ = writeln!(out, "Node {} runs on worker {}", row.node, row.worker);
    }
    let handed = r.handoffs.iter().filter(|h| h.packets + h.drops > 0);
    let rows: Vec<Vec<String>> = handed
        .map(|h| {
            let numbers = [h.vectors, h.packets, h.drops].map(|n| n.to_string());
            let ways = [h.from.to_string(), h.to.to_string()];
            ways.into_iter().chain(numbers).collect()
        })
        .collect();
    if !rows.is_empty() {
        out.push('\n');
        out += &table(&[">From", ">To", ">Vectors", ">Packets", ">Drops"], &rows);
    }
    out
}

fn interface(row: &RssRow, out: &mut String) {
    let state = match row.state {
        RssState::Spread => "spread",
        RssState::Waits => "not spread now",
        RssState::Queues => "not spread: several queues do it",
        RssState::Leaves => "no longer spread, last packets leave",
    };
    let settings = row.settings.as_ref().map(Instance::summary);
    let settings = settings.unwrap_or_default();
    let _ = writeln!(out, "{}: {settings}; {state}", row.interface);
    if row.rebalanced > 0 {
        let _ = writeln!(out, "  rebalanced {} times", row.rebalanced);
    }
    for worker in &row.workers {
        let _ = writeln!(
            out,
            "  worker {}: {} entries, {} packets",
            worker.worker, worker.entries, worker.packets
        );
    }
}

fn figures(reply: &RssReply, page: &mut Page) {
    type Read = fn(&HandoffRow) -> u64;
    let figures: [(&str, &str, Read); 2] = [
        (
            "volley_handoff_packets_total",
            "Packets that a worker has handed to another.",
            |row| row.packets,
        ),
        (
            "volley_handoff_drops_total",
            "Packets dropped because the other worker had too much waiting.",
            |row| row.drops,
        ),
    ];
    for (name, help, read) in figures {
        page.rows((name, COUNTER, help), &reply.handoffs, |put, row| {
            let (from, to) = (row.from.to_string(), row.to.to_string());
            put(&[("from", &from), ("to", &to)], read(row) as f64);
        });
    }
}
