//! The pool: the arena, the shared free lists, and the number of free buffers of each cache.

use crate::arena::{Arena, OnNode};
use crate::ring::{BATCH, BatchRing};
use crate::{Backing, BufError, Cache, Meta, POS_MAX, STRIDE};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
// tidy: allow(RwLock) taken only while a cache is made or dropped and by reports, all on the control thread
use std::sync::{Arc, RwLock};

/// All buffers: an equal share on each memory node, each with its free list.
pub struct Pool {
    arena: Arena,
    /// Numbers of the memory nodes.
    nodes: Box<[u32]>,
    /// Buffers of each node.
    each: usize,
    /// A shared free list for each node.
    pub(crate) rings: Box<[BatchRing]>,
    /// The count of buffers of each cache, written by the cache's owner, read by reports. Grown only when a cache is made.
    pub(crate) cached: RwLock<Vec<Arc<Account>>>,
    /// Allocations that found no buffer, by the memory node of the caller.
    pub(crate) failures: Box<[AtomicU64]>,
    /// Buffers of dropped caches that do not fill a batch: the next new cache starts with them.
    pub(crate) leftovers: RwLock<Vec<u32>>,
}

/// The buffers that a cache contains.
pub(crate) struct Account {
    /// Position of the cache's node in the pool.
    pub(crate) home: AtomicUsize,
    /// Buffers of that node.
    pub(crate) own: AtomicU64,
    /// Buffers of each other node; empty on a machine with one node.
    pub(crate) away: Box<[AtomicU64]>,
}

/// The start address of a pool's arena.
#[derive(Clone, Copy)]
pub struct Base(*mut u8);

impl Base {
    /// The address of an offset from [`Pool::offsets`].
    ///
    /// # Safety
    /// As for [`Pool::at`], with the slot and the position that the offset was computed from, while the pool lives.
    #[inline(always)]
    pub unsafe fn at(self, offset: usize) -> *mut u8 {
        // SAFETY: the caller's contract keeps the sum inside the arena.
        unsafe { self.0.add(offset) }
    }

    /// The address of an offset, only to be prefetched: any offset is valid.
    #[inline(always)]
    pub fn hint(self, offset: usize) -> *const u8 {
        self.0.wrapping_add(offset)
    }
}

/// The buffers of a pool, or of one of its nodes, at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolReport {
    /// The memory node; for the whole pool, the first node.
    pub node: u32,
    /// All buffers.
    pub total: usize,
    /// In the shared free list.
    pub shared_free: usize,
    /// In the caches of workers and of the control thread.
    pub cached_free: usize,
    /// Allocations that found no buffer.
    pub failures: u64,
    /// The type of pages of the arena.
    pub backing: Backing,
}

impl PoolReport {
    /// Buffers that are in no free list and no cache.
    pub fn in_use(&self) -> usize {
        self.total - self.shared_free - self.cached_free
    }
}

impl Account {
    /// Buffers of a node, by its position in the pool.
    fn of(&self, at: usize) -> usize {
        let away = self.away.get(at).map_or(0, |n| n.load(Ordering::Relaxed));
        let own = if self.home.load(Ordering::Relaxed) == at {
            self.own.load(Ordering::Relaxed)
        } else {
            0
        };
        (own + away) as usize
    }
}

impl Pool {
    /// A pool of at least `buffers` buffers (rounded up to whole batches of 64), without a choice of memory node.
    pub fn new(buffers: usize) -> Result<Arc<Self>, BufError> {
        Self::on_nodes(buffers, &[0], &|_, touch| touch())
    }

    /// A pool of at least `buffers` buffers on each of some memory nodes. With more than one node, `on` runs a closure on a
    /// thread of a node: the kernel allocates memory on the node of the thread that touches it first.
    pub fn on_nodes(buffers: usize, nodes: &[u32], on: OnNode<'_>) -> Result<Arc<Self>, BufError> {
        let nodes = if nodes.is_empty() { &[0] } else { nodes };
        let all = buffers.saturating_mul(nodes.len());
        if buffers < BATCH || all > 1 << 24 {
            return Err(BufError::Count(all));
        }
        let each = buffers.next_multiple_of(BATCH);
        let arena = Arena::new(each * nodes.len(), nodes.len())?;
        // Twice the capacity: a thread that is interrupted in the middle of a batch then blocks no other thread.
        let ring = |_: &u32| BatchRing::new(2 * each / BATCH);
        let rings: Box<[BatchRing]> = nodes.iter().map(ring).collect();
        for (at, ring) in rings.iter().enumerate() {
            for first in (at * each..(at + 1) * each).step_by(BATCH) {
                ring.push(&std::array::from_fn(|i| (first + i) as u32));
            }
        }
        // Without this, the first worker to use a page would wait for it: 1.5 ms for a page of 2 MB on a virtual machine.
        if nodes.len() > 1 || arena.backing() != Backing::Huge {
            for (at, node) in nodes.iter().enumerate() {
                on(*node, &mut || arena.touch(at * each..(at + 1) * each));
            }
        }
        Ok(Arc::new(Pool {
            arena,
            nodes: nodes.into(),
            each,
            rings,
            cached: RwLock::default(),
            failures: nodes.iter().map(|_| AtomicU64::new(0)).collect(),
            leftovers: RwLock::default(),
        }))
    }

    /// The memory nodes of the pool.
    pub fn nodes(&self) -> &[u32] {
        &self.nodes
    }

    /// The position of a buffer's node in the pool.
    #[inline]
    pub(crate) fn home_of(&self, idx: u32) -> usize {
        idx as usize / self.each
    }

    /// A free cache for one thread.
    pub fn cache(self: &Arc<Self>) -> Cache {
        Cache::new(self.clone())
    }

    /// The number of buffers.
    pub fn total(&self) -> usize {
        self.arena.buffers()
    }

    /// The report of the whole pool. Exact when no thread allocates or frees meanwhile.
    pub fn report(&self) -> PoolReport {
        let all = self.reports();
        let sum = |read: fn(&PoolReport) -> usize| all.iter().map(read).sum();
        PoolReport {
            node: self.nodes[0],
            total: self.total(),
            shared_free: sum(|r| r.shared_free),
            cached_free: sum(|r| r.cached_free),
            failures: all.iter().map(|r| r.failures).sum(),
            backing: self.arena.backing(),
        }
    }

    /// The report of each node.
    pub fn reports(&self) -> Vec<PoolReport> {
        let caches = self.cached.read().unwrap_or_else(|e| e.into_inner());
        let left = self.leftovers.read().unwrap_or_else(|e| e.into_inner());
        let of = |at: usize| {
            let cached = |c: &Arc<Account>| c.of(at);
            let left = left.iter().filter(|b| self.home_of(**b) == at);
            PoolReport {
                node: self.nodes[at],
                total: self.each,
                shared_free: self.rings[at].len() * BATCH,
                cached_free: caches.iter().map(cached).sum::<usize>() + left.count(),
                failures: self.failures[at].load(Ordering::Relaxed),
                backing: self.arena.backing(),
            }
        };
        (0..self.nodes.len()).map(of).collect()
    }

    /// Address of byte `pos` of slot `idx`. Reading [`crate::READABLE`] bytes from it stays in the slot.
    ///
    /// # Safety
    /// `idx` is one of this pool's indices and `pos <= POS_MAX`. The owner of the index determines what may be done with the
    /// memory.
    #[inline(always)]
    pub unsafe fn at(&self, idx: u32, pos: usize) -> *mut u8 {
        debug_assert!(
            (idx as usize) < self.total() && pos <= POS_MAX,
            "buffer {idx} at {pos}"
        );
        // SAFETY: the caller's contract keeps the sum inside the arena.
        unsafe { self.arena.base().add(idx as usize * STRIDE + pos) }
    }

    /// Offsets in the arena of bytes `pos` of slots `idx`, for a whole column at once. Any numbers are valid; the shortest
    /// slice determines the number of rows.
    #[inline(always)]
    pub fn offsets(idx: &[u32], pos: impl Iterator<Item = u32>, out: &mut [usize]) {
        for ((&idx, pos), out) in idx.iter().zip(pos).zip(out) {
            *out = (u64::from(idx) * STRIDE as u64 + u64::from(pos)) as usize;
        }
    }

    /// The start of the arena, by value: for loops whose stores could, as far as the compiler knows, change a referenced value.
    #[inline(always)]
    pub fn base(&self) -> Base {
        Base(self.arena.base())
    }

    /// A buffer's metadata.
    ///
    /// # Safety
    /// The caller owns `idx`, and no other reference to its metadata exists.
    #[inline(always)]
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn meta(&self, idx: u32) -> &mut Meta {
        // SAFETY: a slot starts with its metadata, is 64-byte aligned (the arena is 2 MB or page aligned, the stride a
        // multiple of 64) and zero-initialised memory is a valid `Meta`.
        unsafe { &mut *self.at(idx, 0).cast::<Meta>() }
    }
}
