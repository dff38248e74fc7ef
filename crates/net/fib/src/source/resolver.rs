//! Path lists and their resolution to adjacencies, with loop detection and update of dependents.
//!
//! All prefixes with the same source and paths share one list. The list's number is the leaf of its routes in the longest-prefix
//! match; counted routes have leaves of their own ([`Leaves`]). A recursive path depends on a [`Tracker`]: one per next-hop address and table, which knows the list that covers the address
//! now. After a change, exactly the lists that can depend on it (the upward closure) are evaluated again, each once,
//! dependencies first. A path is looped if the list that it leads to depends on the path's own list; looped paths carry no
//! traffic.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use volley_tables::Domain;

use super::adjacency::{AdjKey, Adjs, Macs};
use super::buckets;
use super::down::{DownNet, DownNets};
use super::facts::IfInfo;
use super::leaf::{Leaves, List};
use super::path::{ListKey, Path, Via};
use super::scc;
use crate::dataplane::{Dpo, DpoKind, DropWhy, LoadBalances};
use crate::family::{Af, wide};
use crate::source::Source;

/// A next hop of recursive paths.
struct Tracker {
    af: Af,
    table: u32,
    addr: u128,
    /// The list that forwards the address now; 0 if none does.
    cover: u32,
    lists: HashSet<u32>,
}

pub(crate) struct Resolver {
    pub lbs: LoadBalances,
    pub adjs: Adjs,
    pub macs: Macs,
    pub ifs: BTreeMap<u32, IfInfo>,
    pub leaves: Leaves,
    by_key: HashMap<Arc<ListKey>, u32>,
    by_iface: HashMap<u32, HashSet<u32>>,
    trackers: Vec<Option<Tracker>>,
    free_trackers: Vec<u32>,
    /// Tracker of each address, by family and table.
    watched: [Vec<BTreeMap<u128, u32>>; 2],
    /// Number of buckets of a resilient group, which moves as few flows as possible; none for groups as small as their weights
    /// allow.
    resilient: Option<usize>,
    /// Networks of interfaces that are down: next hops in them are unreachable for that reason.
    down: DownNets,
    /// Counter of possible changes of routes with an own source ([`Source::is_own`]).
    pub own: u64,
}

impl Resolver {
    pub fn new(domain: &Arc<Domain>, workers: usize) -> Self {
        Self {
            lbs: LoadBalances::new(domain, workers),
            adjs: Adjs::new(domain),
            macs: HashMap::new(),
            ifs: BTreeMap::new(),
            leaves: Leaves::new(),
            by_key: HashMap::new(),
            by_iface: HashMap::new(),
            trackers: Vec::new(),
            free_trackers: Vec::new(),
            watched: [Vec::new(), Vec::new()],
            resilient: None,
            down: DownNets::default(),
            own: 0,
        }
    }

    /// The list of a leaf.
    pub fn list(&self, leaf: u32) -> Option<&List> {
        self.leaves.list(leaf)
    }

    fn list_mut(&mut self, id: u32) -> Option<&mut List> {
        self.leaves.list_mut(id)
    }

    /// The source of a leaf's list.
    pub fn source_of(&self, leaf: u32) -> Option<Source> {
        self.list(leaf).map(|l| l.key.source)
    }

    /// Number of path lists.
    pub fn len(&self) -> usize {
        self.by_key.len()
    }

    /// The list of a key with one more reference; a new list is created and resolved. `cover` returns the list that forwards an
    /// address in a table now. With resilient groups, a new list keeps the buckets of paths that it shares with `before`.
    pub fn hold(
        &mut self,
        key: ListKey,
        before: Option<u32>,
        cover: impl Fn(u32, u128) -> u32,
    ) -> u32 {
        if let Some(&id) = self.by_key.get(&key) {
            self.hold_again(id, 1);
            return id;
        }
        let owners = before.map_or(Vec::new(), |before| self.heirs(before, &key));
        let id = self.lbs.alloc();
        let key = Arc::new(key);
        self.by_key.insert(key.clone(), id);
        for iface in key.paths.iter().filter_map(|p| p.via.iface()) {
            self.by_iface.entry(iface).or_default().insert(id);
        }
        let trackers = self.track_all(id, &key, cover);
        self.leaves.put(id, List::new(key, trackers, owners));
        self.resolve(&[id]);
        id
    }

    /// The leaf of a counted route that has a reference to a list: `before` if that is its leaf, else a new one. The reference
    /// becomes one to the leaf.
    pub fn count_alone(&mut self, list: u32, before: Option<u32>) -> u32 {
        let own = |leaf: &u32| self.leaves.is_counted(*leaf) && self.leaves.root(*leaf) == list;
        if let Some(leaf) = before.filter(own) {
            self.leaves.hold(leaf, 1);
            self.release(list, 1);
            return leaf;
        }
        let leaf = self.lbs.alloc();
        self.lbs.set(leaf, self.lbs.dpo(list));
        self.leaves.count(list, leaf);
        leaf
    }

    /// Makes room for the leaves of more counted routes at once.
    pub fn reserve(&mut self, more: usize) {
        self.lbs.reserve(more);
        self.leaves.reserve(more);
    }

    /// The buckets of the list `before`, with the path numbers of `key`.
    fn heirs(&self, before: u32, key: &ListKey) -> Vec<u16> {
        let Some(list) = self.list(before).filter(|_| self.resilient.is_some()) else {
            return Vec::new();
        };
        let heir = |path: &Path| key.paths.iter().position(|p| p.same_way(path));
        let heirs: Vec<u16> = (list.key.paths.iter())
            .map(|path| heir(path).map_or(buckets::UNASSIGNED, |i| i as u16))
            .collect();
        match list.owners[..] {
            // All buckets have the same path.
            [] => heirs,
            _ => {
                let heir = |who: &u16| heirs.get(usize::from(*who)).copied();
                let owners = list.owners.iter();
                owners
                    .map(|who| heir(who).unwrap_or(buckets::UNASSIGNED))
                    .collect()
            }
        }
    }

    /// Whether groups are resilient.
    pub fn is_resilient(&self) -> bool {
        self.resilient.is_some()
    }

    /// Sets the layout of groups: resilient ones with `buckets` buckets, or as small as the weights allow. True if that is a
    /// change.
    pub fn set_resilient(&mut self, buckets: Option<usize>) -> bool {
        if self.resilient == buckets {
            return false;
        }
        self.resilient = buckets;
        let all: Vec<u32> = self.by_key.values().copied().collect();
        self.resolve(&all);
        true
    }

    /// Adds `n` references to a leaf that is already referenced. The first route that shares the counters of a list begins them.
    pub fn hold_again(&mut self, id: u32, n: u32) {
        let unshared = |list: &List| list.refs == list.counted;
        if !self.leaves.is_counted(id) && self.list(id).is_some_and(unshared) {
            self.lbs.counters.restart(id);
        }
        self.leaves.hold(id, n);
    }

    /// Removes `n` references; with the last one the leaf is freed, and the list with its last leaf.
    pub fn release(&mut self, id: u32, n: u32) {
        if !self.leaves.let_go(id, n) {
            return;
        }
        if let Some(list) = self.leaves.uncount(id) {
            self.lbs.free(id);
            return self.release(list, 1);
        }
        let Some(list) = self.leaves.take(id) else {
            return;
        };
        self.by_key.remove(&list.key);
        for iface in list.key.paths.iter().filter_map(|p| p.via.iface()) {
            if let Some(lists) = self.by_iface.get_mut(&iface) {
                lists.remove(&id);
            }
        }
        for &t in &list.trackers {
            self.untrack(t, id);
        }
        for &adj in &list.adjs {
            self.adjs.let_go(adj, id);
        }
        self.lbs.free(id);
        self.adjs.bury();
    }

    fn watch(&mut self, af: Af, table: u32) -> &mut BTreeMap<u128, u32> {
        let tables = &mut self.watched[af as usize];
        if tables.len() <= table as usize {
            tables.resize_with(table as usize + 1, BTreeMap::new);
        }
        &mut tables[table as usize]
    }

    fn track_all(
        &mut self,
        list: u32,
        key: &ListKey,
        cover: impl Fn(u32, u128) -> u32,
    ) -> Vec<u32> {
        let mut out = Vec::new();
        for path in &key.paths {
            let Via::Recursive { addr, table } = path.via else {
                continue;
            };
            let (af, addr) = (Af::of(addr), wide(addr));
            let known = self.watch(af, table).get(&addr).copied();
            let id = match known {
                Some(id) => id,
                None => {
                    let cover = self.leaves.root(cover(table, addr));
                    self.track(af, table, addr, cover)
                }
            };
            if let Some(t) = &mut self.trackers[id as usize] {
                t.lists.insert(list);
            }
            out.push(id);
        }
        out
    }

    fn track(&mut self, af: Af, table: u32, addr: u128, cover: u32) -> u32 {
        let id = self.free_trackers.pop().unwrap_or_else(|| {
            self.trackers.push(None);
            (self.trackers.len() - 1) as u32
        });
        self.trackers[id as usize] = Some(Tracker {
            af,
            table,
            addr,
            cover,
            lists: HashSet::new(),
        });
        self.watch(af, table).insert(addr, id);
        if let Some(list) = self.list_mut(cover) {
            list.covered.insert(id);
        }
        id
    }

    fn untrack(&mut self, id: u32, list: u32) {
        let Some(t) = self.trackers[id as usize].as_mut() else {
            return;
        };
        t.lists.remove(&list);
        if !t.lists.is_empty() {
            return;
        }
        let (af, table, addr, cover) = (t.af, t.table, t.addr, t.cover);
        self.trackers[id as usize] = None;
        self.free_trackers.push(id);
        self.watch(af, table).remove(&addr);
        if let Some(list) = self.list_mut(cover) {
            list.covered.remove(&id);
        }
    }

    /// Whether a list has a path over a neighbour on an interface.
    pub fn has_next_hop(&self, iface: u32, addr: IpAddr) -> bool {
        let af = Af::of(addr);
        let any = |af| self.adjs.has(&AdjKey { iface, addr, af });
        // IPv4 routes may have next hops of IPv6.
        any(af) || any(Af::V4)
    }

    /// Whether a list resolves next hops in the table.
    pub fn watches(&self, af: Af, table: u32) -> bool {
        self.watched[af as usize]
            .get(table as usize)
            .is_some_and(|w| !w.is_empty())
    }

    /// Called after the routes from `first` to `last` of a table changed: finds the covering lists of next hops in this range
    /// again.
    pub fn recover(
        &mut self,
        af: Af,
        table: u32,
        first: u128,
        last: u128,
        cover: impl Fn(u128) -> u32,
    ) {
        let Some(watched) = self.watched[af as usize].get(table as usize) else {
            return;
        };
        if watched.is_empty() {
            return;
        }
        let moved: Vec<(u32, u32)> = watched
            .range(first..=last)
            .filter_map(|(&addr, &id)| {
                let now = self.leaves.root(cover(addr));
                let t = self.trackers[id as usize].as_ref()?;
                (t.cover != now).then_some((id, now))
            })
            .collect();
        let mut dirty = Vec::new();
        for (id, now) in moved {
            self.set_cover(id, now, &mut dirty);
        }
        self.resolve(&dirty);
    }

    fn set_cover(&mut self, id: u32, now: u32, dirty: &mut Vec<u32>) {
        let Some(t) = self.trackers[id as usize].as_mut() else {
            return;
        };
        let before = std::mem::replace(&mut t.cover, now);
        dirty.extend(t.lists.iter().copied());
        if let Some(list) = self.list_mut(before) {
            list.covered.remove(&id);
        }
        if let Some(list) = self.list_mut(now) {
            list.covered.insert(id);
        }
    }

    /// Called after an interface went up or down.
    pub fn iface_turned(&mut self, iface: u32) {
        let lists: Vec<u32> = self
            .by_iface
            .get(&iface)
            .into_iter()
            .flatten()
            .copied()
            .collect();
        self.resolve(&lists);
    }

    /// Sets the networks that an interface would have if it were up, one for each of its addresses.
    pub fn set_down(&mut self, iface: u32, networks: &[DownNet]) {
        let before = self.down.clear(iface);
        for net in networks {
            self.down.add(iface, *net);
        }
        let now = self.down.of(iface);
        if before.len() != now.len() || !before.iter().all(|net| now.contains(net)) {
            let all: Vec<DownNet> = before.into_iter().chain(now).collect();
            self.resolve_in(&all);
        }
    }

    /// Adds or removes one address of an interface that is down in a network.
    pub fn change_down(&mut self, iface: u32, net: DownNet, more: bool) {
        if more {
            self.down.add(iface, net);
        } else {
            self.down.del(iface, net);
        }
        self.resolve_in(&[net]);
    }

    /// Resolves the lists with next hops in these networks again.
    fn resolve_in(&mut self, networks: &[DownNet]) {
        let mut dirty = Vec::new();
        for net in networks {
            let watched = self.watched[net.af as usize].get(net.table as usize);
            let inside = watched
                .into_iter()
                .flat_map(|w| w.range(net.first..=net.last));
            let trackers = inside.filter_map(|(_, id)| self.trackers[*id as usize].as_ref());
            dirty.extend(trackers.flat_map(|t| t.lists.iter().copied()));
        }
        if !dirty.is_empty() {
            self.resolve(&dirty);
        }
    }

    /// Called after the MAC address or MTU of an interface changed.
    pub fn iface_renewed(&mut self, iface: u32) {
        let keys = self.adjs.of_iface(iface);
        self.renew(&keys);
    }

    /// Called after a neighbour was added, changed or removed.
    pub fn neighbor_changed(&mut self, iface: u32, addr: IpAddr) {
        let keys = [Af::V4, Af::V6].map(|af| AdjKey { iface, addr, af });
        self.renew(&keys);
    }

    fn renew(&mut self, keys: &[AdjKey]) {
        let mut dirty = Vec::new();
        for &key in keys {
            if let Some(info) = self.ifs.get(&key.iface) {
                dirty.extend(self.adjs.renew(key, info, &self.macs));
            }
        }
        self.resolve(&dirty);
    }

    /// Evaluates these lists and all that depend on them, each once.
    fn resolve(&mut self, dirty: &[u32]) {
        let closure = self.closure(dirty);
        let alone = closure.len() == 1 && self.covers_of(closure[0]).is_empty();
        if alone {
            self.evaluate(closure[0], &[]);
        } else {
            for component in scc::components(&closure, |l| self.covers_of(l)) {
                for &list in &component {
                    self.evaluate(list, &component);
                }
            }
        }
        self.adjs.bury();
    }

    fn closure(&self, dirty: &[u32]) -> Vec<u32> {
        let mut seen: HashSet<u32> = HashSet::new();
        let mut out: Vec<u32> = dirty.iter().copied().filter(|l| seen.insert(*l)).collect();
        let mut i = 0;
        while i < out.len() {
            let covered = self.list(out[i]).into_iter().flat_map(|l| &l.covered);
            for t in covered.filter_map(|t| self.trackers[*t as usize].as_ref()) {
                out.extend(t.lists.iter().copied().filter(|l| seen.insert(*l)));
            }
            i += 1;
        }
        out
    }

    fn covers_of(&self, list: u32) -> Vec<u32> {
        let trackers = self.list(list).into_iter().flat_map(|l| &l.trackers);
        trackers
            .filter_map(|t| self.trackers[*t as usize].as_ref())
            .map(|t| t.cover)
            .filter(|&c| c != 0)
            .collect()
    }

    /// Writes the load balance of a list from the current targets of its paths. `looped` are the lists that form a loop with
    /// it.
    fn evaluate(&mut self, id: u32, looped: &[u32]) {
        let Some(list) = self.list(id) else { return };
        let key = list.key.clone();
        let mut trackers = list.trackers.clone().into_iter();
        let mut adjs = Vec::new();
        let mut shares = Vec::with_capacity(key.paths.len());
        for path in &key.paths {
            let share = match path.via {
                Via::Recursive { addr, table } => {
                    let cover = trackers
                        .next()
                        .and_then(|t| self.trackers[t as usize].as_ref());
                    let cover = cover.map_or(0, |t| t.cover);
                    let share = self.recurse(id, &key, addr, cover, looped, &mut adjs);
                    share.map_err(|why| match self.down.has(addr, table) {
                        true => DropWhy::InterfaceDown,
                        false => why,
                    })
                }
                via => self.direct(id, key.af, via, &mut adjs),
            };
            shares.push(share);
        }
        let before = self.lbs.dpo(id);
        self.write(id, &key.paths, &shares);
        let now = self.lbs.dpo(id);
        if now != before {
            for leaf in self.leaves.counted_of(id) {
                self.lbs.set(leaf, now);
            }
        }
        let is_group = |s: &Result<Dpo, DropWhy>| s.is_ok_and(|d| d.kind() == DpoKind::Multi);
        let Some(list) = self.list_mut(id) else {
            return;
        };
        // A group keeps its number when its members change.
        let own = key.source.is_own();
        let moved = own && (list.shares != shares || shares.iter().any(is_group));
        list.shares = shares;
        let before = std::mem::replace(&mut list.adjs, adjs.clone());
        self.own += u64::from(moved);
        for adj in before.into_iter().filter(|a| !adjs.contains(a)) {
            self.adjs.let_go(adj, id);
        }
    }

    fn recurse(
        &mut self,
        id: u32,
        key: &ListKey,
        addr: IpAddr,
        cover: u32,
        looped: &[u32],
        adjs: &mut Vec<AdjKey>,
    ) -> Result<Dpo, DropWhy> {
        if cover == id || looped.contains(&cover) {
            return Err(DropWhy::RecursionLoop);
        }
        let dpo = self.lbs.dpo(cover);
        match dpo.kind() {
            DpoKind::Drop | DpoKind::Broadcast => Err(DropWhy::Unresolved),
            // The packet is sent to the next hop, not to its own destination.
            DpoKind::Glean => self.adjacency(
                id,
                AdjKey {
                    iface: dpo.index(),
                    addr,
                    af: key.af,
                },
                adjs,
            ),
            _ => Ok(dpo),
        }
    }

    fn direct(
        &mut self,
        id: u32,
        af: Af,
        via: Via,
        adjs: &mut Vec<AdjKey>,
    ) -> Result<Dpo, DropWhy> {
        match via {
            Via::NextHop { addr, iface } => {
                self.if_up(iface)?;
                self.adjacency(id, AdjKey { iface, addr, af }, adjs)
            }
            Via::Attached { iface } => {
                self.if_up(iface)?;
                Ok(Dpo::new(DpoKind::Glean, iface))
            }
            Via::Broadcast { iface } => {
                self.if_up(iface)?;
                let all = self.adjacency(id, AdjKey::broadcast(iface), adjs)?;
                Ok(Dpo::new(DpoKind::Broadcast, all.index()))
            }
            Via::Recursive { .. } => Err(DropWhy::Unresolved),
            Via::Drop(why) => Err(why),
            Via::Unreachable => Ok(Dpo::new(DpoKind::Unreachable, 0)),
            Via::Prohibit => Ok(Dpo::new(DpoKind::Prohibit, 0)),
            Via::LookupIn { table } => Ok(Dpo::new(DpoKind::LookupIn, table)),
            Via::Local { iface } => Ok(Dpo::new(DpoKind::Local, iface.unwrap_or(Dpo::NO_IFACE))),
        }
    }

    fn if_up(&self, iface: u32) -> Result<(), DropWhy> {
        let up = self.ifs.get(&iface).is_some_and(|i| i.up);
        up.then_some(()).ok_or(DropWhy::InterfaceDown)
    }

    fn adjacency(&mut self, id: u32, key: AdjKey, adjs: &mut Vec<AdjKey>) -> Result<Dpo, DropWhy> {
        let info = self.ifs.get(&key.iface).ok_or(DropWhy::InterfaceDown)?;
        if !adjs.contains(&key) {
            adjs.push(key);
        }
        Ok(self.adjs.hold(key, id, info, &self.macs))
    }

    /// Usable paths of the smallest preference share the traffic by weight; if there is none, packets are dropped for the
    /// reason of the first path.
    fn write(&mut self, id: u32, paths: &[Path], shares: &[Result<Dpo, DropWhy>]) {
        let usable = || {
            paths
                .iter()
                .zip(shares)
                .filter_map(|(p, s)| s.ok().map(|d| (p, d)))
        };
        let Some(best) = usable().map(|(p, _)| p.preference).min() else {
            let why = shares
                .iter()
                .find_map(|s| s.err())
                .unwrap_or(DropWhy::NoRoute);
            self.lbs.set(id, Dpo::drop(why));
            return;
        };
        let chosen: Vec<(u16, u8)> = (0..paths.len())
            .filter(|&i| shares[i].is_ok() && paths[i].preference == best)
            .map(|i| (i as u16, paths[i].weight))
            .collect();
        let owners = match self.resilient {
            Some(size) => {
                let before = self.list(id).map_or(&[][..], |list| &list.owners);
                buckets::refill(before, &chosen, size)
            }
            None => {
                let weights: Vec<u8> = chosen.iter().map(|(_, weight)| *weight).collect();
                let layout = buckets::layout(&weights);
                layout.into_iter().map(|i| chosen[i].0).collect()
            }
        };
        let dpo = |path: &u16| shares[usize::from(*path)].unwrap_or(Dpo::NO_ROUTE);
        match chosen[..] {
            [(one, _)] => self.lbs.set(id, dpo(&one)),
            _ => {
                let buckets: Vec<Dpo> = owners.iter().map(dpo).collect();
                self.lbs.set_buckets(id, &buckets);
            }
        }
        if let Some(list) = self.list_mut(id).filter(|_| paths.len() > 1) {
            list.owners = owners;
        }
    }

    /// Targets of a load balance, bucket by bucket.
    pub fn buckets(&self, id: u32) -> Vec<Dpo> {
        let dpo = self.lbs.dpo(id);
        match dpo.kind() {
            DpoKind::Multi => self.lbs.group(dpo.index()),
            _ => vec![dpo],
        }
    }

    /// Frees indexes whose grace period has passed.
    pub fn reclaim(&mut self) {
        self.lbs.reclaim();
        self.adjs.reclaim();
    }
}
