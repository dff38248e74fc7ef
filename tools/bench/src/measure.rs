//! The measurement: the worker is stepped on a pinned thread; node clocks before and after give cycles per packet.

use super::args::{Args, Scenario, Style};
use super::pace;
use super::report::{CostKind, NodeCost, Report, Sample, Spread, print_json};
use super::scenario::Bench;
use super::{BenchError, burn, counters, scaling, verify};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use volley_daemon::stack::StackError;
use volley_graph::{NodeReport, NodeState, Severity};
use volley_l2::model::MAC_LIMIT;

/// Most MAC addresses of a bridge: a domain learns no more.
const MOST_MACS: u32 = *MAC_LIMIT.end();

/// Time between two measurements of the core's pace.
pub(super) const SLICE: Duration = Duration::from_millis(4);
/// Minimum undisturbed fraction of a repetition that counts.
const ENOUGH: f64 = 0.1;

/// Data between two measurements of the pace.
struct Slice {
    /// The core's pace before or after, whichever is lower.
    pace: f64,
    /// Wall-clock time.
    seconds: f64,
    /// The nodes' counters.
    costs: Vec<NodeCost>,
}

/// One repetition, in slices.
struct Run {
    core_speed: f64,
    slices: Vec<Slice>,
}

/// Sums over the slices of a repetition that count.
#[derive(Default)]
struct Sums {
    packets: u64,
    seconds: f64,
    graph_clocks: u64,
    /// Calls of the nodes after the source, and packets of these calls.
    graph_calls: u64,
    graph_vectors: u64,
    source_clocks: u64,
    /// Cost of the rounds outside nodes, and number of rounds.
    loop_clocks: u64,
    rounds: u64,
    core_speed: f64,
}

impl Run {
    /// Fraction of the slices that ran at least at this pace.
    fn share(&self, bar: f64) -> f64 {
        let ours = self.slices.iter().filter(|s| s.pace >= bar).count();
        ours as f64 / self.slices.len().max(1) as f64
    }

    fn sums(&self, bar: f64) -> Sums {
        let mut sums = Sums {
            core_speed: self.core_speed,
            ..Sums::default()
        };
        for slice in self.slices.iter().filter(|s| s.pace >= bar) {
            sums.seconds += slice.seconds;
            for cost in &slice.costs {
                match cost.kind {
                    CostKind::Source => {
                        sums.packets += cost.vectors;
                        sums.source_clocks += cost.clocks;
                    }
                    CostKind::Node => {
                        sums.graph_clocks += cost.clocks;
                        sums.graph_calls += cost.calls;
                        sums.graph_vectors += cost.vectors;
                    }
                    CostKind::Loop => {
                        sums.loop_clocks += cost.clocks;
                        sums.rounds += cost.calls;
                    }
                }
            }
        }
        sums
    }
}

impl Sums {
    /// Cycles per packet of the complete rounds.
    fn together(&self) -> f64 {
        let all = self.graph_clocks + self.source_clocks + self.loop_clocks;
        all as f64 / self.packets as f64
    }
}

/// Set up, verify, measure, report.
pub fn run(args: &Args) -> Result<(), BenchError> {
    if args.workers > 1 {
        let (mut bench, verified) = ready(args)?;
        return scaling::run(args, &mut bench, verified);
    }
    let report = measure(args)?;
    if args.json {
        print_json(&report);
    } else {
        report.print_table();
    }
    Ok(())
}

/// Set up, verify and measure one worker, which runs on this thread; the thread stays pinned.
pub fn measure(args: &Args) -> Result<Report, BenchError> {
    measure_with(args, |_| Ok(()))
}

/// As [`measure`], with a change of the scenario before its output is verified.
pub fn measure_with(
    args: &Args,
    prepare: impl FnOnce(&mut Bench) -> Result<(), BenchError>,
) -> Result<Report, BenchError> {
    if args.workers != 1 {
        return Err(BenchError::Args(format!(
            "--workers {}: a report is of one worker, choose 1",
            args.workers
        )));
    }
    let (mut bench, verified) = ready_with(args, prepare)?;
    if !args.callgrind {
        bench.run_for(Duration::from_millis(100));
    }
    let before = drops(&bench);
    let runs = repetitions(&mut bench, args);
    let mut report = report(args, &bench, &runs, &before, verified);
    if args.counters {
        report.counters = Some(counters::count(args, &mut bench, &report.nodes)?);
    }
    bench.enable(false)?;
    Ok(report)
}

/// Set up, verify and measure several workers: the throughput of all together divided by that of one, for each repetition.
/// Repetitions in which another program used the cores all the time are missing.
pub fn speedup(args: &Args) -> Result<Vec<f64>, BenchError> {
    let (mut bench, verified) = ready(args)?;
    Ok(scaling::measure(args, &mut bench, verified)?.samples)
}

/// The scenario with its streams enabled, and whether its output was verified.
fn ready(args: &Args) -> Result<(Bench, bool), BenchError> {
    ready_with(args, |_| Ok(()))
}

fn ready_with(
    args: &Args,
    prepare: impl FnOnce(&mut Bench) -> Result<(), BenchError>,
) -> Result<(Bench, bool), BenchError> {
    check(args)?;
    if args.workers == 1 {
        pin(args.core);
    }
    let mut bench = Bench::new(args)?;
    prepare(&mut bench)?;
    let verified = if args.callgrind {
        false
    } else {
        verify::sample(&mut bench)? > 0
    };
    if !args.mark.is_empty() {
        let engine = bench.stack.engine.clone();
        let marked = engine.borrow_mut().mark_nodes(0, &args.mark);
        marked.map_err(StackError::from)?;
        bench.settle();
    }
    if let Some(percent) = args.burn {
        burn::begin(&mut bench, percent)?;
    }
    bench.enable(true)?;
    Ok((bench, verified))
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
    if args.counters && args.workers > 1 {
        return bad("--counters counts the events of one worker: leave out --workers".into());
    }
    let cores = core_affinity::get_core_ids().map_or(1, |ids| ids.len());
    if !(1..=cores).contains(&args.workers) {
        return bad(format!(
            "--workers {}: choose 1 to {cores}, the cores of this machine",
            args.workers
        ));
    }
    if !(1..=1 << 22).contains(&args.distinct) {
        return bad(format!("--distinct {}: choose 1 to 4194304", args.distinct));
    }
    if args.scenario == Scenario::Bridge && args.style == Style::Rtc {
        return bad("--style rtc knows no bridge: choose graph".into());
    }
    if args
        .rate
        .is_some_and(|rate| !(1000..=1_000_000_000).contains(&rate))
    {
        return bad("--rate: choose 1000 to 1000000000 packets per second".into());
    }
    if !(1..=MOST_MACS).contains(&args.macs) {
        return bad(format!("--macs {}: choose 1 to {MOST_MACS}", args.macs));
    }
    Ok(())
}

/// Pin the thread to one core, so that nothing moves between caches.
pub fn pin(core: Option<usize>) {
    let cores = core_affinity::get_core_ids().unwrap_or_default();
    let wanted = core
        .map(|id| core_affinity::CoreId { id })
        .or_else(|| cores.last().copied());
    if let Some(core) = wanted {
        core_affinity::set_for_current(core);
    }
}

/// The requested number of undisturbed repetitions, or as many as fitted into the time limit.
fn repetitions(bench: &mut Bench, args: &Args) -> Vec<Run> {
    if let Some(packets) = args.packets {
        return vec![counted(bench, packets)];
    }
    let wanted = args.repetitions.max(1);
    let mut runs: Vec<Run> = Vec::new();
    for _ in 0..wanted * pace::TRIES {
        runs.push(repetition(bench, Duration::from_secs_f64(args.seconds)));
        let bar = pace::bar(runs.iter().flat_map(|r| &r.slices).map(|s| s.pace));
        if runs.iter().filter(|r| r.share(bar) >= ENOUGH).count() >= wanted {
            break;
        }
    }
    runs
}

/// Process a number of packets, at any pace.
fn counted(bench: &mut Bench, packets: u64) -> Run {
    let mut left = packets;
    let slice = slice(bench, |bench| {
        while left > 0 {
            match bench.worker.step() as u64 {
                0 => break,
                n => left = left.saturating_sub(n),
            }
        }
    });
    Run {
        core_speed: 1.0,
        slices: vec![slice],
    }
}

fn repetition(bench: &mut Bench, limit: Duration) -> Run {
    let mut run = Run {
        core_speed: pace::speed(),
        slices: Vec::new(),
    };
    let start = Instant::now();
    let mut before = pace::pace();
    while start.elapsed() < limit {
        let mut slice = slice(bench, |bench| bench.run_for(SLICE));
        let after = pace::pace();
        slice.pace = before.min(after);
        before = after;
        run.slices.push(slice);
    }
    run
}

fn slice(bench: &mut Bench, work: impl FnOnce(&mut Bench)) -> Slice {
    let before = nodes(bench);
    let start = Instant::now();
    work(bench);
    let seconds = start.elapsed().as_secs_f64();
    Slice {
        pace: 0.0,
        seconds,
        costs: costs(&before, &nodes(bench)),
    }
}

/// The nodes' counters in all slices that count, by name.
fn total<'a>(slices: impl Iterator<Item = &'a Slice>) -> Vec<NodeCost> {
    let mut all: Vec<NodeCost> = Vec::new();
    for cost in slices.flat_map(|s| &s.costs) {
        match all.iter_mut().find(|c| c.name == cost.name) {
            Some(sum) => {
                sum.calls += cost.calls;
                sum.vectors += cost.vectors;
                sum.clocks += cost.clocks;
            }
            None => all.push(cost.clone()),
        }
    }
    all
}

fn nodes(bench: &Bench) -> Vec<NodeReport> {
    let engine = bench.stack.engine.borrow();
    let mut nodes = engine.runtime(0);
    nodes.extend(engine.loop_report(0));
    nodes
}

fn drops(bench: &Bench) -> BTreeMap<String, u64> {
    let counters = bench.stack.engine.borrow().counters();
    let lost = counters
        .into_iter()
        .filter(|c| c.info.severity == Severity::Error && c.count > 0);
    lost.map(|c| (format!("{}: {}", c.node, c.info.name), c.count))
        .collect()
}

/// Differences of all nodes' counters between two reports: nodes with packets, all sources, and the loop.
pub(super) fn costs(before: &[NodeReport], after: &[NodeReport]) -> Vec<NodeCost> {
    let cost = |(b, a): (&NodeReport, &NodeReport)| NodeCost {
        name: a.name.clone(),
        calls: a.calls - b.calls,
        vectors: a.vectors - b.vectors,
        // Clocks of the loop are the remainder after estimates, and may decrease slightly.
        clocks: a.clocks.saturating_sub(b.clocks),
        kind: match a.state {
            NodeState::Polling | NodeState::Interrupt => CostKind::Source,
            NodeState::Loop => CostKind::Loop,
            NodeState::Active | NodeState::Process => CostKind::Node,
        },
    };
    let pairs = before.iter().zip(after).map(cost);
    pairs
        .filter(|c| c.vectors > 0 || c.kind != CostKind::Node && c.calls > 0)
        .collect()
}

fn report(
    args: &Args,
    bench: &Bench,
    runs: &[Run],
    before: &BTreeMap<String, u64>,
    verified: bool,
) -> Report {
    let slices = || runs.iter().flat_map(|r| &r.slices);
    let bar = pace::bar(slices().map(|s| s.pace));
    let ours = |s: &&Slice| s.pace >= bar;
    let sums: Vec<Sums> = runs
        .iter()
        .filter(|r| r.share(bar) >= ENOUGH)
        .map(|r| r.sums(bar))
        .filter(|sums| sums.packets > 0)
        .collect();
    let per = |what: &dyn Fn(&Sums) -> f64| Spread::of(sums.iter().map(what));
    let cycles = |sums: &Sums| sums.graph_clocks as f64 / sums.packets as f64;
    let disturbed = runs.iter().map(|r| r.sums(0.0)).filter(|s| s.packets > 0);
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
        packets: sums.iter().map(|r| r.packets).sum(),
        seconds: sums.iter().map(|r| r.seconds).sum(),
        repetitions: sums.len(),
        undisturbed: slices().filter(ours).count() as f64 / slices().count().max(1) as f64,
        mpps: per(&|r| r.packets as f64 * hertz / r.graph_clocks as f64 / 1e6),
        mpps_with_source: per(&|r| r.packets as f64 / r.seconds / 1e6),
        cycles_per_packet: per(&cycles),
        cycles_per_packet_disturbed: Spread::of(disturbed.map(|s| cycles(&s))),
        core_cycles_per_tsc: per(&|r| r.core_speed),
        together_cycles_per_packet: per(&Sums::together),
        source_cycles_per_packet: per(&|r| r.source_clocks as f64 / r.packets as f64),
        loop_cycles_per_packet: per(&|r| r.loop_clocks as f64 / r.packets as f64).median,
        loop_cycles_per_round: per(&|r| r.loop_clocks as f64 / r.rounds.max(1) as f64),
        nodes: total(slices().filter(ours)),
        counters: None,
        lpm_bytes: bench.stack.fib.borrow().stats().lpm_bytes as u64,
        table_load_seconds: bench.load_seconds,
        drops: lost.filter(|(_, n)| *n > 0).collect(),
        verified,
        samples: sums
            .iter()
            .map(|r| Sample {
                cycles_per_packet: cycles(r),
                together_cycles_per_packet: r.together(),
                mpps_with_source: r.packets as f64 / r.seconds / 1e6,
                core_cycles_per_tsc: r.core_speed,
                vectors_per_call: r.graph_vectors as f64 / r.graph_calls.max(1) as f64,
            })
            .collect(),
    }
}
