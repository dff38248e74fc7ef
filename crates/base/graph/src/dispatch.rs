//! What lies between the nodes of one worker: pending frames, spare frames, buffers, arcs and the tracer.

use crate::agenda::Holders;
use crate::arc::ArcTables;
use crate::column::Column;
use crate::frame::{Col, Frame, IDX, MANDATORY, POS, bits};
use crate::handoff::HandoffRings;
use crate::node_order::PendingNodes;
use crate::trace::Tracer;
use crate::{ArcPosition, NodeId};
use std::collections::VecDeque;
use std::ops::Range;
use volley_buf::Cache;
use volley_simd::{Bits, Isa, all_equal};

/// Up to so many rows are moved word by word rather than by passes over all columns. Other numbers were not tried.
const ROW_BY_ROW_MAX: usize = 12;

/// A node's waiting rows: full frames in order, then the open one that is being filled.
#[derive(Default)]
pub(crate) struct PendingFrames {
    full: VecDeque<Box<Frame>>,
    open: Option<Box<Frame>>,
}

/// Everything between the nodes of one worker.
pub(crate) struct DispatchState {
    pub(crate) queues: Vec<PendingFrames>,
    pub(crate) pending: PendingNodes,
    /// A whole frame on its way while nothing waits anywhere else: it runs next, and passes no queue.
    pub(crate) next_frame: Option<(NodeId, Box<Frame>)>,
    pub(crate) free_frames: Vec<Box<Frame>>,
    /// Most rows that a frame gets, and the rows that each has room for: as many or more.
    pub(crate) vector_size: usize,
    pub(crate) frame_capacity: usize,
    pub(crate) bufs: Cache,
    pub(crate) arcs: Box<ArcTables>,
    pub(crate) tracer: Tracer,
    pub(crate) handoff: HandoffRings,
    /// Where rows go that a feature arc lost track of.
    pub(crate) drop_node: NodeId,
    pub(crate) targets: Column,
    /// Where packets begin in the arena: see [`crate::Vector::words`].
    pub(crate) offsets: Box<[usize]>,
    /// Stages that have something to give back.
    pub(crate) holders: Holders,
    /// Some of them hold packets that must not be overtaken.
    pub(crate) holding: bool,
    /// Frames that had to be allocated while running: a sizing fault, shown in tests.
    pub(crate) frames_allocated: u64,
}

impl DispatchState {
    /// An empty frame.
    #[inline(always)]
    pub(crate) fn frame(&mut self) -> Box<Frame> {
        match self.free_frames.pop() {
            Some(frame) => frame,
            None => self.allocate_frame(),
        }
    }

    #[cold]
    fn allocate_frame(&mut self) -> Box<Frame> {
        self.frames_allocated += 1;
        Frame::new(self.frame_capacity)
    }

    /// Give an empty frame back.
    #[inline(always)]
    pub(crate) fn recycle(&mut self, mut frame: Box<Frame>) {
        frame.n = 0;
        frame.valid = MANDATORY;
        self.free_frames.push(frame);
    }

    /// The next frame to run, of the node that is first in graph order.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> Option<(NodeId, Box<Frame>)> {
        if let Some(handed) = self.next_frame.take() {
            return Some(handed);
        }
        let node = self.pending.first()?;
        let queue = &mut self.queues[node.index()];
        if let Some(full) = queue.full.pop_front() {
            // The open frame, which comes last, is there: rows go to `full` only when a new one is opened.
            return Some((node, full));
        }
        self.pending.clear(node);
        queue.open.take().map(|open| (node, open))
    }

    /// Hand a whole frame to `target`: moved when nothing waits there, appended otherwise.
    #[inline(always)]
    pub(crate) fn push_frame(&mut self, target: NodeId, frame: Box<Frame>) {
        if frame.n == 0 {
            return self.recycle(frame);
        }
        if self.next_frame.is_none() && self.pending.is_empty() {
            self.next_frame = Some((target, frame));
            return;
        }
        self.queue_next_frame();
        self.queue_frame(target, frame);
    }

    /// Something else waits as well from now on: the frame that was handed over gets in line.
    #[inline(always)]
    fn queue_next_frame(&mut self) {
        if let Some((node, frame)) = self.next_frame.take() {
            self.queue_frame(node, frame);
        }
    }

    #[inline(never)]
    fn queue_frame(&mut self, target: NodeId, frame: Box<Frame>) {
        let queue = &mut self.queues[target.index()];
        match &mut queue.open {
            None => queue.open = Some(frame),
            Some(open) if open.n + frame.n > self.vector_size => {
                queue.full.push_back(std::mem::replace(open, frame));
            }
            Some(open) => {
                append(open, &frame, 0..frame.n);
                self.recycle(frame);
            }
        }
        self.pending.set(target);
    }

    /// The frame of `target` that has room for `rows` more rows.
    #[inline(always)]
    fn open(&mut self, target: NodeId, rows: usize) -> &mut Frame {
        self.queue_next_frame();
        let fits = |open: &Frame, size: usize| open.n + rows <= size;
        if !self.queues[target.index()]
            .open
            .as_ref()
            .is_some_and(|o| fits(o, self.vector_size))
        {
            let fresh = self.frame();
            let queue = &mut self.queues[target.index()];
            if let Some(full) = queue.open.replace(fresh) {
                queue.full.push_back(full);
            }
            self.pending.set(target);
        }
        // The branch above left an open frame behind.
        self.queues[target.index()]
            .open
            .get_or_insert_with(|| Frame::new(0))
    }

    /// Append the rows of `frame` that `set` names to `target`.
    #[inline(always)]
    pub(crate) fn push_set<I: Isa>(&mut self, isa: I, target: NodeId, frame: &Frame, set: &Bits) {
        match set.count() {
            ..=ROW_BY_ROW_MAX => self.push_few(target, frame, set),
            _ => self.push_rows(isa, target, frame, set),
        }
    }

    /// The same by passes over whole columns.
    #[inline(always)]
    fn push_rows<I: Isa>(&mut self, isa: I, target: NodeId, frame: &Frame, set: &Bits) {
        let rows = set.count();
        let open = self.open(target, rows);
        let zero = open.common_columns(frame.valid);
        for col in bits(open.valid) {
            let at = open.n;
            let dst = &mut open.cols[col].all_mut()[at..];
            if zero & 1 << col != 0 {
                dst[..rows].fill(0);
            } else {
                isa.compress(set, frame.words(col), dst);
            }
        }
        open.n += rows;
    }

    /// Append one row of `frame` to `target`.
    pub(crate) fn push_row(&mut self, target: NodeId, frame: &Frame, row: usize) {
        self.push_each(target, frame, 1, std::iter::once(row));
    }

    /// Append `count` rows of `frame` to `target`, word by word: for a handful that is less work than passes over
    /// whole columns.
    #[inline(always)]
    fn push_each(
        &mut self,
        target: NodeId,
        frame: &Frame,
        count: usize,
        rows: impl Iterator<Item = usize> + Clone,
    ) {
        let open = self.open(target, count);
        let zero = open.common_columns(frame.valid);
        for col in bits(open.valid) {
            let dst = &mut open.cols[col].all_mut()[open.n..][..count];
            if zero & 1 << col != 0 {
                dst.fill(0);
                continue;
            }
            let src = frame.words(col);
            for (word, row) in dst.iter_mut().zip(rows.clone()) {
                *word = src[row];
            }
        }
        open.n += count;
    }

    /// The rows of `frame` that `set` names, a handful, to `target`.
    #[inline(never)]
    fn push_few(&mut self, target: NodeId, frame: &Frame, set: &Bits) {
        let (mut rows, mut count) = ([0; ROW_BY_ROW_MAX], 0);
        for (place, row) in rows.iter_mut().zip(set.iter()) {
            *place = row;
            count += 1;
        }
        self.push_each(target, frame, count, rows[..count].iter().copied());
    }

    /// Send each row of `frame` to the node that `target` names for its code; the frame is consumed.
    /// One code for all: the frame moves. So it does with the rows of a code that most rows have, once the others are out
    /// of it. Up to eight codes: one compress each, or row by row where a code has only a handful. More: row by row.
    #[inline(always)]
    pub(crate) fn split<I: Isa>(
        &mut self,
        isa: I,
        mut frame: Box<Frame>,
        codes: &[u32],
        target: impl Fn(u32) -> NodeId,
    ) {
        let Some(&first) = codes.first() else {
            return self.recycle(frame);
        };
        if all_equal(codes) {
            return self.push_frame(target(first), frame);
        }
        let (mut done, mut most) = (Bits::none(codes.len()), None);
        for _ in 0..8 {
            let Some(row) = done.first_missing() else {
                break;
            };
            let set = isa.rows_equal(codes, codes[row]);
            done = done.or(&set);
            if 2 * set.count() > codes.len() {
                most = Some((target(codes[row]), set));
            } else {
                self.push_set(isa, target(codes[row]), &frame, &set);
            }
        }
        for row in done.inverted().iter() {
            self.push_row(target(codes[row]), &frame, row);
        }
        match most {
            Some((target, set)) => {
                frame.retain_rows(isa, &set);
                self.push_frame(target, frame);
            }
            None => self.recycle(frame),
        }
    }

    /// Where a row goes on along a feature arc behind a feature; its place there is noted.
    pub(crate) fn resume_after(&self, spot: ArcPosition, frame: &mut Frame, row: usize) -> NodeId {
        frame.make_valid(Col::Feature, 0);
        let interface = frame.words(Col::Rx as usize)[row];
        let lost = (self.drop_node, 0);
        let (node, place) = self.arcs.after(spot, interface).unwrap_or(lost);
        frame.cols[Col::Feature as usize].words_mut(row + 1)[row] = place;
        node
    }

    /// Free the buffers of all rows of `frame`, chains with all their members.
    #[inline(always)]
    pub(crate) fn free(&mut self, frame: Box<Frame>) {
        if volley_simd::or_all(frame.words(POS)) & crate::frame::CHAINED != 0 {
            self.free_members(&frame);
        }
        self.bufs.free(frame.words(IDX));
        self.recycle(frame);
    }

    #[cold]
    fn free_members(&mut self, frame: &Frame) {
        for (&idx, &pos) in frame.words(IDX).iter().zip(frame.words(POS)) {
            if pos & crate::frame::CHAINED != 0 {
                crate::packet::free_members(&mut self.bufs, idx);
            }
        }
    }
}

/// Append some rows of `frame` to `open`, which has room.
#[inline(always)]
pub(crate) fn append(open: &mut Frame, frame: &Frame, rows: Range<usize>) {
    let zero = open.common_columns(frame.valid);
    for col in bits(open.valid) {
        let dst = &mut open.cols[col].all_mut()[open.n..][..rows.len()];
        if zero & 1 << col != 0 {
            dst.fill(0);
        } else {
            dst.copy_from_slice(&frame.words(col)[rows.clone()]);
        }
    }
    open.n += rows.len();
}
