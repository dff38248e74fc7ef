//! Reachability of default routers (RFC 4861, 6.3.6): probes them, and uses others when one does not answer.

use super::Autoconfiguration;
use super::reach::{AutoconfAction, Reach, ReachabilityEvent};
use crate::moment::{Effect, Moment};
use crate::neighbor_state::NeighborState;
use std::net::{IpAddr, Ipv6Addr};
use volley_fib::Fib;

/// Access to the neighbour table; an interface and an address identify a neighbour.
pub trait Reachability {
    /// The state of a learned neighbour; none if there is no entry.
    fn state(&self, key: (u32, IpAddr)) -> Option<NeighborState>;
    /// Resolves a neighbour's address.
    fn seek(&mut self, key: (u32, IpAddr), now: u64);
    /// Sends one probe.
    fn ask_once(&mut self, key: (u32, IpAddr), now: u64);
    /// Marks a neighbour as in use.
    fn used(&mut self, key: (u32, IpAddr), now: u64);
}

/// The state of a router as a neighbour.
pub(super) fn router_state(
    fib: &Fib,
    neighbors: &dyn Reachability,
    (iface, router): (u32, Ipv6Addr),
) -> Option<NeighborState> {
    match fib.neighbor(iface, router.into()) {
        Some(it) if !it.learned => Some(NeighborState::Static),
        _ => neighbors.state((iface, router.into())),
    }
}

fn seen(fib: &Fib, neighbors: &dyn Reachability, router: (u32, Ipv6Addr)) -> ReachabilityEvent {
    match router_state(fib, neighbors, router) {
        None => ReachabilityEvent::NoEntry,
        Some(NeighborState::Incomplete) => ReachabilityEvent::Sought,
        Some(NeighborState::Reachable | NeighborState::Static) => ReachabilityEvent::Answered,
        Some(NeighborState::Stale | NeighborState::Delay | NeighborState::Probe) => {
            ReachabilityEvent::Known
        }
    }
}

impl Autoconfiguration {
    /// Updates the reachability of an interface's routers, of which some `failed` to answer. True if the selection of default
    /// routers may change.
    pub(super) fn turn_routers(
        &mut self,
        iface: u32,
        neighbors: &mut dyn Reachability,
        failed: &[(u32, IpAddr)],
        moment: &mut Moment<'_>,
    ) -> bool {
        let now = moment.now;
        let client = self.clients.get(&iface);
        let client = client.filter(|client| client.default_route);
        let Some(state) = client.and_then(|client| client.state.as_ref()) else {
            return false;
        };
        let before = state.ways();
        let mut routers: Vec<(Ipv6Addr, Reach)> = (state.routers.iter())
            .map(|it| (it.message.router, it.reach))
            .collect();
        for (router, reach) in &mut routers {
            let (key, was) = ((iface, IpAddr::V6(*router)), *reach);
            if failed.contains(&key) {
                reach.fail(now);
            }
            match reach.look(seen(moment.fib, neighbors, (iface, *router)), now) {
                Some(AutoconfAction::Seek) => neighbors.seek(key, now),
                Some(AutoconfAction::AskOnce) => neighbors.ask_once(key, now),
                None => {}
            }
            tell_of_router(iface, *router, (was, *reach), moment);
        }
        let client = self.clients.get_mut(&iface);
        let Some(state) = client.and_then(|client| client.state.as_mut()) else {
            return false;
        };
        for (it, (_, reach)) in state.routers.iter_mut().zip(&routers) {
            it.reach = *reach;
        }
        let ways = state.ways();
        let best = ways.iter().map(|(_, place)| *place).min();
        for (router, _) in ways.iter().filter(|(_, place)| Some(*place) == best) {
            neighbors.used((iface, IpAddr::V6(*router)), now);
        }
        ways != before
    }
}

/// Logs a default router that stops or resumes answering.
fn tell_of_router(
    iface: u32,
    router: Ipv6Addr,
    (was, is): (Reach, Reach),
    moment: &mut Moment<'_>,
) {
    match (was, is) {
        (Reach::Known { answered: true }, Reach::Silent { .. }) => {
            moment.effects.push(Effect::SilentRouter);
            moment.tell(
                iface,
                format!("the router {router} does not answer any more: others are used where there are any"),
            );
        }
        (Reach::Silent { .. }, Reach::Known { .. }) => {
            moment.tell(iface, format!("the router {router} answers"));
        }
        _ => {}
    }
}
