//! What IPv4 lookups read.
//!
//! The root ([`Root`]) has one 64-bit entry per 8192 addresses (32 /24 slots): a bitmap (low half) and a base (high half).
//! Bit `s` says that slot `s` differs from slot `s - 1`; bit 0 is never set. The answer of a slot is at
//! `pool[base + ones(bitmap up to s)]`; blocks of one answer share its place in the pool, so that they need no case of
//! their own, and no cache line of their own. An answer with its top bit set names what a /24 with longer prefixes has:
//! a *line* (the bit below the top one is set too) or a *chunk*. A line is 64 bytes: the addresses where the answer changes,
//! and the answers; that is enough for [`LINE_PREFIXES`] prefixes, so that a lone host route costs one cache line. A chunk
//! has 256 answers, one per address.
//!
//! Every word is atomic and every intermediate state of the writer gives each address an old or a new answer. The addresses
//! in a line never change while readers can find the line. A run, line or chunk is reused only after a grace period.
//!
//! The one invariant that readers rely on without asking: `base + ones(bitmap)` of every entry lies inside the pool of
//! the same view.

use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};

use volley_simd::prefetch;

use super::root::{Entries, Root};
use crate::pages::{Pages, Zeroed};

/// The pool has no run of the length that is needed, or there is no free chunk, line or page.
#[derive(Debug)]
pub(super) struct Full;

/// Addresses in a chunk.
pub(super) const CHUNK: usize = 256;
/// Says, in the writer's 32-bit notation, that an answer names a chunk or a line.
pub(super) const IS_CHUNK: u32 = 1 << 31;
/// Says, with [`IS_CHUNK`], that it is a line.
pub(super) const IS_LINE: u32 = 1 << 30;
/// Most answers of a line.
const LINE_ANSWERS: usize = 12;
/// Most prefixes longer than /24 of a /24 with a line: each prefix makes two changes of answer at most.
pub(super) const LINE_PREFIXES: usize = (LINE_ANSWERS - 1) / 2;
/// Destinations between a prefetch and its use: about one memory latency's worth of work.
const STRIP: usize = 64;

/// An answer as it is stored: a leaf id, or the number of a chunk or line with its flags.
pub(super) trait Word: Zeroed {
    /// The flag of this width: chunk or line.
    const FLAG: u32;
    /// Beside the flag: a line.
    const LINE: u32 = Self::FLAG >> 1;
    fn load(&self) -> u32;
    fn store(&self, raw: u32);
    /// From the writer's notation.
    fn raw(answer: u32) -> u32 {
        if answer & IS_CHUNK == 0 {
            return answer;
        }
        let line = if answer & IS_LINE == 0 { 0 } else { Self::LINE };
        (answer & !(IS_CHUNK | IS_LINE)) | Self::FLAG | line
    }
    /// To the writer's notation.
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

/// The answers of a /24 with few longer prefixes. The answer of an address is at the number of starts up to the address;
/// starts that are not used are 255, and answers that are not used repeat the last one.
#[repr(C, align(64))]
pub(super) struct Line {
    /// Last byte of each address whose answer differs from that of the address before, a byte each, in order.
    starts: [AtomicU64; 2],
    answers: [AtomicU32; LINE_ANSWERS],
}

const _: () = assert!(size_of::<Line>() == 64);

// SAFETY: atomics of plain integers: zero is a value, nothing to drop, aligned to 64 bytes.
unsafe impl Zeroed for Line {}

/// What a line says.
pub(super) struct LineText {
    starts: [u64; 2],
    answers: [u32; LINE_ANSWERS],
}

impl LineText {
    /// What the line of a /24 with at most [`LINE_PREFIXES`] longer prefixes says.
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
    /// Counting without branches: where an address lies is random.
    #[inline(always)]
    fn lookup(&self, dst: u32) -> u32 {
        let address = dst as u8;
        let mut rank = 0;
        for starts in &self.starts {
            for start in starts.load(Ordering::Acquire).to_le_bytes() {
                rank += u8::from(start <= address);
            }
        }
        self.answers[usize::from(rank).min(LINE_ANSWERS - 1)].load(Ordering::Acquire)
    }

    /// Whether the answers change where the text says.
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

    /// Makes this line, which no reader can find yet, equal to another.
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
    /// The runs. Index 0 holds answer 0 for ever.
    pub(super) pool: Pages<W>,
    /// Chunk `c` is at `c * CHUNK`.
    pub(super) chunks: Pages<W>,
    /// Networks with few longer prefixes.
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

    /// The answer of `dst` in the chunk or line that `raw` names.
    #[inline(always)]
    fn in_chunk(&self, raw: u32, dst: u32) -> u32 {
        if raw & W::LINE != 0 {
            return self.lines[number::<W>(raw)].lookup(dst);
        }
        self.chunks[cell::<W>(raw, dst)].load()
    }

    #[inline(always)]
    fn prefetch_in_chunk(&self, raw: u32, dst: u32) {
        if raw & W::LINE != 0 {
            prefetch(self.lines.as_ptr().wrapping_add(number::<W>(raw)));
        } else {
            prefetch(self.chunks.as_ptr().wrapping_add(cell::<W>(raw, dst)));
        }
    }

    #[inline(always)]
    fn lookup(&self, entry: u64, dst: u32) -> u32 {
        let raw = at(&self.pool, place(entry, dst));
        if raw & W::FLAG == 0 {
            raw
        } else {
            self.in_chunk(raw, dst)
        }
    }

    /// [`STRIP`] destinations, or fewer at the end of a vector. Written out in eights, because
    /// compilers do not unroll it and the counter costs a fifth of so short a body.
    #[inline(always)]
    fn lookup_strip(&self, root: &impl Entries, dst: &[u32], leaf: &mut [u32]) {
        // Taken once: behind a reference it would be loaded again after every store.
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
        let mut any = 0;
        let (eights, rest) = places.as_chunks::<8>();
        let (to, to_rest) = leaf.as_chunks_mut::<8>();
        for (places, to) in eights.iter().zip(to) {
            for k in 0..8 {
                to[k] = at(pool, places[k]);
                any |= to[k];
            }
        }
        for (&place, to) in rest.iter().zip(to_rest) {
            *to = at(pool, place);
            any |= *to;
        }
        if any & W::FLAG != 0 {
            self.lookup_chunks(dst, leaf);
        }
    }

    /// The second step of a strip: the destinations whose answers name chunks or lines.
    #[inline(always)]
    fn lookup_chunks(&self, dst: &[u32], leaf: &mut [u32]) {
        for (&d, &leaf) in dst.iter().zip(leaf.iter()) {
            if leaf & W::FLAG != 0 {
                self.prefetch_in_chunk(leaf, d);
            }
        }
        for (&d, leaf) in dst.iter().zip(leaf) {
            if *leaf & W::FLAG != 0 {
                *leaf = self.in_chunk(*leaf, d);
            }
        }
    }
}

/// The number of the chunk or line that `raw` names.
#[inline(always)]
fn number<W: Word>(raw: u32) -> usize {
    (raw & (W::LINE - 1)) as usize
}

/// Where in the chunk that `raw` names the answer of `dst` is.
#[inline(always)]
fn cell<W: Word>(raw: u32, dst: u32) -> usize {
    number::<W>(raw) * CHUNK + dst as usize % CHUNK
}

/// Where the answer of one destination is, with its line on the way.
#[inline(always)]
fn find<W>(root: &impl Entries, pool: &[W], dst: u32) -> u32 {
    let place = place(root.entry(block(dst)).load(Ordering::Acquire), dst);
    prefetch(pool.as_ptr().wrapping_add(place as usize));
    place
}

/// The answer at a place that [`place`] gave for an entry of the same view.
#[inline(always)]
fn at<W: Word>(pool: &[W], place: u32) -> u32 {
    debug_assert!((place as usize) < pool.len());
    // SAFETY: the view's invariant: every place that one of its entries names lies inside its pool.
    unsafe { pool.get_unchecked(place as usize) }.load()
}

/// The root entry of an address.
#[inline(always)]
pub(super) fn block(dst: u32) -> usize {
    (dst >> 13) as usize
}

/// Where in the pool the answer is.
#[inline(always)]
fn place(entry: u64, dst: u32) -> u32 {
    let slot = (dst >> 8) & 31;
    let rank = ((entry as u32) << (31 - slot)).count_ones();
    ((entry >> 32) as u32).wrapping_add(rank)
}

/// How much room a view has.
pub(super) struct Sizes {
    /// Number of pooled answers.
    pub(super) leaves: usize,
    /// Number of chunks.
    pub(super) chunks: usize,
    /// Number of lines.
    pub(super) lines: usize,
}

/// Answers, as narrow as the largest leaf id, chunk number and line number allow.
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
    /// An empty table with room for so many.
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

    /// The bytes that readers may touch.
    pub fn bytes(&self) -> usize {
        let leaves = match &self.leaves {
            Leaves::Narrow(s) => s.bytes(),
            Leaves::Wide(s) => s.bytes(),
        };
        self.root.bytes() + leaves
    }

    /// Starts loading the first thing that a lookup of `dst` (host byte order) will need.
    #[inline(always)]
    pub fn prefetch(&self, dst: u32) {
        // A paged root is small, and stays near.
        if let Root::Dense(entries) = &self.root {
            prefetch(entries.as_ptr().wrapping_add(block(dst)));
        }
    }

    /// The leaf of the longest prefix that holds `dst` (host byte order); 0 if there is none.
    #[inline(always)]
    pub fn lookup(&self, dst: u32) -> u32 {
        let entry = self.root.entry(block(dst)).load(Ordering::Acquire);
        match &self.leaves {
            Leaves::Narrow(s) => s.lookup(entry, dst),
            Leaves::Wide(s) => s.lookup(entry, dst),
        }
    }

    /// Looks up a vector: `leaf[i]` becomes the answer for `dst[i]`, as [`Lpm4View::lookup`] gives it.
    /// The shorter slice counts.
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
