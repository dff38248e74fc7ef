//! What IPv4 lookups read.
//!
//! The root has one 64-bit entry per 8192 addresses (32 /24 slots): a bitmap (low half) and a base (high half).
//! Bit `s` says that slot `s` differs from slot `s - 1`; bit 0 is never set. The answer of a slot is at
//! `pool[base + ones(bitmap up to s)]`; when the bitmap is empty, `base` *is* the answer. An answer with
//! its top bit set names a chunk of 256 answers, one per address of the /24.
//!
//! Every word is atomic and every intermediate state of the writer gives each address an old or a new answer, so
//! this is plain safe code. A run or chunk is reused only after a grace period.

use std::hint::select_unpredictable;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};

use volley_simd::prefetch;

use crate::pages::{Pages, Zeroed};

/// Root entries.
pub(super) const ROOT: usize = 1 << 19;
/// Addresses in a chunk.
pub(super) const CHUNK: usize = 256;
/// Says, in the writer's 32-bit notation, that an answer names a chunk.
pub(super) const IS_CHUNK: u32 = 1 << 31;
/// Destinations between a prefetch and its use: about one memory latency's worth of work.
const STRIP: usize = 64;

/// An answer as it is stored: a leaf id, or a chunk number with the flag.
pub(super) trait Word: Zeroed {
    /// The flag of this width.
    const FLAG: u32;
    fn load(&self) -> u32;
    fn store(&self, raw: u32);
    /// From the writer's notation.
    fn raw(answer: u32) -> u32 {
        if answer & IS_CHUNK == 0 {
            answer
        } else {
            (answer & !IS_CHUNK) | Self::FLAG
        }
    }
    /// To the writer's notation.
    fn answer(raw: u32) -> u32 {
        if raw & Self::FLAG == 0 {
            raw
        } else {
            (raw & !Self::FLAG) | IS_CHUNK
        }
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

/// Answers of one width.
pub(super) struct Store<W> {
    /// The runs. Index 0 is not part of any run.
    pub(super) pool: Pages<W>,
    /// Chunk `c` is at `c * CHUNK`.
    pub(super) chunks: Pages<W>,
}

impl<W: Word> Store<W> {
    fn new(leaves: usize, chunks: usize) -> Self {
        Self {
            pool: Pages::new(leaves),
            chunks: Pages::new(chunks * CHUNK),
        }
    }

    #[inline(always)]
    fn in_chunk(&self, raw: u32, dst: u32) -> u32 {
        let chunk = (raw & !W::FLAG) as usize;
        self.chunks[chunk * CHUNK + (dst as usize % CHUNK)].load()
    }

    #[inline(always)]
    fn lookup(&self, entry: u64, dst: u32) -> u32 {
        let (index, direct) = split(entry, dst);
        let pooled = self.pool[index as usize].load();
        let raw = select_unpredictable(index == 0, direct, pooled);
        if raw & W::FLAG == 0 {
            raw
        } else {
            self.in_chunk(raw, dst)
        }
    }

    /// At most [`STRIP`] destinations; `leaf` is as long as `dst`.
    #[inline(always)]
    fn lookup_strip(&self, root: &[AtomicU64; ROOT], dst: &[u32], leaf: &mut [u32]) {
        // Taken once: behind a reference it would be loaded again after every store to `leaf`.
        let pool: &[W] = &self.pool;
        let mut index = [0u32; STRIP];
        for ((&d, i), l) in dst.iter().zip(&mut index).zip(leaf.iter_mut()) {
            (*i, *l) = split(root[block(d)].load(Ordering::Acquire), d);
            prefetch(pool.as_ptr().wrapping_add(*i as usize));
        }
        let mut any = 0;
        for (&i, l) in index.iter().zip(leaf.iter_mut()) {
            let pooled = pool[i as usize].load();
            *l = select_unpredictable(i == 0, *l, pooled);
            any |= *l;
        }
        if any & W::FLAG != 0 {
            for (&d, l) in dst.iter().zip(leaf) {
                if *l & W::FLAG != 0 {
                    *l = self.in_chunk(*l, d);
                }
            }
        }
    }
}

/// The root entry of an address.
#[inline(always)]
pub(super) fn block(dst: u32) -> usize {
    (dst >> 13) as usize
}

/// Where the answer is: `(pool index, _)`, or `(0, answer)` when the entry has it.
#[inline(always)]
fn split(entry: u64, dst: u32) -> (u32, u32) {
    let bitmap = entry as u32;
    let base = (entry >> 32) as u32;
    let slot = (dst >> 8) & 31;
    let rank = (bitmap << (31 - slot)).count_ones();
    // No branch: which of the two it is cannot be predicted.
    (
        select_unpredictable(bitmap == 0, 0, base.wrapping_add(rank)),
        base,
    )
}

/// Answers, as narrow as the largest leaf id and chunk number allow.
pub(super) enum Leaves {
    Narrow(Store<AtomicU16>),
    Wide(Store<AtomicU32>),
}

/// The reader's side of one IPv4 table. Get it from [`crate::Lpm4Snap::read`].
pub struct Lpm4View {
    pub(super) root: Pages<AtomicU64>,
    pub(super) leaves: Leaves,
}

impl Lpm4View {
    /// An empty table with room for `leaves` pooled answers and `chunks` chunks.
    pub(super) fn new(wide: bool, leaves: usize, chunks: usize) -> Self {
        Self {
            root: Pages::new(ROOT),
            leaves: if wide {
                Leaves::Wide(Store::new(leaves, chunks))
            } else {
                Leaves::Narrow(Store::new(leaves, chunks))
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
            Leaves::Narrow(s) => s.pool.bytes() + s.chunks.bytes(),
            Leaves::Wide(s) => s.pool.bytes() + s.chunks.bytes(),
        };
        self.root.bytes() + leaves
    }

    #[inline(always)]
    fn roots(&self) -> &[AtomicU64; ROOT] {
        match self.root.first_chunk() {
            Some(root) => root,
            None => unreachable!(),
        }
    }

    /// Starts loading the first thing that a lookup of `dst` (host byte order) will need.
    #[inline(always)]
    pub fn prefetch(&self, dst: u32) {
        prefetch(self.root.as_ptr().wrapping_add(block(dst)));
    }

    /// The leaf of the longest prefix that holds `dst` (host byte order); 0 if there is none.
    #[inline(always)]
    pub fn lookup(&self, dst: u32) -> u32 {
        let entry = self.roots()[block(dst)].load(Ordering::Acquire);
        match &self.leaves {
            Leaves::Narrow(s) => s.lookup(entry, dst),
            Leaves::Wide(s) => s.lookup(entry, dst),
        }
    }

    /// Looks up a vector: `leaf[i]` becomes the answer for `dst[i]`, as [`Lpm4View::lookup`] gives it.
    /// The shorter slice counts.
    #[inline(always)]
    pub fn lookup_batch(&self, dst: &[u32], leaf: &mut [u32]) {
        let root = self.roots();
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
