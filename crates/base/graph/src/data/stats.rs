//! Clocks and counters of one node on one worker: written by that worker, read by other threads.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Vectors with fewer packets than this are short: only a sample of their runs is timed.
const BULK: usize = 64;
/// One of this many runs with a short vector is timed. Not a power of two, because a traffic pattern may repeat with such a
/// period.
pub(crate) const SAMPLE: u64 = 7;

/// Whether a vector is so long that the cost of reading the clock is negligible.
#[inline(always)]
pub(crate) fn is_bulk(rows: usize) -> bool {
    rows >= BULK
}

/// The number of runs that the time of a timed run represents.
#[inline(always)]
pub(crate) fn weight(rows: usize) -> u64 {
    if is_bulk(rows) { 1 } else { SAMPLE }
}

/// Statistics of one node on one worker.
pub(crate) struct NodeStats {
    pub(crate) calls: AtomicU64,
    pub(crate) vectors: AtomicU64,
    pub(crate) clocks: AtomicU64,
    pub(crate) suspends: AtomicU64,
    pub(crate) largest: AtomicU64,
    pub(crate) counters: Box<[AtomicU64]>,
}

/// Add by the only writer: no read-modify-write cycle on the bus.
#[inline(always)]
pub(crate) fn add_relaxed(cell: &AtomicU64, by: u64) {
    cell.store(cell.load(Relaxed).wrapping_add(by), Relaxed);
}

impl NodeStats {
    pub(crate) fn new(counters: usize) -> Self {
        NodeStats {
            calls: AtomicU64::new(0),
            vectors: AtomicU64::new(0),
            clocks: AtomicU64::new(0),
            suspends: AtomicU64::new(0),
            largest: AtomicU64::new(0),
            counters: (0..counters).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// Sources: the number of runs that the time of the next run represents; 0 if the next run is not timed.
    #[inline(always)]
    pub(crate) fn sample_weight(&self, is_bulk: bool) -> u64 {
        if is_bulk {
            1
        } else if self.calls.load(Relaxed).is_multiple_of(SAMPLE) {
            SAMPLE
        } else {
            0
        }
    }

    /// Count a run.
    #[inline(always)]
    pub(crate) fn count_run(&self, rows: usize) {
        add_relaxed(&self.calls, 1);
        add_relaxed(&self.vectors, rows as u64);
        if rows as u64 > self.largest.load(Relaxed) {
            self.largest.store(rows as u64, Relaxed);
        }
    }

    /// Add the time of a run that took `took` cycles and represents `weight` runs. The other runs did not read the clock, which
    /// costs `clock_cost`. Returns the cycles that were added.
    #[inline(always)]
    pub(crate) fn add_time(&self, took: u64, weight: u64, clock_cost: u64) -> u64 {
        let clocks = took + took.saturating_sub(clock_cost) * (weight - 1);
        add_relaxed(&self.clocks, clocks);
        clocks
    }
}

impl NodeStats {
    /// Add cycles outside of a run: the time in which a stage releases packets.
    #[inline(always)]
    pub(crate) fn add_cycles(&self, clocks: u64) {
        add_relaxed(&self.clocks, clocks);
    }
}
