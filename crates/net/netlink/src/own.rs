//! Volley's own routes in the kernel: those that it should have, those that it has, and the steps from one to the other.
//!
//! These routes have a protocol number reserved for Volley and a metric that places them behind the kernel's own routes for a
//! prefix: each side prefers its own routes. The state of the kernel is taken only from the kernel's messages; so a route that
//! the kernel deleted, or one left behind by an earlier process, is a difference and is corrected. The module has no socket and
//! no clock.

use crate::links::KernelState;
use crate::message::Route;
use crate::routes::{Hops, RouteHop, Routes, Spot, kernel_table};
use hashbrown::{HashMap, HashSet};
use std::rc::Rc;
use volley_fib::RouteSet;
use volley_fib::path::{Path, PathTarget};
use volley_model::{Family, Prefix};

/// `rtm_protocol` of these routes: a number that neither the kernel, iproute2 nor FRR has a name for.
pub const PROTOCOL: u8 = 86;
/// Metric of these routes: behind routing daemons (FRR: 20), `ip route` (0, IPv6 1024) and DHCP clients (some hundreds).
pub const METRIC: u32 = 32_768;

/// A change of a route in the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Add the route; the kernel has none.
    Add(Hops),
    /// Replace the next hops.
    Replace(Hops),
    /// Delete the route with this metric and these next hops.
    Remove(u32, Hops),
}

/// A difference: prefix, the kernel's next hops, the wanted next hops.
pub type Difference = (Spot, Option<Hops>, Option<Hops>);

/// Ifindexes of LCP taps that can carry routes, by the name of the interface.
pub type TableIds = HashMap<String, u32>;

/// Volley's own routes in the kernel.
#[derive(Default)]
pub struct Own {
    wanted: HashMap<Spot, Rc<Hops>>,
    there: Routes,
    dirty: Vec<Spot>,
    ways: TableIds,
}

impl Own {
    /// The routes that the kernel has.
    pub fn there(&mut self) -> &mut Routes {
        &mut self.there
    }

    /// Sets the interfaces that can carry routes; true if they differ from those before.
    pub fn set_ways(&mut self, ways: TableIds) -> bool {
        let new = self.ways != ways;
        self.ways = ways;
        new
    }

    /// Clears the set of wanted routes.
    pub fn forget(&mut self) {
        self.wanted.clear();
    }

    /// Adds the routes that the kernel should have in a table (Volley's number).
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

    /// Compares all routes again.
    pub fn compare(&mut self) {
        self.there.take_changed();
        self.dirty = self.differing();
    }

    /// Number of prefixes that are still to be compared.
    pub fn waiting(&self) -> usize {
        self.dirty.len() + self.there.waiting()
    }

    /// Compares these prefixes again.
    pub fn again(&mut self, spots: impl IntoIterator<Item = Spot>) {
        self.dirty.extend(spots);
    }

    /// The next steps, for at most `most` prefixes. The caller must have read the kernel's replies before the next call;
    /// otherwise the same step is returned twice.
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

    /// Number of routes that the kernel should have, and the differences, sorted.
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

    /// Steps that delete the routes without an interface (blackhole, unreachable, prohibit): the kernel keeps these after all
    /// LCP taps are gone.
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

    /// Number of these routes in the kernel, by family and Volley's table.
    pub fn counts(&self) -> HashMap<(Family, u32), u64> {
        self.there.known()
    }

    /// The kernel's next hops for paths; none if no path can be expressed in the kernel.
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

/// The LCP taps that are up: the kernel refuses routes over an interface that is down.
pub fn ways(taps: &KernelState, pairs: &[volley_lcp::LcpRow]) -> TableIds {
    let up = |p: &volley_lcp::LcpRow| Some((p.interface.clone(), taps.up(&p.host)?));
    pairs.iter().filter_map(up).collect()
}

/// The hops without a gateway for an attached host, whose next hop is the host itself: the kernel's form of such a route.
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

/// Whether both are the same next hops; the kernel may list them in any order.
fn alike(has: &Hops, want: &Hops) -> bool {
    match (has, want) {
        (Hops::Legs(has), Hops::Legs(want)) => {
            // Volley sets the onlink flag on every next hop.
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

/// Whether the kernel replaces one route by the other. IPv6 routes are replaced only if both have gateways; other IPv6 routes
/// of the same metric coexist.
fn replaces(spot: &Spot, has: &Hops, want: &Hops) -> bool {
    let gates = |hops: &Hops| match hops {
        Hops::Legs(legs) => legs.iter().all(|l| l.gateway.is_some()),
        _ => false,
    };
    spot.prefix.family() == Family::V4 || gates(has) && gates(want)
}

/// Whether a route of the kernel is one of Volley's own.
pub fn is_own(route: &Route) -> bool {
    route.protocol == PROTOCOL
}

#[cfg(test)]
mod tests;
