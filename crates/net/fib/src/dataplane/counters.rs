//! Counters of leaves: the packets that followed a route, and their bytes.
//!
//! While no route is counted, the arrays are empty: a worker sees that once for each vector, and counts nothing. Each worker
//! counts in its own array, whose pages contain nothing else. The control thread adds the arrays up. To grow, it publishes
//! longer arrays of zeros; it adds the counters of the shorter ones to its own part of the sums when no worker counts in them
//! any more. So no packet is lost. The end of an array that no leaf uses yet takes no memory.

use std::collections::VecDeque;
use std::ops::Add;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use volley_tables::{Domain, Guard, Pages, Publisher, Snap};

/// Leaves for which there are counters at least.
const FIRST: usize = 64;

/// Packets, and their bytes from the IP header on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RouteCount {
    /// Packets.
    pub packets: u64,
    /// Bytes.
    pub bytes: u64,
}

impl Add for RouteCount {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        RouteCount {
            packets: self.packets.wrapping_add(other.packets),
            bytes: self.bytes.wrapping_add(other.bytes),
        }
    }
}

/// The counters of a leaf on one worker: packets and bytes.
type Cell = [AtomicU64; 2];

/// The counters of one worker, by leaf.
type Cells = Arc<Pages<Cell>>;

/// Adds to a cell by its only writer.
#[inline(always)]
fn add([packets, bytes]: &Cell, more: (u64, u64)) {
    let add = |cell: &AtomicU64, by| {
        let now = cell.load(Ordering::Relaxed);
        cell.store(now.wrapping_add(by), Ordering::Relaxed);
    };
    add(packets, more.0);
    add(bytes, more.1);
}

fn read([packets, bytes]: &Cell) -> RouteCount {
    RouteCount {
        packets: packets.load(Ordering::Relaxed),
        bytes: bytes.load(Ordering::Relaxed),
    }
}

/// Counters of zero for a number of leaves.
fn cells(leaves: usize) -> Cells {
    Arc::new(Pages::new(leaves))
}

/// Control thread's side.
pub(crate) struct LeafCounters {
    domain: Arc<Domain>,
    workers: Vec<Publisher<Cells>>,
    /// Leaves that are or were in use.
    used: usize,
    /// Leaves for which there are counters; 0 while packets are not counted.
    leaves: usize,
    /// Shorter arrays, each with the ticket of its replacement.
    replaced: VecDeque<(u64, Cells)>,
    /// What the sum over all arrays lacks to the count of each leaf; leaves after its end lack nothing.
    base: Vec<RouteCount>,
}

impl LeafCounters {
    pub fn new(domain: &Arc<Domain>, workers: usize) -> Self {
        let publisher = |_| Publisher::new(domain, cells(0));
        Self {
            domain: domain.clone(),
            workers: (0..workers).map(publisher).collect(),
            used: 0,
            leaves: 0,
            replaced: VecDeque::new(),
            base: Vec::new(),
        }
    }

    /// Whether packets are counted.
    pub fn is_on(&self) -> bool {
        self.leaves != 0
    }

    /// Counts packets from now on, from zero, or no longer.
    pub fn set_on(&mut self, on: bool) {
        match (self.is_on(), on) {
            (false, true) => self.grow(self.used),
            (true, false) => {
                for worker in &mut self.workers {
                    worker.publish(cells(0));
                }
                self.leaves = 0;
                self.replaced.clear();
                self.base = Vec::new();
            }
            _ => {}
        }
    }

    /// Makes room for more leaves at once: an array that grows step by step leaves several of half its length behind.
    pub fn reserve(&mut self, more: usize) {
        if self.is_on() && self.used + more > self.leaves {
            self.grow(self.used + more);
        }
    }

    /// A leaf is in use from now on: its count begins at zero. No worker counts on it yet.
    pub fn begin(&mut self, leaf: u32) {
        let at = leaf as usize;
        if at >= self.used {
            self.used = at + 1;
            if self.is_on() && at >= self.leaves {
                self.grow(self.used);
            }
            return;
        }
        let now = self.workers.iter().map(|worker| worker.current());
        let arrays = now.chain(self.replaced.iter().map(|(_, cells)| cells));
        for cell in arrays.filter_map(|cells| cells.get(at)) {
            // A store would give memory to a page that no packet has needed.
            if read(cell) != RouteCount::default() {
                cell.iter()
                    .for_each(|count| count.store(0, Ordering::Relaxed));
            }
        }
        if let Some(base) = self.base.get_mut(at) {
            *base = RouteCount::default();
        }
    }

    /// The count of a leaf that workers may count on begins at zero again.
    pub fn restart(&mut self, leaf: u32) {
        if !self.is_on() {
            return;
        }
        let counted = self.of_arrays(leaf);
        *self.base_of(leaf as usize) = RouteCount {
            packets: counted.packets.wrapping_neg(),
            bytes: counted.bytes.wrapping_neg(),
        };
    }

    fn base_of(&mut self, at: usize) -> &mut RouteCount {
        if self.base.len() <= at {
            self.base.resize(at + 1, RouteCount::default());
        }
        &mut self.base[at]
    }

    /// Publishes arrays for this many leaves.
    fn grow(&mut self, leaves: usize) {
        let leaves = leaves.next_power_of_two().max(FIRST);
        for worker in &mut self.workers {
            let old = worker.current().clone();
            let ticket = worker.publish(cells(leaves));
            if !old.is_empty() {
                self.replaced.push_back((ticket, old));
            }
        }
        self.leaves = leaves;
    }

    fn of_arrays(&self, leaf: u32) -> RouteCount {
        let now = self.workers.iter().map(|worker| worker.current());
        let arrays = now.chain(self.replaced.iter().map(|(_, cells)| cells));
        let counts = arrays.filter_map(|cells| cells.get(leaf as usize).map(read));
        counts.fold(RouteCount::default(), Add::add)
    }

    /// The count of a leaf.
    pub fn count(&self, leaf: u32) -> RouteCount {
        let base = self.base.get(leaf as usize).copied().unwrap_or_default();
        base + self.of_arrays(leaf)
    }

    /// Adds the counters of an array in which no worker counts any more to the sums: of one array in each call, because it may
    /// be long.
    pub fn reclaim(&mut self) {
        let next = self.replaced.front();
        if next.is_none_or(|(ticket, _)| !self.domain.passed(*ticket)) {
            return;
        }
        let Some((_, cells)) = self.replaced.pop_front() else {
            return;
        };
        for (at, count) in cells.iter().map(read).enumerate() {
            if count != RouteCount::default() {
                let base = self.base_of(at);
                *base = *base + count;
            }
        }
    }

    /// Bytes of the arrays; pages without counts take no memory.
    pub fn bytes(&self) -> usize {
        let arrays = self.workers.iter().map(|worker| worker.current().bytes());
        arrays.sum::<usize>() + self.base.len() * size_of::<RouteCount>()
    }

    /// Handles of the workers, by number.
    pub fn snaps(&self) -> Arc<[CounterSnap]> {
        let snap = |worker: &Publisher<Cells>| CounterSnap(Some(worker.snap()));
        self.workers.iter().map(snap).collect()
    }
}

/// Handle of one worker to its counters; the default one counts nothing.
#[derive(Clone, Default)]
pub struct CounterSnap(Option<Snap<Cells>>);

impl CounterSnap {
    /// The counters for one frame.
    #[inline(always)]
    pub fn read<'g>(&'g self, guard: Guard<'g>) -> CounterView<'g> {
        CounterView {
            cells: self.0.as_ref().map_or(&[], |snap| &**snap.read(guard)),
            snap: self,
            guard,
        }
    }
}

/// The counters of one worker during one frame.
#[derive(Clone, Copy)]
pub struct CounterView<'g> {
    cells: &'g [Cell],
    snap: &'g CounterSnap,
    guard: Guard<'g>,
}

impl CounterView<'_> {
    /// Whether packets are counted.
    #[inline(always)]
    pub fn is_on(&self) -> bool {
        !self.cells.is_empty()
    }

    /// Counts packets that follow the route of a leaf.
    #[inline(always)]
    pub fn add(&self, leaf: u32, packets: u64, bytes: u64) {
        match self.cells.get(leaf as usize) {
            Some(cell) => add(cell, (packets, bytes)),
            None => add_newest(self.snap, self.guard, leaf, (packets, bytes)),
        }
    }
}

/// Counts in an array that was published after the frame began: its first leaf is longer in use than the array. The view is
/// passed by value: a reference would keep its address in memory, to be loaded for each packet.
#[cold]
#[inline(never)]
fn add_newest(snap: &CounterSnap, guard: Guard<'_>, leaf: u32, more: (u64, u64)) {
    if let Some(cell) = snap.read(guard).cells.get(leaf as usize) {
        add(cell, more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(packets: u64, bytes: u64) -> RouteCount {
        RouteCount { packets, bytes }
    }

    #[test]
    fn growing_loses_no_packet_and_a_leaf_begins_at_zero() {
        let domain = Domain::new();
        let mut counters = LeafCounters::new(&domain, 2);
        let snaps = counters.snaps();
        let mut readers = [domain.register(), domain.register()];
        counters.begin(2);
        counters.set_on(true);
        counters.begin(3);
        let old = snaps[0].read(readers[0].guard());
        old.add(3, 1, 100);
        snaps[1].read(readers[1].guard()).add(3, 2, 50);
        assert_eq!(counters.count(3), count(3, 150));
        counters.begin(1000);
        // The frame began before the array grew.
        old.add(3, 1, 10);
        old.add(1000, 1, 7);
        old.add(5000, 1, 7);
        counters.reclaim();
        assert_eq!(counters.replaced.len(), 2);
        for reader in &mut readers {
            reader.quiescent();
        }
        assert_eq!(counters.count(3), count(4, 160));
        counters.reclaim();
        assert_eq!(counters.replaced.len(), 1, "one array in a call");
        assert_eq!(counters.count(3), count(4, 160));
        counters.reclaim();
        assert!(counters.replaced.is_empty());
        let new = snaps[0].read(readers[0].guard());
        for (leaf, len) in [(3, 1), (1000, 2), (3, 3)] {
            new.add(leaf, 1, len);
        }
        snaps[1].read(readers[1].guard()).add(3, 2, 50);
        assert_eq!(counters.count(3), count(8, 214));
        assert_eq!(counters.count(1000), count(2, 9));
        counters.begin(3);
        assert_eq!(counters.count(3), count(0, 0));
        snaps[0].read(readers[0].guard()).add(3, 1, 64);
        assert_eq!(counters.count(3), count(1, 64));
    }

    #[test]
    fn packets_are_counted_only_while_counters_are_on() {
        let domain = Domain::new();
        let mut counters = LeafCounters::new(&domain, 1);
        let snap = &counters.snaps()[0];
        let mut reader = domain.register();
        counters.begin(100);
        for round in 1..3 {
            let before = snap.read(reader.guard());
            assert!(!before.is_on());
            assert_eq!(counters.bytes(), 0);
            before.add(100, 1, 60);
            assert_eq!(counters.count(100), count(0, 0));
            counters.set_on(true);
            // The frame began before, and counts nothing or in the new array.
            before.add(100, 1, 60);
            let on = snap.read(reader.guard());
            assert!(on.is_on() && counters.is_on());
            on.add(100, round, 60 * round);
            reader.quiescent();
            counters.reclaim();
            assert_eq!(counters.count(100), count(1 + round, 60 + 60 * round));
            let on = snap.read(reader.guard());
            counters.set_on(false);
            on.add(100, 1, 60);
            reader.quiescent();
            counters.reclaim();
        }
    }

    #[test]
    fn a_count_restarts_under_a_worker_and_reserved_room_needs_no_growth() {
        let domain = Domain::new();
        let mut counters = LeafCounters::new(&domain, 1);
        let (snap, reader) = (&counters.snaps()[0], domain.register());
        counters.begin(7);
        counters.restart(7);
        counters.set_on(true);
        counters.reserve(1000);
        let published = counters.replaced.len();
        let view = snap.read(reader.guard());
        view.add(7, 2, 90);
        counters.restart(7);
        view.add(7, 1, 30);
        assert_eq!(counters.count(7), count(1, 30));
        (8..1000).for_each(|leaf| counters.begin(leaf));
        view.add(999, 4, 400);
        assert_eq!(counters.count(999), count(4, 400));
        assert_eq!(counters.replaced.len(), published);
        counters.begin(7);
        assert_eq!(counters.count(7), count(0, 0));
    }
}
