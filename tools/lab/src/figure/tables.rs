//! Tables that compare with others: routers of the MoonRoute paper, the stages of the talk about IP in IP.

use super::definition::{Axis, Fact, Figure, NONE, Numbers, Point, Scale, Value, linear, value};
use super::moonroute::PAPER;
use super::shape::{Curve, Shape, named, unknown};
use crate::switch::ADAPTERS;

/// Curve of what is measured here, and of what others have published.
const HERE: &str = "measured here";
const OTHERS: &str = "published";

/// Packets per second of a published router, by core and GHz.
const fn router(name: &'static str, mpps: f64, cores: f64, ghz: f64) -> Value {
    value(OTHERS, name, mpps / cores / ghz)
}

/// Millions of packets of 64 bytes per second at this rate in Gbit/s.
const fn mpps_of(gbps: f64) -> f64 {
    gbps * 1000.0 / (8.0 * 64.0)
}

/// Table 2: published routers.
pub const ROUTERS: Figure = Figure {
    name: "moonroute-t2",
    paper: PAPER,
    number: "table 2",
    title: "Comparison with published routers, by core and clock",
    x: Axis {
        title: "router",
        scale: Scale::Names,
    },
    y: linear("Mpps per core and GHz"),
    metric: "per_ghz",
    parts: &[],
    fact: Fact {
        text: "Routers on different machines are compared by their rate with packets of 64 bytes, divided by the number of cores and by the clock.",
        source: "The text of the paper was not available: which routers its tables have is not known here.",
    },
    published: NONE,
    compared: NONE,
    quoted: Numbers {
        values: &[
            router("MoonRoute", 9.31, 1.0, 2.0),
            router("RouteBricks", mpps_of(9.689), 8.0, 2.8),
            router("VPP (2018)", 9.09, 1.0, 2.6),
        ],
        source: "MoonRoute: the authors' data (github.com/emmericp/MoonRoute-data, cpu_freq_scaling_2/analysis/data_no_random), one destination, 2.0 GHz. RouteBricks (SOSP 2009), minimal forwarding: data-from-other-people of the same repository. VPP: github.com/ztz1989/software-switches.github.io, assets/js/demo2.js, IPv4",
        ..NONE
    },
    method: "Volley: volley bench, packets of 64 bytes from memory, source and loop included, divided by the speed of the core. The others receive and transmit by network cards, which costs them cycles that Volley does not spend here.",
    points: |_| {
        let kinds = [
            ("Volley, one route", "--scenario ip4"),
            (
                "Volley, 130,000 routes",
                "--scenario ip4 --prefixes 130000 --destinations uniform",
            ),
        ];
        let at = |(x, (label, args)): (usize, (&str, &str))| Point {
            series: HERE,
            x: x as f64,
            label: label.to_owned(),
            args: args.to_owned(),
        };
        kinds.into_iter().enumerate().map(at).collect()
    },
    judge: |curves| beside(curves, "Mpps per core and GHz"),
};

/// Table 3: routers of this machine.
pub const HERE_ROUTERS: Figure = Figure {
    name: "moonroute-t3",
    number: "table 3",
    title: "Comparison with the routers of this machine, by clock",
    y: linear("Mpps per GHz of the time stamp counter"),
    quoted: NONE,
    method: "Routers as processes between two veth pairs, one route, one neighbour, packets of 64 bytes, one way: Volley by packet sockets, the router of the Linux kernel, and the same with the routes of FRR. As many packets as possible are offered. Generator, router and kernel share the processors of this machine.",
    points: |_| {
        let routers = ["volley-router", "linux-router", "frr-router"];
        let here = routers.into_iter().enumerate().filter_map(|(x, name)| {
            let adapter = ADAPTERS.into_iter().find(|a| a.name == name)?;
            // The first router always has a point, whose error is the reason without veth pairs.
            (x == 0 || adapter.missing().is_none()).then(|| Point {
                series: HERE,
                x: x as f64,
                label: adapter.title.replace(" (veth)", ""),
                args: format!("switch p2p --physical veth --peer {name}"),
            })
        });
        here.collect()
    },
    judge: |curves| beside(curves, "Mpps per GHz of the time stamp counter"),
    ..ROUTERS
};

/// Names the rates: they depend on the machines, so no shape is judged.
fn beside(curves: &[Curve], unit: &str) -> Shape {
    let values = |name: &str| -> Vec<String> {
        let of = named(curves, name).into_iter();
        of.flat_map(|c| &c.points)
            .map(|p| format!("{} {:.2}", p.label, p.y))
            .collect()
    };
    let (ours, others) = (values(HERE), values(OTHERS));
    if ours.is_empty() {
        return unknown();
    }
    let others = match others.is_empty() {
        true => String::new(),
        false => format!(". Published: {}", others.join("; ")),
    };
    Shape {
        agrees: None,
        why: format!("In {unit}, measured here: {}{others}.", ours.join("; ")),
    }
}

/// Curves of the talk.
const ONE: &str = "one pair";
const MANY: &str = "10,000 destinations";
/// The stages, in the order of the tutorial.
const STAGES: [&str; 6] = ["one", "vector", "prefetch", "unroll", "split", "columns"];

/// The table of the talk.
pub const TALK: Figure = Figure {
    name: "talk-table",
    paper: "The talk on optimising IP in IP in VPP",
    number: "table",
    title: "Cycles of a node of IP in IP by stage of its optimisation",
    x: Axis {
        title: "stage of the tutorial",
        scale: Scale::Names,
    },
    y: linear("TSC cycles of the node per packet"),
    metric: "clocks",
    parts: &[],
    fact: Fact {
        text: "Vectors and prefetches save most; prefetching the table saves a quarter when there are many destinations.",
        source: "",
    },
    published: Numbers {
        values: &[
            value(ONE, "one", 305.0),
            value(ONE, "vector", 71.5),
            value(ONE, "prefetch", 41.9),
            value(MANY, "prefetch", 71.4),
            value(MANY, "unroll", 55.3),
        ],
        source: "the talk, as the plugin of docs/tutorial/ip-in-ip has them",
        ..NONE
    },
    compared: NONE,
    quoted: NONE,
    method: "volley bench plugin with the plugin of the tutorial (docs/tutorial/ip-in-ip): 16,384 packets in circulation. The library is built from the sources and named with --plugin, or is beside the program.",
    points: |_| {
        let of = |(series, suffix): (&'static str, &str)| {
            let at = |(x, stage): (usize, &str)| Point {
                series,
                x: x as f64,
                label: stage.to_owned(),
                args: format!("plugin {stage}{suffix}"),
            };
            STAGES.into_iter().enumerate().map(at).collect::<Vec<_>>()
        };
        let all = [(ONE, ""), (MANY, "-10k")];
        all.into_iter().flat_map(of).collect()
    },
    judge: prefetching_pays,
};

/// With one pair, the stage with prefetches costs less than the first two.
fn prefetching_pays(curves: &[Curve]) -> Shape {
    let costs = named(curves, ONE).and_then(|one| Some([one.at(0.0)?, one.at(1.0)?, one.at(2.0)?]));
    let Some([first, second, third]) = costs else {
        return unknown();
    };
    let [one, vector, prefetch, ..] = STAGES;
    Shape {
        agrees: Some(third < second && third < first),
        why: format!(
            "With one pair of addresses, the node costs {first:.1} cycles in stage `{one}`, {second:.1} in `{vector}` and {third:.1} in `{prefetch}`."
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_rates_are_by_core_and_clock() {
        let values = ROUTERS.quoted.values;
        let of = |label: &str| values.iter().find(|v| v.label == label).unwrap().y;
        assert!((of("MoonRoute") - 4.655).abs() < 0.001);
        assert!((of("RouteBricks") - 0.845).abs() < 0.001);
    }

    #[test]
    fn the_stages_of_the_talk_are_compared() {
        let good = prefetching_pays(&[Curve::of(ONE, &[80.0, 70.0, 30.0, 40.0])]);
        assert_eq!(good.agrees, Some(true));
        let bad = prefetching_pays(&[Curve::of(ONE, &[80.0, 20.0, 30.0])]);
        assert_eq!(bad.agrees, Some(false));
        assert_eq!(prefetching_pays(&[Curve::of(ONE, &[80.0])]).agrees, None);
        // Without the first stage, later ones do not take its place.
        let later = [(1.0, 80.0), (2.0, 30.0), (3.0, 90.0)];
        let later = Curve::at_positions(ONE, &later);
        assert_eq!(prefetching_pays(&[later]).agrees, None);
    }

    #[test]
    fn routers_are_named_side_by_side() {
        let shape = beside(
            &[Curve::of(HERE, &[9.0]), Curve::of(OTHERS, &[4.5, 1.0])],
            "Mpps",
        );
        assert_eq!(shape.agrees, None);
        assert_eq!(
            shape.why,
            "In Mpps, measured here: 0 9.00. Published: 0 4.50; 1 1.00."
        );
    }
}
