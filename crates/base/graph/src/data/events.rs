//! Events that a processor or the kernel counts while a node runs: readings of a group of counters, and sums of each node.

use crate::data::stats::add_relaxed;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The maximum number of events of a group.
pub const MAX_EVENTS: usize = 6;

/// The values of a group of counters at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// The value of each event.
    pub values: [u64; MAX_EVENTS],
    /// The time, in nanoseconds, in which the group was enabled but did not count, because other groups had the processor's
    /// counters. It is the same in two readings between which the group counted all the time.
    pub off_ns: u64,
}

/// Counters of one thread that count at the same time.
pub trait CounterGroup: Send {
    /// Read all counters. Only the thread whose events are counted calls it, while it handles packets: it must not allocate,
    /// lock or wait.
    fn read(&mut self) -> Reading;
}

/// Sums of a node's events on one worker. The worker is the only writer.
#[derive(Default)]
pub(crate) struct EventSums {
    /// Runs that were counted, and their packets.
    calls: AtomicU64,
    vectors: AtomicU64,
    /// Runs in which the group did not count all the time.
    uncounted: AtomicU64,
    values: [AtomicU64; MAX_EVENTS],
}

impl EventSums {
    /// Add a run with this number of packets. `overhead` is the number of events between two readings without a run.
    pub(crate) fn add(
        &self,
        rows: usize,
        from: &Reading,
        to: &Reading,
        overhead: &[u64; MAX_EVENTS],
    ) {
        if from.off_ns != to.off_ns {
            add_relaxed(&self.uncounted, 1);
            return;
        }
        add_relaxed(&self.calls, 1);
        add_relaxed(&self.vectors, rows as u64);
        for (at, sum) in self.values.iter().enumerate() {
            let between = to.values[at].wrapping_sub(from.values[at]);
            add_relaxed(sum, between.saturating_sub(overhead[at]));
        }
    }

    /// The sums as a line of a report.
    pub(crate) fn report(&self, worker: usize, node: &str) -> EventReport {
        EventReport {
            worker,
            node: node.to_owned(),
            calls: self.calls.load(Relaxed),
            vectors: self.vectors.load(Relaxed),
            uncounted: self.uncounted.load(Relaxed),
            values: self.values.each_ref().map(|sum| sum.load(Relaxed)),
        }
    }
}

/// The events of one node on one worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventReport {
    /// The worker.
    pub worker: usize,
    /// The name of the node when counting began.
    pub node: String,
    /// The number of runs whose events were counted.
    pub calls: u64,
    /// The number of packets in these runs.
    pub vectors: u64,
    /// The number of runs in which the group did not count all the time: they are in no other figure.
    pub uncounted: u64,
    /// The events of the counted runs.
    pub values: [u64; MAX_EVENTS],
}
