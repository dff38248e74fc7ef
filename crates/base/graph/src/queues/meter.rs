//! The counters of a worker's thread while events of nodes are counted.

use crate::data::events::{CounterGroup, MAX_EVENTS, Reading};

/// Pairs of readings that determine the overhead.
const PAIRS: usize = 8;

/// A group of counters, and what reading it adds to its values.
pub(crate) struct Meter {
    group: Box<dyn CounterGroup>,
    /// The events between two readings one directly after the other.
    pub(crate) overhead: [u64; MAX_EVENTS],
}

impl Meter {
    pub(crate) fn new(group: Box<dyn CounterGroup>) -> Self {
        Meter {
            group,
            overhead: [0; MAX_EVENTS],
        }
    }

    /// Read the counters.
    pub(crate) fn read(&mut self) -> Reading {
        self.group.read()
    }

    /// Determine the overhead, on the thread whose events are counted: the least of some pairs of readings. A pair in which
    /// the group did not count all the time is left out.
    pub(crate) fn calibrate(&mut self) {
        let mut least = [u64::MAX; MAX_EVENTS];
        for _ in 0..PAIRS {
            let (from, to) = (self.read(), self.read());
            if from.off_ns != to.off_ns {
                continue;
            }
            for (at, least) in least.iter_mut().enumerate() {
                *least = (*least).min(to.values[at].wrapping_sub(from.values[at]));
            }
        }
        self.overhead = least.map(|it| if it == u64::MAX { 0 } else { it });
    }
}
