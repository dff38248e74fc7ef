//! The items of "Many workers, no pauses": the section `To show`, then the requirements of its parts.

use super::{Item, Sitting, Work, item, long, test_file};
use house_experiments::scaling::follows;
use serde::Deserialize;
use xtask::bench::big_tables;
use xtask::measure::{self, Spread};
use xtask::report::{Fail, Outcome, Pass};
use xtask::sanitize;

pub const ITEMS: [Item; 21] = [
    item(
        "equality",
        "the same packets, drops and totals with 1, 2, 3 and 4 workers, each flow in order",
        Work::Command(test_file!["workers", "one_to_four_workers_do_the_same"]),
    ),
    item(
        "totals",
        "a generator on each of 4 workers: all of it arrives and is counted",
        Work::Command(test_file!["workers", "one_generator_on_each_worker"]),
    ),
    item(
        "scaling",
        "2 workers at least 1.9x of 1: xc, ip4 with 1M routes, bridge",
        Work::Call(scaling),
    ),
    item(
        "scaling-paper",
        "what 8 to 64 cores would give (docs/scaling.md)",
        Work::Call(on_paper),
    ),
    item(
        "changes",
        "changes of every kind under traffic, workers among them: no packet lost, every buffer back",
        Work::Command(test_file![
            "workers",
            "changes_of_every_kind_lose_no_packet"
        ]),
    ),
    item(
        "zero-pause",
        "100,000 changes in a 10 Mpps stream: no packet lost, gaps over 50 us no more often than the machine makes them",
        Work::Call(zero_pause),
    ),
    long(
        "soak",
        "a quarter of an hour of random changes, workers added and removed",
        Work::With(&[("VOLLEY_SOAK", "900")], test_file!["workers", "soak"]),
    ),
    item(
        "numa",
        "two memory nodes (QEMU): buffers lie on both, each worker takes those that are near",
        Work::Command(&["test", "--workspace", "--test", "numa", "--", "--ignored"]),
    ),
    item(
        "software-rss",
        "one busy queue over many workers: the same packets, each flow in order, what is turned away is counted",
        Work::Command(test_file!["spread"]),
    ),
    item(
        "rss-symmetric",
        "hashes against known answers, both directions of a flow on one worker, tunnels by their inner flow",
        Work::Command(&["test", "-p", "volley-rss"]),
    ),
    item(
        "pipeline",
        "chosen nodes on chosen workers: the same packets; rings between workers on threads",
        Work::Command(test_file!["handoff"]),
    ),
    item(
        "loom",
        "loom models of rings, the hand-over of changes and the recall of what readers may still use",
        Work::Call(|sitting| sanitize::loom(sitting.home)),
    ),
    long(
        "tsan",
        "ThreadSanitizer over everything that two threads touch",
        Work::Call(|sitting| sanitize::thread(sitting.home)),
    ),
    item(
        "placement",
        "receive queues move under traffic: every packet once, in order",
        Work::Command(test_file!["workers", "receive_queues_move_under_traffic"]),
    ),
    item(
        "come-and-go",
        "workers added and removed step by step: nothing lost, totals whole",
        Work::Command(&["test", "--workspace", "--lib", "workers::tests"]),
    ),
    item(
        "show",
        "show workers, show load, show pauses",
        Work::Command(test_file!["workers", "what_workers_do_is_shown"]),
    ),
    item(
        "watchdog",
        "a stopped worker is reported with its node",
        Work::Command(test_file!["workers", "a_worker_that_stands_still"]),
    ),
    item(
        "stack-trace",
        "the stack of a stopped worker",
        Work::Command(&["test", "--workspace", "--lib", "calls::tests"]),
    ),
    item(
        "hand-over",
        "queues and turns between workers: one pair of hands at a time",
        Work::Command(&["test", "-p", "volley-iface", "--lib"]),
    ),
    item(
        "contended-tool",
        "threads that write one line are found, those that do not are clean",
        Work::Command(&["test", "--workspace", "--lib", "contended::"]),
    ),
    long(
        "contended-lines",
        "no cache line that two workers contend for, but those that are meant (docs/contended-lines.md)",
        Work::Call(contended_lines),
    ),
];

/// Minimum ratio of the work of two workers to that of one.
const TWICE: f64 = 1.9;

#[derive(Deserialize)]
struct Scaling {
    scaling: Spread,
    alone: Vec<Spread>,
    together: Vec<Spread>,
    undisturbed: f64,
    verified: bool,
}

fn scaling(sitting: &Sitting<'_>) -> Outcome {
    let tables = big_tables(sitting.home).0.join(" ");
    let scenarios = [
        ("xc", "--scenario xc".to_owned()),
        (
            "ip4, full table, uniform",
            format!("--scenario ip4 --destinations uniform {tables}"),
        ),
        ("bridge", "--scenario bridge".to_owned()),
    ];
    let (mut good, mut parts) = (true, Vec::new());
    for (name, args) in scenarios {
        let line = format!("bench {args} --workers 2 --buffers 512 --repetitions 9 --seconds 2");
        let words: Vec<&str> = line.split_whitespace().collect();
        let run: Scaling = match measure::json(sitting.home, &words, 300) {
            Ok(run) => run,
            Err(reason) => return Fail(format!("{name}: {reason}")),
        };
        good &= run.scaling.median >= TWICE && run.verified;
        let cycles = |all: &[Spread]| {
            let all: Vec<String> = all.iter().map(|s| format!("{:.1}", s.median)).collect();
            all.join(" and ")
        };
        parts.push(format!(
            "{name}: {:.2} times ({:.2} to {:.2}), {} cycles alone, {} together, {:.0} % undisturbed",
            run.scaling.median,
            run.scaling.min,
            run.scaling.max,
            cycles(&run.alone),
            cycles(&run.together),
            run.undisturbed * 100.0
        ));
    }
    let text = format!("{}; at least {TWICE} wanted", parts.join("; "));
    if good { Pass(text) } else { Fail(text) }
}

/// The page has figures, and the model reproduces those of 64 cores.
fn on_paper(sitting: &Sitting<'_>) -> Outcome {
    let path = sitting.home.root.join("docs/scaling.md");
    let page = match std::fs::read_to_string(&path) {
        Ok(page) => page,
        Err(error) => return Fail(format!("{}: {error}", path.display())),
    };
    match follows(&page) {
        Ok(most) => Pass(format!(
            "docs/scaling.md follows from its costs; cores, Mpps, efficiency, memory, ports: {}",
            most.join("; ")
        )),
        Err(reason) => Fail(reason),
    }
}

#[derive(Deserialize)]
struct Gaps {
    seconds: f64,
    rounds: u64,
    long: u64,
    part: f64,
    longest_us: f64,
}

#[derive(Deserialize)]
struct Pauses {
    changes: u64,
    kinds: u64,
    changes_per_second: f64,
    sent: u64,
    received: u64,
    dropped: u64,
    mpps: f64,
    idle: Gaps,
    quiet: Gaps,
    changing: Gaps,
    swapping: Gaps,
}

/// Gaps attributed to the machine: this multiple of the gaps without changes, plus this number per second.
const NOISE: (f64, f64) = (1.5, 10.0);

/// Minimum number of changes, and minimum rate of the traffic in Mpps (slightly below 10 because of rounding).
const DEMANDED: (u64, f64) = (100_000, 9.9);

/// No packet is lost; gaps of more than 50 us are no more frequent than without changes; and rounds in which a change
/// takes effect have such gaps only as often as the machine's noise explains.
fn zero_pause(sitting: &Sitting<'_>) -> Outcome {
    let words = ["bench", "pauses"];
    let run: Pauses = match measure::json(sitting.home, &words, 600) {
        Ok(run) => run,
        Err(reason) => return Fail(reason),
    };
    let rate = |g: &Gaps| g.long as f64 / g.seconds.max(1e-9);
    let noise = rate(&run.quiet).max(rate(&run.idle));
    let whole = run.sent == run.received && run.dropped == 0 && run.sent > 0;
    let whole = whole && run.changes >= DEMANDED.0 && run.mpps >= DEMANDED.1;
    let calm = rate(&run.changing) <= noise * NOISE.0 + NOISE.1;
    // A gap of the machine lengthens the round that it interrupts; this number of rounds is affected by chance.
    let by_chance = noise * (run.swapping.seconds + run.swapping.rounds as f64 * 5e-6);
    let ours = run.swapping.long as f64 > 3.0 * by_chance + 3.0;
    let gaps = |g: &Gaps| {
        format!(
            "{} over 50 us ({:.1} a second, {:.2} % of the time), longest {:.0} us",
            g.long,
            rate(g),
            g.part * 100.0,
            g.longest_us
        )
    };
    let text = format!(
        "{} changes of {} kinds ({:.0} a second), {:.2} Mpps, {} sent, {} received, {} dropped; idle loop: {}; no changes: {}; changes: {}; the {} rounds with a change: {} ({by_chance:.1} by chance)",
        run.changes,
        run.kinds,
        run.changes_per_second,
        run.mpps,
        run.sent,
        run.received,
        run.dropped,
        gaps(&run.idle),
        gaps(&run.quiet),
        gaps(&run.changing),
        run.swapping.rounds,
        gaps(&run.swapping),
    );
    if whole && calm && !ours {
        Pass(text)
    } else {
        Fail(text)
    }
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn contended_lines(sitting: &Sitting<'_>) -> Outcome {
    house_experiments::contended::run(
        sitting.home,
        &house_experiments::contended::Options::default(),
    )
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
fn contended_lines(_: &Sitting<'_>) -> Outcome {
    xtask::report::Skip("instructions are taken apart for x86-64 Linux only".into())
}
