//! `show speed`: the cost of a packet from wire to wire (issue 27).

use super::{Item, Sitting, Work, at_most, bench_items, item};
use xtask::budget;
use xtask::measure::{Bench, Spread};
use xtask::report::Outcome;

/// Cycles of a round outside its nodes and sources.
const ROUND: f64 = 60.0;
/// Instructions of a round with four packets, everything included: it was 6,700 when every source and stage was called.
const ROUND_INSTRUCTIONS: f64 = 2_800.0;

pub const ITEMS: [Item; 6] = [
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
        Work::Call(|sitting| source(sitting, PATCH, 12.0)),
    ),
    item(
        "source-64k",
        "pg-input, 65,536 distinct packets",
        Work::Call(|sitting| source(sitting, MANY, 25.0)),
    ),
    item(
        "together-xc",
        "patch, everything included",
        Work::Call(|sitting| together(sitting, PATCH, 14.0)),
    ),
    item(
        "together-ip4-64k",
        "ip4, 16 routes and next hops, 65,536 destinations, everything included",
        Work::Call(|sitting| together(sitting, MANY, 40.0)),
    ),
];

const PATCH: &str = "--scenario xc";
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
