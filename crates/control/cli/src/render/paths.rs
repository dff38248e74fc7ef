//! `show path-batcher`.

use super::table::table;
use std::fmt::Write;
use volley_model::reply::{PathBatcherReply, PathBatcherTotals};

pub(super) fn path_batcher(r: &PathBatcherReply) -> String {
    let mut out = String::new();
    let on = if r.interfaces.is_empty() {
        "off on all interfaces".to_owned()
    } else {
        format!("on: {}", r.interfaces.join(", "))
    };
    let _ = writeln!(
        out,
        "Path batcher {on}; batch {}, limit {} us, {} in a row",
        r.batch, r.timeout_us, r.gather
    );
    if !r.draining.is_empty() {
        let _ = writeln!(out, "  last packets are leaving: {}", r.draining.join(", "));
    }
    totals(&r.totals, &mut out);
    queues(r, &mut out);
    rules(r, &mut out);
    for header in &r.headers {
        let _ = write!(out, "\nHeader {}, {} bytes", header.name, header.length);
        if !header.missing.is_empty() {
            let _ = write!(
                out,
                "; linked with what does not exist: {}",
                header.missing.join(", ")
            );
        }
    }
    if !r.headers.is_empty() {
        out.push('\n');
    }
    if r.learning {
        out += "\nLearned paths\n";
        for path in &r.learned {
            let _ = writeln!(
                out,
                "  queue {}: {} ({:.1} %)",
                path.queue, path.path, path.percent
            );
        }
    }
    out
}

fn totals(t: &PathBatcherTotals, out: &mut String) {
    let _ = writeln!(
        out,
        "  {} packets, {} wait now, {} sent on early",
        t.packets, t.held, t.flushed
    );
    if t.packets == 0 {
        return;
    }
    let _ = writeln!(
        out,
        "  waited {:.1} us or less: half; {:.1} us: 99 of 100; longest {:.1} us",
        t.delay_p50_us, t.delay_p99_us, t.delay_max_us
    );
    let steps = |all: &[u64], unit: &str| {
        let some = all.iter().enumerate().filter(|(_, n)| **n > 0);
        let step = |(at, n): (usize, &u64)| format!("{}{unit} {n}", 1u64 << at);
        some.map(step).collect::<Vec<_>>().join(", ")
    };
    let _ = writeln!(out, "  batches from a size on: {}", steps(&t.sizes, ""));
    let _ = writeln!(out, "  packets by wait below: {}", steps(&t.delays, " us"));
}

fn queues(r: &PathBatcherReply, out: &mut String) {
    let of = |value: Option<u32>| value.map_or_else(|| "-".to_owned(), |v| v.to_string());
    let rows = r.queues.iter().map(|q| {
        let kind = match (q.id, q.learned) {
            (0, _) => "default",
            (_, true) => "learned",
            _ => "",
        };
        let numbers = [
            q.packets,
            q.held,
            q.most_held,
            q.full,
            q.timeouts,
            q.late,
            q.held_up,
        ];
        let own = [q.batch, q.timeout_us, q.gather, q.weight, q.strict];
        let mut row = vec![q.id.to_string(), kind.to_owned()];
        row.extend(own.map(of));
        row.extend(numbers.map(|n| n.to_string()));
        row
    });
    out.push('\n');
    let heads = [
        ">Queue",
        "",
        ">Batch",
        ">Limit",
        ">Gather",
        ">Weight",
        ">Strict",
        ">Packets",
        ">Held",
        ">Most",
        ">Full",
        ">Timeouts",
        ">Late",
        ">Held up",
    ];
    *out += &table(&heads, &rows.collect::<Vec<_>>());
}

fn rules(r: &PathBatcherReply, out: &mut String) {
    if !r.rules.is_empty() {
        let rows = r.rules.iter().map(|rule| {
            let numbers = [rule.queue.to_string(), rule.packets.to_string()];
            let mut row = vec![rule.priority.to_string(), rule.name.clone()];
            row.extend(numbers);
            row.push(rule.matches.join(" "));
            row
        });
        out.push('\n');
        let heads = [">Priority", "Rule", ">Queue", ">Packets", "Match"];
        *out += &table(&heads, &rows.collect::<Vec<_>>());
    }
}
