//! Selection of default routers (RFC 4861, 6.3.6; RFC 4191, 3.2; RFC 4311). Reachable routers take precedence over those of
//! unknown state, and these over silent ones. Among equals the advertised preference decides, and the remaining routers share
//! the traffic.
//!
//! Neighbour unreachability detection (RFC 4861, 7.3) decides whether a router answers; a default router counts as in use. A
//! silent router is probed once a minute, and used again when it answers. Its advertisements alone do not count: only an answer
//! shows that packets reach it (7.3.1).

use crate::link::SECOND;

/// Interval between probes of a silent router (RFC 4191, 3.2: at most one a minute).
const AGAIN: u64 = 60 * SECOND;
/// Number of preferences (RFC 4191, 2.1): high, medium, low.
const PREFERENCES: u8 = 3;

/// Reachability of a router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// The state is unknown.
    New,
    /// The address is being resolved.
    Sought,
    /// The MAC address is known.
    Known {
        /// Whether the router ever answered.
        answered: bool,
    },
    /// The router does not answer.
    Silent {
        /// Time of the next probe.
        again: u64,
    },
}

/// What the neighbour table knows of a router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReachabilityEvent {
    /// There is no entry for the router.
    NoEntry,
    /// The address of the router is being resolved.
    Sought,
    /// The MAC address of the router is known.
    Known,
    /// The router answered.
    Answered,
}

/// Action for the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AutoconfAction {
    /// Resolve the router's address.
    Seek,
    /// Send one probe.
    AskOnce,
}

impl Reach {
    /// Rank of the router: those with the lowest rank are used.
    pub fn place(self, preference: u8) -> u8 {
        let preference = preference.min(PREFERENCES - 1);
        match self {
            Reach::Known { .. } => preference,
            Reach::New | Reach::Sought => PREFERENCES + preference,
            // If no router answers, all are tried (RFC 4861, 6.3.6): packets trigger the resolution.
            Reach::Silent { .. } => 2 * PREFERENCES,
        }
    }

    /// Whether the router does not answer.
    pub fn is_silent(self) -> bool {
        matches!(self, Reach::Silent { .. })
    }

    /// The router did not answer probes. One with a known MAC address is probed again at once: its MAC address may have
    /// changed.
    pub fn fail(&mut self, now: u64) {
        let again = match *self {
            Reach::Silent { .. } => return,
            Reach::Known { .. } => now,
            Reach::New | Reach::Sought => now + AGAIN,
        };
        *self = Reach::Silent { again };
    }

    /// Updates the state from the neighbour table.
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
            // The entry was deleted for a reason other than missing answers.
            (_, ReachabilityEvent::NoEntry) => {
                *self = Reach::Sought;
                return Some(AutoconfAction::Seek);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests;
