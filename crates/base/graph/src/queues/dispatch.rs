//! The state between the nodes of one worker: pending frames, free frames, buffers, arcs and the tracer.

use crate::data::col::{Col, ColumnSet, MANDATORY};
use crate::data::column::Column;
use crate::data::frame::{CHAINED, Frame, IDX, POS, bits};
use crate::data::ids::NodeId;
use crate::data::packet;
use crate::data::stats::{NodeStats, add_relaxed};
use crate::queues::arcs::{ArcPosition, ArcTables, RECEIVE};
use crate::queues::handoff::HandoffRings;
use crate::queues::holders::Holders;
use crate::queues::meter::Meter;
use crate::queues::pending_nodes::PendingNodes;
use crate::queues::trace::Tracer;
use std::collections::VecDeque;
use std::ops::Range;
use volley_buf::Cache;
use volley_simd::{Bits, Isa, all_equal};

/// Up to this number of rows are moved word by word instead of by passes over all columns. Other limits were not
/// measured.
const ROW_BY_ROW_MAX: usize = 12;

/// The pending rows of a node: full frames in order, then the open frame.
#[derive(Default)]
pub(crate) struct PendingFrames {
    full: VecDeque<Box<Frame>>,
    open: Option<Box<Frame>>,
}

/// The state between the nodes of one worker.
pub(crate) struct Dispatch {
    pub(crate) queues: Vec<PendingFrames>,
    pub(crate) pending: PendingNodes,
    /// A whole frame for a node while no other frame is pending: it runs next and bypasses the queue.
    pub(crate) next_frame: Option<(NodeId, Box<Frame>)>,
    pub(crate) free_frames: Vec<Box<Frame>>,
    /// The maximum number of rows of a frame, and the capacity of frames in rows, which is the same or greater.
    pub(crate) vector_size: usize,
    pub(crate) frame_capacity: usize,
    pub(crate) bufs: Cache,
    pub(crate) arcs: Box<ArcTables>,
    pub(crate) tracer: Tracer,
    pub(crate) handoff: HandoffRings,
    /// The node for rows whose position on a feature arc is not known.
    pub(crate) drop_node: NodeId,
    pub(crate) targets: Column,
    /// The offset of packets in the arena: see [`crate::Vector::words`].
    pub(crate) offsets: Box<[usize]>,
    /// Stages with packets to release.
    pub(crate) holders: Holders,
    /// Stages among them whose packets must not be overtaken.
    pub(crate) holding: bool,
    /// The counters of the worker's thread, while events of nodes are counted.
    pub(crate) meter: Option<Box<Meter>>,
    /// Frames that were allocated while running, because the capacity was too small; tests check that there are none.
    pub(crate) frames_allocated: u64,
}

impl Dispatch {
    /// Take an empty frame.
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

    /// Return an empty frame.
    #[inline(always)]
    pub(crate) fn recycle(&mut self, mut frame: Box<Frame>) {
        frame.n = 0;
        frame.valid = MANDATORY;
        frame.declared = ColumnSet::ALL;
        self.free_frames.push(frame);
    }

    /// Add free frames, up to the capacity of the list.
    pub(crate) fn add_frames(&mut self, spare: &mut Vec<Box<Frame>>) {
        let room = self.free_frames.capacity() - self.free_frames.len();
        let at = spare.len().saturating_sub(room);
        self.free_frames.extend(spare.drain(at..));
    }

    /// The next frame to run: a frame of the first pending node in graph order.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> Option<(NodeId, Box<Frame>)> {
        if let Some(handed) = self.next_frame.take() {
            return Some(handed);
        }
        let node = self.pending.first()?;
        let queue = &mut self.queues[node.index()];
        if let Some(full) = queue.full.pop_front() {
            // An open frame follows: rows move to `full` only when a new frame is opened.
            return Some((node, full));
        }
        self.pending.clear(node);
        queue.open.take().map(|open| (node, open))
    }

    /// Send a whole frame to `target`: it is moved when no rows are pending there, and appended otherwise.
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

    /// Queue the frame that bypassed the queue, because another frame becomes pending.
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

    /// The frame of `target` with free space for `rows` more rows.
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
        // The branch above left an open frame.
        self.queues[target.index()]
            .open
            .get_or_insert_with(|| Frame::new(0))
    }

    /// Append the rows of `frame` in `set` to `target`.
    #[inline(always)]
    pub(crate) fn push_set<I: Isa>(&mut self, isa: I, target: NodeId, frame: &Frame, set: &Bits) {
        match set.count() {
            ..=ROW_BY_ROW_MAX => self.push_few(target, frame, set),
            _ => self.push_rows(isa, target, frame, set),
        }
    }

    /// As [`Self::push_set`], by passes over whole columns.
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

    /// Append `count` rows of `frame` to `target`, word by word: for few rows this is faster than passes over whole
    /// columns.
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

    /// Append the few rows of `frame` in `set` to `target`.
    #[inline(never)]
    fn push_few(&mut self, target: NodeId, frame: &Frame, set: &Bits) {
        let (mut rows, mut count) = ([0; ROW_BY_ROW_MAX], 0);
        for (place, row) in rows.iter_mut().zip(set.iter()) {
            *place = row;
            count += 1;
        }
        self.push_each(target, frame, count, rows[..count].iter().copied());
    }

    /// Send each row of `frame` to the node that `target` names for its code. The frame is consumed. With one code the frame
    /// itself is moved; with more codes it is moved for the code of most rows, after the other rows were copied. Up to eight
    /// codes are handled by one compress each, or row by row where a code has few rows; more codes are handled row by row.
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

    /// The first node of the packets that `interface` received.
    #[inline(always)]
    pub(crate) fn receiver(&self, interface: u32) -> NodeId {
        self.arcs.receiver(interface).unwrap_or(self.drop_node)
    }

    /// The node at the end of the arc of received packets.
    #[inline(always)]
    pub(crate) fn receive_end(&self) -> NodeId {
        self.arcs.receive_end().unwrap_or(self.drop_node)
    }

    /// The node behind `node` on the arc of received packets, for packets of `interface`.
    #[inline(always)]
    pub(crate) fn behind_on_receive(&self, node: NodeId, interface: u32) -> NodeId {
        let spot = ArcPosition { arc: RECEIVE, node };
        let behind = self.arcs.after(spot, interface);
        behind.map_or(self.drop_node, |(node, _)| node)
    }

    /// The next node on a feature arc after a feature; the position on the arc is written to the row.
    pub(crate) fn resume_after(&self, spot: ArcPosition, frame: &mut Frame, row: usize) -> NodeId {
        frame.make_valid(Col::FEATURE, 0);
        let interface = frame.words(Col::RX.at())[row];
        let lost = (self.drop_node, 0);
        let (node, place) = self.arcs.after(spot, interface).unwrap_or(lost);
        frame.cols[Col::FEATURE.at()].words_mut(row + 1)[row] = place;
        node
    }

    /// Send all packets of a frame to the drop node, for a reason that `stats` counts at `node`.
    #[cold]
    pub(crate) fn drop_frame(
        &mut self,
        node: NodeId,
        counter: usize,
        stats: &NodeStats,
        mut frame: Box<Frame>,
    ) {
        if let Some(cell) = stats.counters.get(counter) {
            add_relaxed(cell, frame.n as u64);
        }
        let (n, reason) = (frame.n, node.reason(counter));
        frame.valid |= Col::ERR.bit();
        frame.cols[Col::ERR.at()].words_mut(n).fill(reason);
        self.push_frame(self.drop_node, frame);
    }

    /// Free the buffers of all rows of `frame`, including all members of chains.
    #[inline(always)]
    pub(crate) fn free(&mut self, frame: Box<Frame>) {
        if volley_simd::or_all(frame.words(POS)) & CHAINED != 0 {
            self.free_members(&frame);
        }
        self.bufs.free(frame.words(IDX));
        self.recycle(frame);
    }

    #[cold]
    fn free_members(&mut self, frame: &Frame) {
        for (&idx, &pos) in frame.words(IDX).iter().zip(frame.words(POS)) {
            if pos & CHAINED != 0 {
                packet::free_members(&mut self.bufs, idx);
            }
        }
    }
}

impl Dispatch {
    /// Hand a whole frame off to a worker. Returns the frame when the ring is full.
    #[inline(always)]
    pub(crate) fn handoff_frame(
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

    /// Begin an epoch: see [`crate::StageCx::begin_epoch`].
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
        frame.valid |= Col::ERR.bit();
        frame.cols[Col::ERR.at()].words_mut(n).fill(reason);
        self.push_frame(drop, frame);
    }
}

/// Append some rows of `frame` to `open`, which has free space for them.
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
