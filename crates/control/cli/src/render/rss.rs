//! `show rss`.

use super::table::table;
use std::fmt::Write;
use volley_model::reply::{RssReply, RssRow, RssState};
use volley_object::Instance;

pub(super) fn rss(r: &RssReply) -> String {
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
        let _ = writeln!(out, "  balanced anew {} times", row.rebalanced);
    }
    for worker in &row.workers {
        let _ = writeln!(
            out,
            "  worker {}: {} entries, {} packets",
            worker.worker, worker.entries, worker.packets
        );
    }
}
