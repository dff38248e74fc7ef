//! What lies between the control thread and one worker: changes on their way, notices, and what the worker's rounds were.

use crate::sleep::Wakeup;
use crate::stack_sample::ThreadStack;
use crate::stats::add_relaxed;
use crate::{Change, NodeId};
use crossbeam_queue::ArrayQueue;
use std::sync::OnceLock;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};
use volley_tables::notices::Notices;

/// A long gap between the ends of two rounds of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundGap {
    /// When it began, in cycles.
    pub from: u64,
    /// How many cycles.
    pub duration_cycles: u64,
    /// The node that the worker ran last.
    pub node: NodeId,
}

/// Gaps of at least so many microseconds are told.
pub const GAP_US: u32 = 50;
/// Gaps that the control thread has not looked at.
const GAPS: usize = 256;

/// On lines of its own: what its neighbours are is written all the time.
#[repr(align(128))]
pub(crate) struct CachePadded<T>(pub(crate) T);

/// What the rounds of one worker were, written by it alone.
#[derive(Default)]
pub(crate) struct Rounds {
    /// Rounds in all, and those that found work.
    pub(crate) all: AtomicU64,
    pub(crate) busy: AtomicU64,
    /// Packets that entered the graph, and those that stages gave back or other workers handed over.
    pub(crate) entered: AtomicU64,
    pub(crate) moved: AtomicU64,
    /// Cycles of rounds that found work, and cycles of all rounds that no node took.
    pub(crate) busy_cycles: AtomicU64,
    pub(crate) own_cycles: AtomicU64,
    /// The longest round, in cycles, changes included. Set back by the control thread.
    pub(crate) longest: AtomicU64,
    /// Frames that had to be allocated while running.
    pub(crate) frames_allocated: AtomicU64,
}

impl Rounds {
    /// Count a round that took so many cycles.
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

/// The queues between the control thread and one worker.
pub(crate) struct Channel {
    pub(crate) pending_changes: ArrayQueue<Box<dyn Change>>,
    pub(crate) done: ArrayQueue<Box<dyn Change>>,
    /// Posted after a change was put into `todo`, and after anything was put into an inbox of one of its sources.
    pub(crate) notices: CachePadded<Notices>,
    /// What its rounds were.
    pub(crate) rounds: CachePadded<Rounds>,
    /// Changes swapped in so far.
    pub(crate) changes: AtomicU64,
    /// Times the worker slept.
    pub(crate) sleeps: AtomicU64,
    /// The node that it ran last.
    pub(crate) node: AtomicU32,
    /// Long gaps, those that found no room here not among them, and how many there were in all.
    pub(crate) gaps: ArrayQueue<RoundGap>,
    pub(crate) long_gaps: AtomicU64,
    /// Wakes the worker, once it runs on a thread. Others look at it whenever they hand something over.
    pub(crate) wakeup: CachePadded<OnceLock<Wakeup>>,
    /// The thread that it runs on.
    pub(crate) thread_stack: ThreadStack,
}

impl Channel {
    pub(crate) fn new() -> Self {
        Channel {
            pending_changes: ArrayQueue::new(256),
            done: ArrayQueue::new(512),
            notices: CachePadded(Notices::default()),
            rounds: CachePadded(Rounds::default()),
            changes: AtomicU64::new(0),
            sleeps: AtomicU64::new(0),
            node: AtomicU32::new(0),
            gaps: ArrayQueue::new(GAPS),
            long_gaps: AtomicU64::new(0),
            wakeup: CachePadded(OnceLock::new()),
            thread_stack: ThreadStack::default(),
        }
    }

    /// Something was handed to the worker: it looks at its changes, and calls all its sources and stages. It is woken, if it
    /// sleeps.
    pub(crate) fn notify(&self) {
        self.notices.0.post();
        self.wake();
    }

    /// Wake the worker, if it sleeps.
    pub(crate) fn wake(&self) {
        if let Some(wakeup) = self.wakeup.0.get() {
            wakeup.notify();
        }
    }
}
