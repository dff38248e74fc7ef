//! click-queue: holds packets until its reader takes them, as fast as the elements up to the reader allow.

use super::Port;
use crate::cells::{Cells, LENGTH};
use crate::columns;
use crate::element::Reason;
use crate::pace::Pace;
use std::collections::VecDeque;
use std::sync::Arc;
use volley_graph::{
    Batch, Column, ColumnInfo, Consumed, Cx, Isa, Node, NodeId, Output, PacketTrace, Stage,
    StageCx, Vector,
};
use volley_tables::qsbr::Snap;

/// Cell of a queue: the most packets that were in it.
pub(crate) const HIGHEST: usize = 1;
/// Cell of a queue: packets for which there was no room.
pub(crate) const DROPS: usize = 2;
/// Cell of a queue: the number of packets for which it has room.
pub(crate) const CAPACITY: usize = 3;

/// State of a queue on one worker.
pub(crate) struct QueueNode {
    batches: VecDeque<Batch>,
    packets: usize,
    paces: Snap<Vec<Pace>>,
    cells: Arc<Cells>,
    codes: Column,
    size: usize,
}

impl QueueNode {
    /// The number of frames that a queue of this many packets needs.
    pub(crate) fn frames(capacity: usize, size: usize) -> usize {
        capacity / size.max(1) + 3
    }

    /// A queue for `capacity` packets, in vectors of up to `size`.
    pub(crate) fn new(
        capacity: usize,
        paces: Snap<Vec<Pace>>,
        cells: Arc<Cells>,
        size: usize,
    ) -> Self {
        QueueNode {
            batches: VecDeque::with_capacity(QueueNode::frames(capacity, size)),
            packets: 0,
            paces,
            cells,
            codes: Column::new(size),
            size,
        }
    }

    fn note(&mut self) {
        let now = self.packets as u64;
        self.cells.set(LENGTH, now);
        if now > self.cells.get(HIGHEST) {
            self.cells.set(HIGHEST, now);
        }
    }
}

/// Append a batch to a queue of batches, each of which but the last is full.
fn append(batches: &mut VecDeque<Batch>, stage_cx: &mut StageCx<'_>, mut batch: Batch) {
    while !batch.is_empty() {
        let moved = match batches.back_mut() {
            Some(last) => stage_cx.move_packets(last, &mut batch, usize::MAX),
            None => 0,
        };
        if moved == 0 {
            let fresh = stage_cx.empty_batch();
            batches.push_back(fresh);
        }
    }
    stage_cx.free_batch(batch);
}

impl Node for QueueNode {
    const NAME: &'static str = "click-queue";
    type Next = Port;
    type Count = Reason;
    type Trace = PacketTrace;
    const COLUMNS: &'static [ColumnInfo] = columns::ALL;

    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Reason>, mut v: Vector<'_, I, Port>) -> Consumed {
        let capacity = self.cells.get(CAPACITY) as usize;
        let mut room = capacity.saturating_sub(self.packets);
        if v.len() > room {
            self.cells.add(DROPS, (v.len() - room) as u64);
            let keep = |packet: &mut volley_graph::Packet<'_>| match room {
                0 => packet.fail(cx, Reason::QueueFull),
                _ => {
                    room -= 1;
                    true
                }
            };
            v.sift(keep, Port(1));
        }
        let n = v.len();
        self.packets += n;
        self.codes.words_mut(n).fill(0);
        let batches = &mut self.batches;
        let consumed = v.classify(&self.codes, |stage_cx, _, batch| {
            append(batches, stage_cx, batch);
        });
        self.note();
        consumed
    }
}

impl Stage for QueueNode {
    fn is_holding(&self) -> bool {
        self.packets > 0
    }

    fn leave(&mut self, stage_cx: &mut StageCx<'_>, next: NodeId) {
        for batch in self.batches.drain(..) {
            stage_cx.send_batch_to(batch, next);
        }
        self.packets = 0;
        self.note();
    }

    fn release<I: Isa>(&mut self, cx: &Cx<'_, Reason>, out: &mut Output<'_, I, Port>) -> usize {
        let Some(first) = self.batches.front_mut() else {
            return 0;
        };
        let lengths = first.lengths();
        let paces = self.paces.read(cx.guard());
        let allowed = |most: usize, pace: &Pace| most.min(pace.allows(lengths, cx.now_ns()));
        let mut count = paces.iter().fold(lengths.len(), allowed);
        count = count.min(self.size);
        paces.iter().for_each(|pace| pace.took(&lengths[..count]));
        if count == 0 {
            return 0;
        }
        self.packets -= count;
        let batch = if count == first.len() {
            self.batches.pop_front()
        } else {
            let mut stage_cx = out.stage_cx();
            let mut part = stage_cx.empty_batch();
            stage_cx.move_packets(&mut part, first, count);
            Some(part)
        };
        self.note();
        batch.map_or(0, |batch| out.send_batch(batch, Port(0)))
    }
}
