//! Stages: nodes that hold packets between rounds and release them as whole vectors.
//!
//! A stage is a [`Node`] that takes packets out of vectors as a [`Batch`] (nothing is copied when all packets of a
//! vector have the same code). After every round the worker calls it to release packets. Each released batch passes
//! the whole graph before the next one is released, so its packets stay in one vector. A batch belongs to its worker:
//! it has one owner, its buffers count as held, and it leaves the stage only by [`StageCx::send_on_receive`],
//! [`Output::send_batch`] or [`Output::send_batch_on_receive`].

use crate::data::col::Col;
use crate::data::column::Column;
use crate::data::counters::Counters;
use crate::data::frame::{CHAINED, Frame, IDX, POS, bits};
use crate::data::ids::NodeId;
use crate::data::packet::members;
use crate::node_api::context::Cx;
use crate::node_api::edges::Nexts;
use crate::node_api::node::Node;
use crate::node_api::output::Output;
use crate::node_api::vector::{Consumed, Vector};
use crate::queues::dispatch::{Dispatch, append};
use crate::queues::wakeup::WakeConditions;
use volley_simd::{Bits, Isa, all_equal, prefetch};

/// The role of a node in a worker's round.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// The node runs when packets are pending.
    Node,
    /// The node is polled once a round.
    Source,
    /// The node runs when packets are pending, and releases packets once a round.
    Stage,
}

/// A node that holds packets between rounds.
pub trait Stage: Node {
    /// Whether the stage holds packets: otherwise [`Stage::release`] is not called. The worker calls this method after each
    /// vector that the stage runs and after [`crate::Engine::wake`]; nothing else may change the result.
    fn is_holding(&self) -> bool;

    /// Whether the held packets must not be overtaken: until they are released, no queue is moved to another worker
    /// and the worker does not end. False where packets wait for an event that may not happen.
    fn keeps_order(&self) -> bool {
        self.is_holding()
    }

    /// Release at most one vector, by [`Output::send_batch`] or [`Output::send_batch_on_receive`], and return the number of
    /// packets. The worker calls this method until it returns 0, and at most 256 times in a round.
    fn release<I: Isa>(
        &mut self,
        cx: &Cx<'_, Self::Count>,
        out: &mut Output<'_, I, Self::Next>,
    ) -> usize;

    /// The stage leaves the graph ([`crate::Engine::rewire`]): send all held packets to `next`, by [`StageCx::send_batch_to`]. A
    /// stage that is never removed while it holds packets needs no such function.
    fn leave(&mut self, _stage_cx: &mut StageCx<'_>, _next: NodeId) {}

    /// Whether the worker may sleep: see [`crate::Source::may_sleep`].
    fn may_sleep(&self, _now_ns: u64) -> bool {
        !self.is_holding()
    }

    /// The worker is about to sleep: add to `rest` the time at which it must be awake again.
    fn arm(&mut self, _rest: &mut WakeConditions) -> bool {
        true
    }
}

/// Packets that a stage holds, at most one vector of them.
#[must_use = "a batch is sent, or its buffers are lost"]
pub struct Batch {
    frame: Box<Frame>,
}

impl Batch {
    /// The number of packets.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.frame.n - self.frame.moved
    }

    /// The lengths of the packets, in order.
    pub fn lengths(&self) -> &[u32] {
        &self.frame.words(Col::LEN.at())[self.frame.moved..]
    }

    /// Whether a packet has more than one buffer.
    #[inline(always)]
    fn has_chains(&self) -> bool {
        volley_simd::or_all(&self.frame.words(POS)[self.frame.moved..]) & CHAINED != 0
    }

    /// Whether the batch is empty.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The context of a stage: frames to collect packets in, and the methods to send them.
pub struct StageCx<'a> {
    pub(crate) dispatch: &'a mut Dispatch,
    node: NodeId,
}

impl<'a> StageCx<'a> {
    pub(crate) fn of(dispatch: &'a mut Dispatch, node: NodeId) -> Self {
        StageCx { dispatch, node }
    }

    /// A batch without packets.
    #[inline(always)]
    pub fn empty_batch(&mut self) -> Batch {
        let frame = self.dispatch.frame();
        Batch { frame }
    }

    /// Move packets from the front of `from` to the end of `to`, until `to` has `most` packets or is full, or `from`
    /// is empty. Returns the number of packets.
    #[inline(always)]
    pub fn move_packets(&mut self, to: &mut Batch, from: &mut Batch, most: usize) -> usize {
        let room = most
            .min(self.dispatch.vector_size)
            .saturating_sub(to.frame.n);
        let rows = room.min(from.len());
        let moved = from.frame.moved;
        append(&mut to.frame, &from.frame, moved..moved + rows);
        from.frame.moved += rows;
        rows
    }

    /// The number of buffers of the packets of a batch.
    #[inline(always)]
    pub fn buffers(&self, batch: &Batch) -> usize {
        if batch.has_chains() {
            self.buffers_of_chains(batch)
        } else {
            batch.len()
        }
    }

    #[cold]
    fn buffers_of_chains(&self, batch: &Batch) -> usize {
        let (pool, frame) = (self.dispatch.bufs.pool(), &batch.frame);
        let rows = frame.moved..frame.n;
        let chains = rows.filter(|row| frame.words(POS)[*row] & CHAINED != 0);
        let behind = chains.map(|row| members(pool, frame.words(IDX)[row]));
        batch.len() + behind.sum::<usize>()
    }

    /// Return the frame of a batch. Packets in it are freed.
    #[inline(always)]
    pub fn free_batch(&mut self, mut batch: Batch) {
        debug_assert!(batch.is_empty());
        if batch.is_empty() {
            batch.frame.moved = 0;
            self.dispatch.recycle(batch.frame);
        } else {
            self.dispatch.free(into_frame(batch));
        }
    }

    /// Send a batch to a node.
    pub fn send_batch_to(&mut self, batch: Batch, node: NodeId) {
        self.dispatch.push_frame(node, into_frame(batch));
    }

    /// Send a batch: each packet to the next node on the arc of received packets ([`crate::RECEIVE_ARC`]), of which this node
    /// is a feature.
    #[inline(always)]
    pub fn send_on_receive<I: Isa>(&mut self, isa: I, batch: Batch) -> usize {
        let frame = into_frame(batch);
        let rows = frame.n;
        let rx = frame.words(Col::RX.at());
        let Some(&first) = rx.first() else {
            self.dispatch.recycle(frame);
            return 0;
        };
        let next = self.dispatch.behind_on_receive(self.node, first);
        if all_equal(rx) {
            self.dispatch.push_frame(next, frame);
            return rows;
        }
        let mut targets = std::mem::take(&mut self.dispatch.targets);
        // Consecutive packets are often of the same interface.
        let (mut last, mut next) = (first, u32::from(next.0));
        for (word, &rx) in targets.words_mut(rows).iter_mut().zip(rx) {
            if rx != last {
                let node = self.dispatch.behind_on_receive(self.node, rx);
                (last, next) = (rx, u32::from(node.0));
            }
            *word = next;
        }
        let of = |code| NodeId(code as u16);
        self.dispatch.split(isa, frame, targets.words(rows), of);
        self.dispatch.targets = targets;
        rows
    }
}

/// A batch's frame with its first packet in the first row.
#[inline(always)]
fn into_frame(mut batch: Batch) -> Box<Frame> {
    if batch.frame.moved > 0 {
        batch.frame.forget_moved();
    }
    batch.frame
}

impl<I: Isa, X: Nexts> Vector<'_, I, X> {
    /// Prefetch the first cache lines of all packets, for the node that reads the packets first, one at a time.
    #[inline(always)]
    pub fn prefetch_headers(&mut self) {
        let pool = self.dispatch.bufs.pool();
        for row in 0..self.frame.n {
            let at = self.frame.words(POS)[row] & !CHAINED;
            // SAFETY: the row owns its buffer, and positions are in the slot; the memory is only prefetched.
            prefetch(unsafe { pool.at(self.frame.words(IDX)[row], at as usize) });
        }
    }

    /// Take all packets out of the graph, grouped by `codes`: `keep` gets the packets of one code after the other, in
    /// order. With one code the frame is moved.
    #[inline(always)]
    pub fn classify(
        self,
        codes: &Column,
        mut keep: impl FnMut(&mut StageCx<'_>, u32, Batch),
    ) -> Consumed {
        let (frame, isa) = (self.frame, self.isa);
        let mut stage_cx = StageCx::of(self.dispatch, self.raw.node);
        let codes = codes.words(frame.n);
        let Some(&first) = codes.first() else {
            stage_cx.dispatch.recycle(frame);
            return Consumed(());
        };
        if all_equal(codes) {
            keep(&mut stage_cx, first, Batch { frame });
            return Consumed(());
        }
        let mut done = Bits::none(codes.len());
        while let Some(row) = done.first_missing() {
            let set = isa.rows_equal(codes, codes[row]);
            let mut piece = stage_cx.dispatch.frame();
            piece.valid = frame.valid;
            for col in bits(frame.valid) {
                isa.compress(&set, frame.words(col), piece.cols[col].all_mut());
            }
            piece.n = set.count();
            let batch = Batch { frame: piece };
            keep(&mut stage_cx, codes[row], batch);
            done = done.or(&set);
        }
        stage_cx.dispatch.recycle(frame);
        Consumed(())
    }

    /// Send held packets in front of this vector: see [`StageCx`].
    #[inline(always)]
    pub fn stage_cx(&mut self) -> StageCx<'_> {
        StageCx::of(self.dispatch, self.raw.node)
    }

    /// Send each packet to the next node on the arc of received packets: see [`StageCx::send_on_receive`].
    #[inline(always)]
    pub fn send_on_receive(self) -> Consumed {
        let (frame, isa) = (self.frame, self.isa);
        let mut stage_cx = StageCx::of(self.dispatch, self.raw.node);
        stage_cx.send_on_receive(isa, Batch { frame });
        Consumed(())
    }

    /// The next node on the arc of received packets ([`crate::RECEIVE_ARC`]), of which this node is a feature, for packets of
    /// `interface`.
    #[inline(always)]
    pub fn next_on_receive(&self, interface: u32) -> NodeId {
        let node = self.raw.node;
        self.dispatch.behind_on_receive(node, interface)
    }

    /// The node at the end of the arc of received packets: for a node that returns packets to it which have passed the arc.
    #[inline(always)]
    pub fn receive_end(&self) -> NodeId {
        self.dispatch.receive_end()
    }

    /// The first node of the packets that `interface` received: for a node that changes the receive interface of packets.
    #[inline(always)]
    pub fn receiver(&self, interface: u32) -> NodeId {
        self.dispatch.receiver(interface)
    }
}

impl<I: Isa, X: Nexts> Output<'_, I, X> {
    /// Send a batch to an edge. Returns the number of packets.
    #[inline(always)]
    pub fn send_batch(&mut self, batch: Batch, next: X) -> usize {
        let frame = into_frame(batch);
        let rows = frame.n;
        self.dispatch
            .push_frame(self.raw.edges[next.index()], frame);
        rows
    }

    /// Drop the packets of a batch for one reason. Returns their number.
    #[cold]
    pub fn drop_batch<C: Counters>(&mut self, cx: &Cx<'_, C>, batch: Batch, counter: C) -> usize {
        let frame = into_frame(batch);
        let rows = frame.n;
        let (node, stats) = (cx.raw.node, &cx.raw.stats);
        self.dispatch
            .drop_frame(node, counter.index(), stats, frame);
        rows
    }

    /// Send a batch along the arc of received packets: see [`StageCx::send_on_receive`].
    #[inline(always)]
    pub fn send_batch_on_receive(&mut self, batch: Batch) -> usize {
        let isa = self.isa;
        let mut stage_cx = StageCx::of(self.dispatch, self.raw.node);
        stage_cx.send_on_receive(isa, batch)
    }
}
