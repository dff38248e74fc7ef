//! Which of its routers an interface uses (RFC 4861, 6.3.6; RFC 4191, 3.2; RFC 4311): those that answer go before those of
//! which nothing is known yet, and these before those that do not answer; among equals the preference counts that they
//! advertise, and of those that are left each carries its share.
//!
//! Whether they answer is for unreachability detection to say (RFC 4861, 7.3), which takes a default router as being sent to.
//! One that fell silent is asked once a minute; when it answers it comes back. That it still advertises itself says nothing:
//! only an answer shows that it hears us (7.3.1).

use crate::link::SECOND;

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

/// What the neighbour table knows of a router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReachabilityEvent {
    /// There is no entry for the router.
    NoEntry,
    /// Its address is being resolved.
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
