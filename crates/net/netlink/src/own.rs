//! Routes of Volley's own, to the kernel: which it should have of them, which it has, and what is to be done about it.
//!
//! They stand under a protocol number of their own and behind whatever the kernel has for a prefix itself (their metric):
//! each side's own word goes before on that side. What the kernel has is only ever what it says it has; so a route that it
//! dropped by itself, or one that an earlier Volley left behind, differs and is mended. No socket and no clock here.

use crate::links::KernelState;
use crate::message::Route;
use crate::routes::{Hops, RouteHop, Routes, Spot, kernel_table};
use hashbrown::{HashMap, HashSet};
use std::rc::Rc;
use volley_fib::RouteSet;
use volley_fib::path::{Path, PathTarget};
use volley_model::{Family, Prefix};

/// The protocol of these routes (`rtm_protocol`): none of the kernel's, and none that iproute2 or FRR has a name for.
pub const PROTOCOL: u8 = 86;
/// Their metric: behind routing daemons (FRR: 20), `ip route` (0, IPv6 1024) and DHCP clients (some hundreds).
pub const METRIC: u32 = 32_768;

/// What the kernel is to do with a route of these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Make it; there is none.
    Add(Hops),
    /// Give it other ways.
    Replace(Hops),
    /// Take it away: of this metric, with these ways.
    Remove(u32, Hops),
}

/// A difference: where, as the kernel has it, as it should.
pub type Difference = (Spot, Option<Hops>, Option<Hops>);

/// Interfaces of the kernel that can carry routes, by the name of the interface whose twin they are.
pub type TableIds = HashMap<String, u32>;

/// All of it.
#[derive(Default)]
pub struct Own {
    wanted: HashMap<Spot, Rc<Hops>>,
    there: Routes,
    dirty: Vec<Spot>,
    ways: TableIds,
}

impl Own {
    /// What the kernel says of these routes.
    pub fn there(&mut self) -> &mut Routes {
        &mut self.there
    }

    /// The interfaces that carry routes now; whether they are others than before.
    pub fn set_ways(&mut self, ways: TableIds) -> bool {
        let new = self.ways != ways;
        self.ways = ways;
        new
    }

    /// Begins to say anew what the kernel should have.
    pub fn forget(&mut self) {
        self.wanted.clear();
    }

    /// What the kernel should have in a table (Volley's number).
    pub fn want(&mut self, table: u32, routes: &RouteSet) {
        let sets = routes.sets.iter().map(|paths| self.hops(paths));
        let sets: Vec<Option<Rc<Hops>>> = sets.map(|hops| hops.map(Rc::new)).collect();
        for (prefix, set) in &routes.routes {
            let Some(Some(hops)) = sets.get(*set as usize) else {
                continue;
            };
            let hops = attached(prefix, hops).map_or_else(|| hops.clone(), Rc::new);
            let table = kernel_table(table);
            let prefix = *prefix;
            self.wanted.insert(Spot { table, prefix }, hops);
        }
    }

    /// Everything is compared once more.
    pub fn compare(&mut self) {
        self.there.take_changed();
        self.dirty = self.differing();
    }

    /// Prefixes that wait to be looked at.
    pub fn waiting(&self) -> usize {
        self.dirty.len() + self.there.waiting()
    }

    /// These are to be looked at once more.
    pub fn again(&mut self, spots: impl IntoIterator<Item = Spot>) {
        self.dirty.extend(spots);
    }

    /// What is to be done next, for at most `most` prefixes. What the kernel answers to it must have been heard before
    /// the next call: else it is asked for the same thing twice.
    pub fn steps(&mut self, most: usize) -> Vec<(Spot, Vec<Step>)> {
        self.dirty.extend(self.there.take_changed());
        let rest = self.dirty.len().saturating_sub(most);
        let mut seen = HashSet::new();
        let spots: Vec<Spot> = self
            .dirty
            .drain(rest..)
            .filter(|s| seen.insert(*s))
            .collect();
        let steps = spots.into_iter().map(|spot| (spot, self.step(spot)));
        steps.filter(|(_, steps)| !steps.is_empty()).collect()
    }

    fn step(&self, spot: Spot) -> Vec<Step> {
        let there = self.there.ways_at(spot);
        let remove = |(metric, hops): &(u32, &Hops)| Step::Remove(*metric, (*hops).clone());
        let Some(want) = self.wanted.get(&spot) else {
            return there.iter().map(remove).collect();
        };
        let want = Hops::clone(want);
        match there[..] {
            [] => vec![Step::Add(want)],
            [(METRIC, has)] if alike(has, &want) => Vec::new(),
            [(METRIC, has)] if replaces(&spot, has, &want) => vec![Step::Replace(want)],
            _ => {
                let gone = there.iter().map(remove);
                gone.chain([Step::Add(want)]).collect()
            }
        }
    }

    fn differing(&self) -> Vec<Spot> {
        let is_odd = |spot: &Spot| !self.step(*spot).is_empty();
        let wanted = self.wanted.keys().copied();
        let mut all: Vec<Spot> = wanted.filter(is_odd).collect();
        let rest = self.there.spots();
        all.extend(rest.filter(|spot| !self.wanted.contains_key(spot)));
        all
    }

    /// How many routes the kernel should have, and what differs, in order.
    pub fn differences(&self) -> (u64, Vec<Difference>) {
        let mut spots = self.differing();
        spots.sort_unstable();
        let one = |spot: Spot| {
            let has = self.there.ways_at(spot).first().map(|w| w.1.clone());
            let want = self.wanted.get(&spot).map(|w| Hops::clone(w));
            (spot, has, want)
        };
        (
            self.wanted.len() as u64,
            spots.into_iter().map(one).collect(),
        )
    }

    /// Routes that the kernel keeps though every twin is gone: those that lead nowhere.
    pub fn lasting(&self) -> Vec<(Spot, Vec<Step>)> {
        let stays = |way: &(u32, &Hops)| !matches!(way.1, Hops::Legs(_));
        let gone = |spot: Spot| {
            let ways = self.there.ways_at(spot).into_iter().filter(stays);
            let steps = ways.map(|(metric, hops)| Step::Remove(metric, hops.clone()));
            (spot, steps.collect::<Vec<_>>())
        };
        let all = self.there.spots().map(gone);
        all.filter(|(_, steps)| !steps.is_empty()).collect()
    }

    /// Routes that the kernel has of these, by family and Volley's table.
    pub fn counts(&self) -> HashMap<(Family, u32), u64> {
        self.there.known()
    }

    /// Paths in the kernel's words; none when none of them can be said there.
    fn hops(&self, paths: &[Path]) -> Option<Hops> {
        let mut legs: Vec<RouteHop> = paths.iter().filter_map(|p| self.leg(p)).collect();
        if legs.is_empty() {
            let nowhere = |path: &Path| match path.target {
                PathTarget::Drop => Some(Hops::Drop),
                PathTarget::Unreachable => Some(Hops::Unreachable),
                PathTarget::Prohibit => Some(Hops::Prohibit),
                _ => None,
            };
            return paths.iter().find_map(nowhere);
        }
        if let [one] = &mut legs[..] {
            one.weight = 1;
        }
        legs.sort_unstable();
        Some(Hops::Legs(legs))
    }

    fn leg(&self, path: &Path) -> Option<RouteHop> {
        let (interface, gateway) = match &path.target {
            PathTarget::Via {
                addr,
                interface: Some(name),
                ..
            } => (name, Some(*addr)),
            PathTarget::Interface(name) => (name, None),
            _ => return None,
        };
        Some(RouteHop {
            interface: *self.ways.get(interface)?,
            gateway,
            weight: path.weight.clamp(1, 255) as u8,
            onlink: false,
        })
    }
}

/// The twins that are up: the kernel takes no route over another.
pub fn ways(twins: &KernelState, pairs: &[volley_lcp::LcpRow]) -> TableIds {
    let up = |p: &volley_lcp::LcpRow| Some((p.interface.clone(), twins.up(&p.host)?));
    pairs.iter().filter_map(up).collect()
}

/// A host is its own next hop on a link that it is attached to: the kernel says so without a gateway.
fn attached(prefix: &Prefix, hops: &Hops) -> Option<Hops> {
    let Hops::Legs(legs) = hops else { return None };
    let own = |leg: &RouteHop| leg.gateway == Some(prefix.addr());
    if !prefix.len() == prefix.family().bits() || !legs.iter().any(own) {
        return None;
    }
    let mut legs = legs.clone();
    legs.iter_mut()
        .filter(|l| own(l))
        .for_each(|l| l.gateway = None);
    legs.sort_unstable();
    Some(Hops::Legs(legs))
}

/// Whether the two are one, in whatever order the kernel tells the ways.
fn alike(has: &Hops, want: &Hops) -> bool {
    match (has, want) {
        (Hops::Legs(has), Hops::Legs(want)) => {
            // Each next hop goes to the kernel as one that is on the link.
            let plain = |leg: &RouteHop| RouteHop {
                onlink: false,
                ..*leg
            };
            let mut has: Vec<RouteHop> = has.iter().map(plain).collect();
            has.sort_unstable();
            has == *want
        }
        _ => has == want,
    }
}

/// Whether the kernel puts the one in the place of the other. Of IPv6 it does so only among routes with gateways; any others
/// of one metric stand beside each other there.
fn replaces(spot: &Spot, has: &Hops, want: &Hops) -> bool {
    let gates = |hops: &Hops| match hops {
        Hops::Legs(legs) => legs.iter().all(|l| l.gateway.is_some()),
        _ => false,
    };
    spot.prefix.family() == Family::V4 || gates(has) && gates(want)
}

/// A route of these, as the kernel tells it.
pub fn is_own(route: &Route) -> bool {
    route.protocol == PROTOCOL
}

#[cfg(test)]
mod tests;
