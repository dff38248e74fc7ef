//! Which of its routers an interface uses (RFC 4861, 6.3.6; RFC 4191, 3.2; RFC 4311): those that answer go before those of
//! which nothing is known yet, and these before those that do not answer; among equals the preference counts that they
//! advertise, and of those that are left each carries its share.
//!
//! Whether they answer is for unreachability detection to say (RFC 4861, 7.3), which takes a default router as being sent to.
//! One that fell silent is asked once a minute; when it answers it comes back. That it still advertises itself says nothing:
//! only an answer shows that it hears us (7.3.1).

use crate::control::Control;
use crate::entry::SECOND;
use crate::table::Key;
use std::net::Ipv6Addr;
use volley_model::reply::NeighborState;

/// Between two questions to a router that does not answer (RFC 4191, 3.2: no more than one a minute).
const AGAIN: u64 = 60 * SECOND;
/// Preferences that there are (RFC 4191, 2.1): high, medium, low.
const PREFERENCES: u8 = 3;

/// What is known of a router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Nothing.
    New,
    /// It is asked who it is.
    Sought,
    /// It is a neighbour; whether it ever answered.
    Known {
        /// It did.
        answered: bool,
    },
    /// It does not answer, and is asked again then.
    Silent {
        /// When.
        again: u64,
    },
}

/// A router as a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReachabilityEvent {
    /// It is none.
    Nobody,
    /// It is being sought.
    Sought,
    /// Its MAC address is known.
    Known,
    /// It answered.
    Answered,
}

/// What is to be done about a router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AutoconfAction {
    /// Ask who it is.
    Seek,
    /// Ask once whether it is there again.
    AskOnce,
}

impl Reach {
    /// Its place among all: the lowest are used.
    pub fn place(self, preference: u8) -> u8 {
        let preference = preference.min(PREFERENCES - 1);
        match self {
            Reach::Known { .. } => preference,
            Reach::New | Reach::Sought => PREFERENCES + preference,
            // Where nobody answers, all are tried (RFC 4861, 6.3.6): packets ask for whom they go to.
            Reach::Silent { .. } => 2 * PREFERENCES,
        }
    }

    /// Whether it does not answer.
    pub fn is_silent(self) -> bool {
        matches!(self, Reach::Silent { .. })
    }

    /// It was asked, and did not answer. One that was known is sought at once: it may have another MAC address now.
    pub fn fail(&mut self, now: u64) {
        let again = match *self {
            Reach::Silent { .. } => return,
            Reach::Known { .. } => now,
            Reach::New | Reach::Sought => now + AGAIN,
        };
        *self = Reach::Silent { again };
    }

    /// A look at it as a neighbour.
    pub fn look(&mut self, seen: ReachabilityEvent, now: u64) -> Option<AutoconfAction> {
        match (*self, seen) {
            (_, ReachabilityEvent::Answered) => *self = Reach::Known { answered: true },
            (Reach::Silent { again }, _) if now >= again => {
                *self = Reach::Silent { again: now + AGAIN };
                return (seen != ReachabilityEvent::Sought).then_some(AutoconfAction::AskOnce);
            }
            (Reach::Silent { .. }, _) => {}
            (Reach::New | Reach::Sought, ReachabilityEvent::Known) => {
                *self = Reach::Known { answered: false }
            }
            (Reach::Known { .. }, ReachabilityEvent::Known) => {}
            (_, ReachabilityEvent::Sought) => *self = Reach::Sought,
            // It was forgotten, and not for want of answers.
            (_, ReachabilityEvent::Nobody) => {
                *self = Reach::Sought;
                return Some(AutoconfAction::Seek);
            }
        }
        None
    }
}

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
        let client = client.filter(|client| client.settings.default_route);
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

    /// The operator is told of routers that answered once, and do no more; and when they do again.
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

#[cfg(test)]
mod tests;
