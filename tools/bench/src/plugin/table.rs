//! The tables for people.

use super::figures::{Counts, Peer, Report, Row, Way, Whole};
use std::fmt::Write;

/// A figure, or a dash.
fn figure(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |it| format!("{it:.digits$}"))
}

impl Counts {
    /// Mispredicted branches in percent of all branches.
    fn percent(&self) -> Option<f64> {
        let (wrong, all) = (self.mispredicted?, self.branches?);
        (all > 0.0).then(|| 100.0 * wrong / all)
    }
}

/// The text of a report.
pub fn text(report: &Report) -> String {
    let mut text = format!(
        "plugin {}, level {}; clocks: TSC cycles of the node per packet, median (minimum to maximum)\n",
        report.plugin, report.isa
    );
    let by = report.counted_by.map(Way::text);
    let by = by.unwrap_or("not counted (neither hardware counters nor valgrind, or --no-counts)");
    // Writing to a text cannot fail.
    let _ = writeln!(text, "counts per packet: {by}\n");
    rows(&mut text, &report.rows);
    if report.rows.iter().any(|row| row.native.is_some()) {
        natives(&mut text, &report.rows);
    }
    if report.rows.iter().any(|row| !row.published.is_empty()) {
        published(&mut text, &report.rows);
    }
    text
}

fn rows(text: &mut String, rows: &[Row]) {
    let _ = writeln!(
        text,
        "{:<18} {:<14} {:>6} {:>24} {:>12} {:>9} {:>9} {:>12} {:>7}  dropped",
        "scenario",
        "node",
        "vector",
        "clocks",
        "instructions",
        "L1 misses",
        "LL misses",
        "mispredicted",
        "percent"
    );
    for row in rows {
        let counts = row.counts.as_ref();
        let of = |pick: fn(&Counts) -> Option<f64>, digits| figure(counts.and_then(pick), digits);
        let dropped = row.dropped.iter();
        let dropped: Vec<String> = dropped
            .map(|(why, it)| format!("{it:.0} % {why}"))
            .collect();
        let line = format!(
            "{:<18} {:<14} {:>6} {:>24} {:>12} {:>9} {:>9} {:>12} {:>7}  {}",
            row.scenario,
            row.node,
            row.vector_size,
            row.clocks.to_string(),
            of(|it| it.instructions, 1),
            of(|it| it.l1_misses, 2),
            of(|it| it.ll_misses, 2),
            of(|it| it.mispredicted, 3),
            of(Counts::percent, 2),
            dropped.join(", "),
        );
        let _ = writeln!(text, "{}", line.trim_end());
    }
}

/// The router with the node beside the router without it.
fn natives(text: &mut String, rows: &[Row]) {
    let _ = writeln!(
        text,
        "\n{:<18} {:>24} {:>24} {:>9} {:>24} {:>24} {:>9}",
        "whole router",
        "graph",
        "with source",
        "Mpps",
        "without the node: graph",
        "with source",
        "Mpps"
    );
    for row in rows {
        let Some(native) = &row.native else { continue };
        let side = |it: &Whole| {
            format!(
                "{:>24} {:>24} {:>9.2}",
                it.graph.to_string(),
                it.all.to_string(),
                it.mpps
            )
        };
        let _ = writeln!(
            text,
            "{:<18} {} {}",
            row.scenario,
            side(&row.whole),
            side(native)
        );
    }
}

fn published(text: &mut String, rows: &[Row]) {
    let _ = writeln!(
        text,
        "\n{:<18} {:<8} {:>17} {:>19} {:>25}",
        "published figures", "by", "clocks (here)", "L1 misses (here)", "mispredicted, % (here)"
    );
    for row in rows {
        for peer in &row.published {
            let _ = writeln!(text, "{}", beside(row, peer));
        }
    }
}

/// A published figure and ours.
fn beside(row: &Row, peer: &Peer) -> String {
    let counts = row.counts.as_ref();
    let pair = |theirs: Option<f64>, ours: Option<f64>, digits| match theirs {
        Some(_) => format!("{} ({})", figure(theirs, digits), figure(ours, digits)),
        None => String::new(),
    };
    let line = format!(
        "{:<18} {:<8} {:>17} {:>19} {:>25}",
        row.scenario,
        peer.source,
        pair(peer.clocks, Some(row.clocks.median), 1),
        pair(peer.l1_misses, counts.and_then(|it| it.l1_misses), 2),
        pair(peer.mispredicted, counts.and_then(Counts::percent), 2),
    );
    line.trim_end().to_owned()
}
