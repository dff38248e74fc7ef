//! Multicast routes of one family: the control thread's side, and the part that workers read.
//!
//! Everything is published as one value: a worker sees all of a change or nothing of it. A route keeps its number while it
//! exists, whatever happens to its interfaces. Another route may reuse the slot of a deleted one, but under another number: a
//! number that a packet carries from node to node names its route or none.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use volley_fib::Family;
use volley_graph::MAX_WORKERS;
use volley_tables::{Domain, Publisher, Snap};

/// Most multicast routes of one IP version.
pub(crate) const MROUTES: usize = 16_384;
/// Bits of a route number that are the slot; the other bits distinguish successive routes in the slot.
const PLACE_BITS: u32 = 17;
const PLACE: u32 = (1 << PLACE_BITS) - 1;

const _: () = assert!(MROUTES < PLACE as usize);

/// Key of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name<F: Family> {
    /// Index of the table.
    pub table: u32,
    /// First group.
    pub group: F::Addr,
    /// Prefix length of the groups.
    pub len: u8,
    /// Source; none for any.
    pub source: Option<F::Addr>,
}

/// Counters of one worker.
#[derive(Default)]
#[repr(align(64))]
struct Cells {
    packets: AtomicU64,
    bytes: AtomicU64,
    wrong: AtomicU64,
}

/// Traffic counters of a route. Only the owning worker writes its counters.
pub struct Counts(Box<[Cells]>);

/// Traffic of a route, summed over all workers.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Sums {
    /// Packets that an accepting interface received.
    pub packets: u64,
    /// Bytes of these packets.
    pub bytes: u64,
    /// Packets that another interface received.
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

    /// Sum over all workers.
    pub fn sums(&self) -> Sums {
        self.0.iter().fold(Sums::default(), |sum, cells| Sums {
            packets: sum.packets + cells.packets.load(Relaxed),
            bytes: sum.bytes + cells.bytes.load(Relaxed),
            wrong: sum.wrong + cells.wrong.load(Relaxed),
        })
    }
}

/// A route as workers read it.
pub struct Entry {
    /// Accepting interfaces, sorted.
    pub accept: Arc<[u32]>,
    /// Egress interfaces.
    pub forward: Arc<[u32]>,
    /// Traffic counters.
    pub counts: Arc<Counts>,
}

/// Routes of one prefix length, by first group.
type Level<F> = (u8, HashMap<<F as Family>::Addr, u32>);

/// The routes of one table.
#[derive(Clone)]
struct Branches<F: Family> {
    /// (S,G) routes by group and source.
    sources: HashMap<(F::Addr, F::Addr), u32>,
    /// Routes without a source, the longest prefix first.
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
    /// Looks up (S,G), then (*,G), then the longest (*,G/len).
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

/// All state that workers read.
pub struct Plane<F: Family> {
    tables: HashMap<u32, Arc<Branches<F>>>,
    entries: Vec<Option<(u32, Arc<Entry>)>>,
}

impl<F: Family> Plane<F> {
    /// The route number for a packet.
    pub fn find(&self, table: u32, source: F::Addr, group: F::Addr) -> Option<u32> {
        self.tables.get(&table)?.find(source, group)
    }

    /// The route of a number; none if it was deleted.
    pub fn entry(&self, id: u32) -> Option<&Entry> {
        let (at, entry) = self.entries.get((id & PLACE) as usize)?.as_ref()?;
        (*at == id).then_some(&**entry)
    }
}

/// Error: the table of routes is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooMany;

/// Filter state of a group on one interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupState<A> {
    /// The interface.
    pub interface: u32,
    /// EXCLUDE mode: all sources but the listed ones; otherwise only the listed ones.
    pub exclude: bool,
    /// Listed sources.
    pub sources: BTreeSet<A>,
}

impl<A: Ord> GroupState<A> {
    /// Whether the members request packets of a source; `None` is any source that is not listed.
    fn takes(&self, source: Option<&A>) -> bool {
        source.is_some_and(|source| self.sources.contains(source)) != self.exclude
    }
}

/// Most entries derived from membership.
const DERIVED: usize = 65_536;

const _: () = assert!(MROUTES + DERIVED < PLACE as usize);

/// Table and group.
type Joined<F> = (u32, <F as Family>::Addr);

/// Multicast routes on the control thread.
pub struct Mfib<F: Family> {
    routes: BTreeMap<Name<F>, u32>,
    tables: HashMap<u32, Arc<Branches<F>>>,
    entries: Vec<Option<(u32, Arc<Entry>)>>,
    /// Free slots, as numbers of their next routes, in the order in which they were freed.
    free: VecDeque<u32>,
    /// Filter states by group, and the entries derived from them and the routes.
    wants: BTreeMap<Joined<F>, Vec<GroupState<F::Addr>>>,
    derived: BTreeMap<Joined<F>, Vec<(Name<F>, u32)>>,
    derived_count: usize,
    /// Number of derived entries that did not fit.
    pub refused: u64,
    plane: Publisher<Plane<F>>,
    /// Changes since the last publication.
    unpublished: Unpublished,
    workers: usize,
}

/// What has changed since the last publication.
#[derive(Clone, Copy, Default)]
struct Unpublished {
    /// Anything.
    any: bool,
    /// Routes: the derived entries are to be computed again.
    routes: bool,
}

impl Unpublished {
    const ROUTES: Unpublished = Unpublished {
        any: true,
        routes: true,
    };
}

impl<F: Family> Mfib<F> {
    /// A table without routes.
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
            unpublished: Unpublished::default(),
            workers,
        }
    }

    /// Snapshot for nodes.
    pub fn snap(&self) -> Snap<Plane<F>> {
        self.plane.snap()
    }

    /// The published value.
    pub fn current(&self) -> &Plane<F> {
        self.plane.current()
    }

    /// Publishes all changes since the last publication, as one value. A publication copies the table, so a transaction with
    /// many changes publishes once per slice.
    pub fn publish(&mut self) {
        if self.unpublished.routes {
            self.derive_all();
        }
        if !std::mem::take(&mut self.unpublished).any {
            return;
        }
        let (tables, entries) = (self.tables.clone(), self.entries.clone());
        self.plane.publish(Plane { tables, entries });
    }

    /// Allocates the number of a new route.
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

    /// Adds a route or changes its interfaces; the counters are kept. [`Mfib::publish`] publishes the change.
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
        self.unpublished = Unpublished::ROUTES;
        Ok(())
    }

    /// Removes a route; false if it does not exist. [`Mfib::publish`] publishes the change.
    pub fn remove(&mut self, name: &Name<F>) -> bool {
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
        self.unpublished = Unpublished::ROUTES;
        true
    }

    /// Removes a deleted interface from all routes, and deletes routes without an accepting interface. [`Mfib::publish`]
    /// publishes the change.
    pub fn forget(&mut self, interface: u32) {
        let without = |all: &[u32]| -> Arc<[u32]> {
            let rest = all.iter().copied().filter(|i| *i != interface);
            rest.collect()
        };
        for (_, entry) in self.entries.iter_mut().flatten() {
            let all = entry.accept.iter().chain(&*entry.forward);
            if all.copied().any(|i| i == interface) {
                *entry = Arc::new(Entry {
                    accept: without(&entry.accept),
                    forward: without(&entry.forward),
                    counts: entry.counts.clone(),
                });
                self.unpublished = Unpublished::ROUTES;
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
        gone.iter().for_each(|name| _ = self.remove(name));
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
