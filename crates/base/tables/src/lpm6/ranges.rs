//! The writer of a range table: prefixes in key order, divided into blocks, painted into the data for readers.
//!
//! Every block knows its *own* prefixes (those that start in it) and its *covers* (those that start before it and extend
//! into it), so that it can be painted without other data. An update edits the block where the prefix
//! starts and the covers of the blocks into which it extends, and repaints those blocks.

use std::sync::Arc;

use super::key::Key;
use super::view::{Block, LONGER, RANGES, RangeView, Segment};
use crate::Domain;
use crate::deferred::DeferredFree;

/// The number of ranges that a bulk load puts into a block: this leaves space for changes.
const FILL: usize = 46;
/// The maximum number of prefixes that start in one block. More than can start at one key, so that a fuller block can be split.
const OWN: usize = 144;
/// Two neighbours with at most this number of ranges together are merged.
const SPARSE: usize = RANGES / 2;

/// A prefix. A prefix that is one bit longer than its key marks a key below which longer prefixes exist;
/// its leaf is their number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Entry<K> {
    pub(super) start: K,
    pub(super) len: u8,
    pub(super) leaf: u32,
}

impl<K: Key> Entry<K> {
    fn last(&self) -> K {
        self.start.last(self.len.min(K::BITS))
    }

    pub(super) fn is_mark(&self) -> bool {
        self.len > K::BITS
    }

    fn answer(&self, covering: u32) -> u32 {
        if self.is_mark() {
            covering | LONGER
        } else {
            self.leaf
        }
    }

    pub(super) fn order(&self) -> (K, u8) {
        (self.start, self.len)
    }
}

/// The position of a block: segment and index.
#[derive(Clone, Copy)]
struct Slot(u32, u32);

struct Part<K> {
    own: Vec<Entry<K>>,
    covers: Vec<Entry<K>>,
    /// None before the first painting.
    slot: Option<Slot>,
    ranges: usize,
}

/// Reused buffers of [`Sweep::run`].
struct Sweep<K> {
    open: Vec<(K, u32)>,
    ranges: Vec<(K, u32)>,
}

impl<K: Key> Sweep<K> {
    /// Flattens nested prefixes to the ranges of `lo..=hi`. `covers` are nested, widest first, and all contain `lo`.
    fn run(&mut self, lo: K, hi: K, outside: u32, covers: &[Entry<K>], own: &[Entry<K>]) {
        self.ranges.clear();
        self.open.clear();
        let mut answer = outside;
        for cover in covers {
            self.open.push((cover.last(), answer));
            answer = cover.answer(answer);
        }
        self.emit(lo, answer);
        for entry in own {
            answer = self.close(entry.start, answer);
            self.open.push((entry.last(), answer));
            answer = entry.answer(answer);
            self.emit(entry.start, answer);
        }
        self.close(hi, answer);
    }

    /// Ends the prefixes that end before `key`; `open` contains each prefix's last key and the answer around the prefix.
    fn close(&mut self, key: K, mut answer: u32) -> u32 {
        while let Some(&(last, around)) = self.open.last()
            && last < key
        {
            self.open.pop();
            answer = around;
            if let Some(next) = last.next() {
                self.emit(next, answer);
            }
        }
        answer
    }

    fn emit(&mut self, start: K, answer: u32) {
        if self.ranges.last().is_some_and(|r| r.0 == start) {
            self.ranges.pop();
        }
        if self.ranges.last().is_none_or(|r| r.1 != answer) {
            self.ranges.push((start, answer));
        }
    }
}

/// A set of prefixes over keys, and their blocks for readers.
pub(super) struct Ranges<K: Key> {
    domain: Arc<Domain>,
    /// The answer where there is no prefix.
    outside: u32,
    starts: Vec<K>,
    parts: Vec<Part<K>>,
    segments: Vec<Arc<Segment<K>>>,
    free: Vec<Slot>,
    deferred: DeferredFree<Slot>,
    sweep: Sweep<K>,
    view: Arc<RangeView<K>>,
    /// The parts or segments differ from those of `view`.
    moved: bool,
    len: usize,
}

impl<K: Key> Ranges<K> {
    pub(super) fn new(domain: &Arc<Domain>, outside: u32) -> Self {
        let segment = Segment::new(1);
        let first = segment.at(0);
        // SAFETY: the segment is new, and no other reference to it exists.
        unsafe { first.write(Block::new(&[(K::ZERO, outside)])) };
        let segments = vec![Arc::new(segment)];
        let starts = vec![K::ZERO];
        // SAFETY: one start and one initialised block; `set_slot` and `collect` fulfil the rest of the contract.
        let view = unsafe { RangeView::new(&starts, [first].into_iter(), segments.clone()) };
        Self {
            domain: domain.clone(),
            outside,
            starts,
            parts: vec![Part {
                own: Vec::new(),
                covers: Vec::new(),
                slot: Some(Slot(0, 0)),
                ranges: 1,
            }],
            segments,
            free: Vec::new(),
            deferred: DeferredFree::new(),
            sweep: Sweep {
                open: Vec::new(),
                ranges: Vec::new(),
            },
            view: Arc::new(view),
            moved: false,
            len: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn view(&self) -> &Arc<RangeView<K>> {
        &self.view
    }

    /// All prefixes in order.
    pub(super) fn entries(&self) -> impl Iterator<Item = Entry<K>> {
        self.parts.iter().flat_map(|p| p.own.iter().copied())
    }

    fn part_of(&self, key: K) -> usize {
        self.starts.partition_point(|&s| s <= key) - 1
    }

    pub(super) fn get(&self, start: K, len: u8) -> Option<u32> {
        let own = &self.parts[self.part_of(start)].own;
        let i = own.binary_search_by_key(&(start, len), Entry::order).ok()?;
        Some(own[i].leaf)
    }

    /// Sets (`Some`) or removes (`None`) a prefix whose host bits are zero; returns its old leaf.
    /// If [`Ranges::refresh`] then returns true, the new view must be published.
    pub(super) fn change(&mut self, start: K, len: u8, leaf: Option<u32>) -> Option<u32> {
        self.collect();
        let first = self.part_of(start);
        let new = leaf.map(|leaf| Entry { start, len, leaf });
        let old = edit(&mut self.parts[first].own, (start, len), new);
        if old == leaf {
            return old;
        }
        self.len = self.len + usize::from(leaf.is_some()) - usize::from(old.is_some());
        let is_mark = len > K::BITS;
        if is_mark && old.is_some() && leaf.is_some() {
            return old;
        }
        if let (Some(_), Some(leaf)) = (old, leaf)
            && self.change_alone(first, start, len, leaf)
        {
            return old;
        }
        let last = self.part_of(start.last(len.min(K::BITS)));
        for part in &mut self.parts[first + 1..=last] {
            edit(&mut part.covers, (start, len), new);
        }
        self.repaint(first, last);
        if leaf.is_none() {
            self.merge_around(first);
        }
        old
    }

    /// Handles the most frequent update, a new leaf for a prefix without longer ones, by a single store if neither the
    /// old nor the new answer is that of a neighbour.
    fn change_alone(&self, i: usize, start: K, len: u8, leaf: u32) -> bool {
        let (part, end) = (&self.parts[i], start.last(len));
        let after = part.own.partition_point(|e| e.order() <= (start, len));
        let hi = self.starts.get(i + 1);
        let next = end.next().filter(|next| hi != Some(next));
        let inside =
            hi.is_none_or(|hi| end < *hi) && part.own.get(after).is_none_or(|e| e.start > end);
        let Some(slot) = part.slot.filter(|_| inside) else {
            return false;
        };
        // SAFETY: the block of a part is initialised, and only this thread writes blocks.
        let block = unsafe { &*self.at(slot) };
        block.set_range(part.ranges, self.starts[i], start, next, leaf)
    }

    /// Replaces all entries. The new ones are sorted and distinct.
    pub(super) fn load(&mut self, entries: &[Entry<K>]) {
        self.len = entries.len();
        // New memory in key order; the old blocks are freed with their last view.
        self.parts.clear();
        self.starts.clear();
        self.segments.clear();
        self.free.clear();
        self.deferred.clear(drop);
        self.cut(entries);
        self.add_segment(self.parts.len() + self.parts.len() / 8);
        self.repaint(0, self.parts.len() - 1);
    }

    /// Distributes all entries to new, unpainted parts.
    fn cut(&mut self, entries: &[Entry<K>]) {
        self.sweep.run(K::ZERO, K::MAX, self.outside, &[], entries);
        let ranges = std::mem::take(&mut self.sweep.ranges);
        let mut open: Vec<Entry<K>> = Vec::new();
        let mut seen = 0;
        let mut from = 0;
        self.add_part(K::ZERO, &[]);
        for group in entries.chunk_by(|a, b| a.start == b.start) {
            let start = group[0].start;
            open.retain(|e| e.last() >= start);
            let here = seen + ranges[seen..].partition_point(|r| r.0 < start);
            let own = self.parts.last().map_or(0, |p| p.own.len());
            if here - from > FILL || own + group.len() > OWN {
                self.add_part(start, &open);
                from = here;
            }
            seen = here;
            open.extend_from_slice(group);
            if let Some(part) = self.parts.last_mut() {
                part.own.extend_from_slice(group);
            }
        }
        self.sweep.ranges = ranges;
    }

    fn add_part(&mut self, start: K, covers: &[Entry<K>]) {
        if self.starts.last() == Some(&start) {
            return;
        }
        self.starts.push(start);
        self.parts.push(Part {
            own: Vec::new(),
            covers: covers.to_vec(),
            slot: None,
            ranges: 0,
        });
    }

    /// Paints parts `first` to `last`, and splits those that became too full.
    fn repaint(&mut self, first: usize, mut last: usize) {
        let mut i = first;
        while i <= last {
            let part = &self.parts[i];
            let hi = self.starts.get(i + 1).map_or(K::MAX, |s| *s);
            // One key past the end is valid as the limit of a part that has a successor: no range is emitted for it.
            self.sweep
                .run(self.starts[i], hi, self.outside, &part.covers, &part.own);
            if i + 1 < self.starts.len() && self.sweep.ranges.last().is_some_and(|r| r.0 == hi) {
                self.sweep.ranges.pop();
            }
            if let Some(at) = self.cut_at(i) {
                self.split(i, at);
                last += 1;
            } else {
                self.show(i);
                i += 1;
            }
        }
    }

    /// The key at which part `i`, which was just swept, must be split if it is too full.
    fn cut_at(&self, i: usize) -> Option<K> {
        let ranges = &self.sweep.ranges;
        if ranges.len() > RANGES {
            return Some(ranges[ranges.len() / 2].0);
        }
        let own = &self.parts[i].own;
        if own.len() <= OWN {
            return None;
        }
        let middle = own[own.len() / 2].start.max(own[0].start);
        let after = |e: &&Entry<K>| e.start > self.starts[i] && e.start >= middle;
        let before = |e: &&Entry<K>| e.start > self.starts[i];
        own.iter()
            .find(after)
            .or_else(|| own.iter().find(before))
            .map(|e| e.start)
    }

    fn split(&mut self, i: usize, at: K) {
        let part = &mut self.parts[i];
        let n = part.own.partition_point(|e| e.start < at);
        let right = part.own.split_off(n);
        let covers = part
            .covers
            .iter()
            .chain(&part.own)
            .filter(|e| e.last() >= at);
        let covers = covers.copied().collect();
        self.starts.insert(i + 1, at);
        self.parts.insert(
            i + 1,
            Part {
                own: right,
                covers,
                slot: None,
                ranges: 0,
            },
        );
        self.moved = true;
    }

    /// Makes the ranges that were just swept visible to readers as part `i`.
    fn show(&mut self, i: usize) {
        let old = self.parts[i].slot;
        self.parts[i].ranges = self.sweep.ranges.len();
        if let Some(slot) = old {
            // SAFETY: the block of a part is initialised, and only this thread writes blocks.
            let block = unsafe { &*self.at(slot) };
            if block.has_starts(&self.sweep.ranges) {
                return block.set_answers(&self.sweep.ranges);
            }
            self.deferred.push(slot);
        }
        let slot = self.take_slot();
        let block = self.at(slot);
        // SAFETY: a free slot is either new or has passed a grace period since it was unlinked: no reader can access it.
        unsafe { block.write(Block::new(&self.sweep.ranges)) };
        self.parts[i].slot = Some(slot);
        if !self.moved {
            // SAFETY: the block is initialised and in a segment of this view (a new segment sets `moved`).
            // The old block is in the deferred-free list and is collected in a later update.
            unsafe { self.view.replace(i, block) };
        }
    }

    fn merge_around(&mut self, i: usize) {
        let mergeable = |s: &Self, i: usize| {
            s.parts.get(i..i + 2).is_some_and(|pair| {
                pair[0].ranges + pair[1].ranges <= SPARSE
                    && pair[0].own.len() + pair[1].own.len() <= OWN / 2
            })
        };
        let left = if mergeable(self, i) {
            i
        } else if i > 0 && mergeable(self, i - 1) {
            i - 1
        } else {
            return;
        };
        let right = self.parts.remove(left + 1);
        self.starts.remove(left + 1);
        self.parts[left].own.extend(right.own);
        if let Some(slot) = right.slot {
            self.deferred.push(slot);
        }
        self.moved = true;
        self.repaint(left, left);
    }

    fn at(&self, slot: Slot) -> *mut Block<K> {
        self.segments[slot.0 as usize].at(slot.1 as usize)
    }

    fn take_slot(&mut self) -> Slot {
        loop {
            if let Some(slot) = self.free.pop() {
                return slot;
            }
            let have: usize = self.segments.iter().map(|s| s.len()).sum();
            self.add_segment((have / 8).max(8));
        }
    }

    fn add_segment(&mut self, blocks: usize) {
        let segment = self.segments.len() as u32;
        self.segments.push(Arc::new(Segment::new(blocks)));
        // Entries are popped from the end: this order allocates in address order.
        self.free
            .extend((0..blocks as u32).rev().map(|i| Slot(segment, i)));
        self.moved = true;
    }

    /// Frees slots whose grace period is over. Called between updates only, when no block is partly linked.
    fn collect(&mut self) {
        let free = &mut self.free;
        self.deferred.collect(&self.domain, |slot| free.push(slot));
    }

    /// Makes a new view if one is needed.
    pub(super) fn refresh(&mut self) -> bool {
        if !std::mem::take(&mut self.moved) {
            return false;
        }
        let blocks = self
            .parts
            .iter()
            .filter_map(|p| p.slot)
            .map(|slot| self.at(slot));
        // SAFETY: every part is painted after an update, so there is one initialised block per start, in
        // `segments`; `show` and `collect` fulfil the rest of the contract.
        self.view =
            Arc::new(unsafe { RangeView::new(&self.starts, blocks, self.segments.clone()) });
        true
    }
}

/// Sets or removes an entry of a sorted list; returns the old leaf.
fn edit<K: Key>(list: &mut Vec<Entry<K>>, order: (K, u8), new: Option<Entry<K>>) -> Option<u32> {
    match (list.binary_search_by_key(&order, Entry::order), new) {
        (Ok(i), Some(new)) => Some(std::mem::replace(&mut list[i], new).leaf),
        (Ok(i), None) => Some(list.remove(i).leaf),
        (Err(i), Some(new)) => {
            list.insert(i, new);
            None
        }
        (Err(_), None) => None,
    }
}
