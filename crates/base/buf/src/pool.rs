//! The pool: the arena, the shared free list, and the account of who has how many buffers.

use crate::arena::Arena;
use crate::ring::{BATCH, BatchRing};
use crate::{Backing, BufError, Cache, Meta, POS_MAX, STRIDE};
use std::sync::atomic::{AtomicU64, Ordering};
// tidy: allow(RwLock) taken only while a cache is made or dropped and by reports, all on the control thread
use std::sync::{Arc, RwLock};

/// Buffers of one memory node, shared by all its users.
pub struct Pool {
    arena: Arena,
    pub(crate) ring: BatchRing,
    /// Buffers that each cache holds, written by its owner, read by reports. Grown only when a cache is made.
    pub(crate) cached: RwLock<Vec<Arc<AtomicU64>>>,
    pub(crate) failures: AtomicU64,
    /// What dropped caches left that is less than a batch: the next new cache starts with it.
    pub(crate) leftovers: RwLock<Vec<u32>>,
}

/// Where a pool's arena begins.
#[derive(Clone, Copy)]
pub struct Base(*mut u8);

impl Base {
    /// The address of a place that [`Pool::offsets`] gave.
    ///
    /// # Safety
    /// As for [`Pool::at`], of the slot and the position that the offset was made of, while the pool lives.
    #[inline(always)]
    pub unsafe fn at(self, offset: usize) -> *mut u8 {
        // SAFETY: the caller's contract keeps the sum inside the arena.
        unsafe { self.0.add(offset) }
    }

    /// The same address, only to be prefetched: any offset will do.
    #[inline(always)]
    pub fn hint(self, offset: usize) -> *const u8 {
        self.0.wrapping_add(offset)
    }
}

/// A pool's account at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolReport {
    /// All buffers.
    pub total: usize,
    /// In the shared free list.
    pub shared_free: usize,
    /// In the caches of workers and of the control thread.
    pub cached_free: usize,
    /// Allocations that found no buffer.
    pub failures: u64,
    /// What the arena stands on.
    pub backing: Backing,
}

impl PoolReport {
    /// Buffers that are in nobody's free list.
    pub fn in_use(&self) -> usize {
        self.total - self.shared_free - self.cached_free
    }
}

impl Pool {
    /// A pool of at least `buffers` buffers (rounded up to whole batches of 64).
    pub fn new(buffers: usize) -> Result<Arc<Self>, BufError> {
        if !(BATCH..=1 << 24).contains(&buffers) {
            return Err(BufError::Count(buffers));
        }
        let buffers = buffers.next_multiple_of(BATCH);
        let arena = Arena::new(buffers)?;
        // Twice the room, so that a thread that was interrupted in the middle of a batch is in nobody's way.
        let ring = BatchRing::new(2 * buffers / BATCH);
        for first in (0..buffers as u32).step_by(BATCH) {
            ring.push(&std::array::from_fn(|i| first + i as u32));
        }
        let cached = RwLock::new(Vec::new());
        Ok(Arc::new(Pool {
            arena,
            ring,
            cached,
            failures: AtomicU64::new(0),
            leftovers: RwLock::default(),
        }))
    }

    /// A free cache for one thread.
    pub fn cache(self: &Arc<Self>) -> Cache {
        Cache::new(self.clone())
    }

    /// How many buffers there are.
    pub fn total(&self) -> usize {
        self.arena.buffers()
    }

    /// The account. Exact when no thread allocates or frees meanwhile.
    pub fn report(&self) -> PoolReport {
        let caches = self.cached.read().unwrap_or_else(|e| e.into_inner());
        PoolReport {
            total: self.total(),
            shared_free: self.ring.len() * BATCH,
            cached_free: caches
                .iter()
                .map(|c| c.load(Ordering::Relaxed) as usize)
                .sum::<usize>()
                + self
                    .leftovers
                    .read()
                    .unwrap_or_else(|e| e.into_inner())
                    .len(),
            failures: self.failures.load(Ordering::Relaxed),
            backing: self.arena.backing(),
        }
    }

    /// Address of byte `pos` of slot `idx`. Reading [`crate::READABLE`] bytes from it stays in the slot.
    ///
    /// # Safety
    /// `idx` is one of this pool's indices and `pos <= POS_MAX`. What may be done with the memory follows from who
    /// owns the index.
    #[inline(always)]
    pub unsafe fn at(&self, idx: u32, pos: usize) -> *mut u8 {
        debug_assert!(
            (idx as usize) < self.total() && pos <= POS_MAX,
            "buffer {idx} at {pos}"
        );
        // SAFETY: the caller's contract keeps the sum inside the arena.
        unsafe { self.arena.base().add(idx as usize * STRIDE + pos) }
    }

    /// Where bytes `pos` of slots `idx` lie in the arena, for a whole column at once. Any numbers will do; the shortest
    /// slice counts.
    #[inline(always)]
    pub fn offsets(idx: &[u32], pos: impl Iterator<Item = u32>, out: &mut [usize]) {
        for ((&idx, pos), out) in idx.iter().zip(pos).zip(out) {
            *out = (u64::from(idx) * STRIDE as u64 + u64::from(pos)) as usize;
        }
    }

    /// The arena, by value: for loops whose stores could change what a reference leads to, as far as compilers know.
    #[inline(always)]
    pub fn base(&self) -> Base {
        Base(self.arena.base())
    }

    /// A buffer's metadata.
    ///
    /// # Safety
    /// The caller owns `idx`, and nobody else has a reference to its metadata.
    #[inline(always)]
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn meta(&self, idx: u32) -> &mut Meta {
        // SAFETY: a slot starts with its metadata, is 64-byte aligned (the arena is 2 MB or page aligned, the stride a
        // multiple of 64) and zero-initialised memory is a valid `Meta`.
        unsafe { &mut *self.at(idx, 0).cast::<Meta>() }
    }
}
