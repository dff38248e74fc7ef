//! Figures of events per packet: instructions, and misses of caches and branch prediction.

use super::definition::{Axis, Fact, Figure, NONE, Numbers, Point, Scale, choose, linear, value};
use super::moonroute;
use super::shape::{Curve, Shape, falls_to, named, rises_by, unknown};
use super::vpp::{self, DEMONSTRATION, PAPER, point};
use crate::level::Level;

const SIMULATED: &str = "volley bench under callgrind, level x86-64-v3, one route, all nodes but the source; no hardware counters are read. Simulated caches: 32 KiB each of instructions and data, 8 ways.";

/// Points by the largest vector size.
fn by_vector_size(task: &str, level: Level) -> Vec<Point> {
    let sizes: &[u32] = choose(
        level,
        &[4, 64, 256],
        &[4, 8, 16, 32, 64, 128, 256, 512, 1024],
    );
    vpp::by_vector_size(task, sizes)
}

/// Figure 6b of the VPP paper: instructions.
pub const INSTRUCTIONS: Figure = Figure {
    name: "vpp-6b",
    paper: PAPER,
    number: "6b",
    title: "Instructions per packet by the largest vector size",
    x: Axis {
        title: "largest vector size, packets",
        scale: Scale::Log2,
    },
    y: linear("instructions per packet"),
    metric: "instructions",
    parts: &[],
    fact: Fact {
        text: "Instructions per packet decrease with the vector size and are flat from 256 packets on.",
        source: "",
    },
    published: Numbers {
        values: &[
            value("XC", "4", 1663.0),
            value("XC", "16", 774.0),
            value("XC", "64", 548.0),
            value("XC", "256", 494.0),
            value("IPv4", "4", 2107.0),
            value("IPv4", "16", 1115.0),
            value("IPv4", "64", 831.0),
            value("IPv4", "256", 762.0),
            value("MIX", "4", 3830.0),
            value("MIX", "16", 1838.0),
            value("MIX", "64", 1185.0),
            value("MIX", "256", 1042.0),
        ],
        source: DEMONSTRATION,
        ..NONE
    },
    compared: NONE,
    quoted: NONE,
    method: SIMULATED,
    points: |level| by_vector_size("events ", level),
    judge: |curves| falls_to(curves, 0.5),
};

/// Figure 6c of the VPP paper: instructions per cycle.
pub const PER_CYCLE: Figure = Figure {
    name: "vpp-6c",
    number: "6c",
    title: "Instructions per cycle by the largest vector size",
    y: linear("instructions per cycle of the core"),
    metric: "ipc",
    fact: Fact {
        text: "Instructions per cycle increase slightly with the vector size.",
        source: "",
    },
    published: Numbers {
        values: &[
            value("XC", "4", 1.711),
            value("XC", "16", 1.766),
            value("XC", "64", 1.874),
            value("XC", "256", 1.909),
            value("IPv4", "4", 1.721),
            value("IPv4", "16", 1.833),
            value("IPv4", "64", 1.968),
            value("IPv4", "256", 2.001),
            value("MIX", "4", 1.701),
            value("MIX", "16", 1.750),
            value("MIX", "64", 2.024),
            value("MIX", "256", 2.183),
        ],
        source: DEMONSTRATION,
        ..NONE
    },
    method: "Instructions counted by callgrind, divided by cycles of the core that volley bench measures at the same level (x86-64-v3).",
    points: |level| by_vector_size("ipc ", level),
    judge: |curves| rises_by(curves, 1.0),
    ..INSTRUCTIONS
};

/// Figure 6d of the VPP paper: misses of the instruction cache.
pub const INSTRUCTION_MISSES: Figure = Figure {
    name: "vpp-6d",
    number: "6d",
    title: "L1 instruction misses per packet by the largest vector size",
    y: linear("L1 instruction misses per packet"),
    metric: "L1 instruction misses",
    fact: Fact {
        text: "Misses per packet decrease with the vector size.",
        source: "",
    },
    published: Numbers {
        values: &[
            value("XC", "4", 0.49),
            value("XC", "16", 0.55),
            value("XC", "64", 0.21),
            value("XC", "256", 0.09),
            value("IPv4", "4", 3.98),
            value("IPv4", "16", 2.57),
            value("IPv4", "64", 1.29),
            value("IPv4", "256", 0.98),
            value("MIX", "4", 3.52),
            value("MIX", "16", 1.70),
            value("MIX", "64", 0.64),
            value("MIX", "256", 0.35),
        ],
        source: "the demonstration of figure 6b: its miss rates in percent of the instructions, times its instructions",
        least: FEW,
        ..NONE
    },
    judge: misses_fall,
    ..INSTRUCTIONS
};

/// Misses below this number per packet have no effect.
const FEW: f64 = 0.05;

/// Every curve falls, or has no misses to speak of.
fn misses_fall(curves: &[Curve]) -> Shape {
    let most = |c: &Curve| c.points.iter().map(|p| p.y).fold(0.0, f64::max);
    let (missing, falling): (Vec<Curve>, Vec<Curve>) =
        curves.iter().cloned().partition(|c| most(c) < FEW);
    if curves.is_empty() {
        return unknown();
    }
    let names: Vec<&str> = missing.iter().map(|c| c.series.as_str()).collect();
    let few = match names.is_empty() {
        true => String::new(),
        false => format!(
            " {}: less than {FEW} misses per packet at every size, so the code fits the cache.",
            names.join(", ")
        ),
    };
    let shape = match falling.is_empty() {
        true => Shape {
            agrees: None,
            why: String::new(),
        },
        false => falls_to(&falling, 0.7),
    };
    Shape {
        agrees: shape.agrees,
        why: format!("{}{few}", shape.why).trim().to_owned(),
    }
}

/// Figure 10 of MoonRoute: cache effects of the table.
pub const TABLE: Figure = Figure {
    name: "moonroute-10",
    paper: moonroute::PAPER,
    number: "10",
    title: "Cache misses by number of table entries",
    x: Axis {
        title: "entries of the table",
        scale: Scale::Log2,
    },
    y: linear("misses per packet"),
    metric: "",
    parts: &["L1 data misses", "L2 misses"],
    fact: Fact {
        text: "Misses per packet increase with the number of entries in use.",
        source: "",
    },
    published: Numbers {
        values: &[
            value("L1 data misses", "65536", 3.42),
            value("L1 data misses", "262144", 3.66),
            value("L2 misses", "65536", 0.44),
            value("L2 misses", "262144", 0.70),
        ],
        source: "the authors' data (github.com/emmericp/MoonRoute-data, data-used-for-plots/lpmcache/data), networks /24 in use, hardware counters; L1 misses of all accesses",
        least: FEW,
        ..NONE
    },
    compared: NONE,
    quoted: NONE,
    method: "volley bench under callgrind, level x86-64-v3, synthetic tables with random destinations inside their prefixes, all nodes but the source. Simulated caches: 32 KiB of data and 1 MiB as L2, 8 ways. The paper has up to 2^24 entries, and the third level.",
    points: |level| {
        let exponents: &[u32] = choose(level, &[4, 16], &[4, 8, 10, 12, 14, 16, 18]);
        let at = |n: &u32| {
            let entries = 1usize << n;
            let args = format!(
                "events --scenario ip4 --prefixes {entries} --destinations uniform --distinct 32768"
            );
            point("IPv4", entries as f64, &entries.to_string(), args)
        };
        exponents.iter().map(at).collect()
    },
    judge: |curves| rises_by(curves, 1.2),
};

/// Figure 12 of MoonRoute: hardware events.
pub const BATCH: Figure = Figure {
    name: "moonroute-12",
    number: "12",
    title: "Events by number of packets that are received at once",
    x: Axis {
        title: "packets received at once",
        scale: Scale::Log2,
    },
    y: linear("events per packet"),
    parts: &["branch misses", "L1 data misses", "L2 misses"],
    fact: Fact {
        text: "Branch misses decrease with the batch size; L1 misses increase when a batch no longer fits the cache.",
        source: "",
    },
    published: Numbers {
        values: &[
            value("branch misses", "1", 2.30),
            value("branch misses", "16", 0.18),
            value("branch misses", "64", 0.19),
            value("branch misses", "256", 0.10),
            value("L1 data misses", "1", 4.10),
            value("L1 data misses", "16", 3.63),
            value("L1 data misses", "64", 3.84),
            value("L1 data misses", "256", 8.46),
            value("L2 misses", "1", 1.04),
            value("L2 misses", "16", 1.01),
            value("L2 misses", "64", 1.01),
            value("L2 misses", "256", 1.08),
        ],
        source: "the authors' data (github.com/emmericp/MoonRoute-data, data-used-for-plots/batchcache/data2), hardware counters",
        least: FEW,
        ..NONE
    },
    method: "volley bench under callgrind, level x86-64-v3, one route, 512 buffers that stay in L2, all nodes but the source. Simulated caches: 32 KiB of data, 1 MiB as L2; simulated branch prediction.",
    points: |level| {
        let sizes: &[usize] = choose(level, &[1, 256], &[1, 4, 16, 64, 256]);
        let at = |n: &usize| {
            let args = format!("events --scenario ip4 --maxframe {n}");
            point("IPv4", *n as f64, &n.to_string(), args)
        };
        sizes.iter().map(at).collect()
    },
    judge: |curves| match named(curves, "branch misses") {
        Some(branches) => falls_to(std::slice::from_ref(branches), 0.5),
        None => unknown(),
    },
    ..TABLE
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_that_fits_the_cache_is_not_called_a_disagreement() {
        let curve =
            |name: &str, ys: [f64; 2]| Curve::at_positions(name, &[(4.0, ys[0]), (256.0, ys[1])]);
        let shape = misses_fall(&[curve("XC", [0.01, 0.02]), curve("MIX", [3.0, 0.4])]);
        assert_eq!(shape.agrees, Some(true));
        assert!(shape.why.contains("XC: less than"), "{}", shape.why);
        let shape = misses_fall(&[curve("XC", [0.0, 0.0])]);
        assert_eq!(shape.agrees, None);
        assert_eq!(misses_fall(&[curve("MIX", [1.0, 2.0])]).agrees, Some(false));
        assert_eq!(misses_fall(&[]).agrees, None);
    }
}
