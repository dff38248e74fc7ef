//! Load balances: leaf of the longest-prefix match -> [`Dpo`], and bucket groups for several next hops.
//!
//! All prefixes of one path list share a leaf, so one atomic store moves all of them. A group is a range of `2^n` buckets; a
//! changed group is written into a new range and activated by one store, and the old range is reused only after every worker
//! has passed a quiescent point. Leaf 0 is "no route" and never changes.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use volley_tables::{Domain, Guard};

use super::counters::LeafCounters;
use super::deferred::Slots;
use super::dpo::{Dpo, DpoKind};
use super::grow::{Grow, GrowSnap, GrowView};

/// Most buckets one group may have.
pub const MAX_BUCKETS: usize = 4096;

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
struct Range {
    offset: u32,
    log2: u8,
}

impl Range {
    fn word(self) -> u64 {
        u64::from(self.offset) << 32 | ((1u64 << self.log2) - 1)
    }
    fn len(self) -> usize {
        1 << self.log2
    }
}

/// Writer's side.
pub(crate) struct LoadBalances {
    domain: Arc<Domain>,
    lbs: Grow<AtomicU32>,
    groups: Grow<AtomicU64>,
    buckets: Grow<AtomicU32>,
    ids: Slots,
    /// Packets that followed each leaf.
    pub counters: LeafCounters,
    /// Range of each group, by leaf; leaves after the last group are not in it.
    ranges: Vec<Option<Range>>,
    free: Vec<Vec<u32>>,
    deferred: VecDeque<(u64, Range)>,
    next_bucket: u32,
    writes: u64,
}

impl LoadBalances {
    /// `workers` is the largest number of workers.
    pub fn new(domain: &Arc<Domain>, workers: usize) -> Self {
        Self {
            domain: domain.clone(),
            lbs: Grow::new(domain, 1024),
            groups: Grow::new(domain, 1024),
            buckets: Grow::new(domain, 1024),
            ids: Slots::new(domain, 1),
            counters: LeafCounters::new(domain, workers),
            ranges: Vec::new(),
            free: vec![Vec::new(); MAX_BUCKETS.ilog2() as usize + 1],
            deferred: VecDeque::new(),
            next_bucket: 0,
            writes: 0,
        }
    }

    /// Allocates a leaf, which drops until [`Self::set`].
    pub fn alloc(&mut self) -> u32 {
        let id = self.ids.take();
        let i = id as usize;
        self.lbs.cell(i).store(Dpo::NO_ROUTE.0, Ordering::Release);
        self.counters.begin(id);
        id
    }

    /// Makes room for more leaves at once.
    pub fn reserve(&mut self, more: usize) {
        self.counters.reserve(more);
    }

    /// Frees a leaf that no table and no load balance names any more.
    pub fn free(&mut self, id: u32) {
        self.drop_range(id);
        self.ids.give_back(id);
    }

    /// Points a leaf at one object.
    pub fn set(&mut self, id: u32, dpo: Dpo) {
        if self.dpo(id) == dpo {
            return;
        }
        self.store(id, dpo);
        if dpo != Dpo::new(DpoKind::Multi, id) {
            self.drop_range(id);
        }
    }

    /// Points a leaf at buckets; their number is a power of two up to [`MAX_BUCKETS`].
    pub fn set_buckets(&mut self, id: u32, dpos: &[Dpo]) {
        debug_assert!(dpos.len().is_power_of_two() && dpos.len() <= MAX_BUCKETS);
        let group = Dpo::new(DpoKind::Multi, id);
        if self.dpo(id) == group && self.group(id) == dpos {
            return;
        }
        if self.ranges.len() <= id as usize {
            self.ranges.resize(id as usize + 1, None);
        }
        let old = self.ranges[id as usize];
        let range = self.take_range(dpos.len());
        for (i, dpo) in dpos.iter().enumerate() {
            self.buckets
                .cell(range.offset as usize + i)
                .store(dpo.0, Ordering::Relaxed);
        }
        self.groups
            .cell(id as usize)
            .store(range.word(), Ordering::Release);
        self.writes += 1;
        self.ranges[id as usize] = Some(range);
        if self.dpo(id) != group {
            self.store(id, group);
        }
        if let Some(old) = old {
            self.deferred.push_back((self.domain.epoch(), old));
        }
    }

    fn store(&mut self, id: u32, dpo: Dpo) {
        self.lbs.cell(id as usize).store(dpo.0, Ordering::Release);
        self.writes += 1;
    }

    /// The object of a leaf.
    pub fn dpo(&self, id: u32) -> Dpo {
        self.lbs
            .get(id as usize)
            .map_or(Dpo::NO_ROUTE, |c| Dpo(c.load(Ordering::Relaxed)))
    }

    /// The buckets of a leaf's group; empty when it has none.
    pub fn group(&self, id: u32) -> Vec<Dpo> {
        let Some(range) = self.ranges.get(id as usize).copied().flatten() else {
            return Vec::new();
        };
        let at = range.offset as usize;
        let word = |i| {
            self.buckets
                .get(i)
                .map_or(0, |c: &AtomicU32| c.load(Ordering::Relaxed))
        };
        (at..at + range.len()).map(|i| Dpo(word(i))).collect()
    }

    fn drop_range(&mut self, id: u32) {
        if let Some(range) = self.ranges.get_mut(id as usize).and_then(Option::take) {
            self.deferred.push_back((self.domain.epoch(), range));
        }
    }

    fn take_range(&mut self, len: usize) -> Range {
        self.reclaim();
        let log2 = len.ilog2() as u8;
        let offset = self.free[log2 as usize].pop().unwrap_or_else(|| {
            let at = self.next_bucket;
            self.next_bucket += len as u32;
            self.buckets.reserve(self.next_bucket as usize);
            at
        });
        Range { offset, log2 }
    }

    /// Frees the leaves and ranges whose grace period has passed.
    pub fn reclaim(&mut self) {
        while let Some(&(ticket, range)) = self.deferred.front() {
            if !self.domain.passed(ticket) {
                break;
            }
            self.deferred.pop_front();
            self.free[range.log2 as usize].push(range.offset);
        }
        self.ids.reclaim();
        self.counters.reclaim();
    }

    /// Stores to load balances and groups so far.
    pub fn writes(&self) -> u64 {
        self.writes
    }

    /// Leaves and ranges in their grace period.
    pub fn waiting(&self) -> usize {
        self.deferred.len() + self.ids.waiting()
    }

    /// Bytes of the arrays that workers read.
    pub fn bytes(&self) -> usize {
        let counters = self.counters.bytes();
        self.lbs.bytes() + self.groups.bytes() + self.buckets.bytes() + counters
    }

    /// Reader handle.
    pub fn snap(&self) -> LbSnap {
        LbSnap {
            lbs: self.lbs.snap(),
            groups: self.groups.snap(),
            buckets: self.buckets.snap(),
        }
    }
}

/// Reader handle of the load balances.
#[derive(Clone)]
pub struct LbSnap {
    lbs: GrowSnap<AtomicU32>,
    groups: GrowSnap<AtomicU64>,
    buckets: GrowSnap<AtomicU32>,
}

impl LbSnap {
    /// The load balances for one frame.
    #[inline(always)]
    pub fn read<'g>(&'g self, guard: Guard<'g>) -> LbView<'g> {
        LbView {
            leaves: self.leaves(guard),
            groups: self.groups.read(guard),
            buckets: self.buckets.read(guard),
        }
    }

    /// The objects of leaves alone, for one frame.
    #[inline(always)]
    pub fn leaves<'g>(&'g self, guard: Guard<'g>) -> LeafView<'g> {
        LeafView(self.lbs.read(guard))
    }
}

/// The objects of leaves as one worker reads them during one frame.
#[derive(Copy, Clone)]
pub struct LeafView<'g>(GrowView<'g, AtomicU32>);

/// The load balances as one worker reads them during one frame.
#[derive(Copy, Clone)]
pub struct LbView<'g> {
    leaves: LeafView<'g>,
    groups: GrowView<'g, AtomicU64>,
    buckets: GrowView<'g, AtomicU32>,
}

impl LeafView<'_> {
    /// The object of a leaf; a leaf that does not exist is "no route".
    #[inline(always)]
    pub fn resolve(&self, leaf: u32) -> Dpo {
        Dpo(self
            .0
            .get(leaf as usize)
            .map_or(0, |c| c.load(Ordering::Acquire)))
    }

    /// [`Self::resolve`] for a column; only as many rows as the shorter slice has.
    #[inline(always)]
    pub fn resolve_batch(&self, leaf: &[u32], dpo: &mut [u32]) {
        let n = leaf.len().min(dpo.len());
        let (eights, rest) = leaf[..n].as_chunks::<8>();
        let (to, to_rest) = dpo[..n].as_chunks_mut::<8>();
        // A local copy: otherwise the compiler reloads the array's address after every store to `dpo`.
        let leaves = self.0;
        for (leaf, dpo) in eights.iter().zip(to) {
            for k in 0..8 {
                let cell = leaves.get(leaf[k] as usize);
                dpo[k] = cell.map_or(0, |c| c.load(Ordering::Acquire));
            }
        }
        for (&leaf, dpo) in rest.iter().zip(to_rest) {
            *dpo = self.resolve(leaf).0;
        }
    }
}

impl LbView<'_> {
    /// [`LeafView::resolve`].
    #[inline(always)]
    pub fn resolve(&self, leaf: u32) -> Dpo {
        self.leaves.resolve(leaf)
    }

    /// [`LeafView::resolve_batch`].
    #[inline(always)]
    pub fn resolve_batch(&self, leaf: &[u32], dpo: &mut [u32]) {
        self.leaves.resolve_batch(leaf, dpo);
    }

    /// The bucket of a `Multi` object for a flow hash. The result may be `Multi` again (a recursive route over several
    /// next hops): then pick once more with the hash shifted right by one.
    #[inline(always)]
    pub fn pick(&self, multi: Dpo, hash: u32) -> Dpo {
        let group = self
            .groups
            .get(multi.index() as usize)
            .map_or(0, |c| c.load(Ordering::Acquire));
        let bucket = (group >> 32) as u32 + (hash & group as u32);
        Dpo(self
            .buckets
            .get(bucket as usize)
            .map_or(0, |c| c.load(Ordering::Acquire)))
    }

    /// Picks until the object is not `Multi`, shifting the hash by one per level (at most 31 levels).
    #[inline(always)]
    pub fn pick_through(&self, mut dpo: Dpo, mut hash: u32) -> Dpo {
        for _ in 0..31 {
            if dpo.kind() != DpoKind::Multi {
                return dpo;
            }
            dpo = self.pick(dpo, hash);
            hash >>= 1;
        }
        Dpo::NO_ROUTE
    }

    /// Number of buckets of a `Multi` object.
    pub fn buckets(&self, multi: Dpo) -> usize {
        let group = self
            .groups
            .get(multi.index() as usize)
            .map_or(0, |c| c.load(Ordering::Acquire));
        (group as u32) as usize + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataplane::dpo::DropWhy;

    fn adj(i: u32) -> Dpo {
        Dpo::new(DpoKind::Adj, i)
    }

    #[test]
    fn a_store_is_seen_by_a_reader_that_began_before_the_array_grew() {
        let domain = Domain::new();
        let mut lbs = LoadBalances::new(&domain, 1);
        let reader = domain.register();
        let snap = lbs.snap();
        let view = snap.read(reader.guard());
        let ids: Vec<u32> = (0..5000).map(|_| lbs.alloc()).collect();
        for &id in &ids {
            lbs.set(id, adj(id));
        }
        let last = ids[4999];
        assert_eq!(view.resolve(last), adj(last));
        assert_eq!(view.resolve(0), Dpo::NO_ROUTE);
        assert_eq!(view.resolve(u32::MAX), Dpo::NO_ROUTE);
        let mut out = [7u32; 3];
        view.resolve_batch(&[last, 0, 1 << 30], &mut out);
        assert_eq!(out, [adj(last).0, 0, 0]);
    }

    #[test]
    fn a_changed_group_takes_a_new_range_and_the_old_one_waits_for_the_reader() {
        let domain = Domain::new();
        let mut lbs = LoadBalances::new(&domain, 1);
        let mut reader = domain.register();
        let id = lbs.alloc();
        lbs.set_buckets(id, &[adj(1), adj(2)]);
        let snap = lbs.snap();
        let multi = lbs.dpo(id);
        {
            let view = snap.read(reader.guard());
            assert_eq!((view.pick(multi, 0), view.pick(multi, 7)), (adj(1), adj(2)));
            lbs.set_buckets(id, &[adj(3), adj(4), adj(4), adj(4)]);
            assert_eq!(view.buckets(multi), 4);
            assert_eq!((view.pick(multi, 0), view.pick(multi, 5)), (adj(3), adj(4)));
            lbs.set(id, adj(9));
            assert_eq!(view.pick(multi, 0), adj(3), "old range stays readable");
            lbs.reclaim();
            assert_eq!(lbs.waiting(), 2);
        }
        reader.quiescent();
        lbs.reclaim();
        assert_eq!(lbs.waiting(), 0);
    }

    #[test]
    fn nested_groups_shift_the_hash_once_per_level() {
        let domain = Domain::new();
        let mut lbs = LoadBalances::new(&domain, 1);
        let reader = domain.register();
        let (inner, outer) = (lbs.alloc(), lbs.alloc());
        lbs.set_buckets(inner, &[adj(1), adj(2)]);
        lbs.set_buckets(outer, &[lbs.dpo(inner), Dpo::drop(DropWhy::Blackhole)]);
        let snap = lbs.snap();
        let view = snap.read(reader.guard());
        let pick = |hash| view.pick_through(lbs.dpo(outer), hash);
        assert_eq!(pick(0b00), adj(1));
        assert_eq!(pick(0b10), adj(2));
        assert_eq!(pick(0b01), Dpo::drop(DropWhy::Blackhole));
    }

    #[test]
    fn freed_leaves_come_back_only_after_the_readers_passed() {
        let domain = Domain::new();
        let mut lbs = LoadBalances::new(&domain, 1);
        let mut reader = domain.register();
        let id = lbs.alloc();
        lbs.set(id, adj(1));
        lbs.free(id);
        assert_ne!(lbs.alloc(), id);
        reader.quiescent();
        assert_eq!(lbs.alloc(), id);
    }
}
