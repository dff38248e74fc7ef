//! A worker: it polls its sources, runs the pending frames in graph order, passes a quiescent point, and starts again.

use crate::data::clock::Clock;
use crate::data::frame::Frame;
use crate::data::ids::NodeId;
use crate::data::stats;
use crate::data::stats::{SAMPLE, is_bulk, weight};
use crate::node_api::context::{NodeState, RawCx};
use crate::node_api::drop_node;
use crate::queues::channel::{Channel, GAP_US, RoundGap};
use crate::queues::dispatch::Dispatch;
use crate::worker::agenda::Agenda;
use crate::worker::body::{Body, SMALL_VECTOR};
use crossbeam_queue::ArrayQueue;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, Release};
use volley_simd::{Level, cycles};
use volley_tables::qsbr::Reader;

/// The number of node calls after which frames are taken for a loop of nodes: see [`Worker::run_pending`]. A round without a
/// loop needs some thousands at most, with sixteen sources of full vectors that all paths of the router share.
const LOOP_CALLS: u32 = 1 << 16;
/// Node calls between two frames that are dropped for a loop: packets that are in no loop get their nodes meanwhile.
const CALLS_AFTER_DROP: u32 = 1 << 10;

/// Vectors that a stage may release in one round. In a loop of nodes through a stage, what it releases comes back to it, so it
/// never becomes empty; the rest follows in the next round. 64 full vectors are all buffers of a pool of the default size.
const RELEASED_VECTORS: usize = 256;

/// The instance of a node on one worker.
pub(crate) struct Slot {
    pub(crate) body: Box<dyn Body>,
    pub(crate) own: NodeState,
    /// From this number of packets in a source's last poll on, each poll is timed.
    pub(crate) is_bulk: bool,
}

/// A prepared change to a worker, which applies it between two vectors. It keeps the replaced value, and the control
/// thread drops it.
pub trait Change: Send {
    /// Exchange the old and the new value. Must not allocate, lock or free.
    fn swap(&mut self, worker: &mut Worker);
}

/// The queues of changes between the control thread and one worker.
pub(crate) struct ChangeQueues {
    pub(crate) pending: ArrayQueue<Box<dyn Change>>,
    /// Changes that were applied, with the values that they replaced.
    pub(crate) done: ArrayQueue<Box<dyn Change>>,
}

impl ChangeQueues {
    pub(crate) fn new() -> Self {
        ChangeQueues {
            pending: ArrayQueue::new(256),
            done: ArrayQueue::new(512),
        }
    }
}

/// The state of one worker.
pub struct Worker {
    /// The id of the worker.
    pub(crate) id: usize,
    pub(crate) slots: Vec<Slot>,
    pub(crate) sources: Vec<NodeId>,
    pub(crate) stages: Vec<NodeId>,
    pub(crate) agenda: Agenda,
    pub(crate) dispatch: Dispatch,
    pub(crate) reader: Reader,
    pub(crate) level: Level,
    pub(crate) clock: Clock,
    pub(crate) channel: Arc<Channel>,
    pub(crate) change_queues: Arc<ChangeQueues>,
    /// The cycles of one clock reading.
    pub(crate) clock_read_cycles: u64,
    /// The end of the last round; 0 before the first round and after a sleep.
    pub(crate) ended: u64,
    /// The start of the next round, if the last round ended then; 0 when the clock must be read.
    pub(crate) began: u64,
    /// The cycles of all rounds, and those among them that were added to nodes.
    pub(crate) spent: u64,
    pub(crate) booked: u64,
    /// Runs of the graph before the next one in which short vectors are timed.
    pub(crate) untimed: u64,
    /// The cycles from which a gap is a long gap.
    pub(crate) long: u64,
}

/// Drop a frame because the round has too many calls.
#[cold]
#[inline(never)]
fn break_loop(slots: &[Slot], dispatch: &mut Dispatch, node: NodeId, frame: Box<Frame>) {
    let end = dispatch.drop_node;
    if node == end {
        return dispatch.push_frame(end, frame);
    }
    let stats = &slots[end.index()].own.stats;
    dispatch.drop_frame(end, drop_node::Count::Loop as usize, stats, frame);
}

/// The cycles from which a gap is a long gap.
pub(crate) fn gap_threshold_cycles() -> u64 {
    (volley_simd::cycles_per_second() * f64::from(GAP_US) / 1e6) as u64
}

/// The cycles between two consecutive clock readings.
pub(crate) fn clock_read_cycles() -> u64 {
    let gap = |_| {
        let start = cycles();
        cycles().wrapping_sub(start)
    };
    (0..64).map(gap).min().unwrap_or(0)
}

impl Worker {
    /// Run one round. Returns the number of packets that entered the graph, including those that stages released and
    /// other workers handed off.
    pub fn step(&mut self) -> usize {
        self.began = 0;
        self.round()
    }

    /// Run this number of rounds without a pause: each begins when the last one ends, so the clock is read once a
    /// round. Returns the number of packets.
    pub fn steps(&mut self, rounds: usize) -> usize {
        self.began = 0;
        (0..rounds).map(|_| self.round()).sum()
    }

    /// Run one round, which starts at the end of the last one, or now if [`Worker::began`] is 0. Never inlined: the cost
    /// of a round is counted under this name.
    #[inline(never)]
    pub(crate) fn round(&mut self) -> usize {
        let start = match self.began {
            0 => cycles(),
            began => began,
        };
        let news = self.channel.notices.0.is_news(&mut self.agenda.seen);
        let full = self.agenda.is_full(news);
        if full {
            self.call_all();
        }
        let now_ns = self.clock.at(start);
        let (entered, polled) = self.poll_sources(now_ns);
        if entered > 0 {
            self.run_pending(now_ns, polled);
        }
        let handed = self.poll_handoff(now_ns);
        let released = match self.dispatch.holders.any {
            true => self.release(now_ns),
            false => 0,
        };
        if full {
            self.leave_out();
        }
        self.reader.quiescent();
        let moved = handed + released;
        let end = cycles();
        let took = end.wrapping_sub(start);
        let rounds = &self.channel.rounds.0;
        rounds.count(entered, moved, took);
        self.spent += took;
        let own = self.spent.saturating_sub(self.booked);
        rounds.own_cycles.store(own, Relaxed);
        let gap = end.wrapping_sub(self.ended);
        if gap >= self.long && self.ended != 0 {
            self.note_gap(gap);
        }
        (self.ended, self.began) = (end, end);
        entered + moved
    }

    /// Apply pending changes, and call every source and stage in this round, because any of them may have got work.
    #[cold]
    fn call_all(&mut self) {
        while let Some(mut change) = self.change_queues.pending.pop() {
            change.swap(self);
            self.channel.changes.fetch_add(1, Release);
            // The return queue is twice as long as this queue, and the control thread empties it before it adds changes.
            if let Err(change) = self.change_queues.done.push(change) {
                drop(change);
            }
        }
        self.agenda.sources.clear();
        self.agenda.sources.extend_from_slice(&self.sources);
        for &stage in &self.stages {
            self.dispatch.holders.set(stage, true);
        }
        let grown = &self.channel.rounds.0.frames_allocated;
        grown.store(self.dispatch.frames_allocated, Relaxed);
    }

    /// After a poll of all sources: leave out sources without queues until the next notification. Stages without
    /// packets are left out after their call.
    #[cold]
    fn leave_out(&mut self) {
        let slots = &self.slots;
        let is_vacant = |node: &NodeId| slots[node.index()].body.is_vacant();
        self.agenda.sources.retain(|node| !is_vacant(node));
    }

    /// Report a long gap to the control thread. When the queue is full, the gap is only counted.
    #[cold]
    fn note_gap(&mut self, duration_cycles: u64) {
        let channel = &self.channel;
        let node = NodeId(channel.node.load(Relaxed) as u16);
        stats::add_relaxed(&channel.long_gaps, 1);
        let _ = channel.gaps.push(RoundGap {
            from: self.ended,
            duration_cycles,
            node,
        });
    }

    /// Let stages release packets, one vector at a time: each vector passes the whole graph before the next one, so
    /// that vectors of different paths do not merge in one frame. Returns the number of packets. A stage with more than
    /// [`RELEASED_VECTORS`] goes on in the next round.
    #[inline(never)]
    fn release(&mut self, now_ns: u64) -> usize {
        let mut all = 0;
        for at in 0..self.stages.len() {
            let stage = self.stages[at];
            if !self.dispatch.holders.has(stage) {
                continue;
            }
            for _ in 0..RELEASED_VECTORS {
                let rows = self.release_one(stage, now_ns);
                if rows == 0 {
                    break;
                }
                all += rows;
                self.run_pending(now_ns, None);
            }
            let holds = self.slots[stage.index()].body.is_holding();
            self.dispatch.holders.set(stage, holds);
        }
        let (stages, holders) = (&self.stages, &mut self.dispatch.holders);
        holders.any = stages.iter().any(|stage| holders.has(*stage));
        let mut held = stages.iter().filter(|stage| holders.has(**stage));
        self.dispatch.holding = held.any(|stage| self.slots[stage.index()].body.keeps_order());
        all
    }

    /// Release one vector of a stage. Never inlined, as [`Worker::run_pending`].
    #[inline(never)]
    fn release_one(&mut self, node: NodeId, now_ns: u64) -> usize {
        let start = cycles();
        let slot = &mut self.slots[node.index()];
        let cx = RawCx {
            own: &slot.own,
            guard: self.reader.guard(),
            now_ns,
        };
        let rows = slot.body.poll(self.level, &cx, &mut self.dispatch);
        if rows > 0 {
            let took = cycles() - start;
            slot.own.stats.add_cycles(took);
            self.booked += took;
        }
        rows
    }

    /// Poll the sources that have queues. Returns the number of packets that entered, and the end of the last poll, if
    /// the clock was read then. Polls that return a long vector are timed, and a sample of the others: see
    /// [`crate::data::stats::NodeStats::sample_weight`].
    #[inline(always)]
    fn poll_sources(&mut self, now_ns: u64) -> (usize, Option<u64>) {
        let (mut entered, mut from) = (0, None);
        let Worker {
            slots,
            agenda,
            dispatch,
            reader,
            level,
            channel,
            clock_read_cycles,
            booked,
            ..
        } = self;
        for &node in &agenda.sources {
            channel.node.store(u32::from(node.0), Relaxed);
            let slot = &mut slots[node.index()];
            let stats = &slot.own.stats;
            let cx = RawCx {
                own: &slot.own,
                guard: reader.guard(),
                now_ns,
            };
            let weight = stats.sample_weight(slot.is_bulk);
            if weight == 0 {
                let rows = slot.body.poll(*level, &cx, dispatch);
                stats.count_run(rows);
                slot.is_bulk = is_bulk(rows);
                (entered, from) = (entered + rows, None);
                continue;
            }
            let start = from.unwrap_or_else(cycles);
            let rows = slot.body.poll(*level, &cx, dispatch);
            let until = cycles();
            stats.count_run(rows);
            *booked += stats.add_time(until - start, weight, *clock_read_cycles);
            slot.is_bulk = is_bulk(rows);
            (entered, from) = (entered + rows, Some(until));
        }
        (entered, from)
    }

    /// Run frames until none is pending. The end of one node's time is the start of the next one's. A clock reading
    /// costs as much as a node's work on several packets: short vectors are timed in one of [`SAMPLE`] calls. Edges can lead
    /// packets in a circle for ever, so frames are dropped when there are too many calls. Never inlined: the instruction
    /// budgets count under this name.
    #[inline(never)]
    pub(crate) fn run_pending(&mut self, now_ns: u64, from: Option<u64>) {
        let Worker {
            slots,
            dispatch,
            reader,
            level,
            clock_read_cycles,
            channel,
            booked,
            untimed,
            ..
        } = self;
        let is_sample = *untimed == 0;
        *untimed = if is_sample { SAMPLE } else { *untimed } - 1;
        // 0: the clock was not read at the end of the last run. One word needs fewer registers than an option.
        let (mut from, guard) = (from.unwrap_or(0), reader.guard());
        let mut calls_left = LOOP_CALLS;
        while let Some((node, mut frame)) = dispatch.next() {
            calls_left -= 1;
            if calls_left == 0 {
                calls_left = CALLS_AFTER_DROP;
                break_loop(slots, dispatch, node, frame);
                continue;
            }
            channel.node.store(u32::from(node.0), Relaxed);
            let Slot { body, own, .. } = &mut slots[node.index()];
            let (own, stats) = (&*own, &own.stats);
            let cx = RawCx { own, guard, now_ns };
            if dispatch.tracer.is_relevant(&frame) {
                dispatch.tracer.mark(node, dispatch.bufs.pool(), &mut frame);
                body.note(&cx, dispatch, &frame);
            }
            let rows = frame.n;
            // Counted before the run: afterwards the numbers would have to be loaded again.
            stats.count_run(rows);
            if !is_sample && !is_bulk(rows) {
                if rows < SMALL_VECTOR {
                    body.run_small(&cx, dispatch, frame);
                } else {
                    body.run(*level, &cx, dispatch, frame);
                }
                from = 0;
                continue;
            }
            let start = if from == 0 { cycles() } else { from };
            if rows < SMALL_VECTOR {
                body.run_small(&cx, dispatch, frame);
            } else {
                body.run(*level, &cx, dispatch, frame);
            }
            from = cycles();
            *booked += stats.add_time(from - start, weight(rows), *clock_read_cycles);
        }
    }

    /// Run the packets of stages that left the graph.
    #[cold]
    pub(crate) fn run_left(&mut self) {
        if !self.is_idle() {
            let now_ns = self.clock.at(cycles());
            self.run_pending(now_ns, None);
        }
    }

    /// The number of changes applied.
    pub fn changes(&self) -> u64 {
        self.channel.changes.load(Relaxed)
    }

    /// The id of the worker.
    pub fn id(&self) -> usize {
        self.id
    }

    /// Whether the worker may end: no packet is pending, no source has a queue, and every change is applied.
    pub fn can_exit(&self) -> bool {
        let mut nodes = self.sources.iter().chain(&self.stages);
        self.is_idle()
            && self.change_queues.pending.is_empty()
            && self.dispatch.handoff.can_exit()
            && nodes.all(|node| self.slots[node.index()].body.can_exit())
    }

    /// Whether the free frames and the queues are as before the first packet: no packet is pending.
    pub fn is_idle(&self) -> bool {
        self.dispatch.next_frame.is_none() && self.dispatch.pending.is_empty()
    }
}
