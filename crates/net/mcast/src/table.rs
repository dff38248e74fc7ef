//! Multicast routes of one family: the control thread's side, and what workers read.
//!
//! Everything is published as one value: a worker sees all of a change or nothing of it. A route keeps its number as long as it
//! is there, whatever becomes of its interfaces. Where one is gone another may stand in its place, but under another number: one
//! that travels with a packet from node to node names that route or none.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use volley_fib::Family;
use volley_graph::MAX_WORKERS;
use volley_tables::{Domain, Publisher, Snap};

/// Multicast routes of one IP version.
pub(crate) const MROUTES: usize = 16_384;
/// Bits of a number that are the place; the others tell routes apart that had the place one after the other.
const PLACE_BITS: u32 = 17;
const PLACE: u32 = (1 << PLACE_BITS) - 1;

const _: () = assert!(MROUTES < PLACE as usize);

/// What a route is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name<F: Family> {
    /// Index of the table.
    pub table: u32,
    /// The first of its groups.
    pub group: F::Addr,
    /// How many bits all its groups have in common.
    pub len: u8,
    /// Its source; none = any.
    pub source: Option<F::Addr>,
}

/// What one worker counted.
#[derive(Default)]
#[repr(align(64))]
struct Cells {
    packets: AtomicU64,
    bytes: AtomicU64,
    wrong: AtomicU64,
}

/// What a route carried. Counters of one worker are written by that worker only.
pub struct Counts(Box<[Cells]>);

/// What a route carried, all workers together.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Sums {
    /// Packets that came by an accepting interface.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Packets that came by another one.
    pub wrong: u64,
}

fn bump(cell: &AtomicU64, by: u64) {
    cell.store(cell.load(Relaxed).wrapping_add(by), Relaxed);
}

impl Counts {
    fn new(workers: usize) -> Arc<Self> {
        let workers = workers.clamp(1, MAX_WORKERS);
        Arc::new(Counts((0..workers).map(|_| Cells::default()).collect()))
    }

    pub(crate) fn passed(&self, worker: usize, bytes: u64) {
        if let Some(cells) = self.0.get(worker) {
            bump(&cells.packets, 1);
            bump(&cells.bytes, bytes);
        }
    }

    pub(crate) fn refused(&self, worker: usize) {
        if let Some(cells) = self.0.get(worker) {
            bump(&cells.wrong, 1);
        }
    }

    /// All workers together.
    pub fn sums(&self) -> Sums {
        self.0.iter().fold(Sums::default(), |sum, cells| Sums {
            packets: sum.packets + cells.packets.load(Relaxed),
            bytes: sum.bytes + cells.bytes.load(Relaxed),
            wrong: sum.wrong + cells.wrong.load(Relaxed),
        })
    }
}

/// What workers know of a route.
pub struct Entry {
    /// Interfaces by which packets may come, sorted.
    pub accept: Arc<[u32]>,
    /// Interfaces that get a copy.
    pub forward: Arc<[u32]>,
    /// What it carried.
    pub counts: Arc<Counts>,
}

/// Of one length, routes by their first group.
type Level<F> = (u8, HashMap<<F as Family>::Addr, u32>);

/// The routes of one table.
#[derive(Clone)]
struct Branches<F: Family> {
    /// By group and source.
    sources: HashMap<(F::Addr, F::Addr), u32>,
    /// Without a source, the longest first.
    levels: Vec<Level<F>>,
}

impl<F: Family> Default for Branches<F> {
    fn default() -> Self {
        Branches {
            sources: HashMap::new(),
            levels: Vec::new(),
        }
    }
}

impl<F: Family> Branches<F> {
    /// (S,G), then (*,G), then the longest (*,G/len).
    fn find(&self, source: F::Addr, group: F::Addr) -> Option<u32> {
        if let Some(id) = self.sources.get(&(group, source)) {
            return Some(*id);
        }
        let of = |(len, routes): &Level<F>| routes.get(&F::first(group, *len)).copied();
        self.levels.iter().find_map(of)
    }

    fn set(&mut self, name: &Name<F>, id: u32) {
        if let Some(source) = name.source {
            self.sources.insert((name.group, source), id);
            return;
        }
        let at = self.levels.partition_point(|(len, _)| *len > name.len);
        if self.levels.get(at).is_none_or(|(len, _)| *len != name.len) {
            self.levels.insert(at, (name.len, HashMap::new()));
        }
        self.levels[at].1.insert(name.group, id);
    }

    fn unset(&mut self, name: &Name<F>) {
        if let Some(source) = name.source {
            self.sources.remove(&(name.group, source));
            return;
        }
        for (_, routes) in self.levels.iter_mut().filter(|(len, _)| *len == name.len) {
            routes.remove(&name.group);
        }
        self.levels.retain(|(_, routes)| !routes.is_empty());
    }

    fn is_empty(&self) -> bool {
        self.sources.is_empty() && self.levels.is_empty()
    }
}

/// Everything that workers read.
pub struct Plane<F: Family> {
    tables: HashMap<u32, Arc<Branches<F>>>,
    entries: Vec<Option<(u32, Arc<Entry>)>>,
}

impl<F: Family> Plane<F> {
    /// The number of the route of a packet.
    pub fn find(&self, table: u32, source: F::Addr, group: F::Addr) -> Option<u32> {
        self.tables.get(&table)?.find(source, group)
    }

    /// The route of a number; none when it is gone.
    pub fn entry(&self, id: u32) -> Option<&Entry> {
        let (at, entry) = self.entries.get((id & PLACE) as usize)?.as_ref()?;
        (*at == id).then_some(&**entry)
    }
}

/// As many routes as there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooMany;

/// What the members of a group on one interface want.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupState<A> {
    /// The interface.
    pub interface: u32,
    /// All sources but those named; else those only.
    pub exclude: bool,
    /// Sources.
    pub sources: BTreeSet<A>,
}

impl<A: Ord> GroupState<A> {
    /// Whether it wants packets of a source; none = of one that nobody names.
    fn takes(&self, source: Option<&A>) -> bool {
        source.is_some_and(|source| self.sources.contains(source)) != self.exclude
    }
}

/// Entries that follow from members, all together.
const DERIVED: usize = 65_536;

const _: () = assert!(MROUTES + DERIVED < PLACE as usize);

/// A group of a table.
type Joined<F> = (u32, <F as Family>::Addr);

/// The control thread's side.
pub struct Mfib<F: Family> {
    routes: BTreeMap<Name<F>, u32>,
    tables: HashMap<u32, Arc<Branches<F>>>,
    entries: Vec<Option<(u32, Arc<Entry>)>>,
    /// Numbers whose place is free, the one that waits longest first: the next routes there.
    free: VecDeque<u32>,
    /// What members want, and the entries that follow from it and the routes.
    wants: BTreeMap<Joined<F>, Vec<GroupState<F::Addr>>>,
    derived: BTreeMap<Joined<F>, Vec<(Name<F>, u32)>>,
    derived_count: usize,
    /// Entries that there was no room for.
    pub refused: u64,
    plane: Publisher<Plane<F>>,
    workers: usize,
}

impl<F: Family> Mfib<F> {
    /// No routes.
    pub fn new(domain: &Arc<Domain>, workers: usize) -> Self {
        let nothing = Plane {
            tables: HashMap::new(),
            entries: Vec::new(),
        };
        Mfib {
            routes: Default::default(),
            tables: HashMap::new(),
            entries: Vec::new(),
            free: VecDeque::new(),
            wants: BTreeMap::new(),
            derived: BTreeMap::new(),
            derived_count: 0,
            refused: 0,
            plane: Publisher::new(domain, nothing),
            workers,
        }
    }

    /// What nodes hold.
    pub fn snap(&self) -> Snap<Plane<F>> {
        self.plane.snap()
    }

    /// What workers will read from now on.
    pub fn current(&self) -> &Plane<F> {
        self.plane.current()
    }

    fn publish(&mut self) {
        let (tables, entries) = (self.tables.clone(), self.entries.clone());
        self.plane.publish(Plane { tables, entries });
    }

    /// The number for a new route.
    fn number(&mut self) -> Result<u32, TooMany> {
        if self.routes.len() >= MROUTES {
            return Err(TooMany);
        }
        Ok(self.place())
    }

    fn place(&mut self) -> u32 {
        self.free.pop_front().unwrap_or_else(|| {
            self.entries.push(None);
            self.entries.len() as u32 - 1
        })
    }

    /// Makes a route, or gives it other interfaces; what it carried is kept.
    pub fn set(
        &mut self,
        name: Name<F>,
        mut accept: Vec<u32>,
        forward: Vec<u32>,
    ) -> Result<(), TooMany> {
        accept.sort_unstable();
        let known = self.routes.get(&name).copied();
        let id = match known {
            Some(id) => id,
            None => self.number()?,
        };
        let place = (id & PLACE) as usize;
        let counts = match &self.entries[place] {
            Some((at, entry)) if *at == id => entry.counts.clone(),
            _ => Counts::new(self.workers),
        };
        let entry = Entry {
            accept: accept.into(),
            forward: forward.into(),
            counts,
        };
        self.entries[place] = Some((id, Arc::new(entry)));
        if known.is_none() {
            self.routes.insert(name, id);
            let table = self.tables.entry(name.table).or_default();
            Arc::make_mut(table).set(&name, id);
        }
        self.derive_all();
        self.publish();
        Ok(())
    }

    /// Takes a route away; false when it is not there.
    pub fn remove(&mut self, name: &Name<F>) -> bool {
        let gone = self.take_out(name);
        if gone {
            self.derive_all();
            self.publish();
        }
        gone
    }

    fn take_out(&mut self, name: &Name<F>) -> bool {
        let Some(id) = self.routes.remove(name) else {
            return false;
        };
        if let Some(table) = self.tables.get_mut(&name.table) {
            Arc::make_mut(table).unset(name);
            if table.is_empty() {
                self.tables.remove(&name.table);
            }
        }
        self.entries[(id & PLACE) as usize] = None;
        self.free.push_back(id.wrapping_add(1 << PLACE_BITS));
        true
    }

    /// An interface is gone: no route has it any more. Those by which nothing could come in any more go, too.
    pub fn forget(&mut self, interface: u32) {
        let without = |all: &[u32]| -> Arc<[u32]> {
            let rest = all.iter().copied().filter(|i| *i != interface);
            rest.collect()
        };
        let mut changed = false;
        for (_, entry) in self.entries.iter_mut().flatten() {
            let all = entry.accept.iter().chain(&*entry.forward);
            if all.copied().any(|i| i == interface) {
                *entry = Arc::new(Entry {
                    accept: without(&entry.accept),
                    forward: without(&entry.forward),
                    counts: entry.counts.clone(),
                });
                changed = true;
            }
        }
        let none = |id: &u32| {
            let entry = self.entries[(id & PLACE) as usize].as_ref();
            entry.is_some_and(|(_, entry)| entry.accept.is_empty())
        };
        let gone: Vec<Name<F>> = self
            .routes
            .iter()
            .filter(|(_, id)| none(id))
            .map(|(name, _)| *name)
            .collect();
        gone.iter().for_each(|name| _ = self.take_out(name));
        if changed {
            self.derive_all();
            self.publish();
        }
    }

    /// All routes, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&Name<F>, &Entry)> {
        let entry = |id: &u32| self.entries[(id & PLACE) as usize].as_ref();
        self.routes
            .iter()
            .filter_map(move |(name, id)| Some((name, &*entry(id)?.1)))
    }
}

mod derive;

#[cfg(test)]
mod tests;
