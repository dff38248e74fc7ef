//! `show speed`: the cost of a packet from wire to wire (issue 27).

use super::{Item, Sitting, Work, at_most, bench_items, item, long, lpm_items};
use super::{driver_items, latency_items, memory_items};
use xtask::measure::{Bench, Spread};
use xtask::report::Outcome;
use xtask::{arm, budget};

/// The list: graph and source, drivers, latency, memory.
pub const LISTS: [&[Item]; 4] = [
    ITEMS,
    driver_items::ITEMS,
    latency_items::ITEMS,
    &[memory_items::ITEM],
];

/// Cycles of a round outside its nodes and sources.
const ROUND: f64 = 60.0;
/// Instructions of a round with four packets, everything included: it was 6,700 when every source and stage was called.
const ROUND_INSTRUCTIONS: f64 = 2_800.0;
/// Cycles of one lookup in the IPv6 table.
const LPM6: f64 = 13.0;

/// Cycles at the level `scalar` divided by those at the processor's best level.
const SCALAR: f64 = 1.5;

/// Two items for each scenario: the graph alone, and everything included; with `SCALAR`, a third compares the levels. A bar is the lower one of the figure that issue 27
/// names and of VPP's figure of 2026-11-24 divided by 3 (graph) or by 2 (everything; 1.5 for the patch with short vectors).
/// VPP's cycles with everything included are 2,600 divided by its Mpps, which is the clock of that machine's TSC.
macro_rules! items {
    ($($name:literal, $what:literal, $args:literal, $graph:literal, $together:literal $(, $scalar:ident)?;)* others: $($other:expr),* $(,)?) => {
        pub const ITEMS: &[Item] = &[
            $($other,)*
            $(item(
                concat!("graph-", $name),
                concat!($what, ": all nodes but the source"),
                Work::Cycles($args, $graph),
            ),
            item(
                concat!("together-", $name),
                concat!($what, ": everything included"),
                Work::Call(|sitting| together(sitting, $args, $together)),
            ),
            $(item(
                concat!("scalar-", $name),
                concat!($what, ": the level scalar beside the best of the processor, graph alone"),
                Work::ScalarOverBest($args, $scalar),
            ),)?)*
        ];
    };
}

items! {
    "xc", "patch", "--scenario xc", 4.4, 14.0, SCALAR;
    "xc-64", "patch, vectors of 64", "--scenario xc --vector-size 64", 5.2, 28.4;
    "xc-16", "patch, vectors of 16", "--scenario xc --vector-size 16", 13.3, 51.0;
    "xc-4", "patch, vectors of 4", "--scenario xc --vector-size 4", 42.3, 133.3;
    "l2xc", "L2 cross-connect", "--scenario l2xc", 8.3, 24.5, SCALAR;
    "bridge", "bridge, one MAC address", "--scenario bridge", 15.2, 35.1, SCALAR;
    "bridge-16", "bridge, 16 sources and destinations", "--scenario bridge --stations src-dst --macs 16", 15.0, 40.6, SCALAR;
    "bridge-10k-dst", "bridge, 10,000 destinations", "--scenario bridge --stations dst --macs 10000", 25.1, 53.1, SCALAR;
    "bridge-10k", "bridge, 10,000 sources and destinations", "--scenario bridge --stations src-dst --macs 10000", 33.1, 62.2, SCALAR;
    "ip4", "IPv4, one route", "--scenario ip4", 15.0, 25.0, SCALAR;
    "ip4-64", "IPv4, one route, vectors of 64", "--scenario ip4 --vector-size 64", 18.6, 41.9, SCALAR;
    "ip4-16", "IPv4, one route, vectors of 16", "--scenario ip4 --vector-size 16", 44.3, 84.4;
    "ip4-4", "IPv4, one route, vectors of 4", "--scenario ip4 --vector-size 4", 80.0, 245.3;
    "ip4-64k", "IPv4, 16 routes and next hops, 65,536 destinations", "--scenario ip4 --destinations uniform --prefixes 16", 17.7, 40.0, SCALAR;
    "ip4-full", "IPv4, full table, 65,536 destinations", "--scenario ip4 --destinations uniform TABLES", 24.0, 47.0, SCALAR;
    "ip6", "IPv6, one route", "--scenario ip6", 18.0, 63.1, SCALAR;
    "ip6-full", "IPv6, full table", "--scenario ip6 --destinations uniform TABLES", 32.0, 764.7, SCALAR;
    "mix", "mix, one route each", "--scenario mix", 24.3, 49.6, SCALAR;
    "mix-full", "mix, full tables", "--scenario mix --destinations uniform TABLES", 45.0, 333.3, SCALAR;
    others:
    item(
        "round",
        "what a round costs beside nodes and sources, patch, vectors of 64",
        Work::Call(|sitting| {
            judge(sitting, TIMED, ROUND, "cycles per round", |run| {
                run.loop_cycles_per_round
            })
        }),
    ),
    item(
        "round-instructions",
        "instructions of a whole round, patch, vectors of 4",
        Work::Call(|sitting| {
            let counted = budget::small_round(sitting.home);
            Outcome::of(counted.and_then(|n| at_most(n, ROUND_INSTRUCTIONS, "instructions")))
        }),
    ),
    item(
        "source",
        "pg-input, one template",
        Work::Call(|sitting| source(sitting, "--scenario xc", 12.0)),
    ),
    item(
        "source-64k",
        "pg-input, 65,536 distinct packets",
        Work::Call(|sitting| source(sitting, MANY, 25.0)),
    ),
    item(
        "lpm6",
        "the IPv6 table alone, full table, 1,048,576 destinations",
        Work::Call(|sitting| lpm_items::cycles(sitting, &lpm_items::V6, LPM6)),
    ),
    item(
        "graph-bridge-1m",
        "bridge, 1,000,000 stations, half of them sources: all nodes but the source",
        Work::Cycles("--scenario bridge --stations src-dst --macs 500000", 60.0),
    ),
    item(
        "graph-ip4-1",
        "IPv4, one route, vectors of 1: all nodes but the source",
        Work::Cycles("--scenario ip4 --vector-size 1", 110.0),
    ),
    item(
        "graph-ip4-full-1m",
        "IPv4, full table, 1,048,576 destinations: all nodes but the source",
        Work::Cycles("--scenario ip4 --destinations uniform --distinct 1048576 TABLES", 30.0),
    ),
    long(
        "neon",
        "kernels and nodes at the level neon, on an emulated processor of AArch64",
        Work::Call(|sitting| arm::run(sitting.home)),
    ),
}

/// The shortest vectors for which all runs are timed, so that the loop's figure is no estimate.
const TIMED: &str = "--scenario xc --vector-size 64";
const MANY: &str = "--scenario ip4 --destinations uniform --prefixes 16";

fn source(sitting: &Sitting<'_>, args: &str, bar: f64) -> Outcome {
    judge(sitting, args, bar, "cycles per packet", |run| {
        run.source_cycles_per_packet
    })
}

fn together(sitting: &Sitting<'_>, args: &str, bar: f64) -> Outcome {
    judge(sitting, args, bar, "cycles per packet", |run| {
        run.together_cycles_per_packet
    })
}

/// Judged at the core speed of the bars; the measured figure and its range are shown too.
fn judge(
    sitting: &Sitting<'_>,
    args: &str,
    bar: f64,
    unit: &str,
    of: impl Fn(&Bench) -> Spread,
) -> Outcome {
    let judged = sitting.bench(args).and_then(|run| {
        let (cost, speed) = (of(&run), run.core_cycles_per_tsc.median);
        let more = format!(
            " at {} core cycles per TSC; measured {:.1} ({:.1} to {:.1}) at {speed:.2}; `volley bench {args}`",
            bench_items::BAR_SPEED,
            cost.median,
            cost.min,
            cost.max
        );
        let at_bar = bench_items::at_bar_speed(cost.median, speed);
        let verdict = at_most(at_bar, bar, unit);
        verdict.map(|text| text + &more).map_err(|text| text + &more)
    });
    Outcome::of(judged)
}
