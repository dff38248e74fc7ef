//! Packets that go from one worker to another: rings of whole frames, one for each pair of workers.
//!
//! Nothing blocks. A full ring refuses, and whoever hands over drops and counts. A frame is exchanged for an empty one in
//! both directions, so every worker keeps as many as it had. Whoever hands something over rings the other's bell.
//!
//! A worker's *turn* keeps order when packets of one flow go to another worker than before ([`StageCx::begin_epoch`]): what is
//! handed over behind it waits, wherever it goes, until every worker has run what was handed to it before.

use crate::channel::Channel;
use crate::column::Column;
use crate::context::RawCx;
use crate::dispatch::DispatchState;
use crate::engine::MAX_NODES;
use crate::frame::{Col, Frame, bits};
use crate::stats::add_relaxed;
use crate::worker::Worker;
use crate::{
    Change, Consumed, Engine, GraphError, Isa, MAX_WORKERS, Nexts, NodeId, Output, StageCx, Vector,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use volley_simd::{Bits, all_equal};
use volley_tables::exchange::{Consumer, Epochs, Producer, swap_ring};

/// Frames that a worker takes from one other worker in one round.
const ENTRIES_PER_ROUND: usize = 16;
/// A place of each ring is kept for a turn.
const RESERVED_ENTRIES: usize = 1;

/// What one ring has carried, written by the worker that hands over.
#[derive(Default)]
#[repr(align(64))]
struct HandoffCounters {
    frames: AtomicU64,
    packets: AtomicU64,
    refused: AtomicU64,
}

/// What one worker has handed to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandoffReport {
    /// The worker that handed over.
    pub from: usize,
    /// The worker that took.
    pub to: usize,
    /// Vectors and parts of vectors.
    pub frames: u64,
    /// Packets.
    pub packets: u64,
    /// Packets that were dropped because the other worker had too much waiting.
    pub refused: u64,
}

/// What lies in a ring's place: a frame for a node, an empty frame, or a turn.
struct HandoffEntry {
    node: NodeId,
    /// 0 for packets.
    epoch: u64,
    /// The node is elsewhere for the worker that handed over: it runs here, whatever this worker does with its own.
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

/// One worker's way to another.
struct HandoffProducer {
    ring: Producer<HandoffEntry>,
    counters: Arc<HandoffCounters>,
    peer: Arc<Channel>,
}

/// One worker's way from another.
struct HandoffConsumer {
    ring: Consumer<HandoffEntry>,
    epochs: Arc<Epochs>,
    /// The turn that has been taken out and is not over.
    epoch: u64,
    /// Whether everything before it has run.
    arrived: bool,
}

/// All ways between one worker and the others, and its way to itself.
pub(crate) struct HandoffRings {
    worker_id: usize,
    /// By worker.
    producers: Vec<Option<HandoffProducer>>,
    consumers: Vec<HandoffConsumer>,
    epochs: Arc<Epochs>,
    epoch: u64,
    /// What stays here takes no ring: nothing of it is left in one.
    direct: bool,
    /// Nobody hands this worker anything any more.
    is_alone: bool,
}

/// Where a packet goes, as [`Vector::handoff`] reads it: a worker and a node there.
#[inline(always)]
pub fn handoff_code(worker: usize, node: NodeId) -> u32 {
    (worker as u32) << 16 | u32::from(node.0)
}

/// What became of the packets of a vector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HandoffResult {
    /// Packets that stayed on their worker.
    pub stayed: u64,
    /// Packets that went to another worker.
    pub went: u64,
    /// Packets that another worker had no room for.
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

    /// Hand a frame to a worker; it comes back when there is no room. An empty one is returned for it.
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

    /// The number of this worker.
    #[inline(always)]
    pub(crate) fn worker_id(&self) -> usize {
        self.worker_id
    }

    /// See [`StageCx::begin_epoch`]. Of `frame`, which is empty, another empty one comes back.
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

    /// Whether packets that stay here may go straight on.
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

    /// Whether the worker may end: nothing waits for it, and nothing will.
    pub(crate) fn can_exit(&self) -> bool {
        let none = |consumer: &HandoffConsumer| consumer.epoch == 0 && consumer.ring.is_empty_now();
        (self.is_alone || self.consumers.is_empty()) && self.consumers.iter().all(none)
    }

    /// Whether others have taken everything that this worker has handed over.
    #[inline(always)]
    pub(crate) fn is_flushed(&self) -> bool {
        // Who has no ring from itself has none to others.
        self.consumers.is_empty() || self.are_empty()
    }

    #[inline(never)]
    fn are_empty(&self) -> bool {
        self.producers.iter().flatten().all(|o| o.ring.is_empty())
    }

    /// Whether nothing waits in any ring to this worker.
    #[inline(always)]
    pub(crate) fn is_empty(&mut self) -> bool {
        let mut consumers = self.consumers.iter_mut();
        consumers.all(|consumer| consumer.epoch == 0 && consumer.ring.is_empty())
    }
}

impl HandoffConsumer {
    /// Whether packets may be taken out: no turn is under way.
    #[inline(always)]
    fn is_epoch_complete(&mut self) -> bool {
        if self.epoch != 0 && self.arrived && self.epochs.is_complete(self.epoch) {
            self.epoch = 0;
        }
        self.epoch == 0
    }
}

impl DispatchState {
    /// Hand a whole frame to a worker. The frame comes back when there is no room.
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

    /// The same for a node that is placed on that worker.
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

    /// From now on what is handed over waits for what was: see [`StageCx::begin_epoch`].
    pub(crate) fn begin_epoch(&mut self) -> bool {
        let empty = self.frame();
        let (empty, turned) = self.handoff.begin_epoch(empty);
        self.recycle(empty);
        turned
    }

    /// Free the packets of `frame`, because they cannot go where they should, by way of the drop node.
    #[inline(never)]
    pub(crate) fn refuse(&mut self, mut frame: Box<Frame>, reason: u32, drop: NodeId) {
        let n = frame.n;
        frame.valid |= Col::Err.bit();
        frame.cols[Col::Err as usize].words_mut(n).fill(reason);
        self.push_frame(drop, frame);
    }
}

impl StageCx<'_> {
    /// Begin a turn: what this worker hands over from now on, what it keeps for itself by [`Vector::handoff`] included,
    /// is run when all workers have run what it handed to them before. False when a ring has no room for that: nothing
    /// has changed then. For whoever is about to send flows another way than before.
    pub fn begin_epoch(&mut self) -> bool {
        self.dispatch.begin_epoch()
    }

    /// Whether the last turn is over, and what stays on this worker goes straight on.
    pub fn is_epoch_over(&mut self) -> bool {
        self.dispatch.handoff.is_epoch_over()
    }

    /// The number of this worker.
    pub fn worker(&self) -> usize {
        self.dispatch.handoff.worker_id
    }

    /// Whether there is a ring from this worker to another ([`Engine::add_handoff_rings`]), or it is this one.
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
    /// Give each packet to the worker and the node that its code names ([`handoff_code`]). Packets that another worker has
    /// no room for are tagged with counter number `full` of this node and go by edge `drop`.
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

/// Where packets go that are refused, and why.
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
    /// Take what other workers have handed over and run it. Returns how many packets.
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

    /// The next parcel of an inlet, for an empty frame; a turn is noted.
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

    /// Put a frame that was handed over where it belongs.
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
    /// What was handed to a worker that ends is freed. Changes that it did not take up go too: a ring among them would hold
    /// the channel of the worker at its other end, whose changes may hold this one's.
    fn drop(&mut self) {
        while self.channel.pending_changes.pop().is_some() {}
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

/// A worker gets its ends of rings.
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
            // Nothing has been handed over there: whoever takes has arrived at all turns so far.
            post.epochs.join(*to, post.epoch);
            std::mem::swap(&mut post.producers[*to], producer);
        }
        // There is room for one inlet from each worker.
        post.consumers.append(&mut self.consumers);
    }
}

/// A worker is gone, and with it the rings to and from it.
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
        // What it had handed over is run first; the ring then stays, empty, which costs a look in each round.
        if post.consumers[at].epoch == 0 && post.consumers[at].ring.is_empty() {
            self.consumers.push(post.consumers.swap_remove(at));
        }
    }
}

/// The rings that there are.
#[derive(Default)]
pub(crate) struct HandoffMesh {
    rings: BTreeMap<(usize, usize), Arc<HandoffCounters>>,
    epochs: BTreeMap<usize, Arc<Epochs>>,
}

/// Frames in each ring: fewer where there are many rings.
fn depth(workers: usize) -> usize {
    (256 / workers.max(1)).clamp(4, 64)
}

impl Engine {
    /// Make rings between all workers that there are, where there are none yet. They are used once the change has reached
    /// the workers; until then what is handed over is refused.
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

    /// A worker goes: nobody is to hand it anything any more, and its rings go once they are empty. It does not end before
    /// this was said, if it has rings.
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
            // A worker whose queue is full keeps its rings; what it hands over there is refused when they are full.
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

    /// What workers have handed to each other.
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
