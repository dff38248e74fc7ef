//! Figures of the benchmark of software switches, and the comparison of the VPP paper with DPDK's forwarding.

use super::definition::{
    Axis, Fact, Figure, NONE, NOT_FOUND, Numbers, Point, Scale, choose, linear, value,
};
use super::shape::{Curve, Shape, falls_to, named, unknown};
use super::vpp;
use crate::level::Level;
use crate::samples::TIME;
use crate::switch::{ADAPTERS, Adapter, Spec, can_make_namespaces, guest_missing, refusal};
use std::sync::LazyLock;

const PAPER: &str = "Zhang, Linguaglossa, Gallo, Giaccone, Iannone, Roberts: Comparing the Performance of State-of-the-Art Software Switches for NFV (CoNEXT 2019)";
const AUTHORS: &str = "VPP, in the authors' demonstration of the method (NetSoft 2019; github.com/ztz1989/software-switches.github.io, assets/js/demo3.js, commit 526bbbf), 10 Gbit/s cards, VMs, one core of 2.6 GHz";
const METHOD: &str = "The switch and each VNF are processes, a VNF in its own network namespace where the system allows it; this program generates and receives. A physical port is a memif port, for want of cards, or a veth pair where the figure says so. As many packets as possible are offered, and the rate of those that come back counts; the rates with bounded loss (p2p) are searched by trials as in RFC 2544 and RFC 9971. All processes poll and share the processors of this machine, so levels mean little when there are fewer processors than processes.";
const ONE: &str = "virtio-user, one way";
const BOTH: &str = "virtio-user, both ways";
const MEMIF: &str = "memif, one way";
const REVERSED: &str = "virtio-user, reversed";
const GUEST: &str = "emulated virtual machine, one way";
const SIZES: [&str; 3] = ["64", "256", "1024"];

/// A curve: its name, and the arguments behind the scenario.
type Way<'a> = (&'static str, &'a str);

const WAYS: [Way<'static>; 3] = [(ONE, ""), (BOTH, "--both"), (MEMIF, "--ports memif")];

/// Names of the curves of an adapter beside its title.
struct Names {
    both: String,
    /// Times of [`TIMES`].
    times: Vec<String>,
}

static NAMES: LazyLock<Vec<Names>> = LazyLock::new(|| {
    let of = |adapter: &Adapter| Names {
        both: format!("{}, both ways", adapter.title),
        times: TIMES
            .iter()
            .map(|(name, _)| format!("{name}, {}", adapter.title))
            .collect(),
    };
    ADAPTERS.into_iter().map(of).collect()
});

/// Whether a switch can be measured by these arguments.
fn fits(adapter: &Adapter, args: &str) -> bool {
    Spec::of(args).is_ok_and(|spec| refusal(adapter, &spec).is_none())
}

/// Arguments for the ports of peers, the first that a peer can have are used.
const PORTS: [&str; 4] = [
    "",
    "--physical veth",
    "--ports veth",
    "--physical veth --ports veth",
];
/// FRR decides the routes of the kernel's router, which is a peer: packets take the same path. Table 3 of MoonRoute has both.
const SAME_PATH: &str = "frr-router";

/// The adapters of other projects that this machine has and that can measure a scenario, with the arguments for their ports.
fn peers(scenario: &str) -> Vec<(&'static Adapter, &'static Names, &'static str)> {
    let fitting = |(adapter, names): (&'static Adapter, &'static Names)| {
        let mut ports = PORTS.into_iter();
        let more = ports.find(|more| fits(adapter, &format!("{scenario} {more}")))?;
        let is_other = adapter.program.is_some() && adapter.name != SAME_PATH;
        (is_other && adapter.missing().is_none()).then_some((adapter, names, more))
    };
    let all = ADAPTERS.into_iter().zip(NAMES.iter());
    all.filter_map(fitting).collect()
}

/// Points of Volley, and of the peers one way; in a full run both ways, too.
fn with_peers(scenario: &str, ways: &[Way<'_>], level: Level) -> Vec<Point> {
    let mut points = by_size(scenario, ways, level);
    for (adapter, names, more) in peers(scenario) {
        let one = format!("{more} --peer {}", adapter.name);
        points.extend(by_size(scenario, &[(adapter.title, &one)], level));
        let both = format!("{one} --both");
        if level.is_full() && fits(adapter, &format!("{scenario} {both}")) {
            points.extend(by_size(scenario, &[(&names.both, &both)], level));
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
    let smallest = |c: &Curve| Some(format!("{} {:.2}", c.series, c.at(0.0)?));
    let texts: Vec<String> = curves.iter().filter_map(smallest).collect();
    match texts.is_empty() {
        true => unknown(),
        false => Shape {
            agrees: None,
            why: format!(
                "Gbit/s with packets of {} bytes: {}.",
                SIZES[0],
                texts.join("; ")
            ),
        },
    }
}

/// The largest packets give more bits than the smallest.
fn rises_with_the_size(curves: &[Curve]) -> Shape {
    let shape = smallest(curves);
    let gains: Vec<(&str, f64)> = curves
        .iter()
        .filter_map(|c| Some((c.series.as_str(), c.gain()?)))
        .collect();
    if gains.is_empty() {
        return shape;
    }
    let falling = gains.iter().filter(|(_, gain)| *gain <= 1.0);
    let falling: Vec<&str> = falling.map(|(name, _)| *name).collect();
    let rises = match falling.is_empty() {
        true => "Throughput rises with the size of packets.".to_owned(),
        false => format!(
            "Throughput does not rise with the size of packets for: {}.",
            falling.join("; ")
        ),
    };
    Shape {
        agrees: Some(falling.is_empty()),
        why: match shape == unknown() {
            true => rises,
            false => format!("{rises} {}", shape.why),
        },
    }
}

/// Figure 4: between two physical ports.
pub const P2P: Figure = Figure {
    name: "switch-p2p",
    paper: PAPER,
    number: "4",
    title: "Throughput between two physical ports (p2p)",
    x: Axis {
        title: "bytes of a packet, with frame check sequence",
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
        lines: &[(MEMIF, 10.0)],
        ..NONE
    },
    compared: NONE,
    quoted: NONE,
    method: METHOD,
    points: |level| {
        let mut ways = vec![
            (MEMIF, ""),
            ("memif, both ways", "--both"),
            ("memif, reversed", "--reverse"),
            ("memif, loss of at most 0.5 % (PDR)", "--search pdr"),
            ("memif, no loss (NDR)", "--search ndr"),
        ];
        if can_make_namespaces() {
            ways.push(("veth, one way", "--physical veth"));
            ways.push(("veth by AF_XDP, one way", "--physical af-xdp"));
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
        lines: &[(ONE, 10.0), (BOTH, 20.0)],
        ..NONE
    },
    points: |level| {
        let mut ways = WAYS.to_vec();
        ways.insert(2, (REVERSED, "--reverse"));
        with_peers("p2v", &ways, level)
    },
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
        ..NONE
    },
    points: |level| with_peers("v2v", &WAYS, level),
    ..P2P
};

/// Figure 7: chains of VNFs.
pub const LOOPBACK: Figure = Figure {
    name: "switch-loopback",
    number: "7",
    title: "Throughput of chains of VNFs (loopback)",
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
        ..NONE
    },
    method: "The switch and each VNF are processes, a VNF in its own network namespace where the system allows it; packets have 64 bytes where the curve does not say otherwise. One curve has a VNF in a virtual machine (QEMU with an emulated processor; the bridge of its Linux kernel forwards between two virtio-net cards): it shows the function, its speed means nothing. All processes poll and share the processors of this machine, so levels mean little when there are fewer processors than processes.",
    points: chains,
    judge: chains_cost,
    ..P2P
};

/// Longer chains have less throughput. The virtual machine is emulated: its speed means nothing.
fn chains_cost(curves: &[Curve]) -> Shape {
    let real = curves.iter().filter(|c| c.series != GUEST);
    falls_to(&real.cloned().collect::<Vec<Curve>>(), 0.9)
}

/// Curves of chains in a full run, beside those with 64 bytes.
const SIZED: [Way<'static>; 4] = [
    ("virtio-user, one way, 256 bytes", "--size 256"),
    ("virtio-user, one way, 1024 bytes", "--size 1024"),
    ("virtio-user, both ways, 256 bytes", "--both --size 256"),
    ("virtio-user, both ways, 1024 bytes", "--both --size 1024"),
];

/// Points by the length of the chain.
fn chains(level: Level) -> Vec<Point> {
    let lengths: &'static [u32] = choose(level, &[1, 3], &[1, 2, 3, 4, 5]);
    let of = |series: &'static str, more: &str, lengths: &[u32]| -> Vec<Point> {
        let at = |n: &u32| Point {
            series,
            x: f64::from(*n),
            label: n.to_string(),
            args: format!("switch loopback --vnfs {n} {more}"),
        };
        lengths.iter().map(at).collect()
    };
    let sized = choose(level, &[], &SIZED);
    let ways = WAYS.iter().chain(sized);
    let mut points: Vec<Point> = ways
        .flat_map(|(series, more)| of(series, more, lengths))
        .collect();
    // In a short run, peers have the shortest chain.
    let few = choose(level, &lengths[..1], lengths);
    for (adapter, names, more) in peers("loopback") {
        let one = format!("{more} --peer {}", adapter.name);
        points.extend(of(adapter.title, &one, few));
        if level.is_full() {
            points.extend(of(&names.both, &format!("{one} --both"), lengths));
        }
    }
    if guest_missing().is_none() {
        points.extend(of(GUEST, "--guest", &[1]));
    }
    points
}

/// Scenarios of the figures of times: name, arguments.
const TIMES: [(&str, &str); 5] = [
    ("p2p", "p2p"),
    ("chain of 1", "loopback"),
    ("p2v", "p2v"),
    ("v2v", "v2v"),
    ("chain of 3", "loopback --vnfs 3"),
];
/// So many of them are part of a short run.
const FEW_TIMES: usize = 2;

/// Times through the switch at a part of the largest rate.
fn times(level: Level, load: &str) -> Vec<Point> {
    let point = |series: &'static str, scenario: &str, more: &str| Point {
        series,
        x: 0.0,
        label: "times".to_owned(),
        args: format!("switch {scenario} --load {load} {more}"),
    };
    let count = match level.is_full() {
        true => TIMES.len(),
        false => FEW_TIMES,
    };
    let mut points: Vec<Point> = TIMES[..count]
        .iter()
        .map(|(name, scenario)| point(name, scenario, ""))
        .collect();
    // Of the peers, the first two scenarios, in a short run the first one; those with the same ports as Volley.
    let count = count.div_ceil(2).min(FEW_TIMES);
    for (at, (_, scenario)) in TIMES.iter().enumerate().take(count) {
        for (adapter, names, more) in peers(scenario) {
            if more.is_empty() {
                let more = format!("--peer {}", adapter.name);
                points.push(point(&names.times[at], scenario, &more));
            }
        }
    }
    points
}

/// The median of a chain exceeds that of two ports.
fn chains_take_longer(curves: &[Curve]) -> Shape {
    let median = |name: &str| named(curves, name)?.at(0.5);
    match (median(TIMES[0].0), median(TIMES[1].0)) {
        (Some(ports), Some(chain)) => Shape {
            agrees: Some(chain > ports),
            why: format!(
                "The median is {ports:.1} us between two ports, and {chain:.1} us through a chain of one VNF."
            ),
        },
        _ => unknown(),
    }
}

/// Figure 8: distribution of the times at 0.1 R+.
pub const RTT_10: Figure = Figure {
    name: "switch-rtt-10",
    number: "8",
    title: "Distribution of the round-trip times at 0.1 of the largest rate R+",
    x: linear("part of the packets"),
    y: linear("microseconds"),
    metric: TIME,
    fact: Fact {
        text: "Times are longer through a chain of VNFs than between two ports, and increase with the load.",
        source: NOT_FOUND,
    },
    published: NONE,
    method: "From the time at which a packet is due in the generator, through the switch, to its arrival at the sink of the same program, so one clock is read. Each quantile is the median over the quieter half of the trials. VNFs have virtio-user ports; a physical port is a memif port. R+ is the largest rate that came back in a trial before.",
    points: |level| times(level, "0.1"),
    judge: chains_take_longer,
    ..P2P
};

/// Figure 9: at 0.5 R+.
pub const RTT_50: Figure = Figure {
    name: "switch-rtt-50",
    number: "9",
    title: "Distribution of the round-trip times at 0.5 of the largest rate R+",
    points: |level| times(level, "0.5"),
    ..RTT_10
};

/// Figure 10: at 0.99 R+.
pub const RTT_99: Figure = Figure {
    name: "switch-rtt-99",
    number: "10",
    title: "Distribution of the round-trip times at 0.99 of the largest rate R+",
    points: |level| times(level, "0.99"),
    ..RTT_10
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
        source: NOT_FOUND,
    },
    published: NONE,
    method: "Volley's patch and testpmd in io mode as processes between two memif ports, packets of 64 bytes in both directions; of two workers, each has one direction. The threads of the switch are pinned, and the generator to a processor without a worker, if there is one; levels mean little when there are fewer than four processors. Where testpmd is not installed, its points are not measured.",
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
        // The points of testpmd are part of every run: where it is not installed, their error is the reason.
        let both = [("Volley", "volley"), ("DPDK testpmd", "testpmd")];
        both.into_iter().flat_map(peer).collect()
    },
    judge: |curves| {
        let on_two_cores = |name: &str| named(curves, name)?.at(1.0);
        match (on_two_cores("Volley"), on_two_cores("DPDK testpmd")) {
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
    fn a_chain_that_is_faster_than_two_ports_differs() {
        let curve =
            |name: &str, median: f64| Curve::at_positions(name, &[(0.1, 1.0), (0.5, median)]);
        let of = |ports, chain| [curve("p2p", ports), curve("chain of 1", chain)];
        assert_eq!(chains_take_longer(&of(5.0, 9.0)).agrees, Some(true));
        assert_eq!(chains_take_longer(&of(9.0, 5.0)).agrees, Some(false));
        assert_eq!(chains_take_longer(&[curve("p2p", 1.0)]).agrees, None);
    }

    #[test]
    fn throughput_that_falls_with_the_size_differs() {
        let curve = |ys: &[f64]| Curve::of("x", ys);
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
        // A curve whose smallest packets were not measured has no value of them.
        let without = Curve::at_positions("y", &[(1.0, 2.0), (2.0, 3.0)]);
        let shape = rises_with_the_size(std::slice::from_ref(&without));
        assert_eq!(shape.why, "Throughput rises with the size of packets.");
        let shape = rises_with_the_size(&[without, curve(&[3.0, 1.0])]);
        assert_eq!(
            shape.why,
            "Throughput does not rise with the size of packets for: x. Gbit/s with packets of 64 bytes: x 3.00."
        );
    }

    #[test]
    fn an_emulated_machine_does_not_judge_chains() {
        let chain = Curve::at_positions(ONE, &[(1.0, 4.0), (3.0, 1.5)]);
        let guest = Curve::at_positions(GUEST, &[(1.0, 0.1)]);
        assert_eq!(chains_cost(&[chain, guest.clone()]).agrees, Some(true));
        assert_eq!(chains_cost(&[guest]).agrees, None);
    }

    #[test]
    fn no_point_is_refused_by_its_switch() {
        for figure in [P2P, P2V, V2V, LOOPBACK, RTT_50, DPDK] {
            for point in (figure.points)(Level::Full) {
                let spec = Spec::of(point.args.strip_prefix("switch ").unwrap());
                let spec = spec.unwrap_or_else(|why| panic!("{}: {why}", point.args));
                let adapter = ADAPTERS.into_iter().find(|a| a.name == spec.peer);
                assert_eq!(refusal(adapter.unwrap(), &spec), None, "{}", point.args);
            }
        }
    }
}
