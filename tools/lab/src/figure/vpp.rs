//! Figures of the VPP paper.

use super::definition::{Axis, Fact, Figure, NONE, Numbers, Point, Scale, choose, value};
use super::shape::{Curve, Shape, falls_to, rises_by, rises_to_a_plateau, unknown};
use crate::allocation::Allocation;
use crate::meter::NODE;
use clap::ValueEnum;

pub const PAPER: &str = "Barach, Linguaglossa, Marion, Pfister, Pontarelli, Rossi: High-Speed Software Data Plane via Vectorized Packet Processing (2018)";
const NO_NUMBERS: &str = "The paper's numbers are not transcribed.";
/// Where the paper's authors have published numbers of figure 6.
pub const DEMONSTRATION: &str = "a demonstration of an author of the paper (github.com/ztz1989/software-switches.github.io, assets/js/demo2.js, commit 526bbbf), which does not name the figure; one core, 10 Gbit/s cards";
/// Figures of the peer from another day: shapes can be compared, levels only roughly.
const RATES: &str = "VPP 26.10-rc0 on 24 November 2026, one core of an AMD EPYC (Zen 4, TSC 2.596 GHz), source and main loop included";
const GRAPH: &str = "VPP 26.10-rc0 in November 2026, one core of an AMD EPYC (Zen 4, TSC 2.596 GHz), graph without the source";

pub fn point(series: &'static str, x: f64, label: &str, args: String) -> Point {
    Point {
        series,
        x,
        label: label.to_owned(),
        args,
    }
}

const CYCLES: Axis = Axis {
    title: "TSC cycles per packet",
    scale: Scale::Linear,
};

/// Figure 5: actual vector size.
pub const OFFERED: Figure = Figure {
    name: "vpp-5",
    paper: PAPER,
    number: "5",
    title: "Actual vector size by offered rate",
    x: Axis {
        title: "offered rate, Mpps",
        scale: Scale::Linear,
    },
    y: Axis {
        title: "packets per call of a node",
        scale: Scale::Linear,
    },
    metric: "vector_size",
    parts: &[],
    fact: Fact {
        text: "Vectors are short at low rates and become longer with the load, up to the largest size.",
        source: NO_NUMBERS,
    },
    published: NONE,
    compared: NONE,
    quoted: NONE,
    method: "volley bench --rate, packets of 64 bytes from memory, one core, one route, largest size 256: packets per call over all nodes but the source. Offered rates beyond the capacity give the largest size that the graph reaches; in MIX, the nodes of one protocol get a third of a vector.",
    points: |level| {
        let rates: &[u32] = choose(
            level,
            &[2, 5, 10, 20, 40],
            &[1, 2, 5, 10, 15, 20, 25, 30, 35, 40, 50],
        );
        let kinds = [("XC", "xc"), ("IPv4", "ip4"), ("MIX", "mix")];
        let of = |(series, scenario): (&'static str, &str)| {
            let at = |n: &u32| {
                let args = format!("--scenario {scenario} --rate {n}000000 --buffers 4096");
                point(series, f64::from(*n), &n.to_string(), args)
            };
            rates.iter().map(at).collect::<Vec<_>>()
        };
        kinds.into_iter().flat_map(of).collect()
    },
    judge: |curves| rises_by(curves, 3.0),
};

/// Figure 6a: rate by the largest vector size.
pub const VECTOR_SIZE: Figure = Figure {
    name: "vpp-6a",
    paper: PAPER,
    number: "6a",
    title: "Rate by the largest vector size",
    x: Axis {
        title: "largest vector size, packets",
        scale: Scale::Log2,
    },
    y: Axis {
        title: "Mpps",
        scale: Scale::Linear,
    },
    metric: "mpps",
    parts: &[],
    fact: Fact {
        text: "The rate increases with the vector size and is flat above 256 packets.",
        source: "",
    },
    published: Numbers {
        values: &[
            value("XC", "4", 3.24),
            value("XC", "16", 7.23),
            value("XC", "64", 10.86),
            value("XC", "256", 12.24),
            value("IPv4", "4", 2.82),
            value("IPv4", "16", 5.68),
            value("IPv4", "64", 8.15),
            value("IPv4", "256", 9.09),
            value("MIX", "4", 1.53),
            value("MIX", "16", 3.34),
            value("MIX", "64", 5.90),
            value("MIX", "256", 7.21),
        ],
        source: DEMONSTRATION,
    },
    compared: Numbers {
        values: &[
            value("XC", "4", 13.0),
            value("XC", "16", 34.0),
            value("XC", "64", 61.0),
            value("XC", "256", 67.0),
            value("IPv4", "4", 5.3),
            value("IPv4", "16", 15.4),
            value("IPv4", "64", 31.0),
            value("IPv4", "256", 34.0),
        ],
        source: RATES,
    },
    quoted: NONE,
    method: "volley bench, packets of 64 bytes from memory, one core, one route; the paper has a 10 Gbit/s card. Rate of wall-clock time with the source.",
    points: |level| {
        let sizes: &[u32] = choose(
            level,
            &[4, 16, 64, 256, 1024],
            &[4, 8, 16, 32, 64, 128, 256, 512, 1024],
        );
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
        scale: Scale::Names,
    },
    y: CYCLES,
    metric: NODE,
    parts: &[],
    fact: Fact {
        text: "Cross-connect costs least, IPv6 most; lookup and rewrite are among the most expensive nodes of routing.",
        source: NO_NUMBERS,
    },
    published: NONE,
    // Names are those of Volley's nodes.
    compared: Numbers {
        values: &[
            value("IPv4", "ethernet-input", 6.4),
            value("IPv4", "ip4-input", 11.4),
            value("IPv4", "ip4-lookup", 14.3),
            value("IPv4", "ip4-rewrite", 13.2),
            value("IPv4", "interface-output", 3.1),
        ],
        source: GRAPH,
    },
    quoted: NONE,
    method: "Node clocks of volley bench, vectors of 256 packets, one route: sums over all repetitions. The source is excluded.",
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
        scale: Scale::Names,
    },
    y: CYCLES,
    metric: "cycles",
    parts: &[],
    fact: Fact {
        text: "Loops over several packets cost fewer cycles than one packet at a time.",
        source: NO_NUMBERS,
    },
    published: NONE,
    compared: NONE,
    quoted: NONE,
    method: "The first four styles are one node of the benchmark with the whole path (checks, lookup, rewrite): one or four packets a step, with and without a prefetch of the packets 8 rows ahead. The columns are Volley's graph by instruction-set level. 16,384 buffers, which do not fit the caches of a core, and 65,536 destinations over 130,000 routes. The paper changes the loops of VPP's nodes.",
    points: |_| {
        let styles = [
            ("one by one", "loop single", ""),
            ("one by one, prefetch", "loop prefetch", ""),
            ("unrolled", "loop unrolled", ""),
            ("unrolled, prefetch", "loop unrolled-prefetch", ""),
            ("columns, scalar", "", "--isa scalar"),
            ("columns, best", "", ""),
        ];
        let of = |(series, scenario): (&'static str, &str)| {
            let at = |(x, (label, task, more)): (usize, (&str, &str, &str))| {
                let args = format!(
                    "{task} --scenario {scenario} --buffers 16384 --prefixes 130000 --destinations uniform {more}"
                );
                let args = args.trim().to_owned();
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
    title: "Cycles per packet by destination pattern, 130,000 routes",
    x: Axis {
        title: "destinations",
        scale: Scale::Names,
    },
    y: CYCLES,
    metric: "cycles",
    parts: &[],
    fact: Fact {
        text: "One destination is fastest, and destinations at random over the table are slowest.",
        source: NO_NUMBERS,
    },
    published: NONE,
    compared: Numbers {
        values: &[
            value("IPv4", "static", 54.0),
            value("IPv4", "round-robin", 83.0),
            value("IPv4", "uniform", 242.0),
        ],
        source: GRAPH,
    },
    quoted: NONE,
    method: "A synthetic table with the prefix lengths of a real one; 65,536 destinations. The paper shows rates; cycles of the graph do not depend on the cost of the source.",
    points: |_| {
        let at = |(x, pattern): (usize, &str)| {
            let args = format!("--scenario ip4 --prefixes 130000 --destinations {pattern}");
            point("IPv4", x as f64, pattern, args)
        };
        let patterns = ["static", "round-robin", "uniform"];
        patterns.into_iter().enumerate().map(at).collect()
    },
    judge: |curves| rises_by(curves, 1.05),
};

/// Figure 11: allocation of cores.
pub const ALLOCATION: Figure = Figure {
    name: "vpp-11",
    paper: PAPER,
    number: "11",
    title: "Rate by allocation of control thread and workers to cores",
    x: Axis {
        title: "allocation",
        scale: Scale::Names,
    },
    y: Axis {
        title: "Mpps of all workers",
        scale: Scale::Linear,
    },
    metric: "mpps",
    parts: &[],
    fact: Fact {
        text: "Two workers on two cores forward more than two on one core, which share its time.",
        source: NO_NUMBERS,
    },
    published: NONE,
    compared: NONE,
    quoted: NONE,
    method: "Packets of 64 bytes from memory, one route, threads pinned. The control thread has no work but its turn every half millisecond, as in an idle router. On two processors, the control thread has the first worker's core in the last allocation. Rate of wall-clock time with the source.",
    points: |_| {
        let kinds = [("IPv4", "ip4"), ("XC", "xc"), ("MIX", "mix")];
        let of = |(series, scenario): (&'static str, &str)| {
            let at = |(x, (label, allocation)): (usize, (&str, Allocation))| {
                let args = format!("cores {} --scenario {scenario}", name_of(allocation));
                point(series, x as f64, label, args)
            };
            ALLOCATIONS
                .into_iter()
                .enumerate()
                .map(at)
                .collect::<Vec<_>>()
        };
        kinds.into_iter().flat_map(of).collect()
    },
    judge: two_cores_forward_more,
};

/// The allocations in the order of the paper.
pub const ALLOCATIONS: [(&str, Allocation); 4] = [
    ("control and worker: one core", Allocation::OneCore),
    ("two cores", Allocation::TwoCores),
    ("two workers: one core", Allocation::WorkersOnOne),
    ("two workers: two cores", Allocation::TwoWorkers),
];

/// Name of an allocation on the command line.
pub fn name_of(allocation: Allocation) -> String {
    let value = allocation.to_possible_value();
    value.map_or(String::new(), |value| value.get_name().to_owned())
}

/// Gain of the second core from which the workers count as independent of each other.
const INDEPENDENT: f64 = 1.4;

/// Two workers on two cores forward more than on one core.
pub fn two_cores_forward_more(curves: &[Curve]) -> Shape {
    let at = |curve: &Curve, x: f64| curve.points.iter().find(|p| p.0 == x).map(|p| p.1);
    let gain = |curve: &Curve| Some((curve.series.clone(), at(curve, 3.0)? / at(curve, 2.0)?));
    let gains: Vec<(String, f64)> = curves.iter().filter_map(gain).collect();
    if gains.is_empty() {
        return unknown();
    }
    let texts = gains.iter().map(|(name, gain)| format!("{name} {gain:.2}"));
    Shape {
        agrees: Some(gains.iter().all(|(_, gain)| *gain >= INDEPENDENT)),
        why: format!(
            "Two workers on two cores forward, in multiples of two on one core: {}.",
            texts.collect::<Vec<_>>().join(", ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_workers_on_two_cores_are_compared_with_two_on_one() {
        let curve = |ys: &[f64]| Curve {
            series: "IPv4".to_owned(),
            points: ys.iter().enumerate().map(|(x, y)| (x as f64, *y)).collect(),
        };
        let good = two_cores_forward_more(&[curve(&[9.0, 10.0, 10.0, 19.0])]);
        assert_eq!(good.agrees, Some(true));
        assert!(good.why.contains("IPv4 1.90"), "{}", good.why);
        let bad = two_cores_forward_more(&[curve(&[9.0, 10.0, 10.0, 11.0])]);
        assert_eq!(bad.agrees, Some(false));
        assert_eq!(two_cores_forward_more(&[curve(&[9.0])]).agrees, None);
    }
}
