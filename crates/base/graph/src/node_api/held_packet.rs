//! Packets outside the graph: a slow path takes them out of a vector, an owner (mostly the control thread) keeps them
//! until an event, and a source of the same pool resumes them.
//!
//! A [`HeldPacket`] owns its buffers: it has one owner, and it counts as held until it is resumed. When it is dropped,
//! its buffers are freed.

use crate::data::col::Col;
use crate::data::column::Column;
use crate::data::frame::{CHAINED, IDX, POS};
use crate::data::ids::NodeId;
use crate::data::packet::{Packet, first_part, free_members, members, walk};
use crate::node_api::edges::Nexts;
use crate::node_api::output::{NewVector, Output};
use crate::node_api::vector::{Consumed, Vector};
use crate::queues::arcs::ArcPosition;
use std::sync::Arc;
use volley_buf::{META, Pool, START};
use volley_simd::Isa;

/// The columns that a held packet keeps, besides buffer index and position.
const HELD_COLUMNS: [Col; 5] = [Col::LEN, Col::RX, Col::TRACE, Col::OFFLOAD, Col::MARK];
/// The columns among them that a frame may not have.
const OPTIONAL_COLUMNS: [Col; 3] = [Col::TRACE, Col::OFFLOAD, Col::MARK];

/// A packet that is held outside the graph.
#[must_use = "a held packet is returned to a source, or freed by a drop"]
pub struct HeldPacket {
    pool: Arc<Pool>,
    idx: u32,
    pos: u32,
    kept: [u32; HELD_COLUMNS.len()],
}

impl HeldPacket {
    /// The receive interface.
    pub fn rx(&self) -> u32 {
        self.kept[1]
    }

    /// The number of bytes from the position on.
    pub fn len(&self) -> usize {
        self.kept[0] as usize
    }

    /// The number of buffers.
    pub fn buffers(&self) -> usize {
        if self.pos & CHAINED == 0 {
            return 1;
        }
        1 + members(&self.pool, self.idx)
    }

    /// Whether the packet has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The mark of its trace, 0 for none. A packet that is made from this one can use the same mark.
    pub fn trace(&self) -> u32 {
        self.kept[2]
    }

    /// The first segment, from `back` bytes in front of the position; fewer where the headroom is shorter.
    pub fn bytes_before(&self, back: usize) -> &[u8] {
        let at = (self.pos & !CHAINED) as usize;
        let back = back.min(at.saturating_sub(META));
        let n = first_part(&self.pool, (self.idx, self.pos), self.len()).1;
        // SAFETY: the buffer belongs to this packet; the bytes from `back` in front of the position to the segment's
        // end are in its slot.
        unsafe { std::slice::from_raw_parts(self.pool.at(self.idx, at - back), back + n) }
    }

    /// The offset of the position from where a new packet starts: see [`crate::PacketView::moved`].
    pub fn offset(&self) -> usize {
        ((self.pos & !CHAINED) as usize).saturating_sub(START)
    }

    /// Call `visit` for each segment, in order.
    pub fn segments(&self, mut visit: impl FnMut(&[u8])) {
        let first = self.bytes_before(0);
        visit(first);
        let mut left = self.len() - first.len();
        if self.pos & CHAINED != 0 {
            walk(&self.pool, self.idx, |segment| {
                let n = segment.len().min(left);
                left -= n;
                visit(&segment[..n]);
            });
        }
    }

    /// The columns, for a frame that owns the packet from now on.
    fn into_row(self) -> (u32, u32, [u32; HELD_COLUMNS.len()]) {
        let row = (self.idx, self.pos, self.kept);
        let mut this = std::mem::ManuallyDrop::new(self);
        // SAFETY: `this` is not dropped or used again, so its reference to the pool is released exactly once.
        unsafe { std::ptr::drop_in_place(&mut this.pool) };
        row
    }
}

impl Drop for HeldPacket {
    /// Slow, but only called when an owner drops the packet, which does not happen on a worker.
    fn drop(&mut self) {
        let mut bufs = self.pool.cache();
        if self.pos & CHAINED != 0 {
            free_members(&mut bufs, self.idx);
        }
        bufs.free(&[self.idx]);
    }
}

/// The action for a packet in [`Vector::each_or_hold`].
pub enum HoldAction<X, K> {
    /// Send the packet to this edge.
    Send(X),
    /// Send the packet to the next feature of its arc after this position.
    ResumeAfter(ArcPosition),
    /// Hold the packet; `K` is passed to the owner.
    Hold(K),
    /// The packet is complete: free it.
    Done,
}

impl<I: Isa, X: Nexts> Vector<'_, I, X> {
    /// The slow path for packets that may be held: each packet is sent, held or freed. `keep` gets each held packet at
    /// once, in order.
    pub fn each_or_hold<K>(
        mut self,
        mut body: impl FnMut(&mut Packet<'_>) -> HoldAction<X, K>,
        mut keep: impl FnMut(K, HeldPacket),
    ) -> Consumed {
        for col in OPTIONAL_COLUMNS {
            self.frame.make_valid(col, 0);
        }
        for row in 0..self.frame.n {
            let mut packet = Packet {
                pool: self.dispatch.bufs.pool(),
                frame: &mut self.frame,
                row,
            };
            let outcome = body(&mut packet);
            let (idx, pos) = (self.frame.words(IDX)[row], self.frame.words(POS)[row]);
            match outcome {
                HoldAction::Send(next) => {
                    let edge = self.raw.edges[next.index()];
                    self.dispatch.push_row(edge, &self.frame, row);
                }
                HoldAction::ResumeAfter(spot) => {
                    let node = self.dispatch.resume_after(spot, &mut self.frame, row);
                    self.dispatch.push_row(node, &self.frame, row);
                }
                HoldAction::Hold(key) => {
                    let held = HeldPacket {
                        pool: self.dispatch.bufs.pool().clone(),
                        idx,
                        pos,
                        kept: HELD_COLUMNS.map(|col| self.frame.words(col.at())[row]),
                    };
                    keep(key, held);
                }
                HoldAction::Done => {
                    if pos & CHAINED != 0 {
                        free_members(&mut self.dispatch.bufs, idx);
                    }
                    self.dispatch.bufs.free(&[idx]);
                }
            }
        }
        self.dispatch.recycle(self.frame);
        Consumed(())
    }
}

impl<'a, I: Isa, X: Nexts> Output<'a, I, X> {
    /// A vector of held packets, in order: `more` is called until it returns none, or the vector is full. A packet of
    /// another pool is left out and freed.
    pub fn new_from_held(
        &mut self,
        mut more: impl FnMut() -> Option<HeldPacket>,
    ) -> NewVector<'_, I, X> {
        let mut fresh = self.alloc(0, 0);
        let size = fresh.dispatch.vector_size;
        let frame = &mut fresh.frame;
        for col in OPTIONAL_COLUMNS {
            frame.make_valid(col, 0);
        }
        while frame.n < size {
            let Some(held) = more() else { break };
            if !Arc::ptr_eq(&held.pool, fresh.dispatch.bufs.pool()) {
                continue;
            }
            let (idx, pos, kept) = held.into_row();
            let row = frame.n;
            frame.n += 1;
            frame.cols[IDX].words_mut(row + 1)[row] = idx;
            frame.cols[POS].words_mut(row + 1)[row] = pos;
            for (col, word) in HELD_COLUMNS.into_iter().zip(kept) {
                frame.cols[col.at()].words_mut(row + 1)[row] = word;
            }
        }
        fresh
    }
}

impl<I: Isa, X: Nexts> NewVector<'_, I, X> {
    /// Send each packet to the edge whose position `codes` names; a position that is no edge means the last edge.
    pub fn send_by(self, codes: &mut Column) -> usize {
        let edges = &self.raw.edges;
        for code in codes.words_mut(self.frame.n) {
            *code = u32::from(edges[(*code as usize).min(edges.len() - 1)].0);
        }
        self.send_each(codes)
    }

    /// Send each packet to the next feature of its arc.
    pub fn send_after(mut self, spot: ArcPosition) -> usize {
        let mut targets = std::mem::take(&mut self.dispatch.targets);
        for row in 0..self.frame.n {
            let node = self.dispatch.resume_after(spot, &mut self.frame, row);
            targets.words_mut(row + 1)[row] = u32::from(node.0);
        }
        let (frame, dispatch, isa) = self.release();
        let rows = frame.n;
        dispatch.split(isa, frame, targets.words(rows), |code| NodeId(code as u16));
        dispatch.targets = targets;
        rows
    }
}
