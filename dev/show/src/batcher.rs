//! The items of "The path batcher": the section `To show`, then its other requirements.

use super::{Item, Sitting, Work, item, long, test_file};
use house_experiments::paths::{self, CACHES, GATHERS, Point};
use serde::Deserialize;
use xtask::budget;
use xtask::measure::{self, Spread};
use xtask::report::{Fail, Outcome, Pass};

/// The bar: the paper's result at batch 128.
const BAR_PERCENT: f64 = 57.6;
/// Permitted fraction of the time that the machine takes from the worker: a multiple of that for an idle loop, plus a
/// constant. A worker's gap includes its own round (about 10 us at overload), so shorter absences count as stalls than
/// with the idle loop.
const STALLS: (f64, f64) = (3.0, 0.01);

pub const ITEMS: [Item; 11] = [
    item(
        "misses",
        "L1-I misses per packet, I1 32 KiB, batch 128, IPv4 and IPv6 alternating",
        Work::Call(misses),
    ),
    item(
        "misses-burst",
        "the same where the source sends 32 at a time, as a network card does",
        Work::Call(misses_of_bursts),
    ),
    long(
        "misses-caches",
        "the same at several cache sizes: where the reduction passes the bar",
        Work::Call(caches),
    ),
    item(
        "throughput",
        "speed with and without, whatever it is",
        Work::Call(throughput),
    ),
    item(
        "learning",
        "the two heaviest of 50 paths within 1 s",
        Work::Call(learning),
    ),
    item(
        "delay",
        "limit of 50 us kept at 10 kpps and at overload",
        Work::Call(delay),
    ),
    item(
        "corpora",
        "captures pass unchanged as a set, each flow in order",
        Work::Command(test_file!["replay", "path_batcher"]),
    ),
    item(
        "order",
        "nothing lost or overtaken while it is switched and changed; buffers balance",
        Work::Command(&[
            "test",
            "-p",
            "volley-batcher",
            "nothing_is_lost_or_overtaken",
        ]),
    ),
    item(
        "bad-rules",
        "bad rules, contradictions, too many queues: one clear error, nothing changed",
        Work::Command(&["test", "-p", "volley-batcher", "bad_rules"]),
    ),
    item(
        "matcher",
        "parser and matcher against plain models",
        Work::Command(&["test", "-p", "volley-batcher", "--lib"]),
    ),
    item(
        "off",
        "off costs nothing: instructions per packet of xc, ip4, ip6",
        Work::Call(|sitting| budget::run(sitting.home, false)),
    ),
];

fn misses(sitting: &Sitting<'_>) -> Outcome {
    reduced(sitting, None)
}

fn misses_of_bursts(sitting: &Sitting<'_>) -> Outcome {
    reduced(sitting, Some(32))
}

fn reduced(sitting: &Sitting<'_>, burst: Option<u32>) -> Outcome {
    if let Err(outcome) = paths::possible(sitting.home) {
        return outcome;
    }
    match paths::reduction(
        sitting.home,
        Point::alternating(128, burst, CACHES[0]),
        &GATHERS,
    ) {
        Err(reason) => Fail(reason),
        Ok(all) => {
            let with = all.on.iter().map(|(gather, on, percent)| {
                format!(
                    "{:.3} with {gather} in a row (-{percent:.1} %, {:.0} instructions)",
                    on.misses, on.instructions
                )
            });
            let with: Vec<String> = with.collect();
            let best = all.on.iter().map(|on| on.2).fold(0.0, f64::max);
            let text = format!(
                "{:.3} without ({:.0} instructions), {}: more than {BAR_PERCENT} % wanted",
                all.off.misses,
                all.off.instructions,
                with.join(", ")
            );
            if best > BAR_PERCENT {
                Pass(text)
            } else {
                Fail(text)
            }
        }
    }
}

fn caches(sitting: &Sitting<'_>) -> Outcome {
    if let Err(outcome) = paths::possible(sitting.home) {
        return outcome;
    }
    let mut parts = Vec::new();
    for cache in CACHES {
        match paths::reduction(sitting.home, Point::alternating(128, None, cache), &GATHERS) {
            Err(reason) => return Fail(reason),
            Ok(all) => {
                let on = all.on.iter().map(|(gather, on, percent)| {
                    format!("{:.3} with {gather} in a row (-{percent:.1} %)", on.misses)
                });
                let on: Vec<String> = on.collect();
                let kib = cache / 1024;
                parts.push(format!(
                    "{kib} KiB: {:.3} to {}",
                    all.off.misses,
                    on.join(" or ")
                ));
            }
        }
    }
    Pass(parts.join(", "))
}

#[derive(Deserialize)]
struct Sweep {
    lines: Vec<Line>,
}

#[derive(Deserialize)]
struct Line {
    pattern: String,
    batch: u32,
    batcher: bool,
    mpps: Spread,
    cycles_per_packet: Spread,
}

fn throughput(sitting: &Sitting<'_>) -> Outcome {
    let words = [
        "bench",
        "path-batcher",
        "--batches",
        "32,128",
        "--patterns",
        "alternating-2,alternating-4,bursty-4,single",
    ];
    let sweep: Result<Sweep, String> = measure::json(sitting.home, &words, 120);
    let sweep = match sweep {
        Ok(sweep) => sweep,
        Err(reason) => return Fail(reason),
    };
    let pairs = sweep
        .lines
        .chunks(2)
        .filter(|pair| pair.len() == 2 && !pair[0].batcher && pair[1].batcher);
    let text = pairs.map(|pair| {
        format!(
            "{} {}: {:.2} to {:.2} Mpps, {:.0} to {:.0} cycles",
            pair[0].pattern,
            pair[0].batch,
            pair[0].mpps.median,
            pair[1].mpps.median,
            pair[0].cycles_per_packet.median,
            pair[1].cycles_per_packet.median
        )
    });
    let text: Vec<String> = text.collect();
    if text.is_empty() {
        return Fail("the sweep has no pairs".into());
    }
    Pass(format!("without to with: {}", text.join("; ")))
}

#[derive(Deserialize)]
struct Learning {
    paths: u64,
    /// `None` if the path was not found.
    seconds: Option<f64>,
    learned: Vec<String>,
}

fn learning(sitting: &Sitting<'_>) -> Outcome {
    let words = ["bench", "path-batcher", "--experiment", "learning"];
    let found: Result<Learning, String> = measure::json(sitting.home, &words, 60);
    match found {
        Err(reason) => Fail(reason),
        Ok(found) => match found.seconds {
            Some(seconds) if seconds <= 1.0 => Pass(format!(
                "{seconds:.2} s, at most 1, of {} paths",
                found.paths
            )),
            Some(seconds) => Fail(format!("{seconds:.2} s, at most 1")),
            None => Fail(format!(
                "not found in 5 s; learned: {}",
                found.learned.join(", ")
            )),
        },
    }
}

#[derive(Deserialize)]
struct Delays {
    delays: Vec<Delay>,
}

#[derive(Deserialize)]
struct Delay {
    name: String,
    packets: u64,
    limit_us: u32,
    p50_us: f64,
    p99_us: f64,
    max_us: f64,
    late: u64,
    held_up: u64,
    stalls: Stalls,
    control: Stalls,
}

#[derive(Deserialize)]
struct Stalls {
    times: u64,
    longest_us: f64,
    part: f64,
}

/// A packet may be late only if the worker did not run for half the limit, and that may happen only as often as the
/// machine takes the core from an idle loop.
fn delay(sitting: &Sitting<'_>) -> Outcome {
    let words = [
        "bench",
        "path-batcher",
        "--experiment",
        "delay",
        "--seconds",
        "3",
    ];
    let delays: Result<Delays, String> = measure::json(sitting.home, &words, 60);
    let delays = match delays {
        Ok(delays) if delays.delays.len() == 2 => delays.delays,
        Ok(_) => return Fail("the bench says nothing of both rates".into()),
        Err(reason) => return Fail(reason),
    };
    let mut good = true;
    let mut parts = Vec::new();
    for d in &delays {
        let in_time = d.late - d.held_up.min(d.late);
        let ours = d.stalls.part > d.control.part * STALLS.0 + STALLS.1;
        // A machine that is away for more than one percent of the time cannot meet the 99th percentile.
        let tail = d.p99_us <= f64::from(d.limit_us) || d.control.part > 0.01;
        good &= in_time == 0 && !ours && tail && d.packets > 1000;
        parts.push(format!(
            "{}: limit {} us, half {:.1}, 99 of 100 {:.1}, longest {:.0}; {} of {} late, {in_time} of them while the worker came round (0 wanted); away for over half the limit: worker {:.2} % of the time ({} times, longest {:.0} us), idle loop {:.2} % ({} times, {:.0} us)",
            d.name, d.limit_us, d.p50_us, d.p99_us, d.max_us, d.late, d.packets,
            d.stalls.part * 100.0, d.stalls.times, d.stalls.longest_us,
            d.control.part * 100.0, d.control.times, d.control.longest_us
        ));
    }
    let text = parts.join("; ");
    if good { Pass(text) } else { Fail(text) }
}
