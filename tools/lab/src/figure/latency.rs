//! Figures of latency.

use super::definition::{
    Axis, Fact, Figure, NONE, NOT_FOUND, Numbers, Point, Scale, choose, linear, value,
};
use super::moonroute;
use super::shape::{Curve, Shape, named, unknown};
use super::vpp::{KINDS, PAPER, point};

const LOADS: [&str; 3] = ["0.1", "0.5", "0.99"];

/// Figure 10 of the VPP paper: latency of scenarios at loads.
pub const SCENARIOS: Figure = Figure {
    name: "vpp-10",
    paper: PAPER,
    number: "10",
    title: "Latency of XC, IPv4 and MIX at 0.1, 0.5 and 0.99 of the largest rate",
    x: Axis {
        title: "scenario, part of the largest rate R+",
        scale: Scale::Names,
    },
    y: linear("microseconds"),
    metric: "",
    parts: &["minimum", "mean", "deviation", "median", "p99"],
    fact: Fact {
        text: "Latency increases with the load and with the work for a packet.",
        source: NOT_FOUND,
    },
    published: NONE,
    compared: NONE,
    quoted: NONE,
    method: "In memory, on one core: from the time at which a packet is due to its transmission, so a packet that waits for the worker counts the wait. There is no card and no wire, which are most of the paper's latency. R+ is the largest rate of generator, scenario and sink together. Packets of 80 bytes. The quieter half of the trials counts.",
    points: |_| {
        let all = KINDS
            .into_iter()
            .flat_map(|kind| LOADS.map(|load| (kind, load)));
        let at = |(x, ((name, scenario), load)): (usize, ((&str, &str), &str))| {
            let args = format!("latency {load} --scenario {scenario} --buffers 4096");
            point("latency", x as f64, &format!("{name} {load}"), args)
        };
        all.enumerate().map(at).collect()
    },
    judge: rises_with_the_load,
};

/// The mean of a scenario is not smaller at the highest load than at the lowest.
fn rises_with_the_load(curves: &[Curve]) -> Shape {
    let Some(mean) = named(curves, "mean") else {
        return unknown();
    };
    let last = LOADS.len() - 1;
    let ends = KINDS.iter().enumerate().filter_map(|(number, (name, _))| {
        let first = number * LOADS.len();
        let (low, high) = (mean.at(first as f64)?, mean.at((first + last) as f64)?);
        Some((high >= low, format!("{low:.2} to {high:.2} us ({name})")))
    });
    let (agree, texts): (Vec<bool>, Vec<String>) = ends.unzip();
    if texts.is_empty() {
        return unknown();
    }
    Shape {
        agrees: Some(agree.into_iter().all(|agrees| agrees)),
        why: format!(
            "From {} to {} of R+, the mean goes from {}.",
            LOADS[0],
            LOADS[last],
            texts.join(", ")
        ),
    }
}

/// Figure 13 of MoonRoute: latency by the receive batch.
pub const BATCH: Figure = Figure {
    name: "moonroute-13",
    paper: moonroute::PAPER,
    number: "13",
    title: "Latency by number of packets that are received at once",
    x: Axis {
        title: "most packets received at once",
        scale: Scale::Log2,
    },
    parts: &["minimum", "median", "p99"],
    fact: Fact {
        text: "With small transmit batches, latency increases with the receive batch, slowly at first and steeply from 64 packets on.",
        source: "",
    },
    published: Numbers {
        values: &[
            value("minimum", "1", 8.91),
            value("minimum", "16", 10.09),
            value("minimum", "64", 13.16),
            value("minimum", "256", 20.32),
            value("median", "1", 10.76),
            value("median", "16", 11.03),
            value("median", "64", 15.12),
            value("median", "256", 23.87),
        ],
        source: "the authors' data (github.com/emmericp/MoonRoute-data, data-used-for-plots/latency/latency.tex), transmit batch of 8 packets, with cards and wires",
        ..NONE
    },
    method: "In memory, on one core, IPv4 with one route, 0.9 of the largest rate that is reached with the batch size: from the time at which a packet is due to its transmission. There is no card and no wire. The quieter half of the trials counts.",
    points: |level| {
        let sizes: &[usize] = choose(
            level,
            &[1, 16, 64, 256],
            &[1, 2, 4, 8, 16, 32, 64, 128, 256],
        );
        let at = |n: &usize| -> Point {
            let args = format!("latency 0.9 --scenario ip4 --vector-size {n} --buffers 4096");
            point("latency", *n as f64, &n.to_string(), args)
        };
        sizes.iter().map(at).collect()
    },
    judge: median_of_batches,
    ..SCENARIOS
};

fn median_of_batches(curves: &[Curve]) -> Shape {
    let ends = named(curves, "median").and_then(|c| c.points.first().zip(c.points.last()));
    match ends {
        Some((first, last)) if first.x < last.x => Shape {
            agrees: Some(last.y >= first.y),
            why: format!(
                "The median goes from {:.2} us with {} to {:.2} us with {} packets.",
                first.y, first.label, last.y, last.label
            ),
        },
        _ => unknown(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_of_each_scenario_are_compared() {
        let good = [1.0, 1.2, 3.0, 2.0, 2.1, 2.0, 1.0, 1.0, 9.0];
        let shape = rises_with_the_load(&[Curve::of("mean", &good)]);
        assert_eq!(shape.agrees, Some(true));
        let text = "1.00 to 3.00 us (XC), 2.00 to 2.00 us (IPv4), ";
        assert!(shape.why.contains(text), "{}", shape.why);
        let bad = [1.0, 1.2, 0.9];
        assert_eq!(
            rises_with_the_load(&[Curve::of("mean", &bad)]).agrees,
            Some(false)
        );
        assert_eq!(
            rises_with_the_load(&[Curve::of("mean", &bad[..2])]).agrees,
            None
        );
        // Points of two scenarios are missing: the others are not compared with those of another scenario.
        let some = [(0.0, 5.0), (1.0, 1.0), (5.0, 1.0), (6.0, 1.0), (8.0, 2.0)];
        let shape = rises_with_the_load(&[Curve::at_positions("mean", &some)]);
        assert_eq!(shape.agrees, Some(true));
        assert!(
            shape.why.ends_with("goes from 1.00 to 2.00 us (MIX)."),
            "{}",
            shape.why
        );
    }

    #[test]
    fn medians_of_batches() {
        assert_eq!(
            median_of_batches(&[Curve::of("median", &[1.0, 2.0])]).agrees,
            Some(true)
        );
        assert_eq!(
            median_of_batches(&[Curve::of("median", &[2.0, 1.0])]).agrees,
            Some(false)
        );
        assert_eq!(median_of_batches(&[]).agrees, None);
    }
}
