//! Handoff: packets go from one worker to another in rings of whole frames, one ring for each ordered pair of workers.
//!
//! Nothing blocks. A full ring refuses a frame, and the producer drops and counts its packets. Every frame is
//! exchanged for an empty one in both directions, so each worker keeps as many frames as it had. The producer wakes
//! the consumer's worker.
//!
//! A worker's *epoch* keeps packets in order when a flow moves to another worker ([`StageCx::begin_epoch`]): packets
//! handed off in an epoch wait, whatever their destination, until all workers have run the packets of the epoch
//! before.

use crate::context::RawCx;
use crate::data::column::Column;
use crate::data::error::GraphError;
use crate::data::frame::{Col, Frame, bits};
use crate::data::ids::{MAX_NODES, NodeId};
use crate::data::stats::add_relaxed;
use crate::data::worker_set::MAX_WORKERS;
use crate::dispatch::DispatchState;
use crate::engine::Engine;
use crate::node::Nexts;
use crate::output::Output;
use crate::queues::channel::Channel;
use crate::stage::StageCx;
use crate::vector::{Consumed, Vector};
use crate::worker::{Change, Worker};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use volley_simd::{Bits, Isa, all_equal};
use volley_tables::exchange::{Consumer, Epochs, Producer, swap_ring};

/// Frames that a worker dequeues from one other worker in one round.
const ENTRIES_PER_ROUND: usize = 16;
/// Entries of each ring that are reserved for the marker of an epoch.
const RESERVED_ENTRIES: usize = 1;

/// Counters of one ring. The producer writes them.
#[derive(Default)]
#[repr(align(64))]
struct HandoffCounters {
    frames: AtomicU64,
    packets: AtomicU64,
    refused: AtomicU64,
}

/// Counters of the ring from one worker to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandoffReport {
    /// The worker that enqueues.
    pub from: usize,
    /// The worker that dequeues.
    pub to: usize,
    /// Frames enqueued. A vector may be split into several.
    pub frames: u64,
    /// Packets enqueued.
    pub packets: u64,
    /// Packets dropped because the ring was full.
    pub refused: u64,
}

/// An entry of a ring: a frame for a node, an empty frame, or the marker of an epoch.
struct HandoffEntry {
    node: NodeId,
    /// The number of the epoch that begins; 0 for an entry with packets.
    epoch: u64,
    /// The node is placed on another worker than the producer: it runs on the consumer, even if the consumer places it
    /// elsewhere.
    placed: bool,
    frame: Box<Frame>,
}

impl HandoffEntry {
    fn empty(frame: Box<Frame>) -> Self {
        HandoffEntry {
            node: NodeId(0),
            epoch: 0,
            placed: false,
            frame,
        }
    }
}

/// The producer's end of a ring to another worker.
struct HandoffProducer {
    ring: Producer<HandoffEntry>,
    counters: Arc<HandoffCounters>,
    peer: Arc<Channel>,
}

/// The consumer's end of a ring from another worker.
struct HandoffConsumer {
    ring: Consumer<HandoffEntry>,
    epochs: Arc<Epochs>,
    /// The epoch whose marker was dequeued and that is not complete; 0 for none.
    epoch: u64,
    /// Whether all packets in front of the marker have run.
    arrived: bool,
}

/// All ring ends of one worker, including the ring to itself.
pub(crate) struct HandoffRings {
    worker_id: usize,
    /// Indexed by worker.
    producers: Vec<Option<HandoffProducer>>,
    consumers: Vec<HandoffConsumer>,
    epochs: Arc<Epochs>,
    epoch: u64,
    /// Packets that stay on this worker bypass its own ring, which is empty.
    direct: bool,
    /// No other worker hands packets off to this worker any more.
    is_alone: bool,
}

/// The destination of a packet, as [`Vector::handoff`] reads it: a worker and a node.
#[inline(always)]
pub fn handoff_code(worker: usize, node: NodeId) -> u32 {
    (worker as u32) << 16 | u32::from(node.0)
}

/// How many packets of a vector were handed off, kept and dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HandoffResult {
    /// Packets that stayed on their worker.
    pub stayed: u64,
    /// Packets that were handed off to another worker.
    pub went: u64,
    /// Packets that were dropped because the ring to the other worker was full.
    pub refused: u64,
}

impl HandoffRings {
    pub(crate) fn new(worker_id: usize) -> Self {
        HandoffRings {
            worker_id,
            producers: (0..MAX_WORKERS).map(|_| None).collect(),
            consumers: Vec::with_capacity(MAX_WORKERS),
            epochs: Epochs::new(0),
            epoch: 0,
            direct: true,
            is_alone: false,
        }
    }

    /// Enqueue a frame for a worker. Returns an empty frame in exchange, or the frame itself when the ring is full.
    #[inline(always)]
    fn enqueue(
        &mut self,
        worker: usize,
        node: NodeId,
        placed: bool,
        frame: Box<Frame>,
    ) -> Result<Box<Frame>, Box<Frame>> {
        let Some(Some(producer)) = self.producers.get_mut(worker) else {
            return Err(frame);
        };
        let rows = frame.n as u64;
        let mut entry = HandoffEntry {
            node,
            epoch: 0,
            placed,
            frame,
        };
        if !producer.ring.enqueue(&mut entry, RESERVED_ENTRIES) {
            add_relaxed(&producer.counters.refused, rows);
            return Err(entry.frame);
        }
        add_relaxed(&producer.counters.frames, 1);
        add_relaxed(&producer.counters.packets, rows);
        if worker != self.worker_id {
            producer.peer.wake();
        }
        Ok(entry.frame)
    }

    /// The id of this worker.
    #[inline(always)]
    pub(crate) fn worker_id(&self) -> usize {
        self.worker_id
    }

    /// See [`StageCx::begin_epoch`]. `frame` is empty; another empty frame is returned for it.
    fn begin_epoch(&mut self, mut frame: Box<Frame>) -> (Box<Frame>, bool) {
        let mut rings = self.producers.iter_mut().flatten();
        if rings.any(|producer| producer.ring.free_slots() == 0) {
            return (frame, false);
        }
        self.epoch += 1;
        self.direct = false;
        let me = self.worker_id;
        for (worker, producer) in self.producers.iter_mut().enumerate() {
            let Some(producer) = producer else { continue };
            let mut entry = HandoffEntry::empty(frame);
            entry.epoch = self.epoch;
            producer.ring.enqueue(&mut entry, 0);
            frame = entry.frame;
            if worker != me {
                producer.peer.wake();
            }
        }
        (frame, true)
    }

    /// Whether packets that stay on this worker may bypass its own ring.
    #[inline(always)]
    pub(crate) fn is_epoch_over(&mut self) -> bool {
        self.direct || self.finish_epoch()
    }

    #[cold]
    fn finish_epoch(&mut self) -> bool {
        let (me, turns) = (self.worker_id, Arc::as_ptr(&self.epochs));
        let mine = self
            .consumers
            .iter_mut()
            .find(|i| Arc::as_ptr(&i.epochs) == turns);
        self.direct = self.producers.get(me).is_none_or(Option::is_none)
            || mine.is_none_or(|consumer| consumer.epoch == 0 && consumer.ring.is_empty());
        self.direct
    }

    /// Whether the worker may end: its rings are empty, and no other worker enqueues packets for it.
    pub(crate) fn can_exit(&self) -> bool {
        let none = |consumer: &HandoffConsumer| consumer.epoch == 0 && consumer.ring.is_empty_now();
        (self.is_alone || self.consumers.is_empty()) && self.consumers.iter().all(none)
    }

    /// Whether all other workers have dequeued everything that this worker enqueued.
    #[inline(always)]
    pub(crate) fn is_flushed(&self) -> bool {
        // A worker without a ring to itself has no rings to other workers.
        self.consumers.is_empty() || self.are_empty()
    }

    #[inline(never)]
    fn are_empty(&self) -> bool {
        self.producers.iter().flatten().all(|o| o.ring.is_empty())
    }

    /// Whether all rings to this worker are empty.
    #[inline(always)]
    pub(crate) fn is_empty(&mut self) -> bool {
        let mut consumers = self.consumers.iter_mut();
        consumers.all(|consumer| consumer.epoch == 0 && consumer.ring.is_empty())
    }
}

impl HandoffConsumer {
    /// Whether entries may be dequeued: the last epoch is complete.
    #[inline(always)]
    fn is_epoch_complete(&mut self) -> bool {
        if self.epoch != 0 && self.arrived && self.epochs.is_complete(self.epoch) {
            self.epoch = 0;
        }
        self.epoch == 0
    }
}

impl DispatchState {
    /// Hand a whole frame off to a worker. Returns the frame when the ring is full.
    #[inline(always)]
    fn handoff_frame(
        &mut self,
        worker: usize,
        node: NodeId,
        frame: Box<Frame>,
    ) -> Result<(), Box<Frame>> {
        if worker == self.handoff.worker_id && self.handoff.is_epoch_over() {
            self.push_frame(node, frame);
            return Ok(());
        }
        let empty = self.handoff.enqueue(worker, node, false, frame)?;
        self.recycle(empty);
        Ok(())
    }

    /// As [`Self::handoff_frame`], for a node that is placed on that worker.
    pub(crate) fn handoff_to_placed(
        &mut self,
        worker: usize,
        node: NodeId,
        frame: Box<Frame>,
    ) -> Result<(), Box<Frame>> {
        let empty = self.handoff.enqueue(worker, node, true, frame)?;
        self.recycle(empty);
        Ok(())
    }

    /// Begin an epoch: see [`StageCx::begin_epoch`].
    pub(crate) fn begin_epoch(&mut self) -> bool {
        let empty = self.frame();
        let (empty, turned) = self.handoff.begin_epoch(empty);
        self.recycle(empty);
        turned
    }

    /// Free the packets of `frame`, which cannot be handed off, through the drop node.
    #[inline(never)]
    pub(crate) fn refuse(&mut self, mut frame: Box<Frame>, reason: u32, drop: NodeId) {
        let n = frame.n;
        frame.valid |= Col::Err.bit();
        frame.cols[Col::Err as usize].words_mut(n).fill(reason);
        self.push_frame(drop, frame);
    }
}

impl StageCx<'_> {
    /// Begin an epoch: packets that this worker hands off from now on, including those that stay on it in
    /// [`Vector::handoff`], are run after all workers have run the packets that it handed off before. Returns false,
    /// without a change, when a ring has no free entry. Call it before flows are assigned to other workers.
    pub fn begin_epoch(&mut self) -> bool {
        self.dispatch.begin_epoch()
    }

    /// Whether the last epoch is complete, so that packets that stay on this worker bypass its own ring.
    pub fn is_epoch_over(&mut self) -> bool {
        self.dispatch.handoff.is_epoch_over()
    }

    /// The id of this worker.
    pub fn worker(&self) -> usize {
        self.dispatch.handoff.worker_id
    }

    /// Whether there is a ring from this worker to `worker` ([`Engine::add_handoff_rings`]), or `worker` is this
    /// worker.
    pub fn has_ring_to(&self, worker: usize) -> bool {
        let post = &self.dispatch.handoff;
        worker == post.worker_id || post.producers.get(worker).is_some_and(Option::is_some)
    }
}

impl<I: Isa, X: Nexts> Output<'_, I, X> {
    /// See [`Vector::stage_cx`].
    pub fn stage_cx(&mut self) -> StageCx<'_> {
        StageCx::of(self.dispatch)
    }
}

impl<I: Isa, X: Nexts> Vector<'_, I, X> {
    /// Hand each packet off to the worker and the node that its code names ([`handoff_code`]). Packets for which the
    /// ring is full are tagged with counter number `full` of this node and sent to edge `drop`.
    #[inline(always)]
    pub fn handoff(self, codes: &Column, full: usize, drop: X) -> (Consumed, HandoffResult) {
        let mut handed = HandoffResult::default();
        let (frame, dispatch, isa, raw) = (self.frame, self.dispatch, self.isa, self.raw);
        let out = CongestionDrop {
            reason: raw.node.reason(full),
            drop: raw.edges[drop.index()],
        };
        let codes = codes.words(frame.n);
        let Some(&first) = codes.first() else {
            dispatch.recycle(frame);
            return (Consumed(()), handed);
        };
        if all_equal(codes) {
            out.whole(dispatch, first, frame, &mut handed);
            return (Consumed(()), handed);
        }
        let mut done = Bits::none(codes.len());
        while let Some(row) = done.first_missing() {
            let set = isa.rows_equal(codes, codes[row]);
            let mut piece = dispatch.frame();
            piece.valid = frame.valid;
            for col in bits(frame.valid) {
                isa.compress(&set, frame.words(col), piece.cols[col].all_mut());
            }
            piece.n = set.count();
            out.whole(dispatch, codes[row], piece, &mut handed);
            done = done.or(&set);
        }
        dispatch.recycle(frame);
        (Consumed(()), handed)
    }
}

/// The node and the counter for packets that are refused.
struct CongestionDrop {
    reason: u32,
    drop: NodeId,
}

impl CongestionDrop {
    #[inline(always)]
    fn whole(
        &self,
        dispatch: &mut DispatchState,
        code: u32,
        frame: Box<Frame>,
        handed: &mut HandoffResult,
    ) {
        let (worker, rows) = ((code >> 16) as usize, frame.n as u64);
        let node = match NodeId(code as u16) {
            node if node.index() < dispatch.queues.len() => node,
            _ => dispatch.drop_node,
        };
        let here = worker == dispatch.handoff.worker_id;
        match dispatch.handoff_frame(worker, node, frame) {
            Ok(()) if here => handed.stayed += rows,
            Ok(()) => handed.went += rows,
            Err(frame) => {
                handed.refused += rows;
                dispatch.refuse(frame, self.reason, self.drop);
            }
        }
    }
}

impl Worker {
    /// Dequeue the packets that other workers handed off, and run them. Returns the number of packets.
    #[inline(always)]
    pub(crate) fn poll_handoff(&mut self, now_ns: u64) -> usize {
        if self.dispatch.handoff.consumers.is_empty() || self.dispatch.handoff.is_empty() {
            return 0;
        }
        self.run_entries(now_ns)
    }

    #[inline(never)]
    fn run_entries(&mut self, now_ns: u64) -> usize {
        let mut rows = 0;
        for at in 0..self.dispatch.handoff.consumers.len() {
            for _ in 0..ENTRIES_PER_ROUND {
                let frame = self.dispatch.frame();
                let Some(entry) = self.next_entry(at, frame) else {
                    break;
                };
                if entry.epoch != 0 {
                    self.dispatch.recycle(entry.frame);
                    break;
                }
                rows += entry.frame.n;
                self.deliver(entry, now_ns);
            }
        }
        self.run_pending(now_ns, None);
        let me = self.dispatch.handoff.worker_id;
        for consumer in &mut self.dispatch.handoff.consumers {
            if consumer.epoch != 0 && !consumer.arrived {
                consumer.arrived = true;
                consumer.epochs.complete(me, consumer.epoch);
            }
        }
        rows
    }

    /// The next entry of consumer `inlet` in exchange for an empty frame. The marker of an epoch is recorded.
    #[inline(always)]
    fn next_entry(&mut self, consumer: usize, frame: Box<Frame>) -> Option<HandoffEntry> {
        let mut entry = HandoffEntry::empty(frame);
        let from = &mut self.dispatch.handoff.consumers[consumer];
        if !from.is_epoch_complete() || !from.ring.dequeue(&mut entry) {
            self.dispatch.recycle(entry.frame);
            return None;
        }
        if entry.epoch != 0 {
            (from.epoch, from.arrived) = (entry.epoch, false);
        }
        Some(entry)
    }

    /// Deliver a frame that was handed off to its node.
    #[inline(always)]
    fn deliver(&mut self, entry: HandoffEntry, now_ns: u64) {
        let HandoffEntry {
            node,
            frame,
            placed,
            ..
        } = entry;
        let Some(slot) = self.slots.get_mut(node.index()) else {
            let drop = self.dispatch.drop_node;
            return self.dispatch.push_frame(drop, frame);
        };
        if !placed {
            return self.dispatch.push_frame(node, frame);
        }
        let cx = RawCx {
            node,
            edges: &slot.edges,
            stats: &slot.stats,
            guard: self.reader.guard(),
            now_ns,
        };
        if let Err(frame) = slot.body.arrive(self.level, &cx, &mut self.dispatch, frame) {
            self.dispatch.push_frame(node, frame);
        }
    }
}

impl Drop for Worker {
    /// Free the packets that were handed off to a worker that ends, and its pending changes: a ring among them would
    /// keep the channel of the worker at its other end, whose changes may keep this one's.
    fn drop(&mut self) {
        while self.change_queues.pending.pop().is_some() {}
        let dispatch = &mut self.dispatch;
        for mut consumer in std::mem::take(&mut dispatch.handoff.consumers) {
            let mut entry = HandoffEntry::empty(Frame::new(0));
            while consumer.ring.dequeue(&mut entry) {
                let frame = std::mem::replace(&mut entry.frame, Frame::new(0));
                if entry.epoch == 0 {
                    dispatch.free(frame);
                }
            }
            consumer.epochs.leave(dispatch.handoff.worker_id);
        }
    }
}

/// Gives a worker its ends of rings.
struct AddHandoffRings {
    epochs: Arc<Epochs>,
    producers: Vec<(usize, Option<HandoffProducer>)>,
    consumers: Vec<HandoffConsumer>,
}

impl Change for AddHandoffRings {
    fn swap(&mut self, worker: &mut Worker) {
        let post = &mut worker.dispatch.handoff;
        std::mem::swap(&mut post.epochs, &mut self.epochs);
        for (to, producer) in &mut self.producers {
            // The consumer is new and its rings are empty: it has completed all epochs.
            post.epochs.join(*to, post.epoch);
            std::mem::swap(&mut post.producers[*to], producer);
        }
        // The capacity is one consumer for each worker.
        post.consumers.append(&mut self.consumers);
    }
}

/// Removes the rings to and from a worker that has ended.
struct RemoveHandoffRings {
    worker: usize,
    epochs: Arc<Epochs>,
    producer: Option<HandoffProducer>,
    consumers: Vec<HandoffConsumer>,
}

impl Change for RemoveHandoffRings {
    fn swap(&mut self, worker: &mut Worker) {
        let post = &mut worker.dispatch.handoff;
        if post.worker_id == self.worker {
            post.is_alone = true;
            return;
        }
        self.producer = post.producers[self.worker].take();
        post.epochs.leave(self.worker);
        let gone = |consumer: &mut HandoffConsumer| Arc::ptr_eq(&consumer.epochs, &self.epochs);
        let Some(at) = post.consumers.iter_mut().position(gone) else {
            return;
        };
        // Packets that the worker handed off are run first. The empty ring then costs one check in each round.
        if post.consumers[at].epoch == 0 && post.consumers[at].ring.is_empty() {
            self.consumers.push(post.consumers.swap_remove(at));
        }
    }
}

/// The rings between the workers.
#[derive(Default)]
pub(crate) struct HandoffMesh {
    rings: BTreeMap<(usize, usize), Arc<HandoffCounters>>,
    epochs: BTreeMap<usize, Arc<Epochs>>,
}

/// Frames in each ring. The more rings there are, the fewer frames each has.
fn depth(workers: usize) -> usize {
    (256 / workers.max(1)).clamp(4, 64)
}

impl Engine {
    /// Make the missing rings between all workers. They are in use when the change has reached the workers; until then
    /// a handoff is refused.
    pub fn add_handoff_rings(&mut self) -> Result<(), GraphError> {
        let workers: Vec<usize> = self.worker_set().accepting().collect();
        let is_missing = |w: &usize| !self.handoff_mesh.rings.contains_key(&(*w, *w));
        if !workers.iter().any(is_missing) {
            return Ok(());
        }
        self.room_for_changes()?;
        let (size, depth) = (self.settings().vector_size, depth(workers.len()));
        let mut adds: BTreeMap<usize, AddHandoffRings> = BTreeMap::new();
        for &worker in &workers {
            let none = self.no_links(worker);
            adds.insert(worker, none);
        }
        for (&from, &to) in workers
            .iter()
            .flat_map(|f| workers.iter().map(move |t| (f, t)))
        {
            if self.handoff_mesh.rings.contains_key(&(from, to)) {
                continue;
            }
            let empty = |_| HandoffEntry::empty(Frame::new(size));
            let (producer, consumer) = swap_ring((0..depth).map(empty).collect());
            let counters = Arc::new(HandoffCounters::default());
            self.handoff_mesh.rings.insert((from, to), counters.clone());
            let producer = HandoffProducer {
                ring: producer,
                counters,
                peer: self.channel(to),
            };
            let epochs = self.handoff_mesh.epochs[&from].clone();
            let consumer = HandoffConsumer {
                ring: consumer,
                epochs,
                epoch: 0,
                arrived: false,
            };
            if let Some(add) = adds.get_mut(&from) {
                add.producers.push((to, Some(producer)));
            }
            if let Some(add) = adds.get_mut(&to) {
                add.consumers.push(consumer);
            }
        }
        for (worker, add) in adds {
            self.send(worker, Box::new(add))?;
        }
        Ok(())
    }

    /// Stop handoffs to a worker that is to end, and remove its rings once they are empty. A worker with rings does
    /// not end before this call.
    pub fn unlink(&mut self, worker: usize) {
        self.handoff_mesh
            .rings
            .retain(|(from, to), _| *from != worker && *to != worker);
        let Some(turns) = self.handoff_mesh.epochs.remove(&worker) else {
            return;
        };
        for other in self.worker_set().iter() {
            let drop = RemoveHandoffRings {
                worker,
                epochs: turns.clone(),
                producer: None,
                consumers: Vec::with_capacity(1),
            };
            // A worker whose queue of changes is full keeps its rings. Handoffs to them are refused when they are
            // full.
            let _ = self.send(other, Box::new(drop));
        }
    }

    fn no_links(&mut self, worker: usize) -> AddHandoffRings {
        let turns = self.handoff_mesh.epochs.entry(worker);
        AddHandoffRings {
            epochs: turns.or_insert_with(|| Epochs::new(MAX_WORKERS)).clone(),
            producers: Vec::new(),
            consumers: Vec::new(),
        }
    }

    /// Counters of the rings between the workers.
    pub fn handoffs(&self) -> Vec<HandoffReport> {
        let report =
            |(&(from, to), cells): (&(usize, usize), &Arc<HandoffCounters>)| HandoffReport {
                from,
                to,
                frames: cells.frames.load(Relaxed),
                packets: cells.packets.load(Relaxed),
                refused: cells.refused.load(Relaxed),
            };
        self.handoff_mesh.rings.iter().map(report).collect()
    }
}

const _: () = assert!(MAX_NODES <= 1 << 16, "a node fits the code of a handoff");
