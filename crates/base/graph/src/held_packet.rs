//! Packets that wait outside the graph: taken out of a vector by a slow node, kept by whoever waits for something (the
//! control thread, mostly), and given back to a source of the same pool.
//!
//! A [`HeldPacket`] is its row: it is in one place, and it counts as held until it is resumed. One that is forgotten
//! (its keeper is dropped with it inside) frees its buffers.

use crate::frame::{CHAINED, Col, IDX, POS};
use crate::packet::{first_part, free_members, members, walk};
use crate::{ArcPosition, Column, Consumed, NewVector, Nexts, NodeId, Output, Packet, Vector};
use std::sync::Arc;
use volley_buf::{META, Pool, START};
use volley_simd::Isa;

/// The columns that a held packet keeps, besides index and position.
const HELD_COLUMNS: [Col; 5] = [Col::Len, Col::Rx, Col::Trace, Col::Offload, Col::Hash];
/// Those of them that not every frame has.
const OPTIONAL_COLUMNS: [Col; 3] = [Col::Trace, Col::Offload, Col::Hash];

/// A packet outside the graph.
#[must_use = "a held packet is given back to a source, or freed by being dropped"]
pub struct HeldPacket {
    pool: Arc<Pool>,
    idx: u32,
    pos: u32,
    kept: [u32; HELD_COLUMNS.len()],
}

impl HeldPacket {
    /// The interface that it came in by.
    pub fn rx(&self) -> u32 {
        self.kept[1]
    }

    /// Bytes from its position on.
    pub fn len(&self) -> usize {
        self.kept[0] as usize
    }

    /// How many buffers it takes.
    pub fn buffers(&self) -> usize {
        if self.pos & CHAINED == 0 {
            return 1;
        }
        1 + members(&self.pool, self.idx)
    }

    /// Whether nothing is left of it.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number that its trace goes by, 0 for none: what is made of it can go by the same.
    pub fn trace(&self) -> u32 {
        self.kept[2]
    }

    /// Its first segment from `back` bytes in front of its position, as far as the headroom goes.
    pub fn bytes_before(&self, back: usize) -> &[u8] {
        let at = (self.pos & !CHAINED) as usize;
        let back = back.min(at.saturating_sub(META));
        let n = first_part(&self.pool, (self.idx, self.pos), self.len()).1;
        // SAFETY: the buffer is this packet's; from `back` bytes in front of the position to the segment's end lies in its
        // slot.
        unsafe { std::slice::from_raw_parts(self.pool.at(self.idx, at - back), back + n) }
    }

    /// How far its position is behind where a fresh packet starts: see [`crate::PacketView::moved`].
    pub fn offset(&self) -> usize {
        ((self.pos & !CHAINED) as usize).saturating_sub(START)
    }

    /// Visit its segments in order.
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

    /// Its columns, for a frame that owns it from now on.
    fn into_row(self) -> (u32, u32, [u32; HELD_COLUMNS.len()]) {
        let row = (self.idx, self.pos, self.kept);
        let mut this = std::mem::ManuallyDrop::new(self);
        // SAFETY: `this` is never dropped nor used again, so its share of the pool is given up exactly once.
        unsafe { std::ptr::drop_in_place(&mut this.pool) };
        row
    }
}

impl Drop for HeldPacket {
    /// Slow, and only where a keeper went away: not on a worker's way.
    fn drop(&mut self) {
        let mut bufs = self.pool.cache();
        if self.pos & CHAINED != 0 {
            free_members(&mut bufs, self.idx);
        }
        bufs.free(&[self.idx]);
    }
}

/// What becomes of a packet in [`Vector::each_or_hold`].
pub enum HoldAction<X, K> {
    /// It goes on by this edge.
    Send(X),
    /// It goes on along a feature arc behind this feature.
    ResumeAfter(ArcPosition),
    /// It leaves the graph and waits; `K` is what its keeper is told.
    Hold(K),
    /// It has told what it was to tell, and is freed.
    Done,
}

impl<I: Isa, X: Nexts> Vector<'_, I, X> {
    /// The slow lane for packets that may have to wait: one at a time goes on, is held, or is done with. `keep` is handed
    /// each held packet at once, in order.
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
            let fate = body(&mut packet);
            let (idx, pos) = (self.frame.words(IDX)[row], self.frame.words(POS)[row]);
            match fate {
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
                        kept: HELD_COLUMNS.map(|col| self.frame.words(col as usize)[row]),
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
    /// Packets that were held, in order: `more` is asked until it has none, or one vector is full. One of another pool is
    /// left out (and freed).
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
                frame.cols[col as usize].words_mut(row + 1)[row] = word;
            }
        }
        fresh
    }
}

impl<I: Isa, X: Nexts> NewVector<'_, I, X> {
    /// Send each packet by the edge whose position `codes` names; a position that is no edge takes the last edge.
    pub fn send_by(self, codes: &mut Column) -> usize {
        let edges = self.raw.edges;
        for code in codes.words_mut(self.frame.n) {
            *code = u32::from(edges[(*code as usize).min(edges.len() - 1)].0);
        }
        self.send_each(codes)
    }

    /// Each packet goes on along a feature arc behind a feature.
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
