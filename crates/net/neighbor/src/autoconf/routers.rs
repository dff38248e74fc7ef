//! Looks at the default routers of an interface: asks for them, and changes over when one falls silent.

use super::reach::{AutoconfAction, Reach, ReachabilityEvent};
use crate::control::Control;
use crate::table::Key;
use std::net::Ipv6Addr;
use volley_model::reply::NeighborState;

impl Control {
    /// The state of a router as a neighbour.
    pub(crate) fn router_state(&self, iface: u32, router: Ipv6Addr) -> Option<NeighborState> {
        let configured = self.fib.borrow().neighbor(iface, router.into());
        match configured {
            Some(it) if !it.learned => Some(NeighborState::Static),
            _ => self.table.state((iface, router.into())),
        }
    }

    fn seen(&self, iface: u32, router: Ipv6Addr) -> ReachabilityEvent {
        match self.router_state(iface, router) {
            None => ReachabilityEvent::Nobody,
            Some(NeighborState::Incomplete) => ReachabilityEvent::Sought,
            Some(NeighborState::Reachable | NeighborState::Static) => ReachabilityEvent::Answered,
            Some(NeighborState::Stale | NeighborState::Delay | NeighborState::Probe) => {
                ReachabilityEvent::Known
            }
        }
    }

    /// Looks at the routers of an interface, of which some `failed` to answer. True when others may have to be used now.
    pub(crate) fn turn_routers(&mut self, iface: u32, failed: &[Key], now: u64) -> bool {
        let client = self.clients.get(&iface);
        let client = client.filter(|client| client.default_route);
        let Some(state) = client.and_then(|client| client.state.as_ref()) else {
            return false;
        };
        let before = state.ways();
        let mut routers: Vec<(Ipv6Addr, Reach)> = (state.routers.iter())
            .map(|it| (it.said.router, it.reach))
            .collect();
        for (router, reach) in &mut routers {
            let (key, was) = ((iface, (*router).into()), *reach);
            if failed.contains(&key) {
                reach.fail(now);
            }
            match reach.look(self.seen(iface, *router), now) {
                Some(AutoconfAction::Seek) => self.table.seek(key, now),
                Some(AutoconfAction::AskOnce) => self.table.ask_once(key, now),
                None => {}
            }
            self.tell_of_router(iface, *router, (was, *reach));
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
            self.table.used((iface, (*router).into()), now);
        }
        ways != before
    }

    /// Logs a default router that stops answering, and one that answers again.
    fn tell_of_router(&mut self, iface: u32, router: Ipv6Addr, (was, is): (Reach, Reach)) {
        match (was, is) {
            (Reach::Known { answered: true }, Reach::Silent { .. }) => {
                self.tally.silent_routers += 1;
                self.tell(
                    iface,
                    &format!("the router {router} does not answer any more: others are used where there are any"),
                );
            }
            (Reach::Silent { .. }, Reach::Known { .. }) => {
                self.tell(iface, &format!("the router {router} answers"));
            }
            _ => {}
        }
    }
}
