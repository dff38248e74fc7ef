//! Compares several workers together with each of them alone, alternating slice by slice, so that both run under the same
//! load.
//!
//! Figures are packets per cycle of the nodes after the source, so the generator's cost is excluded. Slices in which
//! another program used the units of a core do not count.

use super::BenchError;
use super::args::Args;
use super::measure::{SLICE, costs};
use super::pace;
use super::report::Spread;
use super::scenario::Bench;
use serde::Serialize;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Barrier, Mutex};
use std::time::{Duration, Instant};
use volley_graph::{NodeReport, Worker};

/// Data shared by all threads.
struct Shared {
    /// Barrier for all worker threads and the counting thread, before and after each slice.
    meet: Barrier,
    /// A bit for each worker that runs in the next slice; 0 ends the measurement.
    mask: AtomicU64,
    /// Pace of each core, in millionths.
    paces: Vec<AtomicU64>,
    failed: AtomicBool,
}

/// Work of one worker in a slice.
#[derive(Clone, Copy, Default)]
struct Work {
    packets: u64,
    clocks: u64,
}

/// One slice: the workers, the pace of their slowest core, the work of each.
struct Slice {
    mask: u64,
    pace: f64,
    work: Vec<Work>,
}

/// Result of several workers.
#[derive(Serialize)]
pub(super) struct Scaling {
    scenario: &'static str,
    destinations: &'static str,
    prefixes: usize,
    workers: usize,
    /// Throughput of all workers together, relative to that of workers alone.
    scaling: Spread,
    /// Cycles per packet, by worker.
    alone: Vec<Spread>,
    together: Vec<Spread>,
    undisturbed: f64,
    verified: bool,
    /// The values of `scaling`, one for each repetition.
    #[serde(skip)]
    pub(super) samples: Vec<f64>,
}

/// Measure and report.
pub fn run(args: &Args, bench: &mut Bench, verified: bool) -> Result<(), BenchError> {
    print(args, &measure(args, bench, verified)?)
}

/// Measure.
pub(super) fn measure(
    args: &Args,
    bench: &mut Bench,
    verified: bool,
) -> Result<Scaling, BenchError> {
    let workers = args.workers;
    let shared = Shared {
        meet: Barrier::new(workers + 1),
        mask: AtomicU64::new(0),
        paces: (0..workers).map(|_| AtomicU64::new(0)).collect(),
        failed: AtomicBool::new(false),
    };
    let Bench {
        stack,
        worker,
        others,
        prefixes,
        ..
    } = bench;
    let look = |w: usize| stack.engine.borrow().runtime(w);
    let all = std::iter::once(worker).chain(others).map(Mutex::new);
    let all: Vec<Mutex<&mut Worker>> = all.collect();
    let runs = std::thread::scope(|scope| {
        for (number, worker) in all.iter().enumerate() {
            let shared = &shared;
            scope.spawn(move || {
                if let Ok(mut worker) = worker.lock() {
                    work(number, &mut worker, shared);
                }
            });
        }
        let runs = turns(args, &shared, look);
        shared.mask.store(0, Ordering::Release);
        shared.meet.wait();
        runs
    });
    if shared.failed.load(Ordering::Relaxed) {
        return Err(BenchError::Args(
            "a worker cannot be pinned to its own core".into(),
        ));
    }
    let result = result(args, *prefixes, &runs, verified);
    bench.enable(false)?;
    Ok(result)
}

/// A worker's thread, which runs if its bit is set.
fn work(number: usize, worker: &mut Worker, shared: &Shared) {
    let core = core_affinity::get_core_ids().and_then(|ids| ids.get(number).copied());
    if !core.is_some_and(core_affinity::set_for_current) {
        shared.failed.store(true, Ordering::Relaxed);
    }
    loop {
        shared.meet.wait();
        let mask = shared.mask.load(Ordering::Acquire);
        if mask == 0 {
            return;
        }
        if mask & 1 << number != 0 {
            let before = pace::pace();
            let start = Instant::now();
            while start.elapsed() < SLICE {
                worker.steps(16);
            }
            let pace = before.min(pace::pace());
            shared.paces[number].store((pace * 1e6) as u64, Ordering::Relaxed);
        }
        shared.meet.wait();
    }
}

/// Repetitions that alternate between each worker alone and all together.
fn turns(args: &Args, shared: &Shared, look: impl Fn(usize) -> Vec<NodeReport>) -> Vec<Vec<Slice>> {
    let workers = args.workers;
    let mut masks: Vec<u64> = (0..workers).map(|w| 1 << w).collect();
    masks.push((1 << workers) - 1);
    // A first round of each for warm-up.
    masks.iter().for_each(|&mask| _ = one(shared, mask, &look));
    let limit = Duration::from_secs_f64(args.seconds);
    let repetition = |_| {
        let (start, mut slices) = (Instant::now(), Vec::new());
        while start.elapsed() < limit {
            // Twice as many slices with all workers, because all cores must be undisturbed then.
            slices.extend(masks.iter().map(|&mask| one(shared, mask, &look)));
            slices.extend(masks.last().map(|&mask| one(shared, mask, &look)));
        }
        slices
    };
    (0..args.repetitions.max(1)).map(repetition).collect()
}

fn one(shared: &Shared, mask: u64, look: impl Fn(usize) -> Vec<NodeReport>) -> Slice {
    let workers = shared.paces.len();
    let before: Vec<_> = (0..workers).map(&look).collect();
    shared.mask.store(mask, Ordering::Release);
    shared.meet.wait();
    shared.meet.wait();
    let work = before.iter().enumerate().map(|(worker, before)| {
        let mut work = Work::default();
        for cost in costs(before, &look(worker)) {
            if cost.is_source() {
                work.packets += cost.vectors;
            } else {
                work.clocks += cost.clocks;
            }
        }
        work
    });
    let work = work.collect();
    let ran = (0..workers).filter(|w| mask & 1 << w != 0);
    let paces = ran.map(|w| shared.paces[w].load(Ordering::Relaxed) as f64 / 1e6);
    Slice {
        mask,
        pace: paces.fold(f64::MAX, f64::min),
        work,
    }
}

/// Cycles per packet of worker `worker` in the slices of `mask` with at least the pace `bar`; `None` if there are none.
fn cycles(slices: &[Slice], mask: u64, worker: usize, bar: f64) -> Option<f64> {
    let ours = slices.iter().filter(|s| s.mask == mask && s.pace >= bar);
    let sum = ours.fold(Work::default(), |sum, s| Work {
        packets: sum.packets + s.work[worker].packets,
        clocks: sum.clocks + s.work[worker].clocks,
    });
    (sum.packets > 0).then(|| sum.clocks as f64 / sum.packets as f64)
}

fn result(args: &Args, prefixes: usize, runs: &[Vec<Slice>], verified: bool) -> Scaling {
    let (workers, every) = (args.workers, (1 << args.workers) - 1);
    let slices = || runs.iter().flatten();
    let bar = pace::bar(slices().map(|s| s.pace));
    let alone = |run: &[Slice], w: usize| cycles(run, 1 << w, w, bar);
    let together = |run: &[Slice], w: usize| cycles(run, every, w, bar);
    let scaling = |run: &Vec<Slice>| {
        let rates = |of: &dyn Fn(&[Slice], usize) -> Option<f64>| -> Option<f64> {
            (0..workers).map(|w| Some(1.0 / of(run, w)?)).sum()
        };
        Some(rates(&together)? / (rates(&alone)? / workers as f64))
    };
    let spread = |of: &dyn Fn(&[Slice], usize) -> Option<f64>| {
        let of = |w| Spread::of(runs.iter().filter_map(|run| of(run, w)));
        (0..workers).map(of).collect()
    };
    let samples: Vec<f64> = runs.iter().filter_map(scaling).collect();
    Scaling {
        scenario: args.scenario.name(),
        destinations: args.destinations.name(),
        prefixes,
        workers,
        scaling: Spread::of(samples.iter().copied()),
        alone: spread(&alone),
        together: spread(&together),
        undisturbed: slices().filter(|s| s.pace >= bar).count() as f64
            / slices().count().max(1) as f64,
        verified,
        samples,
    }
}

fn print(args: &Args, result: &Scaling) -> Result<(), BenchError> {
    if args.json {
        let text = serde_json::to_string_pretty(result);
        println!("{}", text.map_err(|e| BenchError::Wrong(e.to_string()))?);
        return Ok(());
    }
    println!(
        "{} workers do what {} alone do ({}, {} prefixes, {:.0} % of the slices undisturbed)",
        result.workers,
        result.scaling,
        result.scenario,
        result.prefixes,
        result.undisturbed * 100.0
    );
    for (worker, (alone, together)) in result.alone.iter().zip(&result.together).enumerate() {
        println!("worker {worker}: {alone} cycles per packet alone, {together} with the others");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycles_are_of_slices_that_nobody_disturbed() {
        let slice = |mask, pace, clocks| Slice {
            mask,
            pace,
            work: vec![
                Work {
                    packets: 10,
                    clocks,
                };
                2
            ],
        };
        let slices = [
            slice(1, 4.0, 100),
            slice(1, 2.0, 900),
            slice(3, 4.0, 200),
            slice(3, 4.0, 100),
        ];
        assert_eq!(cycles(&slices, 1, 0, 3.0), Some(10.0));
        assert_eq!(cycles(&slices, 3, 1, 3.0), Some(15.0));
        assert_eq!(cycles(&slices, 2, 1, 3.0), None);
    }
}
