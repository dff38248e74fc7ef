//! The data that IPv6 lookups read: ranges of keys, in blocks under a small index.
//!
//! The prefixes are flattened to ranges; a range begins where the answer changes. About 46 (at most 54) consecutive
//! ranges share a *block*: one line of 8 separators, then up to 9 lines of 5 range starts and 6 answers each, so
//! that the last comparison and the answer cost one cache line together. An implicit 9-ary tree, a cache line per node, is
//! the index of the blocks. It is rebuilt (some ten microseconds) when a block is split or merged.
//!
//! The keys of a block never change while a reader can find it: an update writes another block and replaces the
//! pointer. If only answers change, they are stored in place, so that every address changes from its old to its new answer.
//!
//! Bounds are stored as "start minus one", so that a single greater-than comparison suffices, the only one that AVX2 has.

use std::cell::UnsafeCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use volley_simd::{Isa, prefetch};

use super::key::{Key, above};
use crate::pages::{Pages, Zeroed};

/// Separators in a node.
const KEYS: usize = 8;
const WAYS: usize = KEYS + 1;
/// Range starts in a line.
const LINE_KEYS: usize = 5;
const LINE_RANGES: usize = LINE_KEYS + 1;
/// The maximum number of ranges of a block.
pub(super) const RANGES: usize = WAYS * LINE_RANGES;
/// The flag of an answer for which a longer prefix may exist; the other bits are the answer if none matches.
pub(super) const LONGER: u32 = 1 << 31;
/// The number of keys between a prefetch and its use: work for about one memory latency.
const STRIP: usize = 64;

/// A node of the index: one cache line of sorted bounds.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct Node<K: Key>([K::Stored; KEYS]);

#[repr(C, align(64))]
struct Line<K: Key> {
    keys: [K::Stored; LINE_KEYS],
    answers: [AtomicU32; LINE_RANGES],
}

/// Up to [`RANGES`] consecutive ranges.
#[repr(C, align(64))]
pub(super) struct Block<K: Key> {
    separators: Node<K>,
    lines: [Line<K>; WAYS],
}

const _: () = assert!(size_of::<Line<u64>>() == 64 && size_of::<Block<u64>>() == 640);

// SAFETY: integers and atomics: all-zero is a value, nothing needs dropping, alignment 64.
unsafe impl<K: Key> Zeroed for UnsafeCell<Block<K>> {}

impl<K: Key> Block<K> {
    /// The block of `ranges` (start, answer), sorted, at most [`RANGES`]; the first start is implied.
    pub(super) fn new(ranges: &[(K, u32)]) -> Self {
        let bound = |i: usize| ranges.get(i + 1).map_or(K::PAD, |r| r.0.bound());
        let answer = |i: usize| AtomicU32::new(ranges.get(i).map_or(0, |r| r.1));
        Self {
            separators: Node(std::array::from_fn(|i| bound(i * LINE_RANGES + LINE_KEYS))),
            lines: std::array::from_fn(|c| Line {
                keys: std::array::from_fn(|k| bound(c * LINE_RANGES + k)),
                answers: std::array::from_fn(|k| answer(c * LINE_RANGES + k)),
            }),
        }
    }

    /// Whether the block has exactly the starts of `ranges`.
    pub(super) fn has_starts(&self, ranges: &[(K, u32)]) -> bool {
        (1..RANGES).all(|i| self.bound(i - 1) == ranges.get(i).map_or(K::PAD, |r| r.0.bound()))
    }

    /// The bound above range `i`: the start of range `i + 1`.
    fn bound(&self, i: usize) -> K::Stored {
        let (c, k) = (i / LINE_RANGES, i % LINE_RANGES);
        if k == LINE_KEYS {
            self.separators.0[c]
        } else {
            self.lines[c].keys[k]
        }
    }

    fn answer(&self, i: usize) -> &AtomicU32 {
        &self.lines[i / LINE_RANGES].answers[i % LINE_RANGES]
    }

    /// Gives `start..next` a new answer if it is exactly one of the block's `ranges` ranges and stays one,
    /// because its neighbours have other answers. `next` is `None` at the end of the block.
    pub(super) fn set_range(
        &self,
        ranges: usize,
        lo: K,
        start: K,
        next: Option<K>,
        answer: u32,
    ) -> bool {
        let x = start.stored();
        let c = above(&self.separators.0, x);
        let i = c * LINE_RANGES + above(&self.lines[c].keys, x);
        let differs = |i: usize| self.answer(i).load(Ordering::Relaxed) != answer;
        let begins = if i == 0 {
            start == lo
        } else {
            self.bound(i - 1) == start.bound() && differs(i - 1)
        };
        let ends = match next {
            Some(next) => i + 1 < ranges && self.bound(i) == next.bound() && differs(i + 1),
            None => i + 1 == ranges,
        };
        if begins && ends {
            self.answer(i).store(answer, Ordering::Release);
        }
        begins && ends
    }

    /// Replaces the answers that differ, one at a time.
    pub(super) fn set_answers(&self, ranges: &[(K, u32)]) {
        let answers = self.lines.iter().flat_map(|l| &l.answers);
        for (own, &(_, answer)) in answers.zip(ranges) {
            if own.load(Ordering::Relaxed) != answer {
                own.store(answer, Ordering::Release);
            }
        }
    }
}

impl<K: Key> Line<K> {
    #[inline(always)]
    fn lookup(&self, x: K::Stored) -> u32 {
        self.answers[above(&self.keys, x)].load(Ordering::Acquire)
    }
}

/// Memory for blocks.
pub(super) struct Segment<K: Key>(Pages<UnsafeCell<Block<K>>>);

// SAFETY: only the single writer writes a block, while no reader can reach it (a new slot, or one whose grace
// period is over); after its publication the block is shared read-only (answers: atomics).
unsafe impl<K: Key> Sync for Segment<K> {}
// SAFETY: plain memory without ties to a thread.
unsafe impl<K: Key> Send for Segment<K> {}

impl<K: Key> Segment<K> {
    pub(super) fn new(blocks: usize) -> Self {
        Self(Pages::new(blocks))
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The address of block `i`. Valid as long as the segment.
    pub(super) fn at(&self, i: usize) -> *mut Block<K> {
        self.0[i].get()
    }
}

/// One state of a range table's index, over blocks that may change meanwhile.
pub(super) struct RangeView<K: Key> {
    /// Levels of the index, top first.
    levels: Vec<Box<[Node<K>]>>,
    /// In key order; always valid pointers into `segments`, which live as long as this view.
    blocks: Box<[AtomicPtr<Block<K>>]>,
    segments: Vec<Arc<Segment<K>>>,
}

impl<K: Key> RangeView<K> {
    /// The view of blocks that begin at `starts` (sorted, the first is zero).
    ///
    /// # Safety
    /// `blocks` has one pointer per start, each to an initialised block in `segments`. A caller of [`RangeView::replace`]
    /// keeps this true, and does not write to a block or reuse it before a grace period has
    /// passed after the last pointer to it was replaced.
    pub(super) unsafe fn new(
        starts: &[K],
        blocks: impl Iterator<Item = *mut Block<K>>,
        segments: Vec<Arc<Segment<K>>>,
    ) -> Self {
        let bounds = &starts[1..];
        let mut unit = 1;
        let mut levels = Vec::new();
        // Bottom up: level by level, a node's separators are `unit` bounds apart.
        while unit <= bounds.len() {
            let nodes = bounds.len() / (WAYS * unit) + 1;
            let bound = |i: usize| bounds.get(i).map_or(K::PAD, |k| k.bound());
            let node = |n: usize| {
                Node(std::array::from_fn(|j| {
                    bound((n * WAYS + j + 1) * unit - 1)
                }))
            };
            levels.push((0..nodes).map(node).collect());
            unit *= WAYS;
        }
        levels.reverse();
        Self {
            levels,
            blocks: blocks.map(AtomicPtr::new).collect(),
            segments,
        }
    }

    /// Publishes a rewritten block. The safety contract of [`RangeView::new`] holds.
    pub(super) unsafe fn replace(&self, i: usize, block: *mut Block<K>) {
        self.blocks[i].store(block, Ordering::Release);
    }

    pub(super) fn bytes(&self) -> usize {
        let levels: usize = self.levels.iter().map(|l| size_of_val(&**l)).sum();
        let blocks: usize = self.segments.iter().map(|s| s.0.bytes()).sum();
        levels + size_of_val(&*self.blocks) + blocks
    }

    #[inline(always)]
    fn block(&self, i: usize) -> &Block<K> {
        // SAFETY: by the contract of `new` the pointer is to an initialised block in `segments`; its keys are not
        // written while it can be reached from here plus a grace period, which the caller's guard prevents from ending.
        unsafe { &*self.blocks[i].load(Ordering::Acquire) }
    }

    #[inline(always)]
    pub(super) fn lookup(&self, key: K) -> u32 {
        let x = key.stored();
        let block = self.block(
            self.levels
                .iter()
                .fold(0, |at, level| Self::step(level, at, x)),
        );
        block.lines[above(&block.separators.0, x)].lookup(x)
    }

    /// Prefetches the node of the index's last level that a lookup needs: the levels above stay in the cache.
    #[inline(always)]
    pub(super) fn prefetch(&self, key: K) {
        let x = key.stored();
        if let [above @ .., last] = &*self.levels {
            let at = above.iter().fold(0, |at, level| Self::step(level, at, x));
            prefetch(last.as_ptr().wrapping_add(at));
        }
    }

    /// Descends one level.
    #[inline(always)]
    fn step(level: &[Node<K>], at: usize, x: K::Stored) -> usize {
        at * WAYS + above(&level[at].0, x)
    }

    /// Descends two levels with all keys: enough work to hide the latency, and few enough instructions to overlap many
    /// keys. `then` gets the new position of each key.
    #[inline(always)]
    fn descend<I: Isa>(
        isa: I,
        [first, second]: [&[Node<K>]; 2],
        xs: &[K::Stored],
        at: &mut [u32],
        mut then: impl FnMut(usize, usize),
    ) {
        for (row, (&x, at)) in xs.iter().zip(at).enumerate() {
            let to = Self::down(isa, second, Self::down(isa, first, *at as usize, x), x);
            then(row, to);
            *at = to as u32;
        }
    }

    /// [`RangeView::step`] for one of many keys.
    #[inline(always)]
    fn down<I: Isa>(isa: I, level: &[Node<K>], at: usize, x: K::Stored) -> usize {
        debug_assert!(at < level.len());
        // SAFETY: a level has a node for every position to which the level above leads: padding bounds are never exceeded, so
        // that only real bounds are counted.
        let node = unsafe { level.get_unchecked(at) };
        at * WAYS + K::above(isa, &node.0, x)
    }

    /// The address of block `i`; prefetches its first line.
    #[inline(always)]
    fn fetch(&self, i: usize) -> *const Block<K> {
        debug_assert!(i < self.blocks.len());
        // SAFETY: as in `down`: the last level leads to as many positions as there are blocks.
        let block = unsafe { self.blocks.get_unchecked(i) }.load(Ordering::Acquire);
        prefetch(block);
        block
    }

    /// Looks up at most [`STRIP`] keys, a level or two at a time for all; returns the union of the answers' bits.
    #[inline(always)]
    fn lookup_strip<I: Isa>(&self, isa: I, keys: &[K], answers: &mut [u32]) -> u32 {
        let n = keys.len().min(answers.len()).min(STRIP);
        let mut xs = [K::ZERO.stored(); STRIP];
        xs.iter_mut().zip(keys).for_each(|(x, k)| *x = k.stored());
        let (xs, mut at) = (&xs[..n], [0u32; STRIP]);
        let at = &mut at[..n];
        let mut blocks = [self.fetch(0); STRIP];
        let blocks = &mut blocks[..n];
        let mut levels = &*self.levels;
        while let [first, second, rest @ ..] = levels {
            let pair = [&**first, &**second];
            match rest.first() {
                Some(next) => {
                    let next = next.as_ptr();
                    Self::descend(isa, pair, xs, at, |_, to| prefetch(next.wrapping_add(to)));
                }
                None => Self::descend(isa, pair, xs, at, |row, to| blocks[row] = self.fetch(to)),
            }
            levels = rest;
        }
        if let [last] = levels {
            for ((&x, &at), block) in xs.iter().zip(&*at).zip(blocks.iter_mut()) {
                *block = self.fetch(Self::down(isa, last, at as usize, x));
            }
        }
        let mut lines = [&raw const self.block(0).lines[0]; STRIP];
        let lines = &mut lines[..n];
        for ((&x, &block), line) in xs.iter().zip(&*blocks).zip(lines.iter_mut()) {
            // SAFETY: as in `block`; eight separators lead to nine lines.
            *line = unsafe {
                let block = &*block;
                block
                    .lines
                    .as_ptr()
                    .add(K::above(isa, &block.separators.0, x))
            };
            prefetch(*line);
        }
        let mut any = 0;
        for ((&x, &line), answer) in xs.iter().zip(&*lines).zip(answers) {
            // SAFETY: the line belongs to a block, see above; five keys lead to six answers.
            *answer = unsafe {
                let line = &*line;
                line.answers.get_unchecked(K::above(isa, &line.keys, x))
            }
            .load(Ordering::Acquire);
            any |= *answer;
        }
        any
    }
}

/// The reader's side of one IPv6 table. Get it from [`crate::Lpm6Snap::read`].
pub struct Lpm6View {
    /// Prefixes up to /64, by the upper 64 bits.
    pub(super) upper: Arc<RangeView<u64>>,
    /// Longer prefixes, by the whole address; [`LONGER`] where there is none.
    pub(super) whole: Arc<RangeView<u128>>,
}

/// The whole address as one number.
pub(super) fn join(hi: u64, lo: u64) -> u128 {
    u128::from(hi) << 64 | u128::from(lo)
}

impl Lpm6View {
    /// The bytes that readers may access.
    pub fn bytes(&self) -> usize {
        self.upper.bytes() + self.whole.bytes()
    }

    /// Prefetches the data for a lookup of this address (two halves in host byte order).
    #[inline(always)]
    pub fn prefetch(&self, hi: u64, _lo: u64) {
        self.upper.prefetch(hi);
    }

    /// The leaf of the longest prefix that contains the address; 0 if there is none.
    #[inline(always)]
    pub fn lookup(&self, hi: u64, lo: u64) -> u32 {
        let answer = self.upper.lookup(hi);
        if answer & LONGER == 0 {
            answer
        } else {
            self.longer(answer, hi, lo)
        }
    }

    /// Looks up a vector: `leaf[i]` becomes the answer for `(hi[i], lo(i))`, as [`Lpm6View::lookup`] returns it. `lo` is
    /// called only where prefixes longer than /64 exist. The shorter slice determines the number of lookups.
    #[inline(always)]
    pub fn lookup_batch<I: Isa>(
        &self,
        isa: I,
        hi: &[u64],
        lo: impl Fn(usize) -> u64,
        leaf: &mut [u32],
    ) {
        let strips = hi.chunks(STRIP).zip(leaf.chunks_mut(STRIP));
        for (strip, (hi, leaf)) in strips.enumerate() {
            let n = hi.len().min(leaf.len());
            let (hi, leaf) = (&hi[..n], &mut leaf[..n]);
            if self.upper.lookup_strip(isa, hi, leaf) & LONGER != 0 {
                for (row, (&hi, leaf)) in hi.iter().zip(leaf).enumerate() {
                    if *leaf & LONGER != 0 {
                        *leaf = self.longer(*leaf, hi, lo(strip * STRIP + row));
                    }
                }
            }
        }
    }

    /// Looks an address up among the longer prefixes.
    #[inline(always)]
    fn longer(&self, answer: u32, hi: u64, lo: u64) -> u32 {
        let longer = self.whole.lookup(join(hi, lo));
        if longer & LONGER == 0 {
            longer
        } else {
            answer & !LONGER
        }
    }
}
