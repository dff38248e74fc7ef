//! The FIB of one daemon: tables of both families over shared path lists, adjacencies and neighbours.
//!
//! Contract: the control thread owns it and is the only writer; no method waits for a worker. Every method completes, or
//! returns an error and has changed nothing. After it returns, each worker sees the change from its next frame on; to know that
//! all do, take `Domain::epoch` and poll `Domain::passed`.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::Arc;

use volley_model::IfAddress;
use volley_tables::Domain;

use super::facts::{Automatic, Neighbor};
use super::path::{ListKey, Path, Via, host_paths};
use super::resolver::Resolver;
use super::table::Table;
use super::tables::{Side, Tables};
use crate::dataplane::{DropWhy, Fib4Snap, Fib6Snap};
use crate::error::FibError;
use crate::family::{Af, Family, Prefix, V4, V6};
use crate::source::Source;

/// The FIB.
pub struct Fib {
    pub(crate) res: Resolver,
    pub(crate) v4: Tables<V4>,
    pub(crate) v6: Tables<V6>,
    pub(crate) addresses: BTreeMap<u32, Vec<IfAddress>>,
    /// Interfaces that have an address, by address.
    pub(crate) holders: HashMap<IpAddr, Vec<u32>>,
    /// During a transaction: interfaces whose addresses are published at its end.
    pub(crate) own_later: Option<BTreeSet<u32>>,
    pub(crate) neighbors: BTreeMap<(u32, IpAddr), Neighbor>,
    pub(crate) attachments: u64,
    /// Interfaces with directed broadcasts to their networks.
    pub(crate) directed_broadcast: BTreeSet<u32>,
    /// Unnumbered interfaces, each with the interface whose addresses it uses.
    pub(crate) borrowed: BTreeMap<u32, u32>,
    /// State that interfaces get from routers of their links.
    pub(crate) automatic: BTreeMap<u32, Automatic>,
    /// Interfaces that have changed since the last [`Fib::take_touched`].
    pub(crate) touched: BTreeSet<u32>,
    /// Addresses that are not in use: tentative or duplicate.
    pub(crate) unused: BTreeSet<(u32, IfAddress)>,
    /// Interfaces whose new addresses are unused until [`Fib::set_usable`].
    pub(crate) careful: BTreeSet<u32>,
}

/// The leaves of counted routes that are being loaded.
type Own<F> = HashMap<Prefix<F>, u32>;

/// Sizes of the FIB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FibStats {
    /// Prefixes in all tables of both families.
    pub prefixes: usize,
    /// Path lists (= load balances).
    pub lists: usize,
    /// Adjacencies.
    pub adjacencies: usize,
    /// Bytes that workers read besides the longest-prefix matches.
    pub dataplane_bytes: usize,
    /// Bytes of the longest-prefix matches of both families.
    pub lpm_bytes: usize,
    /// Bytes of the prefix maps of the control side.
    pub control_bytes: usize,
    /// Stores to load balances and groups since start.
    pub writes: u64,
    /// Freed indexes in their grace period.
    pub waiting: usize,
}

impl Fib {
    /// A FIB with table 0 of both families, whose packets one worker counts.
    pub fn new(domain: &Arc<Domain>) -> Self {
        Self::for_workers(domain, 1)
    }

    /// As [`Self::new`], for at most this number of workers.
    pub fn for_workers(domain: &Arc<Domain>, workers: usize) -> Self {
        let mut fib = Self {
            res: Resolver::new(domain, workers),
            v4: Tables::new(domain),
            v6: Tables::new(domain),
            addresses: BTreeMap::new(),
            holders: HashMap::new(),
            own_later: None,
            neighbors: BTreeMap::new(),
            attachments: 0,
            directed_broadcast: BTreeSet::new(),
            borrowed: BTreeMap::new(),
            automatic: BTreeMap::new(),
            touched: BTreeSet::new(),
            unused: BTreeSet::new(),
            careful: BTreeSet::new(),
        };
        fib.special::<V4>(0);
        fib.special::<V6>(0);
        fib
    }

    /// Reader handle for IPv4 nodes.
    pub fn dataplane4(&self) -> Fib4Snap {
        self.v4.dataplane(&self.res)
    }

    /// Reader handle for IPv6 nodes.
    pub fn dataplane6(&self) -> Fib6Snap {
        self.v6.dataplane(&self.res)
    }

    /// Index of a table (used by paths and the data plane) by its number.
    pub fn table_index(&self, af: Af, number: u32) -> Result<u32, FibError> {
        match af {
            Af::V4 => self.v4.index(number),
            Af::V6 => self.v6.index(number),
        }
    }

    /// Number of a table by its index.
    pub fn table_number(&self, af: Af, index: u32) -> Option<u32> {
        match af {
            Af::V4 => self.v4.get(index).map(|t| t.number),
            Af::V6 => self.v6.get(index).map(|t| t.number),
        }
    }

    /// Adds a table with the built-in routes.
    pub fn add_table(&mut self, af: Af, number: u32) -> Result<(), FibError> {
        match af {
            Af::V4 => {
                let index = self.v4.add(number)?;
                self.special::<V4>(index);
            }
            Af::V6 => {
                let index = self.v6.add(number)?;
                self.special::<V6>(index);
            }
        }
        Ok(())
    }

    /// Removes a table without users: no configured route in it, no bound interface, no path that looks in it.
    pub fn del_table(&mut self, af: Af, number: u32) -> Result<(), FibError> {
        match af {
            Af::V4 => self.del::<V4>(number),
            Af::V6 => self.del::<V6>(number),
        }
    }

    fn del<F: Side>(&mut self, number: u32) -> Result<(), FibError> {
        let (_, tables) = F::side(self);
        let index = tables.index(number)?;
        if let Some(by) = self.table_user::<F>(index) {
            return Err(FibError::TableInUse {
                af: F::AF,
                table: number,
                by,
            });
        }
        let Some(table) = tables.get(index) else {
            return Ok(());
        };
        let rest: Vec<u32> = table.routes.iter().map(|(_, list)| list).collect();
        let (res, tables) = F::side_mut(self);
        tables.remove(index);
        for list in rest {
            res.release(list, 1);
        }
        Ok(())
    }

    fn table_user<F: Side>(&self, index: u32) -> Option<String> {
        let (res, tables) = F::side(self);
        let table = tables.get(index)?;
        if index == 0 {
            return Some("every interface that is not bound elsewhere".into());
        }
        if let Some(info) = res.ifs.values().find(|i| tables.table_of(i.index) == index) {
            return Some(format!("interface {}", info.name));
        }
        let own = |list| res.list(list).is_none_or(|l| !built_in(l.key.source));
        if let Some((prefix, _)) = table.routes.iter().find(|(_, list)| own(*list)) {
            return Some(format!("route {prefix}"));
        }
        if let Some(prefix) = table.counted.any() {
            return Some(format!("route counter {prefix}"));
        }
        let looks_in = res.leaves.lists().any(|l| {
            l.key.af == F::AF
                && l.key
                    .paths
                    .iter()
                    .any(|p| p.via == Via::LookupIn { table: index })
        });
        (looks_in || res.watches(F::AF, index))
            .then(|| "routes of other tables that look in it".into())
    }

    /// Adds the built-in routes of a table.
    fn special<F: Side>(&mut self, index: u32) {
        let drops: &[(&str, u8, Source, DropWhy)] = match F::AF {
            Af::V4 => &[
                ("0.0.0.0", 0, Source::Default, DropWhy::NoRoute),
                ("0.0.0.0", 32, Source::Special, DropWhy::Unspecified),
                ("224.0.0.0", 4, Source::Special, DropWhy::Multicast),
                ("240.0.0.0", 4, Source::Special, DropWhy::Reserved),
                ("255.255.255.255", 32, Source::Special, DropWhy::Broadcast),
            ],
            Af::V6 => &[
                ("::", 0, Source::Default, DropWhy::NoRoute),
                ("fe80::", 10, Source::Special, DropWhy::LinkLocal),
            ],
        };
        for (addr, len, source, why) in drops {
            let number = addr.parse().ok().and_then(F::number);
            let Some(prefix) = number.map(|n| Prefix::<F>::around(n, *len)) else {
                continue;
            };
            let done = self.set_in(index, prefix, *source, &[Via::Drop(*why).into()]);
            debug_assert!(done.is_ok());
        }
    }

    /// Sets the paths of a source's route; true if anything changed.
    pub fn set_route<F: Side>(
        &mut self,
        table: u32,
        prefix: Prefix<F>,
        source: Source,
        paths: &[Path],
    ) -> Result<bool, FibError> {
        let index = F::side(self).1.index(table)?;
        self.set_in(index, prefix, source, paths)
    }

    /// [`Self::set_route`] by table index.
    pub(crate) fn set_in<F: Side>(
        &mut self,
        index: u32,
        prefix: Prefix<F>,
        source: Source,
        paths: &[Path],
    ) -> Result<bool, FibError> {
        self.check_paths::<F>(index, paths)?;
        let before = self.list_of(index, prefix, source);
        let paths = host_paths(prefix, source, paths);
        let list = self.hold_for(index, prefix, source, &paths, before)?;
        self.put(index, prefix, source, list)
    }

    /// As [`Self::hold`], for one route, whose leaf was `before`: a counted one gets its own leaf.
    pub(crate) fn hold_for<F: Side>(
        &mut self,
        index: u32,
        prefix: Prefix<F>,
        source: Source,
        paths: &[Path],
        before: Option<u32>,
    ) -> Result<u32, FibError> {
        let list = self.hold::<F>(source, paths, before)?;
        let is_counted = |table: &Table<F>| table.counted.has(prefix);
        Ok(match self.table(index).is_some_and(is_counted) {
            true => self.res.count_alone(list, before),
            false => list,
        })
    }

    /// The list of these paths with one more reference; it replaces the list `before`. The paths have been checked.
    pub(crate) fn hold<F: Side>(
        &mut self,
        source: Source,
        paths: &[Path],
        before: Option<u32>,
    ) -> Result<u32, FibError> {
        self.room_for(0)?;
        let key = ListKey::new(F::AF, source, paths);
        let (res, tables) = F::side_mut(self);
        Ok(res.hold(key, before, |table, addr| {
            tables.cover(table, F::from_wide(addr))
        }))
    }

    /// Installs a referenced list: the reference passes to the route, or is released on an error.
    pub(crate) fn put<F: Side>(
        &mut self,
        index: u32,
        prefix: Prefix<F>,
        source: Source,
        list: u32,
    ) -> Result<bool, FibError> {
        let (res, tables) = F::side_mut(self);
        let Some(table) = tables.get_mut(index) else {
            res.release(list, 1);
            return Err(FibError::NoTable {
                af: F::AF,
                table: index,
            });
        };
        let change = match table.set(prefix, source, list, |l| res.source_of(l)) {
            Ok(change) => change,
            Err(source) => {
                res.release(list, 1);
                return Err(FibError::Lpm {
                    prefix: prefix.to_string(),
                    source,
                });
            }
        };
        if change.forwards {
            self.res.own += u64::from(change.own);
            self.moved::<F>(index, prefix);
        }
        if let Some(before) = change.before {
            self.res.release(before, 1);
        }
        Ok(change.before != Some(list))
    }

    /// Removes paths from a source's route; with its last path the route is removed.
    pub fn remove_paths<F: Side>(
        &mut self,
        table: u32,
        prefix: Prefix<F>,
        source: Source,
        paths: &[Path],
    ) -> Result<(), FibError> {
        let index = F::side(self).1.index(table)?;
        let Some(mut all) = self.paths_of(index, prefix, source) else {
            return Err(no_route(table, prefix, source));
        };
        for path in &host_paths(prefix, source, paths) {
            let Some(at) = all.iter().position(|p| p.same_way(path)) else {
                let path = self.path_text(F::AF, path);
                return Err(FibError::NoPath {
                    prefix: prefix.to_string(),
                    path,
                });
            };
            all.remove(at);
        }
        if all.is_empty() {
            return self.remove_route(table, prefix, source);
        }
        self.set_in(index, prefix, source, &all).map(drop)
    }

    /// Removes a source's route.
    pub fn remove_route<F: Side>(
        &mut self,
        table: u32,
        prefix: Prefix<F>,
        source: Source,
    ) -> Result<(), FibError> {
        let index = F::side(self).1.index(table)?;
        let removed = self.remove_in(index, prefix, source);
        removed
            .then_some(())
            .ok_or_else(|| no_route(table, prefix, source))
    }

    /// [`Self::remove_route`] by table index; false if there was none.
    pub(crate) fn remove_in<F: Side>(
        &mut self,
        index: u32,
        prefix: Prefix<F>,
        source: Source,
    ) -> bool {
        let (res, tables) = F::side_mut(self);
        let Some(table) = tables.get_mut(index) else {
            return false;
        };
        let Some(change) = table.unset(prefix, source, |l| res.source_of(l)) else {
            return false;
        };
        if change.forwards {
            self.res.own += u64::from(change.own);
            self.moved::<F>(index, prefix);
        }
        if let Some(before) = change.before {
            self.res.release(before, 1);
        }
        true
    }

    /// Paths a source has for a prefix.
    pub fn paths_of<F: Side>(
        &self,
        index: u32,
        prefix: Prefix<F>,
        source: Source,
    ) -> Option<Vec<Path>> {
        let list = self.list_of(index, prefix, source)?;
        self.res.list(list).map(|l| l.key.paths.to_vec())
    }

    /// The list of a source's route.
    fn list_of<F: Side>(&self, index: u32, prefix: Prefix<F>, source: Source) -> Option<u32> {
        let (res, tables) = F::side(self);
        let sources = tables.get(index)?.sources(prefix, |l| res.source_of(l));
        sources.into_iter().find(|s| s.0 == source).map(|s| s.1)
    }

    /// Called after the forwarding of a prefix changed: re-resolves next hops and neighbours inside it.
    pub(crate) fn moved<F: Side>(&mut self, index: u32, prefix: Prefix<F>) {
        let (res, tables) = F::side_mut(self);
        let (first, last) = (F::wide(prefix.addr()), F::wide(prefix.last()));
        res.recover(F::AF, index, first, last, |addr| {
            tables.cover(index, F::from_wide(addr))
        });
        if prefix.len() < F::BITS {
            self.neighbors_in::<F>(index, prefix);
        }
    }

    /// Loads many routes of one source at once, all or none. A row is a prefix and an index into `hops`; the last row of a
    /// prefix is used. Returns the number of prefixes that are new to the table.
    pub fn load<F: Side>(
        &mut self,
        table: u32,
        source: Source,
        hops: &[Vec<Path>],
        rows: &[(F::Addr, u8, u32)],
    ) -> Result<usize, FibError> {
        let index = F::side(self).1.index(table)?;
        for paths in hops {
            self.check_paths::<F>(index, paths)?;
        }
        let mut lists = Vec::with_capacity(hops.len());
        let before = self.lists_before::<F>(index, source, hops.len(), rows);
        for (paths, before) in hops.iter().zip(before) {
            match self.hold::<F>(source, paths, before) {
                Ok(list) => lists.push(list),
                Err(e) => {
                    lists.iter().for_each(|l| self.res.release(*l, 1));
                    return Err(e);
                }
            }
        }
        let done = match self.counted_lists::<F>(index, source, hops, rows) {
            Ok(own) => {
                let done = self.load_lists::<F>(index, source, (&lists, &own), rows);
                own.values().for_each(|l| self.res.release(*l, 1));
                done
            }
            Err(error) => Err(error),
        };
        lists.iter().for_each(|l| self.res.release(*l, 1));
        done
    }

    /// The leaves of counted routes among rows; the last row of a prefix is used.
    fn counted_lists<F: Side>(
        &mut self,
        index: u32,
        source: Source,
        hops: &[Vec<Path>],
        rows: &[(F::Addr, u8, u32)],
    ) -> Result<Own<F>, FibError> {
        let mut own = Own::default();
        if self
            .table::<F>(index)
            .is_none_or(|table| table.counted.is_empty())
        {
            return Ok(own);
        }
        for &(addr, len, hop) in rows {
            let (prefix, paths) = (Prefix::<F>::around(addr, len), hops.get(hop as usize));
            let is_counted = |table: &Table<F>| table.counted.has(prefix);
            let (Some(paths), true) = (paths, self.table(index).is_some_and(is_counted)) else {
                continue;
            };
            let before = self.list_of(index, prefix, source);
            match self.hold_for(index, prefix, source, paths, before) {
                Ok(leaf) => {
                    if let Some(replaced) = own.insert(prefix, leaf) {
                        self.res.release(replaced, 1);
                    }
                }
                Err(error) => {
                    own.values().for_each(|l| self.res.release(*l, 1));
                    return Err(error);
                }
            }
        }
        Ok(own)
    }

    /// For each new path set, the list that the first row with this set has now.
    fn lists_before<F: Side>(
        &self,
        index: u32,
        source: Source,
        sets: usize,
        rows: &[(F::Addr, u8, u32)],
    ) -> Vec<Option<u32>> {
        let mut first = vec![None; sets];
        if !self.res.is_resilient() {
            return first;
        }
        for &(addr, len, set) in rows {
            if let Some(place @ None) = first.get_mut(set as usize) {
                *place = self.list_of(index, Prefix::<F>::around(addr, len), source);
            }
        }
        first
    }

    fn load_lists<F: Side>(
        &mut self,
        index: u32,
        source: Source,
        (lists, own): (&[u32], &Own<F>),
        rows: &[(F::Addr, u8, u32)],
    ) -> Result<usize, FibError> {
        let (res, tables) = F::side_mut(self);
        let Some(table) = tables.get_mut(index) else {
            return Ok(0);
        };
        let list_of = |prefix: &Prefix<F>, hop: u32| {
            let own = own.get(prefix).filter(|_| !own.is_empty());
            own.or(lists.get(hop as usize)).copied().unwrap_or(0)
        };
        let routes = rows.iter().map(|&(addr, len, hop)| {
            let prefix = Prefix::around(addr, len);
            (prefix, list_of(&prefix, hop))
        });
        let [fresh, known] = table.claim(routes);
        let failed = |source| FibError::Lpm {
            prefix: "the routes were not loaded".into(),
            source,
        };
        table.load(&fresh).map_err(failed)?;
        let mut counts = vec![
            0u32;
            lists
                .iter()
                .chain(own.values())
                .max()
                .map_or(0, |m| *m as usize + 1)
        ];
        fresh
            .iter()
            .for_each(|(_, list)| counts[*list as usize] += 1);
        for (list, n) in counts.into_iter().enumerate().filter(|(_, n)| *n > 0) {
            res.hold_again(list as u32, n);
        }
        res.own += u64::from(source.is_own());
        // The match already contains these prefixes, so setting them needs no free capacity and cannot fail.
        for (prefix, list) in known {
            self.res.hold_again(list, 1);
            self.put(index, prefix, source, list)?;
        }
        self.moved::<F>(index, Prefix::around(F::from_wide(0), 0));
        Ok(fresh.len())
    }

    fn check_paths<F: Side>(&self, index: u32, paths: &[Path]) -> Result<(), FibError> {
        let none = FibError::Path {
            path: "list".into(),
            why: "a route needs at least one path",
        };
        paths.first().ok_or(none)?;
        for path in paths {
            if let Some(iface) = path.via.iface() {
                self.res
                    .ifs
                    .get(&iface)
                    .ok_or(FibError::NoInterface { iface })?;
            }
            if let Some(why) = self.path_fault::<F>(index, path) {
                return Err(FibError::Path {
                    path: self.path_text(F::AF, path),
                    why,
                });
            }
        }
        Ok(())
    }

    fn path_fault<F: Side>(&self, index: u32, path: &Path) -> Option<&'static str> {
        let no_table = |table: u32| F::side(self).1.get(table).is_none();
        match path.via {
            _ if path.weight == 0 => Some("the weight is 1 to 255"),
            Via::NextHop { addr, .. } | Via::Recursive { addr, .. }
                if addr.is_multicast() || addr.is_unspecified() =>
            {
                Some("a next hop is one host's address")
            }
            Via::NextHop { addr, .. } if F::AF == Af::V6 && addr.is_ipv4() => {
                Some("an IPv6 route needs an IPv6 next hop")
            }
            Via::Recursive { addr, .. } if Af::of(addr) != F::AF => {
                Some("a next hop of the other family needs its interface")
            }
            Via::Recursive { table, .. } | Via::LookupIn { table } if no_table(table) => {
                Some("the table it looks in does not exist")
            }
            Via::LookupIn { table } if table == index => Some("it looks in the route's own table"),
            _ => None,
        }
    }

    /// The table of a family by index.
    pub(crate) fn table<F: Side>(&self, index: u32) -> Option<&Table<F>> {
        F::side(self).1.get(index)
    }

    /// Frees indexes whose grace period has passed; call this periodically on the control thread.
    pub fn reclaim(&mut self) {
        self.res.reclaim();
        self.v4.reclaim();
        self.v6.reclaim();
    }

    /// Current sizes.
    pub fn stats(&self) -> FibStats {
        let mut s = FibStats {
            lists: self.res.len(),
            adjacencies: self.res.adjs.len(),
            dataplane_bytes: self.res.lbs.bytes() + self.res.adjs.bytes(),
            writes: self.res.lbs.writes(),
            waiting: self.res.lbs.waiting() + self.res.adjs.waiting(),
            ..FibStats::default()
        };
        self.add_stats::<V4>(&mut s);
        self.add_stats::<V6>(&mut s);
        s
    }

    fn add_stats<F: Side>(&self, s: &mut FibStats) {
        for (_, table) in F::side(self).1.iter() {
            s.prefixes += table.routes.len();
            s.lpm_bytes += F::bytes(&table.lpm);
            s.control_bytes += table.routes.bytes();
        }
    }
}

/// Whether a source belongs to the table itself and does not prevent its deletion.
fn built_in(source: Source) -> bool {
    matches!(source, Source::Special | Source::Default)
}

fn no_route<F: Family>(table: u32, prefix: Prefix<F>, source: Source) -> FibError {
    FibError::NoRoute {
        prefix: prefix.to_string(),
        table,
        source_name: source.name(),
    }
}
