//! The table of docs/bench.md and of the README, which no paper has.

use super::definition::{Axis, Fact, Figure, NO_PAPER, NONE, Point, Scale, linear};
use super::shape::{Curve, Median, Shape, unknown};
use crate::level::Level;

/// Names of the rows, and their arguments.
const ROWS: [(&str, &str); 14] = [
    ("patch", "--scenario xc"),
    ("L2 cross-connect", "--scenario l2xc"),
    ("ip4, 1 route", "--scenario ip4"),
    ("ip6, 1 route", "--scenario ip6"),
    ("mix, 1 route", "--scenario mix"),
    (
        "ip4, full table, 64k uniform",
        "--scenario ip4 --destinations uniform --prefixes full",
    ),
    (
        "ip4, full table, 1M uniform",
        "--scenario ip4 --destinations uniform --distinct 1048576 --prefixes full",
    ),
    (
        "ip4, full table, any address",
        "--scenario ip4 --destinations any --prefixes full",
    ),
    (
        "ip6, full table, 64k uniform",
        "--scenario ip6 --destinations uniform --prefixes full",
    ),
    (
        "mix, full tables",
        "--scenario mix --destinations uniform --prefixes full",
    ),
    (
        "ip4, full table, packet by packet",
        "--scenario ip4 --destinations uniform --style rtc --prefixes full",
    ),
    (
        "mix, full tables, packet by packet",
        "--scenario mix --destinations uniform --style rtc --prefixes full",
    ),
    (
        "ip4, full table, cold buffers",
        "--scenario ip4 --destinations uniform --buffers 65536 --prefixes full",
    ),
    (
        "ip4, full table, scalar kernels",
        "--scenario ip4 --destinations uniform --isa scalar --prefixes full",
    ),
];
/// Rows of a short run: those without a full table, which takes seconds to load.
const SHORT: usize = 5;

/// The table.
pub const TABLE: Figure = Figure {
    name: "volley-table",
    paper: NO_PAPER,
    number: "table of docs/bench.md",
    title: "Cycles of the graph by scenario",
    x: Axis {
        title: "scenario",
        scale: Scale::Names,
    },
    y: linear("TSC cycles per packet"),
    metric: "cycles",
    parts: &[],
    fact: Fact {
        text: "No paper has this table: `cargo xtask bench --from` writes it into docs/bench.md and README.md.",
        source: "The scenarios are Volley's.",
    },
    published: NONE,
    compared: NONE,
    quoted: NONE,
    method: "volley bench, packets of 64 bytes from memory, one core. Full tables are synthetic, with the prefix lengths and the numbers of prefixes of the real IPv4 and IPv6 tables of May 2026.",
    points: |level| {
        let count = match level {
            Level::Full => ROWS.len(),
            _ => SHORT,
        };
        let at = |(x, (label, words)): (usize, &(&str, &str))| Point {
            series: "Volley",
            x: x as f64,
            label: (*label).to_owned(),
            args: (*words).to_owned(),
        };
        ROWS[..count].iter().enumerate().map(at).collect()
    },
    judge: cheapest,
};

/// Names the scenarios with the lowest and the highest cost. No paper has this table, so no shape is judged.
fn cheapest(curves: &[Curve]) -> Shape {
    let mut all: Vec<&Median> = curves.iter().flat_map(|c| &c.points).collect();
    all.sort_by(|a, b| a.y.total_cmp(&b.y));
    let [least, .., most] = all[..] else {
        return unknown();
    };
    Shape {
        agrees: None,
        why: format!(
            "A packet costs least in `{}`, {:.1} cycles, and most in `{}`, {:.1} cycles.",
            least.label, least.y, most.label, most.y
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_runs_load_no_full_table() {
        let full = |level| {
            let points = (TABLE.points)(level).into_iter();
            points
                .filter(|p| p.args.contains("--prefixes full"))
                .count()
        };
        assert_eq!([full(Level::Quick), full(Level::Full)], [0, 9]);
    }

    #[test]
    fn the_ends_of_the_costs_are_named() {
        let shape = cheapest(&[Curve::of("Volley", &[30.0, 9.0, 50.0])]);
        let text = "A packet costs least in `1`, 9.0 cycles, and most in `2`, 50.0 cycles.";
        assert_eq!((shape.agrees, shape.why.as_str()), (None, text));
        assert_eq!(cheapest(&[Curve::of("Volley", &[9.0])]), unknown());
    }
}
