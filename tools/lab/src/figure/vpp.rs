//! Figures of the VPP paper.

use super::shape::{Curve, Shape, falls_to, rises_to_a_plateau, unknown};
use super::{Axis, Fact, Figure, Point, Value};

const PAPER: &str = "Barach, Linguaglossa, Marion, Pfister, Pontarelli, Rossi: High-Speed Software Data Plane via Vectorized Packet Processing (2018)";
const NO_NUMBERS: &str = "shape only: the paper's numbers are not transcribed";
/// The peer's figures, from a measurement on another day: only shapes can be compared.
const BASELINES: &str = "VPP 26.10-rc0, 24 November 2026, one core of an AMD EPYC (Zen 4), source and main loop included";

fn point(series: &'static str, x: f64, label: &str, args: String) -> Point {
    Point {
        series,
        x,
        label: label.to_owned(),
        args,
    }
}

const fn value(series: &'static str, x: f64, y: f64) -> Value {
    Value { series, x, y }
}

/// Figure 6a: rate by the largest vector size.
pub const VECTOR_SIZE: Figure = Figure {
    name: "vpp-6a",
    paper: PAPER,
    number: "6a",
    title: "Rate by the largest vector size",
    x: Axis {
        title: "largest vector size, packets",
        log: true,
    },
    y: Axis {
        title: "Mpps",
        log: false,
    },
    metric: "mpps",
    fact: Fact {
        text: "The rate increases with the vector size and is flat above 256 packets.",
        source: NO_NUMBERS,
    },
    values: &[
        value("XC", 4.0, 13.0),
        value("XC", 16.0, 34.0),
        value("XC", 64.0, 61.0),
        value("XC", 256.0, 67.0),
        value("IPv4", 4.0, 5.3),
        value("IPv4", 16.0, 15.4),
        value("IPv4", 64.0, 31.0),
        value("IPv4", 256.0, 34.0),
    ],
    values_source: BASELINES,
    method: "volley bench, packets of 64 bytes from memory, one core, one route; the paper has a 10 Gbit/s card. Rate of wall-clock time with the source.",
    points: |quick| {
        let sizes: &[u32] = match quick {
            true => &[4, 16, 64, 256, 1024],
            false => &[4, 8, 16, 32, 64, 128, 256, 512, 1024],
        };
        let kinds = [("XC", "xc"), ("IPv4", "ip4"), ("MIX", "mix")];
        let of = |(series, scenario): (&'static str, &str)| {
            let at = |n: &u32| {
                let args = format!("--scenario {scenario} --vector-size {n} --buffers 2048");
                point(series, f64::from(*n), &n.to_string(), args)
            };
            sizes.iter().map(at).collect::<Vec<_>>()
        };
        kinds.into_iter().flat_map(of).collect()
    },
    judge: |curves| rises_to_a_plateau(curves, 2.0, 256.0),
};

/// Figure 7: cycles per packet by node.
pub const NODES: Figure = Figure {
    name: "vpp-7",
    paper: PAPER,
    number: "7",
    title: "Cycles per packet of the graph, by node",
    x: Axis {
        title: "node",
        log: false,
    },
    y: Axis {
        title: "TSC cycles per packet",
        log: false,
    },
    metric: "nodes",
    fact: Fact {
        text: "Cross-connect costs least, IPv6 most; lookup and rewrite are among the most expensive nodes of routing.",
        source: NO_NUMBERS,
    },
    values: &[],
    values_source: "",
    method: "Node clocks of volley bench, vectors of 256 packets, one route, medians over the repetitions' sums. The source is excluded.",
    points: |_| {
        let of = |(series, scenario): (&'static str, &str)| {
            point(series, 0.0, "all nodes", format!("--scenario {scenario}"))
        };
        [
            ("XC", "xc"),
            ("L2", "bridge"),
            ("IPv4", "ip4"),
            ("IPv6", "ip6"),
        ]
        .map(of)
        .to_vec()
    },
    judge: by_scenario,
};

/// Sums of the nodes by scenario.
fn by_scenario(curves: &[Curve]) -> Shape {
    let sum = |name: &str| {
        let curve = curves.iter().find(|c| c.series == name)?;
        Some(curve.points.iter().map(|p| p.1).sum::<f64>())
    };
    let (Some(xc), Some(l2), Some(ip4), Some(ip6)) =
        (sum("XC"), sum("L2"), sum("IPv4"), sum("IPv6"))
    else {
        return unknown();
    };
    Shape {
        agrees: Some(xc < l2 && xc < ip4 && ip4 < ip6),
        why: format!(
            "The nodes of XC cost {xc:.1} cycles, of L2 {l2:.1}, of IPv4 {ip4:.1} and of IPv6 {ip6:.1}."
        ),
    }
}

/// Figure 8: style of the loop.
pub const STYLE: Figure = Figure {
    name: "vpp-8",
    paper: PAPER,
    number: "8",
    title: "Cycles per packet by style of the loop",
    x: Axis {
        title: "style",
        log: false,
    },
    y: Axis {
        title: "TSC cycles per packet",
        log: false,
    },
    metric: "cycles",
    fact: Fact {
        text: "Loops over several packets cost fewer cycles than one packet at a time.",
        source: NO_NUMBERS,
    },
    values: &[],
    values_source: "",
    method: "One packet at a time through the whole path (rtc), and columns by instruction-set level. Volley has no unrolled loops and no variant without prefetch, so these bars of the paper are missing.",
    points: |_| {
        let styles = [
            ("one by one", "--style rtc"),
            ("columns, scalar", "--isa scalar"),
            ("columns, best", "--isa auto"),
        ];
        let of = |(series, scenario): (&'static str, &str)| {
            let at = |(x, (label, args)): (usize, (&str, &str))| {
                let args = format!("--scenario {scenario} {args}");
                point(series, x as f64, label, args)
            };
            styles.into_iter().enumerate().map(at).collect::<Vec<_>>()
        };
        [("IPv4", "ip4"), ("IPv6", "ip6")]
            .into_iter()
            .flat_map(of)
            .collect()
    },
    judge: |curves| falls_to(curves, 0.9),
};

/// Figure 9: traffic pattern.
pub const DESTINATIONS: Figure = Figure {
    name: "vpp-9",
    paper: PAPER,
    number: "9",
    title: "Rate by destination pattern, 130,000 routes",
    x: Axis {
        title: "destinations",
        log: false,
    },
    y: Axis {
        title: "Mpps",
        log: false,
    },
    metric: "mpps",
    fact: Fact {
        text: "One destination is fastest, and destinations at random over the table are slowest.",
        source: NO_NUMBERS,
    },
    values: &[],
    values_source: "",
    method: "A synthetic table with the prefix lengths of a real one; 65,536 destinations. Quick: 20,000 routes.",
    points: |quick| {
        let routes = if quick { 20_000 } else { 130_000 };
        let at = |(x, pattern): (usize, &str)| {
            let args = format!("--scenario ip4 --prefixes {routes} --destinations {pattern}");
            point("IPv4", x as f64, pattern, args)
        };
        let patterns = ["static", "round-robin", "uniform"];
        patterns.into_iter().enumerate().map(at).collect()
    },
    judge: |curves| falls_to(curves, 0.95),
};
