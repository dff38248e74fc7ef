//! `volley bench path-batcher`: its effect on vectors, cycles and delays, and the time to find heavy paths.

use super::BenchError;
use super::args::{Experiment, PathArgs};
use super::measure::{costs, pin};
use super::path_traffic::{PATTERNS, Pace, Rig, packet, pattern, rng};
use super::report::Spread;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use volley_batcher::{PathBatcherClear, PathBatcherReply, PathQueueRow, ShowPathBatcher};
use volley_graph::{NodeReport, NodeState};
use volley_model::Request;

/// One line of the sweep.
#[derive(Serialize)]
struct Line {
    pattern: String,
    batch: u32,
    burst: u32,
    batcher: bool,
    /// Packets per second including the source.
    mpps: Spread,
    /// Cycles of all nodes except the source, including the batcher.
    cycles_per_packet: Spread,
    batcher_cycles_per_packet: f64,
    vectors_per_call: BTreeMap<String, f64>,
    delay_p50_us: f64,
    delay_p99_us: f64,
    delay_max_us: f64,
    /// The values of `cycles_per_packet`, one for each repetition.
    #[serde(skip)]
    samples: Vec<f64>,
}

#[derive(Serialize)]
struct Sweep {
    lines: Vec<Line>,
}

#[derive(Serialize)]
struct Delays {
    delays: Vec<Delay>,
}

/// Waiting times of packets.
#[derive(Serialize)]
struct Delay {
    name: &'static str,
    packets: u64,
    limit_us: u32,
    p50_us: f64,
    p99_us: f64,
    max_us: f64,
    /// Packets that waited longer than the limit, and those of them for which the worker did not run in time.
    late: u64,
    held_up: u64,
    /// Stalls by the machine while the worker ran, and of a loop that only reads the clock, before and after.
    stalls: Stalls,
    control: Stalls,
}

/// Stalls: times longer than half the limit in which the core ran something else.
#[derive(Serialize, Default)]
struct Stalls {
    times: u64,
    longest_us: f64,
    /// Fraction of the total time.
    part: f64,
    #[serde(skip)]
    lost: Duration,
    #[serde(skip)]
    whole: Duration,
}

impl Stalls {
    /// Record that the core returned after `round`.
    fn look(&mut self, round: Duration) {
        self.whole += round;
        self.longest_us = self.longest_us.max(round.as_secs_f64() * 1e6);
        if round > Duration::from_micros(u64::from(LIMIT_US) / 2) {
            self.times += 1;
            self.lost += round;
        }
        self.part = self.lost.as_secs_f64() / self.whole.as_secs_f64();
    }
}

/// Results of learning.
#[derive(Serialize)]
struct Learning {
    paths: usize,
    seconds: f64,
    learned: Vec<String>,
}

/// Run the experiment of the command line.
pub fn run(args: &PathArgs) -> Result<(), BenchError> {
    check(args)?;
    pin(args.core);
    match args.experiment {
        Experiment::Sweep => sweep(args),
        Experiment::Delay => delays(args),
        Experiment::Learning => learning(args),
    }
}

/// Cycles per packet of the first pattern with the first batch size, for each repetition. The batcher is in the path with
/// `--batcher on` only.
///
/// # Errors
/// If the arguments are out of range or name no pattern, or the router cannot be set up.
pub fn cycles(args: &PathArgs) -> Result<Vec<f64>, BenchError> {
    check(args)?;
    pin(args.core);
    let first = args.patterns.first().zip(args.batches.first());
    let (pattern, batch) = first.ok_or_else(|| {
        BenchError::Args("--patterns and --batches: choose one of each".to_owned())
    })?;
    Ok(line(args, pattern, *batch, args.batcher == "on")?.samples)
}

fn check(args: &PathArgs) -> Result<(), BenchError> {
    let bad = |text: String| Err(BenchError::Args(text));
    if let Some(unknown) = args.patterns.iter().find(|p| pattern(p).is_none()) {
        return bad(format!(
            "--patterns {unknown}: choose among {}",
            PATTERNS.join(", ")
        ));
    }
    if let Some(size) = args.batches.iter().find(|b| !(1..=256).contains(*b)) {
        return bad(format!("--batches {size}: choose 1 to 256"));
    }
    if args.burst.is_some_and(|b| !(1..=256).contains(&b)) {
        return bad("--burst: choose 1 to 256".into());
    }
    if !["on", "off", "both"].contains(&args.batcher.as_str()) {
        return bad(format!(
            "--batcher {}: choose on, off or both",
            args.batcher
        ));
    }
    if !(args.seconds > 0.0 && args.seconds <= 60.0) {
        return bad(format!(
            "--seconds {}: choose more than 0, at most 60",
            args.seconds
        ));
    }
    Ok(())
}

fn nodes(rig: &Rig) -> Vec<NodeReport> {
    rig.stack.engine.borrow().runtime(0)
}

fn shown(rig: &Rig) -> Result<PathBatcherReply, BenchError> {
    Ok(rig.stack.ask(&ShowPathBatcher)?)
}

fn print<T: Serialize>(
    json: bool,
    value: &T,
    table: impl FnOnce() -> String,
) -> Result<(), BenchError> {
    let text = if json {
        serde_json::to_string_pretty(value).map_err(|e| BenchError::Wrong(e.to_string()))? + "\n"
    } else {
        table()
    };
    print!("{text}");
    Ok(())
}

fn sweep(args: &PathArgs) -> Result<(), BenchError> {
    let all = || PATTERNS.iter().map(|p| (*p).to_owned()).collect();
    let patterns = if args.patterns.is_empty() {
        all()
    } else {
        args.patterns.clone()
    };
    let mut lines = Vec::new();
    for name in &patterns {
        for &batch in &args.batches {
            for on in [false, true] {
                if args.batcher == "both" || (args.batcher == "on") == on {
                    lines.push(line(args, name, batch, on)?);
                }
            }
        }
    }
    let all = Sweep { lines };
    print(args.json, &all, || table(&all.lines))
}

fn line(args: &PathArgs, name: &str, batch: u32, on: bool) -> Result<Line, BenchError> {
    let burst = args.burst.unwrap_or(batch);
    let mut rig = Rig::new(burst.max(batch), &args.level.isa)?;
    let (paths, order) = pattern(name).ok_or_else(|| BenchError::Args(name.to_owned()))?;
    if on {
        rig.batch(paths, batch, args.timeout_us, args.gather)?;
    }
    let packets: Vec<_> = order
        .iter()
        .enumerate()
        .map(|(at, p)| packet(*p, at as u32))
        .collect();
    rig.stream(&packets, burst, Pace::Ahead)?;
    let repetitions = if args.packets.is_some() {
        1
    } else {
        args.repetitions.max(1)
    };
    if args.packets.is_none() {
        steps(&mut rig, Duration::from_millis(20));
        rig.apply(Request::of(&PathBatcherClear)?)?;
    }
    let first = nodes(&rig);
    let mut runs = Vec::new();
    for _ in 0..repetitions {
        let (before, start) = (nodes(&rig), Instant::now());
        match args.packets {
            Some(packets) => {
                while received(&nodes(&rig)) < packets {
                    (0..8).for_each(|_| _ = rig.worker.step());
                }
            }
            None => steps(&mut rig, Duration::from_secs_f64(args.seconds)),
        }
        runs.push((start.elapsed().as_secs_f64(), costs(&before, &nodes(&rig))));
    }
    let whole = costs(&first, &nodes(&rig));
    let of = |name: &str| whole.iter().find(|c| c.name == name);
    let totals = shown(&rig)?.totals;
    let samples: Vec<f64> = runs
        .iter()
        .map(|(_, costs)| clocks(costs).1 / clocks(costs).0)
        .collect();
    Ok(Line {
        pattern: name.to_owned(),
        batch,
        burst,
        batcher: on,
        mpps: Spread::of(runs.iter().map(|(s, c)| clocks(c).0 / s / 1e6)),
        cycles_per_packet: Spread::of(samples.iter().copied()),
        batcher_cycles_per_packet: of("path-batcher")
            .map_or(0.0, |c| c.clocks as f64 / c.vectors as f64),
        vectors_per_call: whole
            .iter()
            .filter(|c| !c.is_source())
            .map(|c| (c.name.clone(), c.vectors as f64 / c.calls.max(1) as f64))
            .collect(),
        delay_p50_us: totals.delay_p50_us,
        delay_p99_us: totals.delay_p99_us,
        delay_max_us: totals.delay_max_us,
        samples,
    })
}

/// Packets of the sources, and clocks of all other nodes.
fn clocks(all: &[super::report::NodeCost]) -> (f64, f64) {
    let (sources, graph): (Vec<_>, Vec<_>) = all.iter().partition(|c| c.is_source());
    let packets: u64 = sources.iter().map(|c| c.vectors).sum();
    let graph: u64 = graph.iter().map(|c| c.clocks).sum();
    (packets as f64, graph as f64)
}

fn received(nodes: &[NodeReport]) -> u64 {
    let sources = nodes.iter().filter(|n| n.state == NodeState::Polling);
    sources.map(|n| n.vectors).sum()
}

fn steps(rig: &mut Rig, span: Duration) {
    let start = Instant::now();
    while start.elapsed() < span {
        rig.worker.steps(16);
    }
}

fn table(lines: &[Line]) -> String {
    let mut out = String::from(
        "Pattern        Batch  Batcher   Mpps  Cycles/packet            Batcher  ip4-input  ip6-input  Delay p50/p99/max us\n",
    );
    for l in lines {
        let vectors = |name: &str| l.vectors_per_call.get(name).copied().unwrap_or(0.0);
        out += &format!(
            "{:14} {:5}  {:7} {:6.2}  {:24} {:7.1}  {:9.1}  {:9.1}  {:.1} / {:.1} / {:.1}\n",
            l.pattern,
            l.batch,
            if l.batcher { "on" } else { "off" },
            l.mpps.median,
            l.cycles_per_packet.to_string(),
            l.batcher_cycles_per_packet,
            vectors("ip4-input"),
            vectors("ip6-input"),
            l.delay_p50_us,
            l.delay_p99_us,
            l.delay_max_us,
        );
    }
    out
}

/// The limit for delays.
const LIMIT_US: u32 = 50;

fn delays(args: &PathArgs) -> Result<(), BenchError> {
    let mut both = Vec::new();
    for (name, pace) in [("10 kpps", Pace::Rate(10_000)), ("overload", Pace::Full)] {
        both.push(delay(args, name, pace)?);
    }
    let all = Delays { delays: both };
    print(args.json, &all, || {
        all.delays.iter().map(reported).collect()
    })
}

fn delay(args: &PathArgs, name: &'static str, pace: Pace) -> Result<Delay, BenchError> {
    let mut rig = Rig::new(256, &args.level.isa)?;
    rig.batch(2, 128, LIMIT_US, 1)?;
    // At overload a rare path: its batches never fill.
    let path = |at: usize| match pace {
        Pace::Rate(_) => at % 2,
        Pace::Full | Pace::Ahead => usize::from(at.is_multiple_of(1000)),
    };
    let packets: Vec<_> = (0..4000).map(|at| packet(path(at), at as u32)).collect();
    rig.stream(&packets, 256, pace)?;
    let span = Duration::from_secs_f64(args.seconds.max(1.0));
    let (mut stalls, mut control) = (Stalls::default(), Stalls::default());
    watch(&mut control, span / 2, || {});
    steps(&mut rig, Duration::from_millis(100));
    rig.apply(Request::of(&PathBatcherClear)?)?;
    watch(&mut stalls, span, || _ = rig.worker.step());
    watch(&mut control, span / 2, || {});
    let reply = shown(&rig)?;
    let sum = |of: fn(&PathQueueRow) -> u64| reply.queues.iter().map(of).sum();
    Ok(Delay {
        name,
        packets: reply.totals.packets,
        limit_us: LIMIT_US,
        p50_us: reply.totals.delay_p50_us,
        p99_us: reply.totals.delay_p99_us,
        max_us: reply.totals.delay_max_us,
        late: sum(|q| q.late),
        held_up: sum(|q| q.held_up),
        stalls,
        control,
    })
}

fn reported(d: &Delay) -> String {
    let stalls = |s: &Stalls| {
        format!(
            "{} stalls, {:.2} % of the time, longest {:.0} us",
            s.times,
            s.part * 100.0,
            s.longest_us
        )
    };
    format!(
        "{}: {} packets, limit {} us: p50 {:.1}, p99 {:.1}, max {:.1} us; {} late, {} of them because the worker was held up: {}; idle loop: {}\n",
        d.name,
        d.packets,
        d.limit_us,
        d.p50_us,
        d.p99_us,
        d.max_us,
        d.late,
        d.held_up,
        stalls(&d.stalls),
        stalls(&d.control)
    )
}

/// Repeat `work` for a time, and record when the machine took the core away.
fn watch(stalls: &mut Stalls, span: Duration, mut work: impl FnMut()) {
    let start = Instant::now();
    let mut last = start;
    while last - start < span {
        work();
        let now = Instant::now();
        stalls.look(now - last);
        last = now;
    }
}

/// Fifty paths, distinguished by their destinations; two of them have a quarter of the traffic each.
fn learning(args: &PathArgs) -> Result<(), BenchError> {
    const PATHS: usize = 50;
    const HEAVY: [u32; 2] = [17, 31];
    let mut rig = Rig::new(256, &args.level.isa)?;
    let mut state = 0x1234_5678_9abc_def1;
    let flow = |_| match rng(&mut state) % 4 {
        0 => HEAVY[0],
        1 => HEAVY[1],
        _ => rng(&mut state) as u32 % PATHS as u32,
    };
    let packets: Vec<_> = (0..4096).map(flow).map(|flow| packet(0, flow)).collect();
    rig.batch(0, 128, LIMIT_US, 1)?;
    rig.stream(&packets, 256, Pace::Ahead)?;
    rig.configure("[path_batcher]\nlearn = 2\nlearn_field = [\"ip4.dst\"]\n")?;
    let start = Instant::now();
    let wanted: Vec<String> = HEAVY
        .iter()
        .map(|h| format!("ip4.dst={}", (20 << 24) + h))
        .collect();
    let found = loop {
        steps(&mut rig, Duration::from_millis(2));
        rig.stack.processes.run_manual();
        let learned: Vec<String> = shown(&rig)?.learned.into_iter().map(|l| l.path).collect();
        let all = wanted
            .iter()
            .all(|w| learned.iter().any(|l| l.ends_with(w)));
        if all || start.elapsed() > Duration::from_secs(5) {
            let seconds = start.elapsed().as_secs_f64();
            let paths = PATHS;
            break Learning {
                paths,
                seconds: if all { seconds } else { f64::NAN },
                learned,
            };
        }
    };
    print(args.json, &found, || {
        format!(
            "the two heaviest of {} paths after {:.2} s: {}\n",
            found.paths,
            found.seconds,
            found.learned.join(", ")
        )
    })
}
