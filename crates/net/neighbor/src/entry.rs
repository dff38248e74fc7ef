//! State machine of one neighbour (RFC 4861, 7.3 and appendix C), for ARP and ND alike. It has no clock, packets or tables.
//!
//! The fast path does not report which neighbours it sends to. An entry that has answered once therefore counts as in use:
//! [`Timers::recheck`] after it became STALE it is probed by unicast, and deleted if the neighbour does not answer. An entry
//! that was only learned from a request of its sender, and never confirmed by an answer, is not probed and is deleted after
//! [`Timers::expire`].

use volley_router_discovery::NeighborState as State;

pub use volley_router_discovery::link::{Mac, SECOND};

/// Timers in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timers {
    /// Interval between solicitations.
    pub retransmit: u64,
    /// Solicitations before the neighbour is unreachable.
    pub tries: u8,
    /// How long an answer keeps the entry REACHABLE.
    pub reachable: u64,
    /// DELAY: how long a STALE entry in use waits for confirmation by upper layers before it is probed.
    pub delay: u64,
    /// How long an entry stays STALE before it counts as in use.
    pub recheck: u64,
    /// How long an entry that was never confirmed is kept.
    pub expire: u64,
}

impl Default for Timers {
    /// RFC 4861, section 10; the expiry of four hours is the common ARP timeout.
    fn default() -> Self {
        Timers {
            retransmit: SECOND,
            tries: 3,
            reachable: 30 * SECOND,
            delay: 5 * SECOND,
            recheck: 30 * SECOND,
            expire: 4 * 3600 * SECOND,
        }
    }
}

/// A received message about a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// A request of the neighbour to this router, with its MAC address.
    Question(Mac),
    /// An answer or an announcement.
    Answer {
        /// The neighbour's MAC address, if the message has one.
        mac: Option<Mac>,
        /// Solicited flag: the message answers a request of this router.
        solicited: bool,
        /// Override flag: the MAC address replaces a known one.
        overrides: bool,
    },
}

/// What the caller does when an entry is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Nothing yet.
    Wait,
    /// Send a multicast or broadcast request.
    AskAll,
    /// Send a unicast request to this MAC address.
    Ask(Mac),
    /// Delete the entry.
    Forget,
}

/// A neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    state: State,
    mac: Option<Mac>,
    since: u64,
    due: u64,
    tries: u8,
    answered: bool,
}

impl Entry {
    /// A new INCOMPLETE entry: [`Entry::due()`] is now, and [`Entry::turn`] returns the first request.
    pub fn sought(now: u64) -> Self {
        Entry {
            state: State::Incomplete,
            mac: None,
            since: now,
            due: now,
            tries: 0,
            answered: false,
        }
    }

    /// A new entry for a neighbour that sent a request to this router.
    pub fn heard(mac: Mac, now: u64, timers: &Timers) -> Self {
        let mut entry = Self::sought(now);
        entry.enter(State::Stale, now, timers);
        entry.mac = Some(mac);
        entry
    }

    /// State of the entry.
    pub fn state(&self) -> State {
        self.state
    }

    /// Whether the neighbour ever answered with its current MAC address.
    pub fn answered(&self) -> bool {
        self.answered
    }

    /// MAC address of the neighbour, once known.
    pub fn mac(&self) -> Option<Mac> {
        self.mac
    }

    /// Requests sent since the entry entered its state.
    pub fn tries(&self) -> u8 {
        self.tries
    }

    /// If no request was sent yet, makes the first one due now.
    pub fn hurry(&mut self, now: u64) {
        if self.state == State::Incomplete && self.tries == 0 {
            self.due = now;
        }
    }

    /// When the entry entered its state or was last confirmed.
    pub fn since(&self) -> u64 {
        self.since
    }

    /// When [`Entry::turn`] must be called.
    pub fn due(&self) -> u64 {
        self.due
    }

    fn enter(&mut self, state: State, now: u64, timers: &Timers) {
        (self.state, self.since, self.tries) = (state, now, 0);
        let span = match state {
            State::Incomplete | State::Probe => 0,
            State::Reachable => timers.reachable,
            State::Delay => timers.delay,
            State::Stale if self.answered => timers.recheck,
            State::Stale | State::Static => timers.expire,
        };
        self.due = now.saturating_add(span);
    }

    /// Handles a received message. True if the MAC address is new.
    pub fn hear(&mut self, word: Word, now: u64, timers: &Timers) -> bool {
        match word {
            Word::Question(mac) => self.question(mac, now, timers),
            Word::Answer {
                mac,
                solicited,
                overrides,
            } => self.answer(mac, solicited, overrides, now, timers),
        }
    }

    /// RFC 4861, 7.2.3.
    fn question(&mut self, mac: Mac, now: u64, timers: &Timers) -> bool {
        if self.mac == Some(mac) {
            return false;
        }
        self.mac = Some(mac);
        self.answered = false;
        self.enter(State::Stale, now, timers);
        true
    }

    /// RFC 4861, 7.2.5.
    fn answer(
        &mut self,
        mac: Option<Mac>,
        solicited: bool,
        overrides: bool,
        now: u64,
        timers: &Timers,
    ) -> bool {
        if self.state == State::Incomplete {
            let Some(mac) = mac else { return false };
            self.mac = Some(mac);
            self.confirm(solicited, now, timers);
            return true;
        }
        let other = mac.is_some() && mac != self.mac;
        if other && !overrides {
            if self.state == State::Reachable {
                self.enter(State::Stale, now, timers);
            }
            return false;
        }
        if other {
            self.mac = mac;
        }
        if solicited || other {
            self.confirm(solicited, now, timers);
        }
        other
    }

    fn confirm(&mut self, solicited: bool, now: u64, timers: &Timers) {
        self.answered |= solicited;
        let state = if solicited {
            State::Reachable
        } else {
            State::Stale
        };
        self.enter(state, now, timers);
    }

    /// The neighbour is in use by a sender or by upper layers: a STALE entry changes to DELAY.
    pub fn used(&mut self, now: u64, timers: &Timers) {
        if self.state == State::Stale {
            self.enter(State::Delay, now, timers);
        }
    }

    /// Makes one request due now, by unicast if the MAC address is known. An entry that is being probed or was just confirmed
    /// sends no additional request.
    pub fn once(&mut self, now: u64, timers: &Timers) {
        match self.state {
            State::Incomplete => {}
            State::Stale => self.enter(State::Probe, now, timers),
            State::Reachable | State::Delay | State::Probe | State::Static => return,
        }
        (self.tries, self.due) = (timers.tries.saturating_sub(1), now);
    }

    /// The entry is due. Call this when `now` is [`Entry::due()`] or later; it sets the next time.
    pub fn turn(&mut self, now: u64, timers: &Timers) -> Act {
        if now < self.due {
            return Act::Wait;
        }
        match self.state {
            State::Reachable => self.enter(State::Stale, now, timers),
            State::Stale if !self.answered => return Act::Forget,
            State::Stale => self.enter(State::Delay, now, timers),
            State::Delay => {
                self.enter(State::Probe, now, timers);
                return self.ask(now, timers);
            }
            State::Incomplete | State::Probe => return self.ask(now, timers),
            State::Static => {}
        }
        Act::Wait
    }

    fn ask(&mut self, now: u64, timers: &Timers) -> Act {
        if self.tries >= timers.tries {
            return Act::Forget;
        }
        self.tries += 1;
        self.due = now.saturating_add(timers.retransmit);
        self.mac.map_or(Act::AskAll, Act::Ask)
    }

    /// The request was refused by the rate limit: it is due at `at` instead, and this try does not count.
    pub fn postpone(&mut self, at: u64) {
        self.tries = self.tries.saturating_sub(1);
        self.due = at;
    }
}

#[cfg(test)]
mod tests;
