//! Estimates the rate with more cores than this machine has: costs measured here, cache misses counted by callgrind for
//! each share of a third-level cache, and a simulation of cores that queue for memory. `docs/scaling.md` has the result.
//!
//! The model: a packet costs a core `compute` cycles with all data in its own caches, `l3` cycles for each line from its
//! share of the third-level cache, and `stall` cycles for each line from memory. Lines are fetched from channels, each of
//! which serves one request at a time. A core that waits for a channel loses the same fraction of that wait as of the
//! plain latency, since it has several requests in flight.

use crate::paths::{self, splice};
use std::collections::BinaryHeap;
use std::fmt::Write;
use xtask::bench::big_tables;
use xtask::budget::column;
use xtask::home::Home;
use xtask::measure;
use xtask::report::{Fail, Outcome, Pass};
use xtask::run::Program;

const PAGE: &str = "docs/scaling.md";
const BEGIN: &str = "<!-- xtask scaling: begin -->";
const END: &str = "<!-- xtask scaling: end -->";

/// The dispatcher and all nodes after the source.
const COUNTED: &str = "volley_graph::worker::round::Worker::run_pending";
/// Rounds of both runs, whose difference counts: each a lap of [`BUFFERS`]. The first run has sent a packet to each of a
/// million destinations, so that the caches are warm for the second one.
const ROUNDS: (u64, u64) = (256, 512);
/// Buffers in circulation on each core: the capacity of a driver's rings, plus packets in flight.
const BUFFERS: u64 = 4096;
/// More buffers than any cache holds: each packet's lines then come from memory.
const MANY_BUFFERS: u64 = 65_536;
/// Buffers that fit a core's own caches.
const FEW_BUFFERS: u64 = 512;

/// The estimated machine: one socket of EPYC 9004 (12 channels of DDR5-4800, 32 MiB of L3 for 8 cores).
const CHANNELS: usize = 12;
const CHANNEL_BYTES: f64 = 38.4e9;
/// Usable fraction of a channel's rate with random accesses.
const USABLE: f64 = 0.7;
const SHARERS: usize = 8;
const L3_MIB: [u32; 4] = [32, 16, 8, 4];
/// Size of a core's second-level cache.
const L2_MIB: u32 = 1;
/// Size of the measuring machine's third-level cache (`shared/baselines.md`: about 4 MB).
const MEASURED_MIB: u32 = L3_MIB[3];
/// TSC cycles for a line from memory without a queue: from `shared/baselines.md` (330 to 450), not measured here.
const LATENCY: f64 = 390.0;
/// Lines written back per fetched line: packets are changed, tables are not.
const WRITTEN: f64 = 0.5;
const CORES: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];
/// Packets per second of 64 bytes at 100 Gbit/s.
const PORT_PPS: f64 = 148.8e6;

/// The cost of a packet.
#[derive(Clone, Debug, PartialEq)]
struct Cost {
    name: &'static str,
    /// Cycles with all data in the core's own caches.
    compute: f64,
    /// Cycles lost per line from the third-level cache.
    l3: f64,
    /// Cycles lost per line from memory.
    stall: f64,
    /// Lines that miss the second-level cache.
    past_l2: f64,
    /// Lines from memory, for each entry of [`L3_MIB`].
    lines: [f64; 4],
}

impl Cost {
    /// Lines from memory with this number of working cores.
    fn lines_of(&self, cores: usize) -> f64 {
        let sharers = cores.min(SHARERS);
        self.lines[(sharers.ilog2() as usize).min(3)]
    }

    fn cycles(&self, cores: usize) -> f64 {
        let memory = self.lines_of(cores);
        let l3 = (self.past_l2 - memory).max(0.0);
        self.compute + self.l3 * l3 + self.stall * memory
    }
}

/// Estimate for a number of cores.
#[derive(Clone, Copy, Debug)]
struct Point {
    cores: usize,
    pps: f64,
    /// Used fraction of the memory's usable rate.
    memory: f64,
}

/// A core's next memory request, ordered by its time in cycles.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Next(std::cmp::Reverse<u64>, usize);

/// Lines that each core requests in a simulation.
const LINES: u64 = 30_000;

/// Simulates a number of cores that process packets with this cost.
fn simulate(cost: &Cost, cores: usize, hertz: f64) -> Point {
    let (cycles, lines) = (cost.cycles(cores), cost.lines_of(cores));
    if lines < 1e-6 {
        let (pps, memory) = (hertz / cycles * cores as f64, 0.0);
        return Point { cores, pps, memory };
    }
    let line = 64.0 * (1.0 + WRITTEN) / (CHANNEL_BYTES * USABLE) * hertz;
    let (gap, part) = (cycles / lines, cost.stall / LATENCY);
    let mut free = [0.0f64; CHANNELS];
    let mut rng = 0x2545_f491_4f6c_dd1du64;
    // The cores start at different times.
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
        rng ^= rng << 13;
        rng ^= rng >> 7;
        rng ^= rng << 17;
        let channel = &mut free[(rng >> 11) as usize % CHANNELS];
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

/// A measurement: arguments with all data in the core's own caches, as on the estimated machine, and with all data in
/// memory; each with its number of buffers in circulation.
struct Scenario {
    name: &'static str,
    near: Setup,
    real: Setup,
    memory: Setup,
}

type Setup = (&'static str, u64);

const SCENARIOS: [Scenario; 3] = [
    Scenario {
        name: "patch (xc)",
        near: ("--scenario xc", FEW_BUFFERS),
        real: ("--scenario xc", BUFFERS),
        memory: ("--scenario xc", MANY_BUFFERS),
    },
    Scenario {
        name: "IPv4, one route",
        near: ("--scenario ip4", FEW_BUFFERS),
        real: ("--scenario ip4", BUFFERS),
        memory: ("--scenario ip4", MANY_BUFFERS),
    },
    Scenario {
        name: "IPv4, full table, 1M destinations",
        near: ("--scenario ip4", FEW_BUFFERS),
        real: (
            "--scenario ip4 --destinations uniform --distinct 1048576 TABLES",
            BUFFERS,
        ),
        memory: (
            "--scenario ip4 --destinations uniform --distinct 1048576 --prefixes 4000000",
            BUFFERS,
        ),
    },
];

/// Measures, simulates, and writes the page.
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
    // Timed measurements run first, together: other load does not change counts.
    let mut timed = Vec::new();
    for Scenario {
        near, real, memory, ..
    } in &SCENARIOS
    {
        timed.push([
            cycles(home, near)?,
            cycles(home, real)?,
            cycles(home, memory)?,
        ]);
    }
    let hertz = timed.first().map_or(0.0, |[near, ..]| near.hertz);
    let mut costs = Vec::new();
    for (scenario, [near, real, memory]) in SCENARIOS.iter().zip(timed) {
        let [past_l2, lines @ ..] = counted(home, scenario.name, &scenario.real, SIZES)?;
        let of_memory = counted(
            home,
            scenario.name,
            &scenario.memory,
            [L2_MIB, MEASURED_MIB],
        )?;
        let (l3, stall) = solve(
            (real.packet - near.packet, [past_l2, lines[3]]),
            (memory.packet - near.packet, of_memory),
        );
        println!(
            "{}: {l3:.1} cycles for a line from L3, {stall:.1} for one from memory",
            scenario.name
        );
        costs.push(Cost {
            name: scenario.name,
            compute: near.packet,
            l3,
            stall,
            past_l2,
            lines,
        });
    }
    let text = tables(&costs, hertz);
    let path = home.root.join(PAGE);
    let page = std::fs::read_to_string(&path).map_err(|e| format!("{PAGE}: {e}"))?;
    let page = splice(&page, (BEGIN, END), &text).ok_or(format!("{PAGE}: the marks are gone"))?;
    std::fs::write(&path, page).map_err(|e| format!("{PAGE}: {e}"))?;
    Ok(PAGE.to_owned())
}

/// Computes the cost of a line from the third-level cache and of one from memory, from two setups: the additional cycles
/// of each over one with all data in the core's own caches, and its misses of the second-level and the third-level cache.
fn solve(real: (f64, [f64; 2]), memory: (f64, [f64; 2])) -> (f64, f64) {
    let lines = |[past_l2, past_l3]: [f64; 2]| ((past_l2 - past_l3).max(0.0), past_l3);
    let ((more, (x, y)), (most, (u, w))) = ((real.0, lines(real.1)), (memory.0, lines(memory.1)));
    let of_memory = |l3: f64| ((most - l3 * u) / w.max(0.01)).clamp(0.0, LATENCY);
    let det = x * w - u * y;
    // With hardly any lines from L3 their cost cannot be determined.
    let l3 = if x < 0.05 || det.abs() < 1e-3 {
        0.0
    } else {
        ((more * w - most * y) / det).clamp(0.0, LATENCY)
    };
    (l3, of_memory(l3))
}

/// TSC cycles per packet, and the frequency of the counter.
struct Cycles {
    packet: f64,
    hertz: f64,
}

fn cycles(home: &Home, (args, buffers): &Setup) -> Result<Cycles, String> {
    let args = args.replace("TABLES", &big_tables(home).0.join(" "));
    let line = format!("bench {args} --buffers {buffers} --seconds 1 --repetitions 5");
    let words: Vec<&str> = line.split_whitespace().collect();
    let run: measure::Bench = measure::json(home, &words, 180)?;
    let packet = run.cycles_per_packet.median;
    println!("{line}: {packet:.2} cycles");
    let hertz = run.mpps.median * 1e6 * packet;
    Ok(Cycles { packet, hertz })
}

/// Misses per packet of caches with these sizes in MiB.
fn counted<const N: usize>(
    home: &Home,
    name: &str,
    (args, buffers): &Setup,
    sizes: [u32; N],
) -> Result<[f64; N], String> {
    let mut lines = [0.0; N];
    // Two at a time: counts do not depend on other load.
    for (sizes, lines) in sizes.chunks(2).zip(lines.chunks_mut(2)) {
        std::thread::scope(|scope| {
            let runs: Vec<_> = sizes
                .iter()
                .map(|mib| scope.spawn(move || missed(home, args, (*mib, *buffers))))
                .collect();
            for ((run, mib), lines) in runs.into_iter().zip(sizes).zip(lines) {
                *lines = run.join().map_err(|_| "a count ended early".to_owned())??;
                println!("{name}, {buffers} buffers, {mib} MiB: {lines:.3} lines a packet");
            }
            Ok::<_, String>(())
        })?;
    }
    Ok(lines)
}

/// All cache sizes that are counted.
const SIZES: [u32; 5] = [L2_MIB, L3_MIB[0], L3_MIB[1], L3_MIB[2], L3_MIB[3]];

/// Misses per packet of a cache with this size in MiB and number of buffers in circulation.
fn missed(home: &Home, args: &str, cache: (u32, u64)) -> Result<f64, String> {
    let few = events(home, args, cache, ROUNDS.0 * BUFFERS)?;
    let many = events(home, args, cache, ROUNDS.1 * BUFFERS)?;
    let packets = (ROUNDS.1 - ROUNDS.0) * BUFFERS;
    Ok(many.saturating_sub(few) as f64 / packets as f64)
}

fn events(
    home: &Home,
    args: &str,
    (mib, buffers): (u32, u64),
    packets: u64,
) -> Result<u64, String> {
    let args = args.replace("TABLES", &big_tables(home).0.join(" "));
    let name = format!("callgrind.scaling.{mib}.{buffers}.{packets}");
    let file = home.target.join(name);
    Program::new(home, "valgrind")
        .args(["--tool=callgrind", "--quiet", "--cache-sim=yes"])
        .args(["--I1=32768,8,64", "--D1=32768,8,64"])
        .arg(format!("--LL={},16,64", mib << 20))
        .arg(format!("--toggle-collect={COUNTED}"))
        .arg(format!("--callgrind-out-file={}", file.display()))
        .arg(home.volley())
        .args(["bench", "--isa", "x86-64-v3", "--callgrind"])
        .args(args.split_whitespace())
        .args(["--buffers", &buffers.to_string()])
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
        "| | cycles at hand | lines past 1 MiB | cycles for one from L3 | lines past 32 | 16 | 8 | 4 MiB | cycles for one from memory |\n|---|---|---|---|---|---|---|---|---|\n",
    );
    for c in costs {
        let [a, b, d, e] = c.lines;
        let _ = writeln!(
            text,
            "| {} | {:.1} | {:.3} | {:.0} | {a:.3} | {b:.3} | {d:.3} | {e:.3} | {:.0} |",
            c.name, c.compute, c.past_l2, c.l3, c.stall
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

/// Numbers of a table's row, without units; `None` if the row has other cells.
fn numbers(row: &str) -> Option<Vec<f64>> {
    let cells = row.trim().trim_matches('|').split('|');
    let number = |cell: &str| cell.trim().trim_end_matches(" %").parse().ok();
    cells.map(number).collect()
}

/// Simulates again from the costs on a page, and compares with the page's points: the rows of the highest core count, or
/// the row that differs. Rates may differ by rounding, and memory by two percentage points.
pub fn follows(page: &str) -> Result<Vec<String>, String> {
    let none = || format!("{PAGE} has no figures: run `cargo xtask scaling`");
    let inside = page
        .split_once(BEGIN)
        .and_then(|(_, rest)| rest.split_once(END));
    let (inside, _) = inside.ok_or_else(none)?;
    let mut most = Vec::new();
    for Scenario { name, .. } in &SCENARIOS {
        let row = inside
            .lines()
            .find_map(|l| l.strip_prefix(&format!("| {name} |")));
        let cells = row.and_then(numbers).ok_or_else(none)?;
        let &[compute, past_l2, l3, a, b, c, d, stall] = &cells[..] else {
            return Err(format!(
                "{PAGE}: the costs of {name} are {} figures, not 8",
                cells.len()
            ));
        };
        let lines = [a, b, c, d];
        let cost = Cost {
            name,
            compute,
            l3,
            stall,
            past_l2,
            lines,
        };
        let (_, table) = inside.split_once(&format!("**{name}**")).ok_or_else(none)?;
        let rows: Vec<&str> = table.lines().skip(4).take(CORES.len()).collect();
        let points: Option<Vec<Vec<f64>>> = rows.iter().map(|row| numbers(row)).collect();
        let points = points.filter(|p| p.len() == CORES.len()).ok_or_else(none)?;
        // The frequency with which the first row was written.
        let hertz = points[0][1] * 1e6 * cost.cycles(1);
        for (row, cores) in points.iter().zip(CORES) {
            let point = simulate(&cost, cores, hertz);
            let (rate, memory) = (row[1] * 1e6 / point.pps, row[3] - point.memory * 100.0);
            if row[0] != cores as f64 || (rate - 1.0).abs() > 0.03 || memory.abs() > 2.0 {
                return Err(format!(
                    "{PAGE}: {name} on {cores} cores does not follow from its costs: {:.0} Mpps come out, {:.0} stand there; run `cargo xtask scaling`",
                    point.pps / 1e6,
                    row[1]
                ));
            }
        }
        most.extend(rows.last().map(|row| format!("{name}: {row}")));
    }
    Ok(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERTZ: f64 = 2.6e9;

    fn cost(compute: f64, stall: f64, lines: [f64; 4]) -> Cost {
        Cost {
            name: "test",
            compute,
            l3: 0.0,
            stall,
            past_l2: 0.0,
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
    fn what_a_line_costs_comes_out_as_it_went_in() {
        // 2 lines from L3 at 15 cycles and half a line from memory at 80; then 1 and 3 lines.
        let (l3, stall) = solve((70.0, [2.5, 0.5]), (255.0, [4.0, 3.0]));
        assert!((l3 - 15.0).abs() < 1e-9 && (stall - 80.0).abs() < 1e-9);
        let cost = Cost {
            l3,
            past_l2: 2.5,
            ..cost(10.0, stall, [0.0, 0.1, 0.2, 0.5])
        };
        assert!((cost.cycles(64) - 80.0).abs() < 1e-9);
        assert!((cost.cycles(1) - 47.5).abs() < 1e-9);
        let (l3, stall) = solve((0.5, [0.0, 0.0]), (6.0, [2.1, 2.0]));
        assert_eq!((l3, stall), (0.0, 3.0), "no line, no price");
        assert_eq!(
            solve((-1.0, [2.0, 0.0]), (-1.0, [2.0, 2.0])),
            (0.0, 0.0),
            "noise"
        );
    }

    #[test]
    fn a_page_follows_from_its_costs_or_is_found_out() {
        let lines = [0.0, 0.2, 0.5, 1.5];
        let costs = SCENARIOS.map(|s| Cost {
            name: s.name,
            l3: 16.0,
            past_l2: 2.0,
            ..cost(20.0, 60.0, lines)
        });
        let page = format!("{BEGIN}\n{}{END}\n", tables(&costs, HERTZ));
        assert_eq!(follows(&page).unwrap().len(), 3);
        let row = page.lines().find(|l| l.starts_with("| 64 |")).unwrap();
        let false_row = row.replacen("| 64 | ", "| 64 | 1", 1);
        assert!(follows(&page.replace(row, &false_row)).is_err());
        let dear = page.replace("| 20.0 |", "| 90.0 |");
        assert!(follows(&dear).is_err(), "other costs");
        assert!(follows(&format!("{BEGIN}\n{END}\n")).is_err());
    }

    #[test]
    fn a_share_of_the_cache_shrinks_with_those_who_share_it() {
        let cost = cost(10.0, 100.0, [0.0, 1.0, 2.0, 3.0]);
        let lines: Vec<f64> = CORES.iter().map(|n| cost.lines_of(*n)).collect();
        assert_eq!(lines, [0.0, 1.0, 2.0, 3.0, 3.0, 3.0, 3.0]);
    }
}
