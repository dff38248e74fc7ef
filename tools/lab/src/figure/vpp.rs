//! Figures of the VPP paper.

use super::definition::{
    Axis, Fact, Figure, NONE, NOT_TRANSCRIBED, Numbers, Point, Scale, choose, value,
};
use super::shape::{Curve, Shape, named, rises_by, rises_to_a_plateau, unknown};
use crate::allocation::Allocation;
use crate::meter::NODE;
use clap::ValueEnum;

pub const PAPER: &str = "Barach, Linguaglossa, Marion, Pfister, Pontarelli, Rossi: High-Speed Software Data Plane via Vectorized Packet Processing (2018)";
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

/// Scenarios of the paper: names of their curves, arguments of the benchmark.
pub const KINDS: [(&str, &str); 3] = [("XC", "xc"), ("IPv4", "ip4"), ("MIX", "mix")];

/// A curve of each scenario, with a point for each number; `args` gets scenario and number.
pub fn by_number(numbers: &[u32], args: impl Fn(&str, u32) -> String) -> Vec<Point> {
    let of = |(series, scenario): (&'static str, &str)| {
        let at = |n: &u32| point(series, f64::from(*n), &n.to_string(), args(scenario, *n));
        numbers.iter().map(at).collect::<Vec<_>>()
    };
    KINDS.into_iter().flat_map(of).collect()
}

/// Points by the largest vector size; `task` chooses the measurement.
pub fn by_vector_size(task: &str, sizes: &[u32]) -> Vec<Point> {
    by_number(sizes, |scenario, n| {
        format!("{task}--scenario {scenario} --vector-size {n} --buffers 2048")
    })
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
        source: NOT_TRANSCRIBED,
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
        by_number(rates, |scenario, n| {
            format!("--scenario {scenario} --rate {n}000000 --buffers 4096")
        })
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
        ..NONE
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
        ..NONE
    },
    quoted: NONE,
    method: "volley bench, packets of 64 bytes from memory, one core, one route; the paper has a 10 Gbit/s card. Packets per second of wall-clock time, the source included.",
    points: |level| {
        let sizes: &[u32] = choose(
            level,
            &[4, 16, 64, 256, 1024],
            &[4, 8, 16, 32, 64, 128, 256, 512, 1024],
        );
        by_vector_size("", sizes)
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
        source: NOT_TRANSCRIBED,
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
        ..NONE
    },
    quoted: NONE,
    method: "Node clocks of volley bench, vectors of 256 packets, one route, all repetitions together. The source is excluded.",
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
    let sum = |name: &str| Some(named(curves, name)?.points.iter().map(|p| p.y).sum::<f64>());
    let (Some(xc), Some(l2), Some(ip4), Some(ip6)) =
        (sum("XC"), sum("L2"), sum("IPv4"), sum("IPv6"))
    else {
        return unknown();
    };
    Shape {
        agrees: Some(xc < l2.min(ip4) && ip6 > l2.max(ip4)),
        why: format!(
            "The nodes of XC cost {xc:.1} cycles per packet together, those of L2 {l2:.1}, of IPv4 {ip4:.1} and of IPv6 {ip6:.1}."
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
        source: NOT_TRANSCRIBED,
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
    judge: unrolling_pays,
};

/// The loop over several packets costs less than the loop over one, in the better case of each. Columns are not of the paper: the
/// sentence has their cost, too.
fn unrolling_pays(curves: &[Curve]) -> Shape {
    let better = |curve: &Curve, [a, b]: [f64; 2]| {
        let all = [curve.at(a), curve.at(b)].into_iter().flatten();
        all.min_by(f64::total_cmp)
    };
    let each = curves.iter().filter_map(|curve| {
        let (one, several) = (better(curve, [0.0, 1.0])?, better(curve, [2.0, 3.0])?);
        let columns = curve.at(5.0);
        let columns = columns.map_or(String::new(), |c| format!(", and columns {c:.1}"));
        let text = format!(
            "{}: the better loop over one packet costs {one:.1} cycles per packet, the better one over four {several:.1}{columns}",
            curve.series
        );
        Some((several < one, text))
    });
    let (agree, texts): (Vec<bool>, Vec<String>) = each.unzip();
    match texts.is_empty() {
        true => unknown(),
        false => Shape {
            agrees: Some(agree.into_iter().all(|agrees| agrees)),
            why: texts.join("; ") + ".",
        },
    }
}

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
        source: NOT_TRANSCRIBED,
    },
    published: NONE,
    compared: Numbers {
        values: &[
            value("IPv4", "static", 54.0),
            value("IPv4", "round-robin", 83.0),
            value("IPv4", "uniform", 242.0),
        ],
        source: GRAPH,
        ..NONE
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
        source: NOT_TRANSCRIBED,
    },
    published: NONE,
    compared: NONE,
    quoted: NONE,
    method: "Packets of 64 bytes from memory, one route, threads pinned. The control thread has no work but its turn every half millisecond, as in an idle router. On two processors, the control thread has the first worker's core in the last allocation. Packets per second of wall-clock time, the source included.",
    points: |_| {
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
        KINDS.into_iter().flat_map(of).collect()
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
    // Workers that had no time at all decide nothing.
    let gain = |curve: &Curve| {
        let one = curve.at(2.0).filter(|rate| *rate > 0.0)?;
        Some((curve.series.clone(), curve.at(3.0)? / one))
    };
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
        let curve = |ys: &[f64]| Curve::of("IPv4", ys);
        let good = two_cores_forward_more(&[curve(&[9.0, 10.0, 10.0, 19.0])]);
        assert_eq!(good.agrees, Some(true));
        assert!(good.why.contains("IPv4 1.90"), "{}", good.why);
        let bad = two_cores_forward_more(&[curve(&[9.0, 10.0, 10.0, 11.0])]);
        assert_eq!(bad.agrees, Some(false));
        assert_eq!(two_cores_forward_more(&[curve(&[9.0])]).agrees, None);
        let nothing = two_cores_forward_more(&[curve(&[9.0, 10.0, 0.0, 11.0])]);
        assert_eq!(nothing.agrees, None);
    }

    #[test]
    fn ipv6_costs_most_and_the_cross_connect_least() {
        let of = |costs: [f64; 4]| {
            let names = ["XC", "L2", "IPv4", "IPv6"];
            let curves: Vec<Curve> = names
                .iter()
                .zip(costs)
                .map(|(n, c)| Curve::of(n, &[c, 1.0]))
                .collect();
            by_scenario(&curves).agrees
        };
        assert_eq!(of([9.0, 20.0, 30.0, 40.0]), Some(true));
        assert_eq!(of([9.0, 50.0, 30.0, 40.0]), Some(false), "L2 costs most");
        assert_eq!(of([25.0, 20.0, 30.0, 40.0]), Some(false), "L2 costs least");
        assert_eq!(by_scenario(&[Curve::of("XC", &[1.0])]).agrees, None);
    }

    #[test]
    fn loops_are_compared_and_columns_are_not_loops() {
        let of = |ys: &[f64]| unrolling_pays(&[Curve::of("IPv4", ys)]);
        let good = of(&[90.0, 80.0, 85.0, 60.0, 50.0, 30.0]);
        assert_eq!(good.agrees, Some(true));
        let text = "IPv4: the better loop over one packet costs 80.0 cycles per packet, the better one over four 60.0, and columns 30.0.";
        assert_eq!(good.why, text);
        // Cheap columns do not make the loops agree with the paper.
        assert_eq!(
            of(&[90.0, 80.0, 85.0, 82.0, 50.0, 30.0]).agrees,
            Some(false)
        );
        let ends = Curve::at_positions("IPv4", &[(0.0, 90.0), (5.0, 30.0)]);
        assert_eq!(unrolling_pays(&[ends]).agrees, None);
    }
}
