//! Handoff from the point of view of nodes: they send packets to other workers and begin epochs.

use crate::data::column::Column;
use crate::data::frame::{Frame, bits};
use crate::data::ids::NodeId;
use crate::node_api::edges::Nexts;
use crate::node_api::output::Output;
use crate::node_api::stage::StageCx;
use crate::node_api::vector::{Consumed, Vector};
use crate::queues::dispatch::Dispatch;
use volley_simd::{Bits, Isa, all_equal};

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

    /// Whether there is a ring from this worker to `worker` ([`crate::Engine::add_handoff_rings`]), or `worker` is this
    /// worker.
    pub fn has_ring_to(&self, worker: usize) -> bool {
        let post = &self.dispatch.handoff;
        worker == post.worker_id || post.producers.get(worker).is_some_and(Option::is_some)
    }
}

impl<I: Isa, X: Nexts> Output<'_, I, X> {
    /// See [`Vector::stage_cx`].
    pub fn stage_cx(&mut self) -> StageCx<'_> {
        StageCx::of(self.dispatch, self.raw.node)
    }
}

impl<I: Isa, X: Nexts> Vector<'_, I, X> {
    /// Hand each packet off to the worker and the node that its code names ([`crate::handoff_code`]). Packets for which the
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
        dispatch: &mut Dispatch,
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
