//! Counters of leaves: the packets that followed a route, and their bytes.
//!
//! While no route is counted, the arrays are empty: a worker sees that once for each vector, and counts nothing. Each worker counts in its own array, and no cache line contains counters of two workers. The control thread adds the
//! arrays up. To grow, it publishes longer arrays of zeros; it adds the counters of the shorter ones to its own part of the
//! sums when no worker counts in them any more. So no packet is lost.

use std::collections::VecDeque;
use std::ops::Add;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use volley_tables::{Domain, Guard, Publisher, Snap};

/// Counters at both ends of an array that are not used: a cache line each, because other memory begins and ends there.
const MARGIN: usize = 4;
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

/// The counters of a leaf on one worker.
#[derive(Default)]
#[repr(align(16))]
struct Cell {
    packets: AtomicU64,
    bytes: AtomicU64,
}

impl Cell {
    /// Adds by the only writer.
    #[inline(always)]
    fn add(&self, packets: u64, bytes: u64) {
        let add = |cell: &AtomicU64, by| {
            let now = cell.load(Ordering::Relaxed);
            cell.store(now.wrapping_add(by), Ordering::Relaxed);
        };
        add(&self.packets, packets);
        add(&self.bytes, bytes);
    }

    fn read(&self) -> RouteCount {
        RouteCount {
            packets: self.packets.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
        }
    }
}

/// The counters of one worker, leaf 0 behind the first [`MARGIN`].
type Cells = Arc<[Cell]>;

/// Counters of zero for a number of leaves; an empty array for none.
fn cells(leaves: usize) -> Cells {
    let margins = if leaves == 0 { 0 } else { 2 * MARGIN };
    (0..leaves + margins).map(|_| Cell::default()).collect()
}

/// The counters of a leaf. An array may have some at its end for leaves that are not in use yet: a longer array is published
/// before they are.
#[inline(always)]
fn cell(cells: &[Cell], leaf: u32) -> Option<&Cell> {
    cells.get(leaf as usize + MARGIN)
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
    /// What the sum over all arrays lacks to the count of each leaf.
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
            (false, true) => self.grow(),
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

    /// A leaf is in use from now on: its count begins at zero.
    pub fn begin(&mut self, leaf: u32) {
        let at = leaf as usize;
        self.used = self.used.max(at + 1);
        if !self.is_on() {
            return;
        }
        if at >= self.leaves {
            self.grow();
        }
        let counted = self.of_arrays(leaf);
        self.base[at] = RouteCount {
            packets: counted.packets.wrapping_neg(),
            bytes: counted.bytes.wrapping_neg(),
        };
    }

    /// Publishes arrays for all leaves in use.
    fn grow(&mut self) {
        let leaves = self.used.next_power_of_two().max(FIRST);
        for worker in &mut self.workers {
            let old = worker.current().clone();
            let ticket = worker.publish(cells(leaves));
            self.replaced.push_back((ticket, old));
        }
        self.base.resize(leaves, RouteCount::default());
        self.leaves = leaves;
    }

    fn of_arrays(&self, leaf: u32) -> RouteCount {
        let now = self.workers.iter().map(|worker| worker.current());
        let arrays = now.chain(self.replaced.iter().map(|(_, cells)| cells));
        let read = arrays.filter_map(|cells| Some(cell(cells, leaf)?.read()));
        read.fold(RouteCount::default(), Add::add)
    }

    /// The count of a leaf.
    pub fn count(&self, leaf: u32) -> RouteCount {
        let base = self.base.get(leaf as usize).copied().unwrap_or_default();
        base + self.of_arrays(leaf)
    }

    /// Adds the counters of arrays in which no worker counts any more to the sums.
    pub fn reclaim(&mut self) {
        while let Some((ticket, cells)) = self.replaced.front() {
            if !self.domain.passed(*ticket) {
                break;
            }
            // An empty array has no margin.
            for (base, cell) in self.base.iter_mut().zip(cells.iter().skip(MARGIN)) {
                *base = *base + cell.read();
            }
            self.replaced.pop_front();
        }
    }

    /// Bytes of the arrays.
    pub fn bytes(&self) -> usize {
        let cells = |worker: &Publisher<Cells>| worker.current().len() * size_of::<Cell>();
        let arrays: usize = self.workers.iter().map(cells).sum();
        arrays + self.base.len() * size_of::<RouteCount>()
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
            cells: self.0.as_ref().map_or(&[], |snap| snap.read(guard)),
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
        match cell(self.cells, leaf) {
            Some(cell) => cell.add(packets, bytes),
            None => add_newest(self.snap, self.guard, leaf, (packets, bytes)),
        }
    }
}

/// Counts in an array that was published after the frame began: its first leaf is longer in use than the array. The view is
/// passed by value: a reference would keep its address in memory, to be loaded for each packet.
#[cold]
#[inline(never)]
fn add_newest(snap: &CounterSnap, guard: Guard<'_>, leaf: u32, (packets, bytes): (u64, u64)) {
    if let Some(cell) = cell(snap.read(guard).cells, leaf) {
        cell.add(packets, bytes);
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
        // Of each worker the array before, and the empty one from before packets were counted.
        assert_eq!(counters.replaced.len(), 4);
        for reader in &mut readers {
            reader.quiescent();
        }
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
    fn workers_share_no_cache_line() {
        let cells = cells(FIRST);
        let of = |leaf| cell(&cells, leaf).unwrap();
        let (first, last) = (of(0), of(FIRST as u32 - 1));
        let line = |cell: &Cell| std::ptr::from_ref(cell).addr() / 64;
        assert!(line(first) > line(&cells[0]));
        assert!(line(last) < line(&cells[cells.len() - 1]));
    }
}
