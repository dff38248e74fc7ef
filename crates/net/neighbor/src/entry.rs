//! One neighbour's states (RFC 4861, 7.3 and appendix C), for ARP and ND alike. No clock, no packets, no tables.
//!
//! The fast lane does not tell which neighbours it sends to. So a neighbour that answered once is taken as being in use:
//! [`Timers::recheck`] after it became stale it is asked again, at its own address, and forgotten when it does not answer.
//! One that never answered anything (it was heard asking, and that may be anybody) is not asked, and goes with
//! [`Timers::expire`].

use volley_router_discovery::NeighborState as State;

pub use volley_router_discovery::link::{Mac, SECOND};

/// How long things take, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timers {
    /// Between two questions.
    pub retransmit: u64,
    /// Questions before a neighbour is given up.
    pub tries: u8,
    /// How long an answer counts.
    pub reachable: u64,
    /// How long a stale neighbour that is used may confirm itself.
    pub delay: u64,
    /// How long a neighbour stays stale before it is taken as being used.
    pub recheck: u64,
    /// How long a neighbour that never answered is kept.
    pub expire: u64,
}

impl Default for Timers {
    /// RFC 4861, section 10; four hours to forget, as is usual for ARP.
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

/// What a neighbour says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// It asked us something, and its MAC address stood in the question.
    Question(Mac),
    /// It answered or announced itself.
    Answer {
        /// Its MAC address, where it says it.
        mac: Option<Mac>,
        /// It answers a question of ours.
        solicited: bool,
        /// It takes the place of a MAC address that is known.
        overrides: bool,
    },
}

/// What is to be done when a neighbour's time has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Nothing yet.
    Wait,
    /// Ask everybody.
    AskAll,
    /// Ask the neighbour.
    Ask(Mac),
    /// It is gone.
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
    /// Somebody who is sought: [`Entry::due()`] is now, and says what to ask.
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

    /// Somebody who asked us something.
    pub fn heard(mac: Mac, now: u64, timers: &Timers) -> Self {
        let mut entry = Self::sought(now);
        entry.enter(State::Stale, now, timers);
        entry.mac = Some(mac);
        entry
    }

    /// Its state.
    pub fn state(&self) -> State {
        self.state
    }

    /// Whether it ever answered us with the MAC address it has.
    pub fn answered(&self) -> bool {
        self.answered
    }

    /// Its MAC address, once known.
    pub fn mac(&self) -> Option<Mac> {
        self.mac
    }

    /// Questions that were asked since it entered its state.
    pub fn tries(&self) -> u8 {
        self.tries
    }

    /// Its first question is due now, if there was none yet.
    pub fn hurry(&mut self, now: u64) {
        if self.state == State::Incomplete && self.tries == 0 {
            self.due = now;
        }
    }

    /// When it entered its state, or was confirmed.
    pub fn since(&self) -> u64 {
        self.since
    }

    /// When [`Entry::turn`] wants to be called.
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

    /// It said something. True when its MAC address is new.
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

    /// Somebody sends to it, or upper layers need it: a stale one is asked before long.
    pub fn used(&mut self, now: u64, timers: &Timers) {
        if self.state == State::Stale {
            self.enter(State::Delay, now, timers);
        }
    }

    /// One question now, to the neighbour itself where its MAC address is known; one that is being asked, or has just
    /// answered, is asked no more than it would be.
    pub fn once(&mut self, now: u64, timers: &Timers) {
        match self.state {
            State::Incomplete => {}
            State::Stale => self.enter(State::Probe, now, timers),
            State::Reachable | State::Delay | State::Probe | State::Static => return,
        }
        (self.tries, self.due) = (timers.tries.saturating_sub(1), now);
    }

    /// Its time has come. Call it when `now` is [`Entry::due()`] or later; it sets the next time.
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

    /// The question could not be asked now: it is asked at `at` instead, and this time does not count.
    pub fn postpone(&mut self, at: u64) {
        self.tries = self.tries.saturating_sub(1);
        self.due = at;
    }
}

#[cfg(test)]
mod tests;
