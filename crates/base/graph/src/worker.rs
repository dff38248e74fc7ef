//! A worker: polls its sources, runs what waits in graph order, marks a quiescent point, begins again.

use crate::body::{Body, FEW};
use crate::cx::RawCx;
use crate::lanes::Lanes;
use crate::rest::Bell;
use crate::shot::Standing;
use crate::stats::NodeStats;
use crate::{Clock, NodeId};
use crossbeam_queue::ArrayQueue;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};
use std::sync::{Arc, OnceLock};
use volley_simd::{Level, cycles};
use volley_tables::qsbr::Reader;

/// A node's place on one worker.
pub(crate) struct Slot {
    pub(crate) body: Box<dyn Body>,
    pub(crate) edges: Box<[NodeId]>,
    pub(crate) stats: Arc<NodeStats>,
}

/// A prepared change to a worker, swapped in between two vectors. It keeps what it replaced and is dropped by the
/// control thread.
pub trait Change: Send {
    /// Exchange what has to change; must not allocate, lock or free.
    fn swap(&mut self, worker: &mut Worker);
}

/// A long gap between the ends of two rounds of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// When it began, in cycles.
    pub from: u64,
    /// How many cycles.
    pub took: u64,
    /// The node that the worker ran last.
    pub node: NodeId,
}

/// Gaps of at least so many microseconds are told.
pub const GAP_US: u32 = 50;
/// Gaps that the control thread has not looked at.
const GAPS: usize = 256;

/// On lines of its own: what its neighbours are is written all the time.
#[repr(align(128))]
pub(crate) struct Apart<T>(pub(crate) T);

/// The queues between the control thread and one worker.
pub(crate) struct Channel {
    pub(crate) todo: ArrayQueue<Box<dyn Change>>,
    pub(crate) done: ArrayQueue<Box<dyn Change>>,
    /// Rounds that found work, and rounds in all.
    pub(crate) busy: AtomicU64,
    pub(crate) rounds: AtomicU64,
    /// Packets that entered the graph.
    pub(crate) packets: AtomicU64,
    /// Frames that had to be allocated while running.
    pub(crate) grown: AtomicU64,
    /// Changes swapped in so far.
    pub(crate) changes: AtomicU64,
    /// The longest round, in cycles, changes included. Set back by the control thread.
    pub(crate) longest: AtomicU64,
    /// Cycles of rounds that found work.
    pub(crate) busy_cycles: AtomicU64,
    /// Times the worker slept.
    pub(crate) sleeps: AtomicU64,
    /// The node that it ran last.
    pub(crate) node: AtomicU32,
    /// Long gaps, those that found no room here not among them, and how many there were in all.
    pub(crate) gaps: ArrayQueue<Gap>,
    pub(crate) long_gaps: AtomicU64,
    /// Wakes the worker, once it runs on a thread. Others look at it whenever they hand something over.
    pub(crate) bell: Apart<OnceLock<Bell>>,
    /// The thread that it runs on.
    pub(crate) standing: Standing,
}

impl Channel {
    pub(crate) fn new() -> Self {
        Channel {
            todo: ArrayQueue::new(256),
            done: ArrayQueue::new(512),
            busy: AtomicU64::new(0),
            rounds: AtomicU64::new(0),
            packets: AtomicU64::new(0),
            grown: AtomicU64::new(0),
            changes: AtomicU64::new(0),
            longest: AtomicU64::new(0),
            busy_cycles: AtomicU64::new(0),
            sleeps: AtomicU64::new(0),
            node: AtomicU32::new(0),
            gaps: ArrayQueue::new(GAPS),
            long_gaps: AtomicU64::new(0),
            bell: Apart(OnceLock::new()),
            standing: Standing::default(),
        }
    }

    /// Wake the worker, if it sleeps.
    pub(crate) fn ring(&self) {
        if let Some(bell) = self.bell.0.get() {
            bell.ring();
        }
    }
}

/// One worker's whole state.
pub struct Worker {
    /// Its number.
    pub(crate) place: usize,
    pub(crate) slots: Vec<Slot>,
    pub(crate) sources: Vec<NodeId>,
    pub(crate) stages: Vec<NodeId>,
    pub(crate) lanes: Lanes,
    pub(crate) reader: Reader,
    pub(crate) level: Level,
    pub(crate) clock: Clock,
    pub(crate) channel: Arc<Channel>,
    /// Cycles that reading the clock takes.
    pub(crate) clock_cost: u64,
    /// When the last round ended; 0 before the first one and after a sleep.
    pub(crate) ended: u64,
    /// Cycles of a long gap.
    pub(crate) long: u64,
}

/// The cycles of a long gap.
pub(crate) fn long_gap() -> u64 {
    (volley_simd::cycles_per_second() * f64::from(GAP_US) / 1e6) as u64
}

/// The cycles between two readings of the clock with nothing in between.
pub(crate) fn clock_cost() -> u64 {
    let gap = |_| {
        let start = cycles();
        cycles().wrapping_sub(start)
    };
    (0..64).map(gap).min().unwrap_or(0)
}

impl Worker {
    /// One round. Returns how many packets entered the graph, those that stages gave back and other workers handed over
    /// included.
    pub fn step(&mut self) -> usize {
        let round = cycles();
        self.take_changes();
        let start = cycles();
        let now_ns = self.clock.at(start);
        let (entered, polled) = self.poll_sources(now_ns, start);
        if entered > 0 {
            self.run_pending(now_ns, polled);
        }
        let handed = self.take_handed(now_ns);
        let released = if self.stages.is_empty() {
            0
        } else {
            self.release(now_ns)
        };
        self.reader.quiescent();
        let moved = handed + released;
        let end = cycles();
        self.publish(entered, moved, end.wrapping_sub(round));
        let gap = end.wrapping_sub(self.ended);
        if gap >= self.long && self.ended != 0 {
            self.note_gap(gap);
        }
        self.ended = end;
        entered + moved
    }

    /// Tell the control thread of a long gap. A full queue loses it, and it is counted all the same.
    #[cold]
    fn note_gap(&mut self, took: u64) {
        let channel = &self.channel;
        let node = NodeId(channel.node.load(Relaxed) as u16);
        crate::stats::bump(&channel.long_gaps, 1);
        let _ = channel.gaps.push(Gap {
            from: self.ended,
            took,
            node,
        });
    }

    /// Let stages give packets back, one vector at a time: each goes its whole way before the next one comes, so that
    /// vectors of different paths do not meet in one frame. Returns how many packets.
    fn release(&mut self, now_ns: u64) -> usize {
        let mut all = 0;
        for at in 0..self.stages.len() {
            loop {
                let rows = self.release_one(self.stages[at], now_ns);
                if rows == 0 {
                    break;
                }
                all += rows;
                self.run_pending(now_ns, cycles());
            }
        }
        let mut stages = self.stages.iter();
        self.lanes.holding = stages.any(|s| self.slots[s.index()].body.keeps_order());
        all
    }

    /// One vector of a stage. Never inlined, as [`Worker::run_pending`].
    #[inline(never)]
    fn release_one(&mut self, node: NodeId, now_ns: u64) -> usize {
        let start = cycles();
        let Slot { body, edges, stats } = &mut self.slots[node.index()];
        let cx = RawCx {
            node,
            edges,
            stats,
            guard: self.reader.guard(),
            now_ns,
        };
        let rows = body.poll(self.level, &cx, &mut self.lanes);
        if rows > 0 {
            stats.took(cycles() - start);
        }
        rows
    }

    fn poll_sources(&mut self, now_ns: u64, mut from: u64) -> (usize, u64) {
        let mut entered = 0;
        let Worker {
            slots,
            sources,
            lanes,
            reader,
            level,
            channel,
            ..
        } = self;
        for &node in sources.iter() {
            channel.node.store(u32::from(node.0), Relaxed);
            let Slot { body, edges, stats } = &mut slots[node.index()];
            let cx = RawCx {
                node,
                edges,
                stats,
                guard: reader.guard(),
                now_ns,
            };
            let rows = body.poll(*level, &cx, lanes);
            let until = cycles();
            stats.ran(rows, until - from);
            from = until;
            entered += rows;
        }
        (entered, from)
    }

    /// Run frames until none waits. The end of one node's time is the start of the next one's. Reading the clock costs as
    /// much as a node's work on one packet: of runs with a handful of packets every eighth is timed, and counts eight times.
    /// Never inlined: the instruction budgets count what happens below this name.
    #[inline(never)]
    pub(crate) fn run_pending(&mut self, now_ns: u64, from: u64) {
        let Worker {
            slots,
            lanes,
            reader,
            level,
            clock_cost,
            channel,
            ..
        } = self;
        let mut from = Some(from);
        while let Some((node, mut frame)) = lanes.next() {
            channel.node.store(u32::from(node.0), Relaxed);
            let Slot { body, edges, stats } = &mut slots[node.index()];
            let cx = RawCx {
                node,
                edges,
                stats,
                guard: reader.guard(),
                now_ns,
            };
            if lanes.tracer.concerns(&frame) {
                lanes.tracer.mark(node, lanes.bufs.pool(), &mut frame);
                body.note(&cx, lanes, &frame);
            }
            let rows = frame.n;
            let weight = stats.weight(rows);
            if weight == 0 {
                body.run_few(&cx, lanes, frame);
                stats.ran_untimed(rows);
                from = None;
                continue;
            }
            let start = from.unwrap_or_else(cycles);
            if rows < FEW {
                body.run_few(&cx, lanes, frame);
            } else {
                body.run(*level, &cx, lanes, frame);
            }
            let until = cycles();
            // The runs that this one stands for did not read the clock.
            let took = until - start;
            stats.ran(rows, took + took.saturating_sub(*clock_cost) * (weight - 1));
            from = Some(until);
        }
    }

    #[inline(always)]
    fn take_changes(&mut self) {
        if !self.channel.todo.is_empty() {
            self.swap_changes();
        }
    }

    #[cold]
    fn swap_changes(&mut self) {
        while let Some(mut change) = self.channel.todo.pop() {
            change.swap(self);
            self.channel.changes.fetch_add(1, Release);
            // The queue back is twice as long as the queue here, and the control thread empties it before it adds.
            if let Err(change) = self.channel.done.push(change) {
                drop(change);
            }
        }
    }

    #[inline(always)]
    fn publish(&mut self, entered: usize, moved: usize, took: u64) {
        let channel = &self.channel;
        crate::stats::bump(&channel.rounds, 1);
        let worked = entered + moved > 0;
        crate::stats::bump(&channel.busy, u64::from(worked));
        crate::stats::bump(&channel.packets, entered as u64);
        crate::stats::bump(&channel.busy_cycles, if worked { took } else { 0 });
        channel.grown.store(self.lanes.grown, Relaxed);
        if took > channel.longest.load(Relaxed) {
            channel.longest.store(took, Relaxed);
        }
    }

    /// Changes that it has swapped in so far.
    pub fn changes(&self) -> u64 {
        self.channel.changes.load(Relaxed)
    }

    /// Its number.
    pub fn place(&self) -> usize {
        self.place
    }

    /// Whether it may end: nothing waits anywhere, no source has a queue, every change is taken up.
    pub fn may_leave(&self) -> bool {
        let mut nodes = self.sources.iter().chain(&self.stages);
        self.is_idle()
            && self.channel.todo.is_empty()
            && self.lanes.post.may_leave()
            && nodes.all(|node| self.slots[node.index()].body.may_leave())
    }

    /// Whether the free frames and queues are as they were before any packet came: nothing waits anywhere.
    pub fn is_idle(&self) -> bool {
        self.lanes.handed.is_none() && self.lanes.pending.is_empty()
    }
}
