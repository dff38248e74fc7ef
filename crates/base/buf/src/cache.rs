//! One thread's private stack of free buffers, refilled from and spilled to the shared list by whole batches.

use crate::Pool;
use crate::ring::BATCH;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A cache keeps at most this many buffers before it spills.
const KEEP: usize = 512;

/// Fewer buffers than this are given back one by one.
const FEW: usize = 8;

/// A cache's own hold on its pool: whoever counts it counts on a line of the cache's owner, not on one that all share.
#[repr(align(64))]
pub struct OwnPool(Arc<Pool>);

impl Deref for OwnPool {
    type Target = Pool;

    fn deref(&self) -> &Pool {
        &self.0
    }
}

/// A thread's free cache. Dropping it gives everything back.
pub struct Cache {
    pool: Arc<Pool>,
    own: Arc<OwnPool>,
    stack: Vec<u32>,
    published: Arc<AtomicU64>,
}

impl Cache {
    pub(crate) fn new(pool: Arc<Pool>) -> Self {
        let published = Arc::new(AtomicU64::new(0));
        pool.cached
            .write()
            .unwrap_or_else(|e| e.into_inner())
            .push(published.clone());
        let mut stack = Vec::with_capacity(4 * 1024 + BATCH);
        stack.append(&mut pool.leftovers.write().unwrap_or_else(|e| e.into_inner()));
        let cache = Cache {
            own: Arc::new(OwnPool(pool.clone())),
            pool,
            stack,
            published,
        };
        cache.publish();
        cache
    }

    /// The pool behind the cache.
    #[inline(always)]
    pub fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// The same, to be held while the cache changes.
    #[inline(always)]
    pub fn own_pool(&self) -> Arc<OwnPool> {
        self.own.clone()
    }

    /// Fill `out` with fresh buffers; returns how many there were. A shortfall is counted as one failure.
    pub fn alloc(&mut self, out: &mut [u32]) -> usize {
        while self.stack.len() < out.len() {
            let mut batch = [0; BATCH];
            if !self.pool.ring.pop(&mut batch) {
                break;
            }
            self.stack.extend_from_slice(&batch);
        }
        let n = out.len().min(self.stack.len());
        let left = self.stack.len() - n;
        out[..n].copy_from_slice(&self.stack[left..]);
        self.stack.truncate(left);
        if n < out.len() {
            self.pool.failures.fetch_add(1, Ordering::Relaxed);
        }
        self.publish();
        n
    }

    /// Take buffers back. Chains are the caller's matter: each member is freed by its own index.
    #[inline]
    pub fn free(&mut self, buffers: &[u32]) {
        // A handful: a call of memcpy costs more than they do.
        if buffers.len() < FEW && self.stack.len() < KEEP {
            for &buffer in buffers {
                self.stack.push(buffer);
            }
            return self.publish();
        }
        self.free_many(buffers);
    }

    #[inline(never)]
    fn free_many(&mut self, buffers: &[u32]) {
        for part in buffers.chunks(1024) {
            self.stack.extend_from_slice(part);
            while self.stack.len() > KEEP && self.spill() {}
        }
        self.publish();
    }

    /// Give the top batch to the shared list; false when there is no whole batch or no room.
    fn spill(&mut self) -> bool {
        let Some(left) = self.stack.len().checked_sub(BATCH) else {
            return false;
        };
        let mut batch = [0; BATCH];
        batch.copy_from_slice(&self.stack[left..]);
        let taken = self.pool.ring.push(&batch);
        if taken {
            self.stack.truncate(left);
        }
        taken
    }

    /// Buffers in this cache.
    pub fn len(&self) -> usize {
        self.stack.len()
    }

    /// Whether this cache is empty.
    pub fn is_empty(&self) -> bool {
        self.stack.is_empty()
    }

    #[inline(always)]
    fn publish(&self) {
        self.published
            .store(self.stack.len() as u64, Ordering::Relaxed);
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
        for batch in self.stack.chunks(BATCH) {
            match batch.try_into() {
                Ok(whole) if self.pool.ring.push(whole) => {}
                _ => self
                    .pool
                    .leftovers
                    .write()
                    .unwrap_or_else(|e| e.into_inner())
                    .extend_from_slice(batch),
            }
        }
        let mut caches = self.pool.cached.write().unwrap_or_else(|e| e.into_inner());
        caches.retain(|words| !Arc::ptr_eq(words, &self.published));
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::{Meta, NO_BUFFER, START};

    #[test]
    fn running_out_is_counted_and_nothing_is_lost() {
        let pool = Pool::new(128).unwrap();
        let mut cache = pool.cache();
        let mut got = [0; 200];
        assert_eq!(cache.alloc(&mut got), 128);
        assert_eq!(pool.report().in_use(), 128);
        assert_eq!(pool.report().failures, 1);
        let mut seen = got[..128].to_vec();
        seen.sort_unstable();
        assert_eq!(seen, (0..128).collect::<Vec<_>>());
        cache.free(&got[..128]);
        assert_eq!(pool.report().in_use(), 0);
    }

    #[test]
    fn a_dropped_cache_keeps_the_account() {
        let pool = Pool::new(640).unwrap();
        let mut cache = pool.cache();
        let mut got = [0; 100];
        assert_eq!(cache.alloc(&mut got), 100);
        cache.free(&got);
        drop(cache);
        assert_eq!(pool.report().in_use(), 0);
        let counters = pool.cached.read().unwrap_or_else(|e| e.into_inner()).len();
        assert_eq!(counters, 0);
        let mut all = [0; 640];
        assert_eq!(
            pool.cache().alloc(&mut all),
            640,
            "what a cache left behind is found again"
        );
    }

    #[test]
    fn threads_share_one_pool() {
        let pool = Pool::new(4096).unwrap();
        std::thread::scope(|s| {
            for t in 0..3u32 {
                let pool = &pool;
                s.spawn(move || {
                    let mut cache = pool.cache();
                    let mut got = [0; 300];
                    for round in 0..2000u32 {
                        let n = cache.alloc(&mut got);
                        for &idx in &got[..n] {
                            // SAFETY: the index is ours until freed.
                            unsafe { pool.at(idx, START).cast::<u32>().write(t << 24 | round) };
                        }
                        for &idx in &got[..n] {
                            // SAFETY: as above.
                            assert_eq!(
                                unsafe { pool.at(idx, START).cast::<u32>().read() },
                                t << 24 | round
                            );
                        }
                        cache.free(&got[..n]);
                    }
                });
            }
        });
        assert_eq!(pool.report().in_use(), 0);
    }

    #[test]
    fn metadata_is_writable_and_aligned() {
        let pool = Pool::new(64).unwrap();
        let mut got = [0; 1];
        assert_eq!(pool.cache().alloc(&mut got), 1);
        // SAFETY: the index is ours.
        let meta = unsafe { pool.meta(got[0]) };
        *meta = Meta::default();
        assert_eq!(meta.next, NO_BUFFER);
        assert_eq!(std::ptr::from_ref(meta) as usize % 64, 0);
    }

    #[test]
    fn silly_sizes_are_refused_in_one_sentence() {
        let text = Pool::new(1)
            .err()
            .map(|e| e.to_string())
            .unwrap_or_default();
        assert_eq!(
            text,
            "1 packet buffers are out of range: choose 64 to 16777216"
        );
    }
}
