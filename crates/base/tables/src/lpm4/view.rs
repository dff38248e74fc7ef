//! What IPv4 lookups read.
//!
//! The root has one 64-bit entry per 8192 addresses (32 /24 slots): a bitmap (low half) and a base (high half).
//! Bit `s` says that slot `s` differs from slot `s - 1`; bit 0 is never set. The answer of a slot is at
//! `pool[base + ones(bitmap up to s)]`; blocks of one answer share its place in the pool, so that they need no case of
//! their own, and no cache line of their own. An answer with its top bit set names a chunk of 256 answers, one per
//! address of the /24.
//!
//! Every word is atomic and every intermediate state of the writer gives each address an old or a new answer. A run or
//! chunk is reused only after a grace period.
//!
//! The one invariant that readers rely on without asking: `base + ones(bitmap)` of every entry lies inside the pool of
//! the same view.

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
    /// The runs. Index 0 holds answer 0 for ever.
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
    fn lookup_strip(&self, root: &[AtomicU64; ROOT], dst: &[u32], leaf: &mut [u32]) {
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
            for (&d, leaf) in dst.iter().zip(leaf) {
                if *leaf & W::FLAG != 0 {
                    *leaf = self.in_chunk(*leaf, d);
                }
            }
        }
    }
}

/// Where the answer of one destination is, with its line on the way.
#[inline(always)]
fn find<W>(root: &[AtomicU64; ROOT], pool: &[W], dst: u32) -> u32 {
    let place = place(root[block(dst)].load(Ordering::Acquire), dst);
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
