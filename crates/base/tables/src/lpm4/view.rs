//! The data that IPv4 lookups read.
//!
//! The root ([`Root`]) has one 64-bit entry per 8192 addresses (32 /24 slots): a bitmap (low half) and a base (high half).
//! Bit `s` means that slot `s` differs from slot `s - 1`; bit 0 is never set. The answer of a slot is at
//! `pool[base + ones(bitmap up to s)]`. Blocks of one answer share its position in the pool, so that they need no special
//! case and no separate cache line. An answer with its top bit set names the *line* (the bit below the top one is set too) or
//! the *chunk* of a /24 with longer prefixes. A line is 64 bytes: the addresses where the answer changes, and the answers.
//! This is enough for [`LINE_PREFIXES`] prefixes, so that a single host route costs one cache line. A chunk
//! has 256 answers, one per address.
//!
//! Every word is atomic and every intermediate state of the writer gives each address an old or a new answer. The addresses
//! in a line never change while readers can find the line. A run, line or chunk is reused only after a grace period.
//!
//! The invariant on which readers depend without a check: `base + ones(bitmap)` of every entry is inside the pool of
//! the same view.

use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};

use volley_simd::{bytes_up_to, prefetch};

use super::root::{Entries, Root};
use crate::pages::{Pages, Zeroed};

/// The pool has no run of the required length, or no chunk, line or page is free.
#[derive(Debug)]
pub(super) struct Full;

/// The number of addresses of a chunk.
pub(super) const CHUNK: usize = 256;
/// The flag, in the writer's 32-bit notation, of an answer that names a chunk or a line.
pub(super) const IS_CHUNK: u32 = 1 << 31;
/// With [`IS_CHUNK`]: the answer names a line.
pub(super) const IS_LINE: u32 = 1 << 30;
/// The maximum number of answers of a line.
const LINE_ANSWERS: usize = 12;
/// The maximum number of prefixes longer than /24 of a /24 with a line: each prefix changes the answer at most twice.
pub(super) const LINE_PREFIXES: usize = (LINE_ANSWERS - 1) / 2;
/// The number of destinations between a prefetch and its use: work for about one memory latency.
const STRIP: usize = 64;

/// A stored answer: a leaf id, or the number of a chunk or line with its flags.
pub(super) trait Word: Zeroed {
    /// The flag of a chunk or line in this width.
    const FLAG: u32;
    /// With [`Self::FLAG`]: a line.
    const LINE: u32 = Self::FLAG >> 1;
    fn load(&self) -> u32;
    fn store(&self, raw: u32);
    /// Converts from the writer's notation.
    fn raw(answer: u32) -> u32 {
        if answer & IS_CHUNK == 0 {
            return answer;
        }
        let line = if answer & IS_LINE == 0 { 0 } else { Self::LINE };
        (answer & !(IS_CHUNK | IS_LINE)) | Self::FLAG | line
    }
    /// Converts to the writer's notation.
    fn answer(raw: u32) -> u32 {
        if raw & Self::FLAG == 0 {
            return raw;
        }
        let line = if raw & Self::LINE == 0 { 0 } else { IS_LINE };
        (raw & !(Self::FLAG | Self::LINE)) | IS_CHUNK | line
    }
}

impl Word for AtomicU16 {
    const FLAG: u32 = 1 << 15;
    #[inline(always)]
    fn load(&self) -> u32 {
        u32::from(AtomicU16::load(self, Ordering::Acquire))
    }
    fn store(&self, raw: u32) {
        AtomicU16::store(self, raw as u16, Ordering::Release);
    }
}

impl Word for AtomicU32 {
    const FLAG: u32 = 1 << 31;
    #[inline(always)]
    fn load(&self) -> u32 {
        AtomicU32::load(self, Ordering::Acquire)
    }
    fn store(&self, raw: u32) {
        AtomicU32::store(self, raw, Ordering::Release);
    }
}

/// The answers of a /24 with few longer prefixes. The index of an address's answer is the number of starts up to the address;
/// unused starts are 255, and unused answers repeat the last one.
#[repr(C, align(64))]
pub(super) struct Line {
    /// The last byte of each address whose answer differs from that of the address before, one byte each, in order.
    starts: [AtomicU64; 2],
    answers: [AtomicU32; LINE_ANSWERS],
}

const _: () = assert!(size_of::<Line>() == 64);

// SAFETY: atomics of plain integers: zero is a value, nothing to drop, aligned to 64 bytes.
unsafe impl Zeroed for Line {}

/// The contents of a line.
pub(super) struct LineText {
    starts: [u64; 2],
    answers: [u32; LINE_ANSWERS],
}

impl LineText {
    /// The contents of the line of a /24 with at most [`LINE_PREFIXES`] longer prefixes.
    pub(super) fn new(cells: &[u32; CHUNK]) -> Self {
        let (mut starts, mut answers) = ([u8::MAX; 16], [cells[0]; LINE_ANSWERS]);
        let mut changes = 0;
        for (address, pair) in (1..=u8::MAX).zip(cells.windows(2)) {
            if pair[0] != pair[1] {
                debug_assert!(changes + 1 < LINE_ANSWERS);
                starts[changes] = address;
                changes += 1;
                answers[changes..].fill(pair[1]);
            }
        }
        let words = u128::from_le_bytes(starts);
        Self {
            starts: [words as u64, (words >> 64) as u64],
            answers,
        }
    }
}

impl Line {
    /// Counts without branches, because addresses are random.
    #[inline(always)]
    fn lookup(&self, dst: u32) -> u32 {
        let starts = self.starts.each_ref().map(|it| it.load(Ordering::Acquire));
        let rank = bytes_up_to(starts, dst as u8) as usize;
        self.answers[rank.min(LINE_ANSWERS - 1)].load(Ordering::Acquire)
    }

    /// Whether the answers change at the addresses of `text`.
    pub(super) fn changes_as(&self, text: &LineText) -> bool {
        let mut words = self.starts.iter().zip(text.starts);
        words.all(|(have, want)| have.load(Ordering::Relaxed) == want)
    }

    /// Writes a line that no reader can find yet.
    pub(super) fn write(&self, text: &LineText) {
        for (word, starts) in self.starts.iter().zip(text.starts) {
            word.store(starts, Ordering::Release);
        }
        self.write_answers(text);
    }

    /// Writes the answers, each in one step.
    pub(super) fn write_answers(&self, text: &LineText) {
        for (word, answer) in self.answers.iter().zip(text.answers) {
            if word.load(Ordering::Relaxed) != answer {
                word.store(answer, Ordering::Release);
            }
        }
    }

    /// Copies another line into this one, which no reader can find yet.
    pub(super) fn copy(&self, from: &Line) {
        for (to, from) in self.starts.iter().zip(&from.starts) {
            to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        for (to, from) in self.answers.iter().zip(&from.answers) {
            to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }
}

/// Answers of one width.
pub(super) struct Store<W> {
    /// The runs. Index 0 always contains answer 0.
    pub(super) pool: Pages<W>,
    /// Chunk `c` begins at `c * CHUNK`.
    pub(super) chunks: Pages<W>,
    /// The lines of networks with few longer prefixes.
    pub(super) lines: Pages<Line>,
}

impl<W: Word> Store<W> {
    fn new(sizes: &Sizes) -> Self {
        Self {
            pool: Pages::new(sizes.leaves),
            chunks: Pages::new(sizes.chunks * CHUNK),
            lines: Pages::new(sizes.lines),
        }
    }

    fn bytes(&self) -> usize {
        self.pool.bytes() + self.chunks.bytes() + self.lines.bytes()
    }

    #[inline(always)]
    fn lookup(&self, entry: u64, dst: u32) -> u32 {
        let raw = at(&self.pool, place(entry, dst));
        if raw & W::FLAG == 0 {
            raw
        } else {
            in_chunk(&self.lines, &self.chunks, raw, dst)
        }
    }

    /// Looks up [`STRIP`] destinations, or fewer at the end of a vector. Unrolled by eight, because
    /// compilers do not unroll the loop, and its counter costs a fifth of so short a body.
    #[inline(always)]
    fn lookup_strip(&self, root: &impl Entries, dst: &[u32], leaf: &mut [u32]) {
        // Read once: through a reference it would be loaded again after every store.
        let pool: &[W] = &self.pool;
        let mut places = [0u32; STRIP];
        let places = &mut places[..dst.len()];
        let (eights, rest) = dst.as_chunks::<8>();
        let (to, to_rest) = places.as_chunks_mut::<8>();
        for (dst, to) in eights.iter().zip(to) {
            for k in 0..8 {
                to[k] = find(root, pool, dst[k]);
            }
        }
        for (&dst, to) in rest.iter().zip(to_rest) {
            *to = find(root, pool, dst);
        }
        let (eights, rest) = places.as_chunks::<8>();
        let (to, to_rest) = leaf.as_chunks_mut::<8>();
        for (places, to) in eights.iter().zip(to) {
            for k in 0..8 {
                to[k] = at(pool, places[k]);
            }
        }
        for (&place, to) in rest.iter().zip(to_rest) {
            *to = at(pool, place);
        }
        // A separate pass: vectors need a tenth of the instructions that one OR for each load needs.
        let any = leaf.iter().fold(0, |any, leaf| any | leaf);
        if any & W::FLAG != 0 {
            self.lookup_chunks(dst, leaf);
        }
    }

    /// The second step of a strip: the destinations whose answers name chunks or lines.
    #[inline(always)]
    fn lookup_chunks(&self, dst: &[u32], leaf: &mut [u32]) {
        // Read once: see `lookup_strip`.
        let (lines, chunks): (&[Line], &[W]) = (&self.lines, &self.chunks);
        for (&d, &leaf) in dst.iter().zip(leaf.iter()) {
            if leaf & W::FLAG != 0 {
                prefetch_in_chunk::<W>(lines, chunks, leaf, d);
            }
        }
        for (&d, leaf) in dst.iter().zip(leaf) {
            if *leaf & W::FLAG != 0 {
                *leaf = in_chunk(lines, chunks, *leaf, d);
            }
        }
    }
}

/// The answer of `dst` in the chunk or line that `raw` names.
#[inline(always)]
fn in_chunk<W: Word>(lines: &[Line], chunks: &[W], raw: u32, dst: u32) -> u32 {
    if raw & W::LINE != 0 {
        return lines[number::<W>(raw)].lookup(dst);
    }
    chunks[cell::<W>(raw, dst)].load()
}

#[inline(always)]
fn prefetch_in_chunk<W: Word>(lines: &[Line], chunks: &[W], raw: u32, dst: u32) {
    if raw & W::LINE != 0 {
        prefetch(lines.as_ptr().wrapping_add(number::<W>(raw)));
    } else {
        prefetch(chunks.as_ptr().wrapping_add(cell::<W>(raw, dst)));
    }
}

/// The number of the chunk or line that `raw` names.
#[inline(always)]
fn number<W: Word>(raw: u32) -> usize {
    (raw & (W::LINE - 1)) as usize
}

/// The position of the answer of `dst` in the chunk that `raw` names.
#[inline(always)]
fn cell<W: Word>(raw: u32, dst: u32) -> usize {
    number::<W>(raw) * CHUNK + dst as usize % CHUNK
}

/// The position of the answer of one destination; prefetches the cache line of the answer.
#[inline(always)]
fn find<W>(root: &impl Entries, pool: &[W], dst: u32) -> u32 {
    let place = place(root.entry(block(dst)).load(Ordering::Acquire), dst);
    prefetch(pool.as_ptr().wrapping_add(place as usize));
    place
}

/// The answer at a position from [`place`], for an entry of the same view.
#[inline(always)]
fn at<W: Word>(pool: &[W], place: u32) -> u32 {
    debug_assert!((place as usize) < pool.len());
    // SAFETY: the view's invariant: every position that one of its entries names is inside its pool.
    unsafe { pool.get_unchecked(place as usize) }.load()
}

/// The root entry of an address.
#[inline(always)]
pub(super) fn block(dst: u32) -> usize {
    (dst >> 13) as usize
}

/// The position of the answer in the pool.
#[inline(always)]
fn place(entry: u64, dst: u32) -> u32 {
    let slot = (dst >> 8) & 31;
    let rank = ((entry as u32) << (31 - slot)).count_ones();
    ((entry >> 32) as u32).wrapping_add(rank)
}

/// The capacities of a view.
pub(super) struct Sizes {
    /// Number of pooled answers.
    pub(super) leaves: usize,
    /// Number of chunks.
    pub(super) chunks: usize,
    /// Number of lines.
    pub(super) lines: usize,
}

/// Answers, in the smallest width that the largest leaf id, chunk number and line number allow.
pub(super) enum Leaves {
    Narrow(Store<AtomicU16>),
    Wide(Store<AtomicU32>),
}

/// The reader's side of one IPv4 table. Get it from [`crate::Lpm4Snap::read`].
pub struct Lpm4View {
    pub(super) root: Root,
    pub(super) leaves: Leaves,
}

impl Lpm4View {
    /// An empty table with these capacities.
    pub(super) fn new(dense: bool, wide: bool, sizes: &Sizes) -> Self {
        Self {
            root: Root::new(dense),
            leaves: if wide {
                Leaves::Wide(Store::new(sizes))
            } else {
                Leaves::Narrow(Store::new(sizes))
            },
        }
    }

    /// Whether leaf ids of 31 bits fit (otherwise 15).
    pub fn is_wide(&self) -> bool {
        matches!(self.leaves, Leaves::Wide(_))
    }

    /// The bytes that readers may access.
    pub fn bytes(&self) -> usize {
        let leaves = match &self.leaves {
            Leaves::Narrow(s) => s.bytes(),
            Leaves::Wide(s) => s.bytes(),
        };
        self.root.bytes() + leaves
    }

    /// Prefetches the first cache line that a lookup of `dst` (host byte order) needs.
    #[inline(always)]
    pub fn prefetch(&self, dst: u32) {
        // A paged root is small and stays in the cache.
        if let Root::Dense(entries) = &self.root {
            prefetch(entries.as_ptr().wrapping_add(block(dst)));
        }
    }

    /// The leaf of the longest prefix that contains `dst` (host byte order); 0 if there is none.
    #[inline(always)]
    pub fn lookup(&self, dst: u32) -> u32 {
        let entry = self.root.entry(block(dst)).load(Ordering::Acquire);
        match &self.leaves {
            Leaves::Narrow(s) => s.lookup(entry, dst),
            Leaves::Wide(s) => s.lookup(entry, dst),
        }
    }

    /// Looks up a vector: `leaf[i]` becomes the answer for `dst[i]`, as [`Lpm4View::lookup`] returns it.
    /// The shorter slice determines the number of lookups.
    #[inline(always)]
    pub fn lookup_batch(&self, dst: &[u32], leaf: &mut [u32]) {
        match &self.root {
            Root::Dense(entries) => self.lookup_strips(Root::dense(entries), dst, leaf),
            Root::Paged { offsets, entries } => {
                self.lookup_strips(&Root::paged(offsets, entries), dst, leaf);
            }
        }
    }

    #[inline(always)]
    fn lookup_strips(&self, root: &impl Entries, dst: &[u32], leaf: &mut [u32]) {
        let n = dst.len().min(leaf.len());
        let (dst, leaf) = (&dst[..n], &mut leaf[..n]);
        for (dst, leaf) in dst.chunks(STRIP).zip(leaf.chunks_mut(STRIP)) {
            match &self.leaves {
                Leaves::Narrow(s) => s.lookup_strip(root, dst, leaf),
                Leaves::Wide(s) => s.lookup_strip(root, dst, leaf),
            }
        }
    }
}
