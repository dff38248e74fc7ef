//! Figures of the MoonRoute paper.

use super::definition::{
    Axis, Fact, Figure, NONE, NOT_TRANSCRIBED, Numbers, Point, Scale, choose, value,
};
use super::shape::{Curve, Shape, falls_to, rises_by, rises_to_a_plateau, unknown};
use crate::meter::SHARE;

pub const PAPER: &str = "Gallenmüller, Emmerich, Schönberger, Raumer, Carle: Building Fast but Flexible Software Routers (ANCS 2017)";

/// Rate of the line of the published numbers in Mpps: 10 Gbit/s with packets of 64 bytes.
const LINE: &[(&str, f64)] = &[("IPv4", 14.88)];

const MPPS: Axis = Axis {
    title: "Mpps",
    scale: Scale::Linear,
};

pub fn point(x: usize, args: String) -> Point {
    Point {
        series: "IPv4",
        x: x as f64,
        label: x.to_string(),
        args,
    }
}

/// Figure 7: clock of the processor.
pub const CLOCK: Figure = Figure {
    name: "moonroute-7",
    paper: PAPER,
    number: "7",
    title: "Rate by clock of the processor",
    x: Axis {
        title: "clock, MHz",
        scale: Scale::Linear,
    },
    y: MPPS,
    metric: "mpps",
    parts: &[],
    fact: Fact {
        text: "The rate is about proportional to the clock, up to the rate of the line.",
        source: "",
    },
    published: Numbers {
        values: &[
            value("IPv4", "1600", 7.56),
            value("IPv4", "2000", 9.31),
            value("IPv4", "2400", 10.95),
            value("IPv4", "2800", 12.97),
            value("IPv4", "3200", 14.68),
        ],
        source: "the authors' data (github.com/emmericp/MoonRoute-data, cpu_freq_scaling_2/analysis/data_no_random), one destination, line rate 14.88 Mpps",
        lines: LINE,
        ..NONE
    },
    compared: NONE,
    quoted: NONE,
    method: "Measured at each clock that the processor can be set to (cpufreq; the section on the method states the clocks); else derived: the rate is the clock divided by the cycles of the core per packet, source and loop included, at the clock that the core has. This assumes that cycles do not depend on the clock, which holds for packets and tables in a cache.",
    points: |level| {
        let clocks: &[usize] = choose(level, &[1600, 2400, 3200], &[1600, 2000, 2400, 2800, 3200]);
        let at = |mhz: &usize| point(*mhz, format!("clock {mhz} --scenario ip4"));
        clocks.iter().map(at).collect()
    },
    judge: |curves| rises_by(curves, 1.5),
};

/// Figure 8: number of cores.
pub const CORES: Figure = Figure {
    name: "moonroute-8",
    paper: PAPER,
    number: "8",
    title: "Throughput by number of cores",
    x: Axis {
        title: "workers, each on a core",
        scale: Scale::Log2,
    },
    y: Axis {
        title: "throughput, multiples of one worker",
        scale: Scale::Linear,
    },
    metric: "speedup",
    parts: &[],
    fact: Fact {
        text: "The rate increases with the number of cores.",
        source: "",
    },
    published: Numbers {
        values: &[value("IPv4", "1", 1.0), value("IPv4", "2", 1.95)],
        source: "the authors' data (github.com/emmericp/MoonRoute-data, core_scaling_test/analysis/data_2.0GHz), 2.0 GHz, divided by the rate of one core",
        ..NONE
    },
    compared: NONE,
    quoted: NONE,
    method: "volley bench --workers, 65,536 destinations over 130,000 routes: all workers together compared with each alone, in alternating slices, without the cost of the source. The processors of this machine may be threads that share a core's units.",
    points: |_| {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let counts = (0..7).map(|n| 1usize << n).take_while(|n| *n <= cores);
        let at = |n: usize| {
            let args =
                format!("--scenario ip4 --prefixes 130000 --destinations uniform --workers {n}");
            point(n, args)
        };
        counts.map(at).collect()
    },
    judge: rises_with_cores,
};

/// Part of the throughput of independent workers from which scaling counts as such.
const SCALES: f64 = 0.8;

fn rises_with_cores(curves: &[Curve]) -> Shape {
    let last = curves.iter().find_map(|c| c.points.last());
    match last {
        Some(last) if last.x > 1.0 => Shape {
            agrees: Some(last.y >= SCALES * last.x),
            why: format!(
                "{} workers forward {:.2} times as much as one.",
                last.x, last.y
            ),
        },
        _ => unknown(),
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
        scale: Scale::Log2,
    },
    y: MPPS,
    metric: "mpps",
    parts: &[],
    fact: Fact {
        text: "The rate falls when the part of the table that is used no longer fits into a cache.",
        source: "",
    },
    published: Numbers {
        values: &[
            value("IPv4", "65536", 14.37),
            value("IPv4", "262144", 14.16),
            value("IPv4", "1048576", 14.20),
        ],
        source: "the authors' data (github.com/emmericp/MoonRoute-data, data-used-for-plots/lpm/data3.2GHz), networks /24 in use, 3.2 GHz, line rate 14.88 Mpps",
        lines: LINE,
        ..NONE
    },
    compared: NONE,
    quoted: NONE,
    method: "volley bench, tables of networks /24 with random destinations inside them, up to 2^24 entries (quick: 2^16), as the paper has them; up to 2^20 destinations are used in turn. The paper has a network card.",
    points: |level| {
        let exponents: &[u32] = choose(
            level,
            &[4, 10, 16],
            &[0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24],
        );
        let at = |n: &u32| {
            let entries = 1usize << n;
            let args = format!(
                "--scenario ip4 --prefixes {entries} --prefix-length 24 --destinations uniform --distinct 1048576"
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
        scale: Scale::Log2,
    },
    y: MPPS,
    metric: "mpps",
    parts: &[],
    fact: Fact {
        text: "The rate increases with the batch size and then stays about the same.",
        source: "",
    },
    published: Numbers {
        values: &[
            value("IPv4", "1", 2.36),
            value("IPv4", "16", 9.24),
            value("IPv4", "64", 10.68),
            value("IPv4", "256", 10.35),
        ],
        source: "the authors' data (github.com/emmericp/MoonRoute-data, input_batching/analysis/data), 3.0 GHz, as many packets sent at once as received (2 for 1)",
        ..NONE
    },
    compared: NONE,
    quoted: NONE,
    method: "volley bench; the source sends as many packets at once. The batch size of the transmit side is the same: the graph does not collect packets of several rounds.",
    points: |level| {
        let sizes: &[usize] = choose(
            level,
            &[1, 16, 64, 256],
            &[1, 2, 4, 8, 16, 32, 64, 128, 256],
        );
        let at = |n: &usize| point(*n, format!("--scenario ip4 --maxframe {n}"));
        sizes.iter().map(at).collect()
    },
    judge: |curves| rises_to_a_plateau(curves, 2.0, 256.0),
};

/// Table 1: share of each module.
pub const MODULES: Figure = Figure {
    name: "moonroute-t1",
    paper: PAPER,
    number: "table 1",
    title: "Share of the time by module",
    x: Axis {
        title: "module",
        scale: Scale::Names,
    },
    y: Axis {
        title: "percent of the cycles",
        scale: Scale::Linear,
    },
    metric: SHARE,
    parts: &[],
    fact: Fact {
        text: "The time of forwarding is divided among reception, lookup, change of the header and transmission.",
        source: NOT_TRANSCRIBED,
    },
    published: NONE,
    compared: NONE,
    quoted: NONE,
    method: "Clocks of all nodes, of the source (pg-input: reception) and of the loop (worker-loop) of volley bench, 65,536 destinations over 130,000 routes, all repetitions together. The paper has a network card.",
    points: |_| {
        let args = "--scenario ip4 --prefixes 130000 --destinations uniform";
        vec![point(0, args.to_owned())]
    },
    judge: largest_share,
};

/// Names the module with the largest share. The paper's shares are not known here, so the shape is not judged.
fn largest_share(curves: &[Curve]) -> Shape {
    let shares = curves.iter().flat_map(|c| &c.points);
    let Some(largest) = shares.max_by(|a, b| a.y.total_cmp(&b.y)) else {
        return unknown();
    };
    Shape {
        agrees: None,
        why: format!(
            "The largest share is that of {}, {:.0} % of the cycles; the shares of the paper are not known here.",
            largest.label, largest.y
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_that_add_little_do_not_scale() {
        let of =
            |points: &[(f64, f64)]| rises_with_cores(&[Curve::at_positions("IPv4", points)]).agrees;
        assert_eq!(of(&[(1.0, 1.0), (2.0, 1.9)]), Some(true));
        assert_eq!(of(&[(1.0, 1.0), (2.0, 1.9), (4.0, 2.1)]), Some(false));
        assert_eq!(of(&[(1.0, 1.0)]), None);
    }

    #[test]
    fn the_module_with_the_largest_share_is_named() {
        let shape = largest_share(&[Curve::at_positions("IPv4", &[(0.0, 20.0), (1.0, 80.0)])]);
        assert_eq!(shape.agrees, None);
        assert!(
            shape
                .why
                .starts_with("The largest share is that of 1, 80 % ")
        );
        assert_eq!(largest_share(&[]), unknown());
    }
}
