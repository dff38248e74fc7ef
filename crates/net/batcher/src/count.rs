//! Counters: cells that one worker writes and any thread reads.

use crate::table::{LearnedPath, QUEUES, RULE_COUNTERS};
use crossbeam_queue::ArrayQueue;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Steps of the delay histogram: sixteen for each doubling of nanoseconds.
pub(crate) const STEPS: usize = 640;
/// Sizes of batches: 1, 2..3, 4..7, up to 1024.
pub(crate) const SIZES: usize = 11;
/// Capacity of the queue of samples for the control thread.
const SAMPLES: usize = 4096;

#[inline(always)]
pub(crate) fn bump(cell: &AtomicU64, by: u64) {
    cell.store(cell.load(Relaxed).wrapping_add(by), Relaxed);
}

/// Counters of a queue.
#[derive(Default)]
pub(crate) struct QueueCells {
    pub(crate) packets: AtomicU64,
    pub(crate) held: AtomicU64,
    pub(crate) most: AtomicU64,
    pub(crate) full: AtomicU64,
    pub(crate) timeouts: AtomicU64,
    pub(crate) late: AtomicU64,
    pub(crate) held_up: AtomicU64,
}

/// Counters of one worker.
pub(crate) struct Cells {
    pub(crate) queues: Box<[QueueCells]>,
    pub(crate) rules: Box<[AtomicU64]>,
    pub(crate) sizes: [AtomicU64; SIZES],
    pub(crate) delays: Box<[AtomicU64]>,
    pub(crate) longest_ns: AtomicU64,
    pub(crate) flushed: AtomicU64,
    pub(crate) held: AtomicU64,
    /// Samples for learning.
    pub(crate) samples: ArrayQueue<LearnedPath>,
    /// Packets that were sampled for learning.
    pub(crate) looked: AtomicU64,
}

impl Cells {
    pub(crate) fn new() -> Arc<Cells> {
        let zeros = |n: usize| (0..n).map(|_| AtomicU64::new(0)).collect();
        Arc::new(Cells {
            queues: (0..QUEUES).map(|_| QueueCells::default()).collect(),
            rules: zeros(RULE_COUNTERS),
            sizes: std::array::from_fn(|_| AtomicU64::new(0)),
            delays: zeros(STEPS),
            longest_ns: AtomicU64::new(0),
            flushed: AtomicU64::new(0),
            held: AtomicU64::new(0),
            samples: ArrayQueue::new(SAMPLES),
            looked: AtomicU64::new(0),
        })
    }

    /// Counts a batch of `packets`.
    #[inline(always)]
    pub(crate) fn size(&self, packets: usize) {
        let step = (packets.max(1).ilog2() as usize).min(SIZES - 1);
        bump(&self.sizes[step], 1);
    }

    /// Counts `packets` that waited `ns` nanoseconds.
    #[inline(always)]
    pub(crate) fn delay(&self, ns: u64, packets: u64) {
        bump(&self.delays[step(ns)], packets);
        if ns > self.longest_ns.load(Relaxed) {
            self.longest_ns.store(ns, Relaxed);
        }
    }
}

/// The histogram step of a duration.
#[inline(always)]
pub(crate) fn step(ns: u64) -> usize {
    if ns < 16 {
        return ns as usize;
    }
    let doubling = ns.ilog2() as usize;
    let part = (ns >> (doubling - 4)) as usize & 15;
    (16 * (doubling - 3) + part).min(STEPS - 1)
}

/// Longest duration of a step, in nanoseconds.
pub(crate) fn step_end(step: usize) -> u64 {
    if step < 16 {
        return step as u64;
    }
    let (doubling, part) = (step / 16 + 3, step as u64 % 16);
    ((16 + part + 1) << (doubling - 4)) - 1
}

/// Sums of all workers' cells, at the last clear or now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sums {
    pub(crate) packets: Vec<u64>,
    pub(crate) full: Vec<u64>,
    pub(crate) timeouts: Vec<u64>,
    pub(crate) late: Vec<u64>,
    pub(crate) held_up: Vec<u64>,
    pub(crate) rules: Vec<u64>,
    pub(crate) sizes: Vec<u64>,
    pub(crate) delays: Vec<u64>,
    pub(crate) flushed: u64,
}

fn add<'a>(sums: &mut Vec<u64>, cells: impl Iterator<Item = &'a AtomicU64>) {
    for (at, cell) in cells.enumerate() {
        if sums.len() == at {
            sums.push(0);
        }
        sums[at] += cell.load(Relaxed);
    }
}

impl Sums {
    pub(crate) fn of(all: &[Arc<Cells>]) -> Sums {
        let mut sums = Sums::default();
        for cells in all {
            add(&mut sums.packets, cells.queues.iter().map(|q| &q.packets));
            add(&mut sums.full, cells.queues.iter().map(|q| &q.full));
            add(&mut sums.timeouts, cells.queues.iter().map(|q| &q.timeouts));
            add(&mut sums.late, cells.queues.iter().map(|q| &q.late));
            add(&mut sums.held_up, cells.queues.iter().map(|q| &q.held_up));
            add(&mut sums.rules, cells.rules.iter());
            add(&mut sums.sizes, cells.sizes.iter());
            add(&mut sums.delays, cells.delays.iter());
            sums.flushed += cells.flushed.load(Relaxed);
        }
        sums
    }

    /// The difference to `before`.
    pub(crate) fn since(&self, before: &Sums) -> Sums {
        let less = |now: &[u64], before: &[u64]| {
            let pair = |(at, n): (usize, &u64)| n - before.get(at).copied().unwrap_or(0).min(*n);
            now.iter().enumerate().map(pair).collect()
        };
        Sums {
            packets: less(&self.packets, &before.packets),
            full: less(&self.full, &before.full),
            timeouts: less(&self.timeouts, &before.timeouts),
            late: less(&self.late, &before.late),
            held_up: less(&self.held_up, &before.held_up),
            rules: less(&self.rules, &before.rules),
            sizes: less(&self.sizes, &before.sizes),
            delays: less(&self.delays, &before.delays),
            flushed: self.flushed - before.flushed.min(self.flushed),
        }
    }

    /// The duration that a share `part` of all packets did not exceed, in microseconds.
    pub(crate) fn delay_us(&self, part: f64) -> f64 {
        let all: u64 = self.delays.iter().sum();
        let wanted = (all as f64 * part).ceil().max(1.0) as u64;
        let mut seen = 0;
        let found = self.delays.iter().position(|n| {
            seen += n;
            seen >= wanted
        });
        found.map_or(0.0, |step| step_end(step) as f64 / 1000.0)
    }

    /// The histogram in powers of two of microseconds.
    pub(crate) fn delays_us(&self) -> Vec<u64> {
        let mut coarse = Vec::new();
        for (step, packets) in self.delays.iter().enumerate().filter(|(_, n)| **n > 0) {
            let us = step_end(step) / 1000;
            let at = if us == 0 { 0 } else { us.ilog2() as usize + 1 };
            coarse.resize(coarse.len().max(at + 1), 0);
            coarse[at] += packets;
        }
        coarse
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_hold_what_falls_into_them() {
        for ns in (0..5000).chain([1 << 20, (1 << 30) + 7, 1 << 39]) {
            let at = step(ns);
            assert!(ns <= step_end(at), "{ns}");
            assert!(at == 0 || ns > step_end(at - 1), "{ns}");
        }
    }

    #[test]
    fn quantiles_are_upper_ends() {
        let cells = Cells::new();
        cells.delay(1_000, 98);
        cells.delay(40_000, 2);
        let sums = Sums::of(&[cells]);
        assert!((1.0..1.07).contains(&sums.delay_us(0.5)));
        assert!((40.0..42.6).contains(&sums.delay_us(0.99)));
        assert_eq!(sums.delays_us().iter().sum::<u64>(), 100);
        assert_eq!(sums.since(&sums).delays.iter().sum::<u64>(), 0);
    }
}
