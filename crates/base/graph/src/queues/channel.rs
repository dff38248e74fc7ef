//! The data shared by the control thread and one worker: notices, the wake-up of the worker, and statistics of its rounds. The
//! changes to the worker are in separate queues.

use crate::data::ids::NodeId;
use crate::data::stats::add_relaxed;
use crate::queues::wakeup::Wakeup;
use crossbeam_queue::ArrayQueue;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::sync::{Arc, OnceLock};
use volley_stack_sample::ThreadStack;
use volley_tables::notices::Notices;

/// A long gap between the ends of two rounds of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundGap {
    /// The start of the gap, in cycles.
    pub from: u64,
    /// The length of the gap, in cycles.
    pub duration_cycles: u64,
    /// The node that the worker ran last.
    pub node: NodeId,
}

/// Gaps of at least this many microseconds are reported.
pub const GAP_US: u32 = 50;
/// The maximum number of gaps that the control thread has not read.
const GAPS: usize = 256;

/// A value on separate cache lines, because its neighbours are written all the time.
#[repr(align(128))]
pub(crate) struct CachePadded<T>(pub(crate) T);

/// Statistics of a worker's rounds. The worker is the only writer.
#[derive(Default)]
pub(crate) struct Rounds {
    /// All rounds, and the rounds with work.
    pub(crate) all: AtomicU64,
    pub(crate) busy: AtomicU64,
    /// Packets that entered the graph, and packets that stages released or other workers handed off.
    pub(crate) entered: AtomicU64,
    pub(crate) moved: AtomicU64,
    /// Cycles of rounds with work, and cycles of all rounds that belong to no node.
    pub(crate) busy_cycles: AtomicU64,
    pub(crate) own_cycles: AtomicU64,
    /// The longest round, in cycles, including changes. The control thread resets it.
    pub(crate) longest: AtomicU64,
    /// Frames that were allocated while running.
    pub(crate) frames_allocated: AtomicU64,
}

impl Rounds {
    /// Count a round of this many cycles.
    #[inline(always)]
    pub(crate) fn count(&self, entered: usize, moved: usize, took: u64) {
        add_relaxed(&self.all, 1);
        if entered + moved > 0 {
            add_relaxed(&self.busy, 1);
            add_relaxed(&self.entered, entered as u64);
            add_relaxed(&self.moved, moved as u64);
            add_relaxed(&self.busy_cycles, took);
        }
        if took > self.longest.load(Relaxed) {
            self.longest.store(took, Relaxed);
        }
    }
}

/// The data shared by the control thread and one worker.
pub(crate) struct Channel {
    /// Posted after a change, or an entry for one of the worker's sources, was enqueued.
    pub(crate) notices: CachePadded<Notices>,
    /// Statistics of the worker's rounds.
    pub(crate) rounds: CachePadded<Rounds>,
    /// Changes applied.
    pub(crate) changes: AtomicU64,
    /// The number of times that the worker slept.
    pub(crate) sleeps: AtomicU64,
    /// The node that the worker ran last.
    pub(crate) node: AtomicU32,
    /// Long gaps; those that found the queue full are only counted.
    pub(crate) gaps: ArrayQueue<RoundGap>,
    pub(crate) long_gaps: AtomicU64,
    /// Wakes the worker; set when the worker runs on a thread. Other threads read it when they enqueue something.
    pub(crate) wakeup: CachePadded<OnceLock<Wakeup>>,
    /// The thread of the worker.
    pub(crate) thread_stack: Arc<ThreadStack>,
}

impl Channel {
    pub(crate) fn new() -> Self {
        Channel {
            notices: CachePadded(Notices::default()),
            rounds: CachePadded(Rounds::default()),
            changes: AtomicU64::new(0),
            sleeps: AtomicU64::new(0),
            node: AtomicU32::new(0),
            gaps: ArrayQueue::new(GAPS),
            long_gaps: AtomicU64::new(0),
            wakeup: CachePadded(OnceLock::new()),
            thread_stack: Arc::default(),
        }
    }

    /// Notify the worker that something was enqueued for it: the worker applies its changes, and calls all its sources and
    /// stages. Wakes the worker if it is asleep.
    pub(crate) fn notify(&self) {
        self.notices.0.post();
        self.wake();
    }

    /// Wake the worker if it is asleep.
    pub(crate) fn wake(&self) {
        if let Some(wakeup) = self.wakeup.0.get() {
            wakeup.notify();
        }
    }
}
