//! Handle of nodes to the forwarding state, and its view for one frame.
//!
//! A node keeps a [`DataPlane`] (cheap to clone, `Send + Sync`) and takes a [`View`] once per frame under its guard. No method
//! of the view fails: unknown interfaces use table 0 (the default), tables that do not exist are empty, invalid leaves read as
//! "no route".

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use volley_tables::{Guard, Snap};

use super::adjacency::{AdjSnap, AdjTable, AdjView};
use super::balance::{LbSnap, LbView, LeafView};
use super::counters::CounterSnap;
use super::dpo::{Dpo, DpoKind};
use super::grow::GrowSnap;
use crate::family::{Family, V4, V6};

/// Most tables for one packet; more count as a loop.
pub const MAX_TABLES: usize = 4;

/// Tables of one family, by table index.
pub(crate) struct TableSet<F: Family> {
    pub tables: Vec<Option<F::LpmSnap>>,
    /// Empty table, for an index without a table.
    pub none: F::LpmSnap,
}

impl<F: Family> TableSet<F> {
    #[inline(always)]
    fn table(&self, index: u32) -> &F::LpmSnap {
        self.tables
            .get(index as usize)
            .and_then(Option::as_ref)
            .unwrap_or(&self.none)
    }
}

/// The router's own addresses with their prefix lengths, by interface, in the order of their configuration.
pub(crate) type Own<F> = Vec<Box<[(<F as Family>::Addr, u8)]>>;

/// Reader handle of the forwarding state of one family.
pub struct DataPlane<F: Family> {
    pub(crate) tables: Snap<TableSet<F>>,
    pub(crate) own: Snap<Own<F>>,
    pub(crate) bindings: GrowSnap<AtomicU32>,
    pub(crate) lbs: LbSnap,
    pub(crate) adjs: AdjSnap,
    pub(crate) counters: Arc<[CounterSnap]>,
}

/// Handle of IPv4 nodes.
pub type Fib4Snap = DataPlane<V4>;
/// Handle of IPv6 nodes.
pub type Fib6Snap = DataPlane<V6>;

impl<F: Family> Clone for DataPlane<F> {
    fn clone(&self) -> Self {
        Self {
            tables: self.tables.clone(),
            own: self.own.clone(),
            bindings: self.bindings.clone(),
            lbs: self.lbs.clone(),
            adjs: self.adjs.clone(),
            counters: self.counters.clone(),
        }
    }
}

impl<F: Family> DataPlane<F> {
    /// The forwarding state for one frame.
    #[inline(always)]
    pub fn read<'g>(&'g self, guard: Guard<'g>) -> View<'g, F> {
        View { plane: self, guard }
    }

    /// The counters of one worker. A worker for which the FIB was not made counts nothing.
    pub fn counters(&self, worker: usize) -> CounterSnap {
        self.counters.get(worker).cloned().unwrap_or_default()
    }
}

/// The forwarding state as one worker reads it during one frame. Each method reads the published state again: call it once,
/// before the loop.
pub struct View<'g, F: Family> {
    plane: &'g DataPlane<F>,
    guard: Guard<'g>,
}

impl<F: Family> Clone for View<'_, F> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<F: Family> Copy for View<'_, F> {}

impl<'g, F: Family> View<'g, F> {
    /// Index of the table of an interface (0 unless the interface is bound to another).
    #[inline(always)]
    pub fn table_of(&self, rx_if: u32) -> u32 {
        let bindings = self.plane.bindings.read(self.guard);
        bindings
            .get(rx_if as usize)
            .map_or(0, |c| c.load(Ordering::Acquire))
    }

    /// The longest-prefix match of a table; an empty one if the table does not exist.
    #[inline(always)]
    pub fn lpm(&self, table: u32) -> &'g F::LpmView {
        F::read(self.plane.tables.read(self.guard).table(table), self.guard)
    }

    /// An interface's own addresses with their prefix lengths, in the order of their configuration.
    pub fn own(&self, iface: u32) -> &'g [(F::Addr, u8)] {
        let all = self.plane.own.read(self.guard);
        all.get(iface as usize).map_or(&[], |own| own)
    }

    /// The load balances.
    #[inline(always)]
    pub fn lbs(&self) -> LbView<'g> {
        self.plane.lbs.read(self.guard)
    }

    /// The objects of leaves.
    #[inline(always)]
    pub fn leaves(&self) -> LeafView<'g> {
        self.plane.lbs.leaves(self.guard)
    }

    /// The adjacencies.
    #[inline(always)]
    pub fn adjs(&self) -> AdjTable<'g> {
        self.plane.adjs.read(self.guard)
    }

    /// Object of a leaf.
    #[inline(always)]
    pub fn resolve(&self, leaf: u32) -> Dpo {
        self.leaves().resolve(leaf)
    }

    /// Objects of a column of leaves.
    #[inline(always)]
    pub fn resolve_batch(&self, leaf: &[u32], dpo: &mut [u32]) {
        self.leaves().resolve_batch(leaf, dpo);
    }

    /// A whole adjacency.
    #[inline]
    pub fn adj(&self, adj: u32) -> AdjView {
        self.adjs().view(adj)
    }

    /// Result for a destination, for slow paths: follows `LookupIn` through at most [`MAX_TABLES`] tables.
    pub fn follow(&self, table: u32, dst: F::Addr) -> Dpo {
        let mut dpo = self.resolve(F::leaf(self.lpm(table), dst));
        for _ in 0..MAX_TABLES {
            if dpo.kind() != DpoKind::LookupIn {
                break;
            }
            dpo = self.resolve(F::leaf(self.lpm(dpo.index()), dst));
        }
        dpo
    }

    /// Complete result for a destination, for slow paths and tests: lookup, load balance, bucket by `hash`.
    #[inline]
    pub fn forward(&self, table: u32, dst: F::Addr, hash: u32) -> Dpo {
        let leaf = F::leaf(self.lpm(table), dst);
        let lbs = self.lbs();
        lbs.pick_through(lbs.resolve(leaf), hash)
    }
}
