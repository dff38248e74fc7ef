//! What more cores would give than this machine has: costs measured here, cache misses counted by callgrind for each share
//! of a third-level cache, and a simulation of cores that queue for memory. `docs/scaling.md` has the result.
//!
//! The model: a packet costs a core `compute` cycles, and `stall` cycles for each line that its share of the cache does not
//! have. Lines are fetched from channels, each of which serves one at a time; a core that waits in front of a channel loses as
//! much of that as it loses of the plain latency, for it has several lines under way.

use crate::bench::big_tables;
use crate::budget::column;
use crate::home::Home;
use crate::measure;
use crate::paths::{self, splice};
use crate::report::{Fail, Outcome, Pass};
use crate::run::Program;
use std::collections::BinaryHeap;
use std::fmt::Write;

const PAGE: &str = "docs/scaling.md";
pub const BEGIN: &str = "<!-- xtask scaling: begin -->";
const END: &str = "<!-- xtask scaling: end -->";

/// What the dispatcher and all nodes behind the source do.
const COUNTED: &str = "volley_graph::worker::Worker::run_pending";
/// Rounds of both runs, whose difference counts: each a lap of [`BUFFERS`]. The first run has sent a packet to each of a million
/// destinations, so that what counts afterwards finds in the cache what fits into it.
const ROUNDS: (u64, u64) = (256, 512);
/// Buffers in circulation on each core: what a driver's rings hold, and some on their way.
const BUFFERS: u64 = 4096;

/// The machine that is asked about: one socket of EPYC 9004 (12 channels of DDR5-4800, 32 MiB of L3 for 8 cores).
const CHANNELS: usize = 12;
const CHANNEL_BYTES: f64 = 38.4e9;
/// What of a channel's rate is usable with lines from everywhere.
const USABLE: f64 = 0.7;
const SHARERS: usize = 8;
const L3_MIB: [u32; 4] = [32, 16, 8, 4];
/// TSC cycles that a line from memory takes without a queue: taken from `shared/baselines.md` (330 to 450), not measured here.
const LATENCY: f64 = 390.0;
/// Lines that are written back for each line that is fetched: packets are changed, tables are not.
const WRITTEN: f64 = 0.5;
const CORES: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];
/// Packets of 64 bytes that a port of 100 Gbit/s carries in a second.
const PORT_PPS: f64 = 148.8e6;

/// The cost of a packet.
#[derive(Clone, Debug, PartialEq)]
struct Cost {
    name: &'static str,
    /// Cycles with everything at hand.
    compute: f64,
    /// Cycles lost for each line from memory.
    stall: f64,
    /// Lines from memory, by the entries of [`L3_MIB`].
    lines: [f64; 4],
}

impl Cost {
    /// Lines from memory when so many cores work.
    fn lines_of(&self, cores: usize) -> f64 {
        let sharers = cores.min(SHARERS);
        self.lines[(sharers.ilog2() as usize).min(3)]
    }

    fn cycles(&self, cores: usize) -> f64 {
        self.compute + self.stall * self.lines_of(cores)
    }
}

/// What a number of cores gives.
#[derive(Clone, Copy, Debug)]
struct Point {
    cores: usize,
    pps: f64,
    /// Part of the memory's usable rate that is used.
    memory: f64,
}

/// A core that asks for its next line at a time, in cycles.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Next(std::cmp::Reverse<u64>, usize);

/// Lines that each core asks for in a simulation.
const LINES: u64 = 30_000;

/// Let so many cores work on packets of a cost.
fn simulate(cost: &Cost, cores: usize, hertz: f64) -> Point {
    let (cycles, lines) = (cost.cycles(cores), cost.lines_of(cores));
    if lines < 1e-6 {
        let (pps, memory) = (hertz / cycles * cores as f64, 0.0);
        return Point { cores, pps, memory };
    }
    let line = 64.0 * (1.0 + WRITTEN) / (CHANNEL_BYTES * USABLE) * hertz;
    let (gap, part) = (cycles / lines, cost.stall / LATENCY);
    let mut free = [0.0f64; CHANNELS];
    let mut dice = 0x2545_f491_4f6c_dd1du64;
    // They do not begin in step.
    let first = |core| {
        Next(
            std::cmp::Reverse((gap * core as f64 / cores as f64) as u64),
            core,
        )
    };
    let mut queue: BinaryHeap<Next> = (0..cores).map(first).collect();
    let (mut clock, mut asked) = (vec![0.0f64; cores], vec![0u64; cores]);
    let mut last = 0.0f64;
    while let Some(Next(_, core)) = queue.pop() {
        dice ^= dice << 13;
        dice ^= dice >> 7;
        dice ^= dice << 17;
        let channel = &mut free[(dice >> 11) as usize % CHANNELS];
        let now = clock[core];
        let start = channel.max(now);
        *channel = start + line;
        clock[core] = now + gap + (start - now) * part;
        last = last.max(clock[core]);
        asked[core] += 1;
        if asked[core] < LINES {
            queue.push(Next(std::cmp::Reverse(clock[core] as u64), core));
        }
    }
    let all = cores as f64 * LINES as f64;
    Point {
        cores,
        pps: all / lines / last * hertz,
        memory: all * line / CHANNELS as f64 / last,
    }
}

/// What is measured: a name, the arguments with everything at hand, and those with what stands in memory.
const SCENARIOS: [(&str, &str, &str); 3] = [
    ("patch (xc)", "--scenario xc", "--scenario xc"),
    ("IPv4, one route", "--scenario ip4", "--scenario ip4"),
    (
        "IPv4, full table, 1M destinations",
        "--scenario ip4",
        "--scenario ip4 --destinations uniform --distinct 1048576 TABLES",
    ),
];

/// Measure, simulate, write the page.
pub fn run(home: &Home) -> Outcome {
    if let Err(outcome) = paths::possible(home) {
        return outcome;
    }
    match written(home) {
        Ok(text) => Pass(text),
        Err(reason) => Fail(reason),
    }
}

fn written(home: &Home) -> Result<String, String> {
    // What takes time comes first, together: the counts do not mind who else is there.
    let timed = SCENARIOS.map(|(_, near, far)| timed(home, near, far));
    let timed = timed.into_iter().collect::<Result<Vec<_>, _>>()?;
    let hertz = timed.first().map_or(0.0, |t| t.hertz);
    let mut costs = Vec::new();
    for ((name, _, far), timed) in SCENARIOS.into_iter().zip(timed) {
        costs.push(cost(home, name, far, timed)?);
    }
    let text = tables(&costs, hertz);
    let path = home.root.join(PAGE);
    let page = std::fs::read_to_string(&path).map_err(|e| format!("{PAGE}: {e}"))?;
    let page = splice(&page, (BEGIN, END), &text).ok_or(format!("{PAGE}: the marks are gone"))?;
    std::fs::write(&path, page).map_err(|e| format!("{PAGE}: {e}"))?;
    Ok(PAGE.to_owned())
}

/// Cycles of the time-stamp counter for a packet, and how many a second has.
struct Timed {
    near: f64,
    far: f64,
    hertz: f64,
}

fn timed(home: &Home, near: &str, far: &str) -> Result<Timed, String> {
    let measure = |args: &str, buffers: u64| {
        let args = args.replace("TABLES", &big_tables(home).0.join(" "));
        let line = format!("bench {args} --buffers {buffers} --seconds 1 --repetitions 5");
        let words: Vec<&str> = line.split_whitespace().collect();
        let run: measure::Bench = measure::json(home, &words, 180)?;
        let cycles = run.cycles_per_packet.median;
        println!("{line}: {cycles:.2} cycles");
        Ok::<_, String>((cycles, run.mpps.median * 1e6 * cycles))
    };
    let ((near, hertz), (far, _)) = (measure(near, 512)?, measure(far, BUFFERS)?);
    Ok(Timed { near, far, hertz })
}

fn cost(home: &Home, name: &'static str, far: &str, timed: Timed) -> Result<Cost, String> {
    let far = far.replace("TABLES", &big_tables(home).0.join(" "));
    let mut lines = [0.0; 4];
    for (lines, mib) in lines.iter_mut().zip(L3_MIB) {
        *lines = missed(home, &far, mib)?;
        println!("{name}, {mib} MiB: {lines:.3} lines a packet");
    }
    // The last of the sizes is what the machine that measures has (`shared/baselines.md`: about 4 MB).
    let stall = if lines[3] > 0.01 {
        ((timed.far - timed.near) / lines[3]).clamp(0.0, LATENCY)
    } else {
        0.0
    };
    Ok(Cost {
        name,
        compute: timed.near,
        stall,
        lines,
    })
}

/// Lines that a packet fetches past a cache of so many MiB.
fn missed(home: &Home, args: &str, mib: u32) -> Result<f64, String> {
    let few = events(home, args, mib, ROUNDS.0 * BUFFERS)?;
    let many = events(home, args, mib, ROUNDS.1 * BUFFERS)?;
    let packets = (ROUNDS.1 - ROUNDS.0) * BUFFERS;
    Ok(many.saturating_sub(few) as f64 / packets as f64)
}

fn events(home: &Home, args: &str, mib: u32, packets: u64) -> Result<u64, String> {
    let file = home.target.join(format!("callgrind.scaling.{packets}"));
    Program::new(home, "valgrind")
        .args(["--tool=callgrind", "--quiet", "--cache-sim=yes"])
        .args(["--I1=32768,8,64", "--D1=32768,8,64"])
        .arg(format!("--LL={},16,64", mib << 20))
        .arg(format!("--toggle-collect={COUNTED}"))
        .arg(format!("--callgrind-out-file={}", file.display()))
        .arg(home.volley())
        .args(["bench", "--isa", "x86-64-v3", "--callgrind"])
        .args(args.split_whitespace())
        .args(["--buffers", &BUFFERS.to_string()])
        .args(["--packets", &packets.to_string()])
        .limit_seconds(600)
        .require()?;
    let text = std::fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
    let event =
        |name| column(&text, name).ok_or_else(|| format!("{}: no total of {name}", file.display()));
    Ok(event("ILmr")? + event("DLmr")? + event("DLmw")?)
}

fn tables(costs: &[Cost], hertz: f64) -> String {
    let mut text = String::from(
        "| | cycles at hand | cycles for a line | lines at 32 | 16 | 8 | 4 MiB |\n|---|---|---|---|---|---|---|\n",
    );
    for c in costs {
        let [a, b, d, e] = c.lines;
        let _ = writeln!(
            text,
            "| {} | {:.1} | {:.0} | {a:.3} | {b:.3} | {d:.3} | {e:.3} |",
            c.name, c.compute, c.stall
        );
    }
    for c in costs {
        let one = simulate(c, 1, hertz).pps;
        let _ = writeln!(
            text,
            "\n**{}**\n\n| cores | Mpps | of as many times one | memory used | ports of 100 Gbit/s |\n|---|---|---|---|---|",
            c.name
        );
        for point in CORES.map(|cores| simulate(c, cores, hertz)) {
            let _ = writeln!(
                text,
                "| {} | {:.0} | {:.0} % | {:.0} % | {:.1} |",
                point.cores,
                point.pps / 1e6,
                point.pps / one / point.cores as f64 * 100.0,
                point.memory * 100.0,
                point.pps / PORT_PPS
            );
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERTZ: f64 = 2.6e9;

    fn cost(compute: f64, stall: f64, lines: [f64; 4]) -> Cost {
        Cost {
            name: "test",
            compute,
            stall,
            lines,
        }
    }

    #[test]
    fn without_memory_cores_add_up() {
        let cost = cost(26.0, 0.0, [0.0; 4]);
        for cores in CORES {
            let point = simulate(&cost, cores, HERTZ);
            let ratio = point.pps / (cores as f64 * HERTZ / 26.0);
            assert!((0.99..1.001).contains(&ratio), "{cores}: {ratio}");
        }
    }

    #[test]
    fn memory_is_the_limit_where_it_must_be() {
        let cost = cost(10.0, 40.0, [4.0; 4]);
        let most = CHANNELS as f64 * CHANNEL_BYTES * USABLE / (64.0 * (1.0 + WRITTEN)) / 4.0;
        let (one, many) = (simulate(&cost, 1, HERTZ), simulate(&cost, 64, HERTZ));
        assert!((one.pps / (HERTZ / 170.0) - 1.0).abs() < 0.05);
        assert!(many.pps <= most * 1.001 && many.memory <= 1.001);
        let heavy = simulate(&self::cost(1.0, 10.0, [20.0; 4]), 64, HERTZ);
        assert!(heavy.memory > 0.9, "{heavy:?}");
    }

    #[test]
    fn a_share_of_the_cache_shrinks_with_those_who_share_it() {
        let cost = cost(10.0, 100.0, [0.0, 1.0, 2.0, 3.0]);
        let lines: Vec<f64> = CORES.iter().map(|n| cost.lines_of(*n)).collect();
        assert_eq!(lines, [0.0, 1.0, 2.0, 3.0, 3.0, 3.0, 3.0]);
    }
}
