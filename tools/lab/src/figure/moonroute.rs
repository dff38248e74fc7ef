//! Figures of the MoonRoute paper.

use super::shape::{falls_to, rises_to_a_plateau};
use super::{Axis, Fact, Figure, Point};

const PAPER: &str = "Gallenmüller, Emmerich, Schönberger, Raumer, Carle: Building Fast but Flexible Software Routers (ANCS 2017)";
const NO_NUMBERS: &str = "shape only: the paper's numbers are not transcribed";

const MPPS: Axis = Axis {
    title: "Mpps",
    log: false,
};

fn point(x: usize, args: String) -> Point {
    Point {
        series: "IPv4",
        x: x as f64,
        label: x.to_string(),
        args,
    }
}

/// Figure 9: entries of the table.
pub const TABLE: Figure = Figure {
    name: "moonroute-9",
    paper: PAPER,
    number: "9",
    title: "Rate by number of table entries",
    x: Axis {
        title: "entries of the table",
        log: true,
    },
    y: MPPS,
    metric: "mpps",
    fact: Fact {
        text: "The rate falls when the part of the table that is used no longer fits into a cache.",
        source: NO_NUMBERS,
    },
    values: &[],
    values_source: "",
    method: "volley bench, synthetic tables with random destinations inside their prefixes, up to 2^20 entries (quick: 2^16); the paper has up to 2^24 and a network card.",
    points: |quick| {
        let exponents: &[u32] = match quick {
            true => &[4, 10, 16],
            false => &[4, 6, 8, 10, 12, 14, 16, 18, 20],
        };
        let at = |n: &u32| {
            let entries = 1usize << n;
            let args = format!(
                "--scenario ip4 --prefixes {entries} --destinations uniform --distinct 1048576"
            );
            point(entries, args)
        };
        exponents.iter().map(at).collect()
    },
    judge: |curves| falls_to(curves, 0.9),
};

/// Figure 11: packets per batch.
pub const BATCH: Figure = Figure {
    name: "moonroute-11",
    paper: PAPER,
    number: "11",
    title: "Rate by number of packets that are received at once",
    x: Axis {
        title: "packets received at once",
        log: true,
    },
    y: MPPS,
    metric: "mpps",
    fact: Fact {
        text: "The rate increases with the batch size and then stays about the same.",
        source: NO_NUMBERS,
    },
    values: &[],
    values_source: "",
    method: "volley bench; the source sends as many packets at once. The batch size of the transmit side is the same: the graph does not collect packets of several rounds.",
    points: |quick| {
        let sizes: &[usize] = match quick {
            true => &[1, 16, 64, 256],
            false => &[1, 2, 4, 8, 16, 32, 64, 128, 256],
        };
        let at = |n: &usize| point(*n, format!("--scenario ip4 --maxframe {n}"));
        sizes.iter().map(at).collect()
    },
    judge: |curves| rises_to_a_plateau(curves, 2.0, 256.0),
};
