//! Figures of the benchmark of software switches, and the comparison of the VPP paper with DPDK's forwarding.

use super::definition::{Axis, Fact, Figure, NONE, Numbers, Point, Scale, choose, linear, value};
use super::shape::{Curve, Shape, falls_to, unknown};
use super::vpp;
use crate::level::Level;
use crate::switch::{ADAPTERS, Spec, can_make_namespaces, kinds};

const PAPER: &str = "Zhang, Linguaglossa, Gallo, Giaccone, Iannone, Roberts: Comparing the Performance of State-of-the-Art Software Switches for NFV (CoNEXT 2019)";
const AUTHORS: &str = "VPP, in the authors' demonstration of the method (NetSoft 2019; github.com/ztz1989/software-switches.github.io, assets/js/demo3.js, commit 526bbbf), 10 Gbit/s cards, VMs, one core of 2.6 GHz";
const METHOD: &str = "The switch and each VNF are processes, a VNF in its own network namespace where the system allows it; this program generates and receives. A physical port is a memif port, for want of cards, or a veth pair where the figure says so. As many packets as possible are offered; the rate of those that come back counts. All processes poll and share the processors of this machine, so levels mean little when there are fewer processors than processes.";
const ONE: &str = "virtio-user, one way";
const BOTH: &str = "virtio-user, both ways";
const MEMIF: &str = "memif, one way";
const SIZES: [&str; 3] = ["64", "256", "1024"];

/// A curve: its name, and the arguments behind the scenario.
type Way<'a> = (&'static str, &'a str);

const WAYS: [Way<'static>; 3] = [(ONE, ""), (BOTH, "--both"), (MEMIF, "--ports memif")];

/// Points of Volley, and of every peer that this machine has and that can have the ports.
fn with_peers(scenario: &str, ways: &[Way<'_>], level: Level) -> Vec<Point> {
    let mut points = by_size(scenario, ways, level);
    let peers = ADAPTERS.into_iter().filter(|a| a.program.is_some());
    for peer in peers.filter(|a| a.missing().is_none()) {
        let ports = ["", "--physical veth"];
        let fits = |more: &&str| {
            let spec = Spec::of(&format!("{scenario} {more}"));
            spec.is_ok_and(|spec| peer.has(&kinds(&spec)))
        };
        if let Some(more) = ports.into_iter().find(fits) {
            let more = format!("{more} --peer {}", peer.name);
            points.extend(by_size(scenario, &[(peer.title, &more)], level));
        }
    }
    points
}

fn by_size(scenario: &str, ways: &[Way<'_>], level: Level) -> Vec<Point> {
    let sizes = choose(level, &SIZES[..1], &SIZES);
    let of = |(series, more): &Way<'_>| {
        let at = |(x, size): (usize, &&'static str)| Point {
            series,
            x: x as f64,
            label: (*size).to_owned(),
            args: format!("switch {scenario} --size {size} {more}"),
        };
        sizes.iter().enumerate().map(at).collect::<Vec<_>>()
    };
    ways.iter().flat_map(of).collect()
}

/// Names the medians of the smallest packets: which switch is faster depends on the processors, so no shape is judged.
fn smallest(curves: &[Curve]) -> Shape {
    let first = |c: &Curve| Some(format!("{}: {:.2}", c.series, c.points.first()?.1));
    let texts: Vec<String> = curves.iter().filter_map(first).collect();
    match texts.is_empty() {
        true => unknown(),
        false => Shape {
            agrees: None,
            why: format!("Gbit/s with 64 bytes: {}.", texts.join("; ")),
        },
    }
}

/// Larger packets give more bits, and never fewer.
fn rises_with_the_size(curves: &[Curve]) -> Shape {
    let shape = smallest(curves);
    let long: Vec<&Curve> = curves.iter().filter(|c| c.points.len() > 1).collect();
    if long.is_empty() {
        return shape;
    }
    let rises = long.iter().all(|c| c.gain().is_some_and(|gain| gain > 1.0));
    Shape {
        agrees: Some(rises),
        why: format!(
            "Throughput {} with the size of packets. {}",
            if rises {
                "rises"
            } else {
                "does not rise everywhere"
            },
            shape.why
        ),
    }
}

/// Figure 4: between two physical ports.
pub const P2P: Figure = Figure {
    name: "switch-p2p",
    paper: PAPER,
    number: "4",
    title: "Throughput between two physical ports (p2p)",
    x: Axis {
        title: "bytes of a packet",
        scale: Scale::Names,
    },
    y: linear("Gbit/s on the wire"),
    metric: "gbps",
    parts: &[],
    fact: Fact {
        text: "Throughput in bits increases with the size of packets, up to the rate of the line.",
        source: "",
    },
    published: Numbers {
        values: &[
            value(MEMIF, "64", 10.0),
            value(MEMIF, "256", 10.0),
            value(MEMIF, "1024", 10.0),
        ],
        source: AUTHORS,
    },
    compared: NONE,
    quoted: NONE,
    method: METHOD,
    points: |level| {
        let mut ways = vec![
            (MEMIF, ""),
            ("memif, both ways", "--both"),
            ("memif, reversed", "--reverse"),
        ];
        if can_make_namespaces() {
            ways.push(("veth, one way", "--physical veth"));
        }
        with_peers("p2p", &ways, level)
    },
    judge: rises_with_the_size,
};

/// Figure 5: between a physical port and a VNF.
pub const P2V: Figure = Figure {
    name: "switch-p2v",
    number: "5",
    title: "Throughput from a physical port to a VNF (p2v)",
    published: Numbers {
        values: &[
            value(ONE, "64", 6.93),
            value(ONE, "256", 10.0),
            value(ONE, "1024", 10.0),
            value(BOTH, "64", 5.86),
            value(BOTH, "256", 15.72),
            value(BOTH, "1024", 20.0),
        ],
        source: AUTHORS,
    },
    points: |level| with_peers("p2v", &WAYS, level),
    ..P2P
};

/// Figure 6: between VNFs.
pub const V2V: Figure = Figure {
    name: "switch-v2v",
    number: "6",
    title: "Throughput from a VNF to another (v2v)",
    published: Numbers {
        values: &[
            value(ONE, "64", 4.54),
            value(ONE, "256", 11.44),
            value(ONE, "1024", 23.80),
            value(BOTH, "64", 4.29),
            value(BOTH, "256", 10.42),
            value(BOTH, "1024", 23.39),
        ],
        source: AUTHORS,
    },
    points: |level| with_peers("v2v", &WAYS, level),
    ..P2P
};

/// Figure 7: chains of VNFs.
pub const LOOPBACK: Figure = Figure {
    name: "switch-loopback",
    number: "7",
    title: "Throughput of chains of VNFs (loopback), 64 bytes",
    x: Axis {
        title: "VNFs of the chain",
        scale: Scale::Linear,
    },
    fact: Fact {
        text: "Throughput decreases with the length of the chain: every VNF adds two passes through the switch.",
        source: "",
    },
    published: Numbers {
        values: &[
            value(ONE, "1", 3.13),
            value(ONE, "2", 1.65),
            value(ONE, "3", 1.13),
            value(ONE, "4", 0.84),
            value(ONE, "5", 0.70),
            value(BOTH, "1", 2.85),
            value(BOTH, "2", 1.64),
            value(BOTH, "3", 1.12),
            value(BOTH, "4", 0.86),
            value(BOTH, "5", 0.69),
        ],
        source: AUTHORS,
    },
    points: |level| {
        let lengths: &[u32] = choose(level, &[1, 3], &[1, 2, 3, 4, 5]);
        let of = |(series, more): &Way<'_>| {
            let at = |n: &u32| Point {
                series,
                x: f64::from(*n),
                label: n.to_string(),
                args: format!("switch loopback --vnfs {n} {more}"),
            };
            lengths.iter().map(at).collect::<Vec<_>>()
        };
        WAYS.iter().flat_map(of).collect()
    },
    judge: |curves| falls_to(curves, 0.9),
    ..P2P
};

/// Figures 8 to 10: round-trip times.
pub const RTT: Figure = Figure {
    name: "switch-rtt",
    number: "8 to 10",
    title: "Time through the switch, by scenario and part of the largest rate",
    x: Axis {
        title: "scenario, part of the largest rate R+",
        scale: Scale::Names,
    },
    y: linear("microseconds"),
    metric: "",
    parts: &["minimum", "median", "p90", "p99"],
    fact: Fact {
        text: "Times increase with the load, and with the number of VNFs.",
        source: "The paper's numbers were not found in a form that can be cited.",
    },
    published: NONE,
    method: "The bars are quantiles of the distribution functions that the paper draws. From the time at which a packet is due to its arrival at the sink; generator and sink are one program, so one clock is read. VNFs have virtio-user ports; a physical port is a memif port. The quieter half of the trials counts.",
    points: |level| {
        let kinds: &[(&str, &str)] = choose(
            level,
            &[("p2p", "p2p"), ("chain of 1", "loopback")],
            &[
                ("p2p", "p2p"),
                ("p2v", "p2v"),
                ("v2v", "v2v"),
                ("chain of 1", "loopback"),
                ("chain of 3", "loopback --vnfs 3"),
            ],
        );
        let loads = ["0.1", "0.5", "0.99"];
        let all = kinds.iter().flat_map(|kind| loads.map(|load| (kind, load)));
        let at = |(x, ((name, scenario), load)): (usize, (&(&str, &str), &str))| Point {
            series: "time",
            x: x as f64,
            label: format!("{name} {load}"),
            args: format!("switch {scenario} --load {load}"),
        };
        all.enumerate().map(at).collect()
    },
    judge: |curves| {
        let text = |c: &Curve| Some(format!("{} {:.1} us", c.series, c.points.first()?.1));
        let texts: Vec<String> = curves.iter().filter_map(text).collect();
        match texts.is_empty() {
            true => unknown(),
            false => Shape {
                agrees: None,
                why: format!("p2p at 0.1 R+: {}.", texts.join(", ")),
            },
        }
    },
    ..P2P
};

/// Figure 12 of the VPP paper: comparison with DPDK's forwarding.
pub const DPDK: Figure = Figure {
    name: "vpp-12",
    paper: vpp::PAPER,
    number: "12",
    title: "Forwarding between two ports in four allocations of cores, beside DPDK's testpmd",
    x: Axis {
        title: "allocation",
        scale: Scale::Names,
    },
    fact: Fact {
        text: "A cross-connect costs little more than DPDK's plain forwarding.",
        source: "The paper's numbers were not found in a form that can be cited.",
    },
    published: NONE,
    method: "Volley's patch and testpmd in io mode as processes between two memif ports, packets of 64 bytes in both directions; of two workers, each has one direction. The threads of the switch are pinned; the generator, this program, is not, and shares the processors with them, so levels mean little when there are fewer than four. testpmd is left out where it is not installed.",
    points: |_| {
        let peer = |(series, peer): (&'static str, &'static str)| {
            let at = |(x, (label, allocation)): (usize, (&str, _))| Point {
                series,
                x: x as f64,
                label: label.to_owned(),
                args: format!(
                    "switch p2p --both --peer {peer} --cores {}",
                    vpp::name_of(allocation)
                ),
            };
            let all = vpp::ALLOCATIONS.into_iter().enumerate();
            all.map(at).collect::<Vec<_>>()
        };
        let both = [("Volley", "volley"), ("DPDK testpmd", "testpmd")];
        let here = |(_, name): &(&str, &str)| {
            let mut all = ADAPTERS.into_iter();
            all.any(|a| a.name == *name && a.missing().is_none())
        };
        both.into_iter().filter(here).flat_map(peer).collect()
    },
    judge: |curves| {
        let second = |name: &str| {
            let curve = curves.iter().find(|c| c.series == name)?;
            Some(curve.points.get(1)?.1)
        };
        match (second("Volley"), second("DPDK testpmd")) {
            (Some(ours), Some(theirs)) => Shape {
                agrees: Some(ours >= 0.7 * theirs),
                why: format!(
                    "With control and worker on two cores, Volley forwards {ours:.2} Gbit/s and testpmd {theirs:.2}."
                ),
            },
            _ => unknown(),
        }
    },
    ..P2P
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn throughput_that_falls_with_the_size_differs() {
        let curve = |ys: &[f64]| Curve {
            series: "x".to_owned(),
            points: ys.iter().enumerate().map(|(x, y)| (x as f64, *y)).collect(),
        };
        assert_eq!(
            rises_with_the_size(&[curve(&[1.0, 3.0])]).agrees,
            Some(true)
        );
        assert_eq!(
            rises_with_the_size(&[curve(&[3.0, 1.0])]).agrees,
            Some(false)
        );
        assert_eq!(rises_with_the_size(&[curve(&[3.0])]).agrees, None);
        assert_eq!(rises_with_the_size(&[]).agrees, None);
    }
}
