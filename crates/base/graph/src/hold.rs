//! Packets that wait outside the graph: taken out of a vector by a slow node, kept by whoever waits for something (the
//! control thread, mostly), and given back to a source of the same pool.
//!
//! A [`Held`] packet is its row: it is in one place, and it counts as held until it is resumed. One that is forgotten
//! (its keeper is dropped with it inside) frees its buffers.

use crate::frame::{CHAINED, Col, IDX, POS};
use crate::packet::{first_part, free_members, members, walk};
use crate::{Column, Done, Fresh, Nexts, NodeId, Output, Packet, Spot, Vector};
use std::sync::Arc;
use volley_buf::{META, Pool, START};
use volley_simd::Isa;

/// The columns that a held packet keeps, besides index and position.
const KEPT: [Col; 5] = [Col::Len, Col::Rx, Col::Trace, Col::Offload, Col::Hash];
/// Those of them that not every frame has.
const TAGS: [Col; 3] = [Col::Trace, Col::Offload, Col::Hash];

/// A packet outside the graph.
#[must_use = "a held packet is given back to a source, or freed by being dropped"]
pub struct Held {
    pool: Arc<Pool>,
    idx: u32,
    pos: u32,
    kept: [u32; KEPT.len()],
}

impl Held {
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
    pub fn front(&self, back: usize) -> &[u8] {
        let at = (self.pos & !CHAINED) as usize;
        let back = back.min(at.saturating_sub(META));
        let n = first_part(&self.pool, (self.idx, self.pos), self.len()).1;
        // SAFETY: the buffer is this packet's; from `back` bytes in front of the position to the segment's end lies in its
        // slot.
        unsafe { std::slice::from_raw_parts(self.pool.at(self.idx, at - back), back + n) }
    }

    /// How far its position is behind where a fresh packet starts: see [`crate::PacketView::moved`].
    pub fn moved(&self) -> usize {
        ((self.pos & !CHAINED) as usize).saturating_sub(START)
    }

    /// Visit its segments in order.
    pub fn segments(&self, mut visit: impl FnMut(&[u8])) {
        let first = self.front(0);
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
    fn into_row(self) -> (u32, u32, [u32; KEPT.len()]) {
        let row = (self.idx, self.pos, self.kept);
        let mut this = std::mem::ManuallyDrop::new(self);
        // SAFETY: `this` is never dropped nor used again, so its share of the pool is given up exactly once.
        unsafe { std::ptr::drop_in_place(&mut this.pool) };
        row
    }
}

impl Drop for Held {
    /// Slow, and only where a keeper went away: not on a worker's way.
    fn drop(&mut self) {
        let mut bufs = self.pool.cache();
        if self.pos & CHAINED != 0 {
            free_members(&mut bufs, self.idx);
        }
        bufs.free(&[self.idx]);
    }
}

/// What becomes of a packet in [`Vector::part`].
pub enum Part<X, K> {
    /// It goes on by this edge.
    Send(X),
    /// It goes on along a feature arc behind this feature.
    Behind(Spot),
    /// It leaves the graph and waits; `K` is what its keeper is told.
    Hold(K),
    /// It has told what it was to tell, and is freed.
    Done,
}

impl<I: Isa, X: Nexts> Vector<'_, I, X> {
    /// The slow lane for packets that may have to wait: one at a time goes on, is held, or is done with. `keep` is handed
    /// each held packet at once, in order.
    pub fn part<K>(
        mut self,
        mut body: impl FnMut(&mut Packet<'_>) -> Part<X, K>,
        mut keep: impl FnMut(K, Held),
    ) -> Done {
        for col in TAGS {
            self.frame.require(col, 0);
        }
        for row in 0..self.frame.n {
            let mut packet = Packet {
                pool: self.lanes.bufs.pool(),
                frame: &mut self.frame,
                row,
            };
            let fate = body(&mut packet);
            let (idx, pos) = (self.frame.words(IDX)[row], self.frame.words(POS)[row]);
            match fate {
                Part::Send(next) => {
                    let edge = self.raw.edges[next.index()];
                    self.lanes.push_row(edge, &self.frame, row);
                }
                Part::Behind(spot) => {
                    let node = self.lanes.go_behind(spot, &mut self.frame, row);
                    self.lanes.push_row(node, &self.frame, row);
                }
                Part::Hold(key) => {
                    let held = Held {
                        pool: self.lanes.bufs.pool().clone(),
                        idx,
                        pos,
                        kept: KEPT.map(|col| self.frame.words(col as usize)[row]),
                    };
                    keep(key, held);
                }
                Part::Done => {
                    if pos & CHAINED != 0 {
                        free_members(&mut self.lanes.bufs, idx);
                    }
                    self.lanes.bufs.free(&[idx]);
                }
            }
        }
        self.lanes.recycle(self.frame);
        Done(())
    }
}

impl<'a, I: Isa, X: Nexts> Output<'a, I, X> {
    /// Packets that were held, in order: `more` is asked until it has none, or one vector is full. One of another pool is
    /// left out (and freed).
    pub fn resume_held(&mut self, mut more: impl FnMut() -> Option<Held>) -> Fresh<'_, I, X> {
        let mut fresh = self.alloc(0, 0);
        let size = fresh.lanes.vector_size;
        let frame = &mut fresh.frame;
        for col in TAGS {
            frame.require(col, 0);
        }
        while frame.n < size {
            let Some(held) = more() else { break };
            if !Arc::ptr_eq(&held.pool, fresh.lanes.bufs.pool()) {
                continue;
            }
            let (idx, pos, kept) = held.into_row();
            let row = frame.n;
            frame.n += 1;
            frame.cols[IDX].words_mut(row + 1)[row] = idx;
            frame.cols[POS].words_mut(row + 1)[row] = pos;
            for (col, word) in KEPT.into_iter().zip(kept) {
                frame.cols[col as usize].words_mut(row + 1)[row] = word;
            }
        }
        fresh
    }
}

impl<I: Isa, X: Nexts> Fresh<'_, I, X> {
    /// Send each packet by the edge whose position `codes` names; a position that is no edge takes the last edge.
    pub fn send_by(self, codes: &mut Column) -> usize {
        let edges = self.raw.edges;
        for code in codes.words_mut(self.frame.n) {
            *code = u32::from(edges[(*code as usize).min(edges.len() - 1)].0);
        }
        self.send_each(codes)
    }

    /// Each packet goes on along a feature arc behind a feature.
    pub fn send_behind(mut self, spot: Spot) -> usize {
        let mut targets = std::mem::take(&mut self.lanes.targets);
        for row in 0..self.frame.n {
            let node = self.lanes.go_behind(spot, &mut self.frame, row);
            targets.words_mut(row + 1)[row] = u32::from(node.0);
        }
        let (frame, lanes, isa) = self.release();
        let rows = frame.n;
        lanes.split(isa, frame, targets.words(rows), |code| NodeId(code as u16));
        lanes.targets = targets;
        rows
    }
}
