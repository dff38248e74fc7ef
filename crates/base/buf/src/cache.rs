//! One thread's private stack of free buffers, refilled from the shared list and spilled to it in whole batches.

use crate::Pool;
use crate::pool::Account;
use crate::ring::BATCH;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// A cache keeps at most this many buffers before it spills.
const KEEP: usize = 512;

/// Fewer buffers than this are freed one by one.
const FEW: usize = 8;

/// A cache's own reference to its pool: its clones count on a cache line of the owner, not on one that all workers share.
#[repr(align(64))]
pub struct OwnPool(Arc<Pool>);

impl Deref for OwnPool {
    type Target = Pool;

    fn deref(&self) -> &Pool {
        &self.0
    }
}

/// A thread's free cache. Dropping it returns all its buffers to the pool.
///
/// The cache takes buffers of its thread's memory node and, when there are none left, of other nodes. Freed buffers of other
/// nodes return to the free lists of those nodes.
pub struct Cache {
    pool: Arc<Pool>,
    own: Arc<OwnPool>,
    /// Position of the cache's node in the pool.
    home: usize,
    /// Free buffers of the cache's node.
    stack: Vec<u32>,
    /// Free buffers of each other node, less than a batch each; empty on a machine with one node.
    away: Vec<Vec<u32>>,
    /// Fewer buffers than this are freed one by one: zero where buffers may belong to another node.
    few: usize,
    account: Arc<Account>,
}

impl Cache {
    pub(crate) fn new(pool: Arc<Pool>) -> Self {
        let others = match pool.nodes().len() {
            1 => 0,
            nodes => nodes,
        };
        let account = Arc::new(Account {
            home: AtomicUsize::new(0),
            own: AtomicU64::new(0),
            away: (0..others).map(|_| AtomicU64::new(0)).collect(),
        });
        pool.cached
            .write()
            .unwrap_or_else(|e| e.into_inner())
            .push(account.clone());
        let left = std::mem::take(&mut *pool.leftovers.write().unwrap_or_else(|e| e.into_inner()));
        let mut cache = Cache {
            own: Arc::new(OwnPool(pool.clone())),
            pool,
            home: 0,
            stack: Vec::with_capacity(4 * 1024 + BATCH),
            away: (0..others).map(|_| Vec::with_capacity(4 * BATCH)).collect(),
            few: if others == 0 { FEW } else { 0 },
            account,
        };
        cache.sort(&left);
        cache.publish();
        cache
    }

    /// Sets the thread's memory node: buffers are allocated from it. A node without a part of the pool is ignored.
    pub fn move_to(&mut self, node: u32) {
        let Some(home) = self.pool.nodes().iter().position(|n| *n == node) else {
            return;
        };
        let all: Vec<u32> = self.stack.drain(..).collect();
        self.publish();
        self.home = home;
        self.account.home.store(home, Ordering::Relaxed);
        self.sort(&all);
        self.publish();
    }

    /// The pool behind the cache.
    #[inline(always)]
    pub fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// A reference to the pool that can be held while the cache changes.
    #[inline(always)]
    pub fn own_pool(&self) -> Arc<OwnPool> {
        self.own.clone()
    }

    /// Fill `out` with new buffers; returns how many were available. A shortfall is counted as one failure.
    pub fn alloc(&mut self, out: &mut [u32]) -> usize {
        while self.stack.len() < out.len() {
            let mut batch = [0; BATCH];
            if !self.pool.rings[self.home].pop(&mut batch) {
                break;
            }
            self.stack.extend_from_slice(&batch);
        }
        let mut n = out.len().min(self.stack.len());
        let left = self.stack.len() - n;
        out[..n].copy_from_slice(&self.stack[left..]);
        self.stack.truncate(left);
        if n < out.len() {
            n += self.borrow(&mut out[n..]);
        }
        self.publish();
        n
    }

    /// Allocates buffers of other nodes.
    #[cold]
    fn borrow(&mut self, out: &mut [u32]) -> usize {
        let mut n = 0;
        for (at, others) in self.away.iter_mut().enumerate() {
            while n < out.len() {
                let mut batch = [0; BATCH];
                if others.is_empty() && self.pool.rings[at].pop(&mut batch) {
                    others.extend_from_slice(&batch);
                }
                let Some(one) = others.pop() else { break };
                out[n] = one;
                n += 1;
            }
        }
        if n < out.len() {
            self.pool.failures[self.home].fetch_add(1, Ordering::Relaxed);
        }
        self.publish_away();
        n
    }

    /// Frees buffers. The members of a chain are freed by the caller, each by its own index.
    #[inline]
    pub fn free(&mut self, buffers: &[u32]) {
        // Few buffers: a call of memcpy costs more than single stores.
        if buffers.len() < self.few && self.stack.len() < KEEP {
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
            self.sort(part);
            while self.stack.len() > KEEP && self.spill() {}
        }
        self.publish();
    }

    /// Sorts freed buffers to the stacks of their nodes.
    #[inline]
    fn sort(&mut self, buffers: &[u32]) {
        if self.away.is_empty() {
            return self.stack.extend_from_slice(buffers);
        }
        self.sort_nodes(buffers);
    }

    #[inline(never)]
    fn sort_nodes(&mut self, buffers: &[u32]) {
        for &buffer in buffers {
            let at = self.pool.home_of(buffer);
            if at == self.home {
                self.stack.push(buffer);
                continue;
            }
            let others = &mut self.away[at];
            others.push(buffer);
            let left = others.len().saturating_sub(BATCH);
            if let Ok(batch) = others[left..].try_into()
                && self.pool.rings[at].push(batch)
            {
                others.truncate(left);
            }
        }
        self.publish_away();
    }

    /// Moves the top batch to the shared list; false when there is no whole batch or the list is full.
    fn spill(&mut self) -> bool {
        let Some(left) = self.stack.len().checked_sub(BATCH) else {
            return false;
        };
        let mut batch = [0; BATCH];
        batch.copy_from_slice(&self.stack[left..]);
        let taken = self.pool.rings[self.home].push(&batch);
        if taken {
            self.stack.truncate(left);
        }
        taken
    }

    /// Buffers of the cache's own node in the cache.
    pub fn len(&self) -> usize {
        self.stack.len()
    }

    /// Whether this cache is empty.
    pub fn is_empty(&self) -> bool {
        self.stack.is_empty()
    }

    #[inline(always)]
    fn publish(&self) {
        self.account
            .own
            .store(self.stack.len() as u64, Ordering::Relaxed);
    }

    fn publish_away(&self) {
        for (there, others) in self.account.away.iter().zip(&self.away) {
            there.store(others.len() as u64, Ordering::Relaxed);
        }
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
        let mut left = self
            .pool
            .leftovers
            .write()
            .unwrap_or_else(|e| e.into_inner());
        let own = std::iter::once((self.home, &self.stack));
        for (at, all) in own.chain(self.away.iter().enumerate()) {
            for batch in all.chunks(BATCH) {
                match batch.try_into() {
                    Ok(whole) if self.pool.rings[at].push(whole) => {}
                    _ => left.extend_from_slice(batch),
                }
            }
        }
        drop(left);
        let mut caches = self.pool.cached.write().unwrap_or_else(|e| e.into_inner());
        caches.retain(|account| !Arc::ptr_eq(account, &self.account));
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

    /// Page faults of this thread.
    fn faults() -> u64 {
        let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
        let behind_name = stat.rsplit_once(") ").unwrap().1;
        behind_name.split(' ').nth(7).unwrap().parse().unwrap()
    }

    #[test]
    fn no_worker_waits_for_a_page() {
        const BUFFERS: u32 = 32_768;
        let pool = Pool::new(BUFFERS as usize).unwrap();
        let before = faults();
        for idx in 0..BUFFERS {
            // SAFETY: no other owner of a buffer of this pool exists.
            unsafe { pool.at(idx, 0).write_volatile(1) };
        }
        // The pool has 19,000 plain pages, or 38 large ones. The kernel takes a few away to see whether they are used.
        let waited = faults() - before;
        assert!(waited < 19, "{waited} pages");
    }

    fn used(pool: &Pool) -> Vec<usize> {
        pool.reports().iter().map(|r| r.in_use()).collect()
    }

    #[test]
    fn each_thread_has_buffers_of_its_own_node_and_others_go_home() {
        let touched = std::sync::Mutex::new(Vec::new());
        let on = |node: u32, touch: &mut (dyn FnMut() + Send)| {
            touched.lock().unwrap().push(node);
            touch();
        };
        let pool = Pool::on_nodes(640, &[0, 3], &on).unwrap();
        assert_eq!(*touched.lock().unwrap(), [0, 3]);
        let (mut near, mut far) = (pool.cache(), pool.cache());
        far.move_to(3);
        far.move_to(7);
        let mut got = [0; 300];
        assert_eq!(far.alloc(&mut got), 300);
        assert!(got.iter().all(|b| (640..1280).contains(b)));
        assert_eq!(used(&pool), [0, 300]);
        // A cache on the other node frees them, in groups of all sizes.
        for part in got.chunks(7) {
            near.free(part);
        }
        assert_eq!((used(&pool), near.len()), (vec![0, 0], 0));
        let mut mine = [0; 128];
        assert_eq!(near.alloc(&mut mine), 128);
        assert!(mine.iter().all(|b| *b < 640));
        near.free(&mine);
        drop((near, far));
        assert_eq!(pool.report().in_use(), 0);
    }

    #[test]
    fn a_node_without_buffers_borrows_and_gives_back() {
        let pool = Pool::on_nodes(64, &[0, 1], &|_, touch| touch()).unwrap();
        let mut cache = pool.cache();
        let mut got = [0; 200];
        assert_eq!(cache.alloc(&mut got), 128);
        assert_eq!((used(&pool), pool.report().failures), (vec![64, 64], 1));
        let mut seen = got[..128].to_vec();
        seen.sort_unstable();
        assert_eq!(seen, (0..128).collect::<Vec<_>>());
        cache.free(&got[..128]);
        assert_eq!((used(&pool), cache.len()), (vec![0, 0], 64));
        let mut few = [0; 65];
        assert_eq!(cache.alloc(&mut few), 65);
        assert_eq!(used(&pool), [64, 1]);
        cache.free(&few);
        drop(cache);
        assert_eq!(pool.cache().alloc(&mut got), 128, "a whole pool");
    }

    #[test]
    fn threads_share_one_pool() {
        share(&Pool::new(4096).unwrap());
        share(&Pool::on_nodes(2048, &[0, 1], &|_, touch| touch()).unwrap());
    }

    fn share(pool: &Arc<Pool>) {
        std::thread::scope(|s| {
            for t in 0..3u32 {
                s.spawn(move || {
                    let mut cache = pool.cache();
                    cache.move_to(t % 2);
                    let mut got = [0; 300];
                    for round in 0..2000u32 {
                        let n = cache.alloc(&mut got);
                        for &idx in &got[..n] {
                            // SAFETY: this thread owns the index until it frees it.
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
        // SAFETY: the test owns the index.
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
