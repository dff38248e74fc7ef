//! Routes of the kernel, and which of them have not reached the forwarding table.
//!
//! The module has no socket and no clock. As in the kernel, the route with the lowest metric is used, and of two with the same
//! metric the first. Each set of next hops is stored once, for all prefixes that use it.

use crate::message::{NextHop, Place, Route};
use hashbrown::{HashMap, HashSet};
use std::net::IpAddr;
use volley_fib::path::{Path, PathTarget};
use volley_model::{Family, Prefix};

/// The kernel's main table.
const MAIN: u32 = 254;
/// The kernel's table of local addresses.
const LOCAL: u32 = 255;
/// Largest depth of nested groups; the kernel allows one level.
const DEEP: usize = 4;

/// One next hop of a route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RouteHop {
    /// Ifindex of the outgoing interface.
    pub interface: u32,
    /// Address of the next hop; none = destinations are on the link.
    pub gateway: Option<IpAddr>,
    /// Weight of the next hop.
    pub weight: u8,
    /// Flag `RTNH_F_ONLINK`: the next hop is on the link, whatever the addresses of the interface.
    pub onlink: bool,
}

/// Destination of a route.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Hops {
    /// A list of next hops.
    Legs(Vec<RouteHop>),
    /// A next-hop object, by identifier.
    Object(u32),
    /// Local delivery; the ifindex of the interface with the address.
    Local(u32),
    /// Blackhole: drop silently.
    Drop,
    /// Unreachable: drop and send an ICMP error.
    Unreachable,
    /// Prohibit: drop and send an ICMP error "administratively prohibited".
    Prohibit,
}

/// A prefix in one of the kernel's tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Spot {
    /// Table of the kernel.
    pub table: u32,
    /// The prefix.
    pub prefix: Prefix,
}

/// The routes of a spot, as metric and set; the first is used.
enum Ways {
    One((u32, u32)),
    Many(Box<[(u32, u32)]>),
}

impl Ways {
    fn all(&self) -> &[(u32, u32)] {
        match self {
            Ways::One(one) => std::slice::from_ref(one),
            Ways::Many(all) => all,
        }
    }

    fn of(mut all: Vec<(u32, u32)>) -> Self {
        match all.len() {
            1 => Ways::One(all.remove(0)),
            _ => Ways::Many(all.into()),
        }
    }
}

struct Entry {
    ways: Ways,
    /// 1 + the set in the forwarding table; 0 for none.
    reported: u32,
    /// The resynchronisation that last reported the route.
    seen: u32,
}

/// Sets of next hops, each stored once with its reference count.
#[derive(Default)]
struct Sets {
    all: Vec<(Option<Hops>, u32)>,
    by_hops: HashMap<Hops, u32>,
    free: Vec<u32>,
}

impl Sets {
    fn hold(&mut self, hops: Hops) -> u32 {
        if let Some(&id) = self.by_hops.get(&hops) {
            self.all[id as usize].1 += 1;
            return id;
        }
        let id = self.free.pop().unwrap_or(self.all.len() as u32);
        if id as usize == self.all.len() {
            self.all.push((None, 0));
        }
        self.all[id as usize] = (Some(hops.clone()), 1);
        self.by_hops.insert(hops, id);
        id
    }

    fn hold_again(&mut self, id: u32) {
        self.all[id as usize].1 += 1;
    }

    fn release(&mut self, id: u32) {
        let slot = &mut self.all[id as usize];
        slot.1 -= 1;
        if slot.1 == 0
            && let Some(hops) = slot.0.take()
        {
            self.by_hops.remove(&hops);
            self.free.push(id);
        }
    }

    fn get(&self, id: u32) -> Option<&Hops> {
        self.all.get(id as usize)?.0.as_ref()
    }
}

/// The set that each prefix should have in Volley.
pub type WantedRoutes = HashMap<(Family, u32, Prefix), u32>;

/// All routes of the kernel.
#[derive(Default)]
pub struct Routes {
    entries: HashMap<Spot, Entry>,
    sets: Sets,
    objects: HashMap<u32, NextHop>,
    /// Interfaces with an LCP tap, by ifindex of the LCP tap.
    links: HashMap<u32, String>,
    /// Volley's tables.
    tables: HashSet<(Family, u32)>,
    dirty: Vec<Spot>,
    epoch: u32,
}

/// Volley's table for a table of the kernel: main is 0, others have the same number.
pub fn volley_table(kernel: u32) -> Option<u32> {
    match kernel {
        MAIN | LOCAL => Some(0),
        0 | 252 | 253 => None,
        other => Some(other),
    }
}

/// The kernel's table for a table of Volley.
pub fn kernel_table(volley: u32) -> u32 {
    if volley == 0 { MAIN } else { volley }
}

impl Routes {
    /// Number of prefixes whose change has not been returned by [`Routes::batches`].
    pub fn waiting(&self) -> usize {
        self.dirty.len()
    }

    /// Adds a route.
    pub fn add(&mut self, route: Route) {
        let spot = Spot {
            table: route.table,
            prefix: route.prefix,
        };
        if volley_table(spot.table).is_none() {
            return;
        }
        let (metric, epoch) = (route.metric, self.epoch);
        let new = self.sets.hold(route.hops);
        let Some(entry) = self.entries.get_mut(&spot) else {
            let entry = Entry {
                ways: Ways::One((metric, new)),
                reported: 0,
                seen: epoch,
            };
            self.entries.insert(spot, entry);
            return self.dirty.push(spot);
        };
        let mut all = match entry.seen == epoch {
            true => entry.ways.all().to_vec(),
            // The first route of this prefix in this resynchronisation replaces all earlier ones.
            false => {
                entry.ways.all().iter().for_each(|w| self.sets.release(w.1));
                Vec::new()
            }
        };
        // An IPv6 message always contains all next hops of a metric.
        let place = match spot.prefix.family() {
            Family::V6 => Place::Replace,
            Family::V4 => route.place,
        };
        put(&mut all, (metric, new), place, &mut self.sets);
        entry.ways = Ways::of(all);
        entry.seen = epoch;
        if entry.reported != entry.ways.all()[0].1 + 1 {
            self.dirty.push(spot);
        }
    }

    /// Removes a route.
    pub fn remove(&mut self, route: Route) {
        let spot = Spot {
            table: route.table,
            prefix: route.prefix,
        };
        let Some(entry) = self.entries.get_mut(&spot) else {
            return;
        };
        let mut all = entry.ways.all().to_vec();
        let same = |w: &(u32, u32)| w.0 == route.metric;
        let exact = |w: &(u32, u32)| same(w) && self.sets.get(w.1) == Some(&route.hops);
        let at = all.iter().position(exact).or(all.iter().position(same));
        let Some(at) = at else { return };
        let rest = remaining(self.sets.get(all[at].1), &route);
        self.sets.release(all[at].1);
        match rest {
            Some(hops) => all[at].1 = self.sets.hold(hops),
            None => _ = all.remove(at),
        }
        self.keep(spot, all);
    }

    /// Set the paths of a known prefix; without paths the prefix is removed.
    fn keep(&mut self, spot: Spot, all: Vec<(u32, u32)>) {
        let Some(entry) = self.entries.get_mut(&spot) else {
            return;
        };
        if all.is_empty() {
            let reported = entry.reported;
            self.entries.remove(&spot);
            self.untold(reported);
        } else {
            entry.ways = Ways::of(all);
        }
        self.dirty.push(spot);
    }

    fn untold(&mut self, reported: u32) {
        if let Some(set) = reported.checked_sub(1) {
            self.sets.release(set);
        }
    }

    /// Adds or changes a next-hop object.
    pub fn next_hop(&mut self, id: u32, hop: NextHop) {
        if self.objects.insert(id, hop.clone()) != Some(hop) {
            self.tell_again(|routes, hops| routes.leads_over(hops, id));
        }
    }

    /// Removes a next-hop object, and the routes that use it, as the kernel does.
    pub fn no_next_hop(&mut self, id: u32) {
        self.objects.remove(&id);
        let named = self.sets.by_hops.get(&Hops::Object(id)).copied();
        if let Some(set) = named {
            let has = |e: &Entry| e.ways.all().iter().any(|w| w.1 == set);
            let spots = self.entries.iter().filter(|(_, e)| has(e));
            let spots: Vec<Spot> = spots.map(|(s, _)| *s).collect();
            for spot in spots {
                self.drop_set(spot, set);
            }
        }
        self.tell_again(|routes, hops| routes.leads_over(hops, id));
    }

    fn drop_set(&mut self, spot: Spot, set: u32) {
        let Some(entry) = self.entries.get_mut(&spot) else {
            return;
        };
        let mut all = entry.ways.all().to_vec();
        let before = all.len();
        all.retain(|w| w.1 != set);
        (all.len()..before).for_each(|_| self.sets.release(set));
        self.keep(spot, all);
    }

    fn leads_over(&self, hops: &Hops, id: u32) -> bool {
        let Hops::Object(mine) = hops else {
            return false;
        };
        let member =
            |hop: &NextHop| matches!(hop, NextHop::Group(all) if all.iter().any(|m| m.0 == id));
        *mine == id || self.objects.get(mine).is_some_and(member)
    }

    /// Marks as changed all prefixes whose first set matches.
    fn tell_again(&mut self, which: impl Fn(&Self, &Hops) -> bool) {
        let concerned =
            |slot: &(Option<Hops>, u32)| slot.0.as_ref().is_some_and(|h| which(self, h));
        let mask: Vec<bool> = self.sets.all.iter().map(concerned).collect();
        if !mask.contains(&true) {
            return;
        }
        let mut released = Vec::new();
        for (spot, entry) in &mut self.entries {
            if mask[entry.ways.all()[0].1 as usize] {
                released.extend(entry.reported.checked_sub(1));
                entry.reported = 0;
                self.dirty.push(*spot);
            }
        }
        released.into_iter().for_each(|set| self.sets.release(set));
    }

    /// Sets the interfaces with an LCP tap, by ifindex of the LCP tap.
    pub fn set_links(&mut self, links: HashMap<u32, String>) {
        if self.links != links {
            self.links = links;
            self.tell_again(|_, _| true);
        }
    }

    /// Sets Volley's tables.
    pub fn set_tables(&mut self, tables: HashSet<(Family, u32)>) {
        if self.tables != tables {
            self.tables = tables;
            self.tell_again(|_, _| true);
        }
    }

    /// Begins a resynchronisation: [`Routes::swept`] removes the routes that are not added again before.
    pub fn begin(&mut self) {
        self.epoch = self.epoch.wrapping_add(1);
    }

    /// Ends a resynchronisation.
    pub fn swept(&mut self) {
        let epoch = self.epoch;
        let gone: Vec<Spot> = self
            .entries
            .iter()
            .filter(|(_, e)| e.seen != epoch)
            .map(|(s, _)| *s)
            .collect();
        for spot in gone {
            if let Some(entry) = self.entries.remove(&spot) {
                entry.ways.all().iter().for_each(|w| self.sets.release(w.1));
                self.untold(entry.reported);
                self.dirty.push(spot);
            }
        }
    }

    /// Marks a prefix as changed, whatever the forwarding table has.
    pub fn doubt(&mut self, family: Family, table: u32, prefix: Prefix) {
        debug_assert_eq!(prefix.family(), family);
        let kernel = kernel_table(table);
        for table in [kernel, LOCAL] {
            let spot = Spot { table, prefix };
            if let Some(entry) = self.entries.get_mut(&spot) {
                let reported = std::mem::take(&mut entry.reported);
                self.untold(reported);
            }
            if table == kernel {
                self.dirty.push(spot);
            }
        }
    }

    /// The set that a prefix should have in Volley, according to the kernel's routes.
    fn best(&self, spot: Spot) -> Option<u32> {
        let first = |table| {
            let entry = self.entries.get(&Spot { table, ..spot })?;
            Some(entry.ways.all()[0].1)
        };
        if spot.table != MAIN && spot.table != LOCAL {
            return first(spot.table).filter(|set| self.paths(*set).is_some());
        }
        let usable = |set: &u32| self.paths(*set).is_some();
        first(LOCAL).filter(usable).or(first(MAIN).filter(usable))
    }

    /// The paths of a set in Volley's terms; none if no next hop is on an LCP tap.
    pub fn paths(&self, set: u32) -> Option<Vec<Path>> {
        self.spoken(self.sets.get(set)?)
    }

    /// The paths of next hops in Volley's terms; none if no next hop is on an LCP tap.
    pub fn spoken(&self, hops: &Hops) -> Option<Vec<Path>> {
        let mut paths = match hops {
            Hops::Drop => vec![Path::to(PathTarget::Drop)],
            Hops::Unreachable => vec![Path::to(PathTarget::Unreachable)],
            Hops::Prohibit => vec![Path::to(PathTarget::Prohibit)],
            Hops::Local(index) if self.links.contains_key(index) => return None,
            Hops::Local(_) => vec![Path::to(PathTarget::Local)],
            Hops::Legs(legs) => legs.iter().filter_map(|l| self.leg(l, 1)).collect(),
            Hops::Object(id) => self.object(*id, 1, DEEP),
        };
        normal(&mut paths);
        (!paths.is_empty()).then_some(paths)
    }

    fn leg(&self, leg: &RouteHop, times: u32) -> Option<Path> {
        let interface = self.links.get(&leg.interface)?.clone();
        let target = match leg.gateway {
            None => PathTarget::Interface(interface),
            Some(addr) => PathTarget::Via {
                addr,
                interface: Some(interface),
                table: None,
            },
        };
        Some(Path {
            weight: (u32::from(leg.weight) * times).clamp(1, 255),
            onlink: leg.onlink && leg.gateway.is_some(),
            ..Path::to(target)
        })
    }

    fn object(&self, id: u32, times: u32, deep: usize) -> Vec<Path> {
        match self.objects.get(&id) {
            None => Vec::new(),
            Some(NextHop::Drop) => vec![Path::to(PathTarget::Drop)],
            Some(NextHop::One(leg)) => self.leg(leg, times).into_iter().collect(),
            Some(NextHop::Group(_)) if deep == 0 => Vec::new(),
            Some(NextHop::Group(all)) => {
                let member = |m: &(u32, u8)| self.object(m.0, times * u32::from(m.1), deep - 1);
                all.iter().flat_map(member).collect()
            }
        }
    }

    /// Whether a prefix of the kernel belongs in the forwarding table: loopback and multicast addresses do not.
    fn is_reported(prefix: Prefix) -> bool {
        !prefix.addr().is_loopback() && !prefix.addr().is_multicast()
    }

    /// The next changes for the forwarding table, at most `most` prefixes; empty when there are none.
    pub fn batches(&mut self, most: usize) -> Vec<crate::Batch> {
        let mut out: HashMap<(Family, u32), crate::Batch> = HashMap::new();
        let mut done: HashSet<(u32, Prefix)> = HashSet::new();
        while done.len() < most
            && let Some(spot) = self.dirty.pop()
        {
            let Some(table) = volley_table(spot.table) else {
                continue;
            };
            let family = spot.prefix.family();
            let known = self.tables.contains(&(family, table));
            if !known || !Self::is_reported(spot.prefix) || !done.insert((table, spot.prefix)) {
                continue;
            }
            let best = self.best(spot);
            self.mark(spot, best);
            let batch = out
                .entry((family, table))
                .or_insert_with(|| crate::Batch::new(family, table));
            match best {
                None => batch.gone.push(spot.prefix),
                Some(set) => batch.put.push((spot.prefix, set)),
            }
        }
        out.into_values().collect()
    }

    /// Records that a prefix was passed to the forwarding table.
    fn mark(&mut self, spot: Spot, set: Option<u32>) {
        let Some(entry) = self.entries.get_mut(&spot) else {
            return;
        };
        let reported = set.map_or(0, |set| set + 1);
        let before = std::mem::replace(&mut entry.reported, reported);
        if let Some(set) = set {
            self.sets.hold_again(set);
        }
        self.untold(before);
    }

    /// All routes that the forwarding table should have.
    pub fn wanted(&self) -> WantedRoutes {
        let mut all = WantedRoutes::with_capacity(self.entries.len());
        for spot in self.entries.keys() {
            let Some(table) = volley_table(spot.table) else {
                continue;
            };
            let family = spot.prefix.family();
            if self.tables.contains(&(family, table))
                && Self::is_reported(spot.prefix)
                && let Some(set) = self.best(*spot)
            {
                all.insert((family, table, spot.prefix), set);
            }
        }
        all
    }

    /// Identifiers of the next-hop objects.
    pub fn object_numbers(&self) -> HashSet<u32> {
        self.objects.keys().copied().collect()
    }

    /// Ends a dump of next-hop objects: those known `before` that are not in `reported` are removed.
    pub fn swept_objects(&mut self, before: HashSet<u32>, reported: &HashSet<u32>) {
        for id in before.difference(reported) {
            self.no_next_hop(*id);
        }
    }

    /// Number of prefixes of each table that are in the forwarding table.
    pub fn counts(&self) -> HashMap<(Family, u32), u64> {
        let mut counts = HashMap::new();
        for (spot, entry) in &self.entries {
            if let Some(table) = volley_table(spot.table).filter(|_| entry.reported != 0) {
                *counts.entry((spot.prefix.family(), table)).or_default() += 1;
            }
        }
        counts
    }

    /// Takes the prefixes whose routes have changed since the last call; `batches` then omits them.
    pub fn take_changed(&mut self) -> Vec<Spot> {
        std::mem::take(&mut self.dirty)
    }

    /// Metric and next hops of each route of a prefix, the best first.
    pub fn ways_at(&self, spot: Spot) -> Vec<(u32, &Hops)> {
        let all = self.entries.get(&spot).map_or(&[][..], |e| e.ways.all());
        let ways = all.iter().filter_map(|w| Some((w.0, self.sets.get(w.1)?)));
        ways.collect()
    }

    /// All prefixes that have a route.
    pub fn spots(&self) -> impl Iterator<Item = Spot> {
        self.entries.keys().copied()
    }

    /// Number of prefixes with a route for each of Volley's tables, whether or not they are in the forwarding table.
    pub fn known(&self) -> HashMap<(Family, u32), u64> {
        let mut counts = HashMap::new();
        for spot in self.entries.keys() {
            if let Some(table) = volley_table(spot.table) {
                *counts.entry((spot.prefix.family(), table)).or_default() += 1;
            }
        }
        counts
    }

    /// Volley's tables that receive the kernel's routes.
    pub fn tables(&self) -> impl Iterator<Item = (Family, u32)> {
        self.tables.iter().copied()
    }
}

/// Inserts a route among those of its prefix, the lowest metric first.
fn put(all: &mut Vec<(u32, u32)>, new: (u32, u32), place: Place, sets: &mut Sets) {
    let same = all.iter().position(|w| w.0 == new.0);
    match (same, place) {
        (Some(at), Place::Replace) => {
            sets.release(all[at].1);
            all[at] = new;
        }
        // The kernel repeats a route after some changes and in a resynchronisation.
        (Some(_), _) if all.contains(&new) => sets.release(new.1),
        (_, Place::Append) => {
            let at = all.iter().position(|w| w.0 > new.0).unwrap_or(all.len());
            all.insert(at, new);
        }
        _ => {
            let at = all.iter().position(|w| w.0 >= new.0).unwrap_or(all.len());
            all.insert(at, new);
        }
    }
}

/// The next hops of a set that remain after a removal: IPv6 removes one next hop of several.
fn remaining(had: Option<&Hops>, gone: &Route) -> Option<Hops> {
    let (Some(Hops::Legs(had)), Hops::Legs(legs)) = (had, &gone.hops) else {
        return None;
    };
    let same = |a: &RouteHop, b: &RouteHop| (a.interface, a.gateway) == (b.interface, b.gateway);
    let rest = had.iter().filter(|h| !legs.iter().any(|l| same(l, h)));
    let rest: Vec<RouteHop> = rest.copied().collect();
    let some = gone.prefix.family() == Family::V6 && !rest.is_empty() && rest.len() < had.len();
    some.then_some(Hops::Legs(rest))
}

/// Sorts paths; of two with the same target the later one is kept.
pub fn normal(paths: &mut Vec<Path>) {
    let mut kept: Vec<Path> = Vec::with_capacity(paths.len());
    for path in paths.drain(..) {
        match kept.iter_mut().find(|k| k.target == path.target) {
            Some(k) => *k = path,
            None => kept.push(path),
        }
    }
    kept.sort();
    *paths = kept;
}

#[cfg(test)]
mod tests;
