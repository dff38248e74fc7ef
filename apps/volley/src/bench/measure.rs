//! The measurement: the worker is stepped on a pinned thread; node clocks before and after give cycles per packet.

use super::args::Args;
use super::report::{NodeCost, Report, Spread};
use super::scenario::Bench;
use super::{BenchError, verify};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use volley_graph::{NodeReport, NodeState, Severity};

/// Counts of one repetition.
struct Run {
    packets: u64,
    seconds: f64,
    graph_clocks: u64,
    source_clocks: u64,
    core_speed: f64,
}

/// Set up, verify, measure, report.
pub fn run(args: &Args) -> Result<(), BenchError> {
    check(args)?;
    pin(args.core);
    let mut bench = Bench::new(args)?;
    let verified = if args.callgrind {
        false
    } else {
        verify::sample(&mut bench)? > 0
    };
    bench.enable(true)?;
    if !args.callgrind {
        until(&mut bench, Duration::from_millis(100));
    }
    let start = nodes(&bench);
    let before = drops(&bench);
    let repetitions = if args.packets.is_some() {
        1
    } else {
        args.repetitions.max(1)
    };
    let runs: Vec<Run> = (0..repetitions)
        .map(|_| repetition(&mut bench, args))
        .collect();
    let report = report(args, &bench, &runs, &start, &before, verified);
    bench.enable(false)?;
    if args.json {
        report.print_json()
    } else {
        report.print_table()
    }
    Ok(())
}

fn check(args: &Args) -> Result<(), BenchError> {
    let bad = |text: String| Err(BenchError::Args(text));
    if !(14..=2048).contains(&args.size) {
        return bad(format!("--size {}: choose 14 to 2048 bytes", args.size));
    }
    if !(1..=1 << 20).contains(&args.buffers) {
        return bad(format!("--buffers {}: choose 1 to 1048576", args.buffers));
    }
    if !(args.seconds > 0.0 && args.seconds <= 600.0) {
        return bad(format!(
            "--seconds {}: choose more than 0, at most 600",
            args.seconds
        ));
    }
    if !(1..=1 << 22).contains(&args.distinct) {
        return bad(format!("--distinct {}: choose 1 to 4194304", args.distinct));
    }
    Ok(())
}

/// Stay on one core, so that nothing moves between caches.
pub(super) fn pin(core: Option<usize>) {
    let cores = core_affinity::get_core_ids().unwrap_or_default();
    let wanted = core
        .map(|id| core_affinity::CoreId { id })
        .or_else(|| cores.last().copied());
    if let Some(core) = wanted {
        core_affinity::set_for_current(core);
    }
}

fn until(bench: &mut Bench, limit: Duration) {
    let start = Instant::now();
    while start.elapsed() < limit {
        for _ in 0..16 {
            bench.worker.step();
        }
    }
}

/// How fast the core runs now, in core cycles per cycle of the time-stamp counter: a chain of shifts and exclusive ors,
/// each of which waits a cycle for the one before. Shared machines change it from minute to minute, and cycles per packet
/// with it.
fn core_speed() -> f64 {
    const ROUNDS: u64 = 50_000;
    let mut x = std::hint::black_box(0x9e37_79b9_7f4a_7c15u64);
    let start = volley_simd::cycles();
    for _ in 0..ROUNDS {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    std::hint::black_box(x);
    (6 * ROUNDS) as f64 / (volley_simd::cycles() - start) as f64
}

fn repetition(bench: &mut Bench, args: &Args) -> Run {
    let core_speed = if args.callgrind { 1.0 } else { core_speed() };
    let before = nodes(bench);
    let start = Instant::now();
    match args.packets {
        Some(packets) => {
            let mut sent = 0;
            while sent < packets {
                match bench.worker.step() as u64 {
                    0 => break,
                    n => sent += n,
                }
            }
        }
        None => until(bench, Duration::from_secs_f64(args.seconds)),
    }
    let seconds = start.elapsed().as_secs_f64();
    let cost = costs(&before, &nodes(bench));
    let clocks = |source: bool| {
        cost.iter()
            .filter(|c| c.is_source == source)
            .map(|c| c.clocks)
            .sum()
    };
    let packets = cost.iter().filter(|c| c.is_source).map(|c| c.vectors).sum();
    Run {
        packets,
        seconds,
        graph_clocks: clocks(false),
        source_clocks: clocks(true),
        core_speed,
    }
}

fn nodes(bench: &Bench) -> Vec<NodeReport> {
    bench.stack.engine.borrow().runtime(0)
}

fn drops(bench: &Bench) -> BTreeMap<String, u64> {
    let counters = bench.stack.engine.borrow().counters();
    let lost = counters
        .into_iter()
        .filter(|c| c.info.severity == Severity::Error && c.count > 0);
    lost.map(|c| (format!("{}: {}", c.node, c.info.name), c.count))
        .collect()
}

/// What every node did between two looks at the clocks.
pub(super) fn costs(before: &[NodeReport], after: &[NodeReport]) -> Vec<NodeCost> {
    let pairs = before
        .iter()
        .zip(after)
        .filter(|(b, a)| a.vectors > b.vectors || a.state == NodeState::Polling);
    pairs
        .map(|(b, a)| NodeCost {
            name: a.name.clone(),
            calls: a.calls - b.calls,
            vectors: a.vectors - b.vectors,
            clocks: a.clocks - b.clocks,
            is_source: a.state == NodeState::Polling && a.vectors > b.vectors,
        })
        .filter(|c| c.vectors > 0)
        .collect()
}

fn report(
    args: &Args,
    bench: &Bench,
    runs: &[Run],
    start: &[NodeReport],
    before: &BTreeMap<String, u64>,
    verified: bool,
) -> Report {
    let per =
        |what: &dyn Fn(&Run) -> f64| Spread::of(runs.iter().filter(|r| r.packets > 0).map(what));
    let hertz = volley_simd::cycles_per_second();
    let lost = drops(bench)
        .into_iter()
        .map(|(name, n)| (name.clone(), n - before.get(&name).unwrap_or(&0)));
    Report {
        scenario: args.scenario.name(),
        destinations: args.destinations.name(),
        distinct: args.distinct,
        prefixes: bench.prefixes,
        size: args.size,
        vector_size: args.vector_size,
        maxframe: args.maxframe.unwrap_or(args.vector_size),
        buffers: args.buffers,
        isa: bench.stack.engine.borrow().settings().level.to_string(),
        style: args.style.name(),
        packets: runs.iter().map(|r| r.packets).sum(),
        seconds: runs.iter().map(|r| r.seconds).sum(),
        repetitions: runs.len(),
        mpps: per(&|r| r.packets as f64 * hertz / r.graph_clocks as f64 / 1e6),
        mpps_with_source: per(&|r| r.packets as f64 / r.seconds / 1e6),
        cycles_per_packet: per(&|r| r.graph_clocks as f64 / r.packets as f64),
        core_cycles_per_tsc: per(&|r| r.core_speed),
        source_cycles_per_packet: per(&|r| r.source_clocks as f64 / r.packets as f64).median,
        nodes: costs(start, &nodes(bench)),
        lpm_bytes: bench.stack.fib.borrow().stats().lpm_bytes as u64,
        table_load_seconds: bench.load_seconds,
        drops: lost.filter(|(_, n)| *n > 0).collect(),
        verified,
    }
}
