//! The packets that a stage holds, in order.

use std::collections::VecDeque;
use volley_graph::{Batch, NodeId, StageCx};

/// Batches, each of which but the last is full.
pub(crate) struct Batches {
    all: VecDeque<Batch>,
    packets: usize,
}

impl Batches {
    /// The number of frames that `capacity` packets need.
    pub(crate) fn frames(capacity: usize, size: usize) -> usize {
        capacity / size.max(1) + 3
    }

    /// None, with room for `capacity` packets in vectors of up to `size`.
    pub(crate) fn new(capacity: usize, size: usize) -> Self {
        Batches {
            all: VecDeque::with_capacity(Batches::frames(capacity, size)),
            packets: 0,
        }
    }

    /// The number of packets.
    pub(crate) fn len(&self) -> usize {
        self.packets
    }

    /// The lengths of the first packets.
    pub(crate) fn lengths(&self) -> &[u32] {
        self.all.front().map_or(&[], Batch::lengths)
    }

    /// Append a batch.
    pub(crate) fn put(&mut self, stage_cx: &mut StageCx<'_>, mut batch: Batch) {
        self.packets += batch.len();
        while !batch.is_empty() {
            let moved = match self.all.back_mut() {
                Some(last) => stage_cx.move_packets(last, &mut batch, usize::MAX),
                None => 0,
            };
            if moved == 0 {
                let fresh = stage_cx.empty_batch();
                self.all.push_back(fresh);
            }
        }
        stage_cx.free_batch(batch);
    }

    /// Take the first packets: `count`, and no more than [`Batches::lengths`] has.
    pub(crate) fn take(&mut self, stage_cx: &mut StageCx<'_>, count: usize) -> Option<Batch> {
        let first = self.all.front_mut()?;
        let count = count.min(first.len());
        self.packets -= count;
        if count == first.len() {
            return self.all.pop_front();
        }
        let mut part = stage_cx.empty_batch();
        stage_cx.move_packets(&mut part, first, count);
        Some(part)
    }

    /// Send all packets to a node.
    pub(crate) fn leave(&mut self, stage_cx: &mut StageCx<'_>, next: NodeId) {
        for batch in self.all.drain(..) {
            stage_cx.send_batch_to(batch, next);
        }
        self.packets = 0;
    }
}
