//! The sources and stages that a worker calls in a round: those with work.
//!
//! A source without a queue ([`crate::Source::is_vacant`]) and a stage without packets ([`crate::Stage::is_holding`]) are left
//! out. In the round after a notification of the control thread ([`crate::Engine::wake`], [`crate::Engine::send`]) the worker
//! calls all of them. The worker reads one word to detect a notification, so that idle sources and stages cost nothing. A
//! stage is called again as soon as a vector has left packets in it.

use crate::data::ids::{MAX_NODES, NodeId};

/// The number of rounds after which all sources and stages are called in any case: a missing notification costs only a delay.
const SWEEP: u32 = 1024;

/// The sources to poll, and the time at which all are called again.
pub(crate) struct Agenda {
    /// In the order of all sources.
    pub(crate) sources: Vec<NodeId>,
    /// The number of notifications that were seen.
    pub(crate) seen: u64,
    /// Rounds until all sources and stages are called.
    left: u32,
}

impl Agenda {
    pub(crate) fn new() -> Self {
        Agenda {
            sources: Vec::with_capacity(MAX_NODES),
            seen: 0,
            left: 0,
        }
    }

    /// Request that all sources and stages are called in the next round.
    pub(crate) fn call_all(&mut self) {
        self.left = 0;
    }

    /// Begin a round. Returns whether the round calls all, because it is time or because of a notification.
    #[inline(always)]
    pub(crate) fn is_full(&mut self, news: bool) -> bool {
        if self.left > 0 && !news {
            self.left -= 1;
            return false;
        }
        self.left = SWEEP;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_called_at_first_after_news_and_now_and_then() {
        let mut agenda = Agenda::new();
        let mut full = |news: &[usize], rounds: usize| -> Vec<usize> {
            (0..rounds)
                .filter(|n| agenda.is_full(news.contains(n)))
                .collect()
        };
        let period = SWEEP as usize + 1;
        assert_eq!(full(&[], 2 * period), [0, period]);
        assert_eq!(full(&[5], period + 5), [0, 5]);
        agenda.call_all();
        assert!(agenda.is_full(false) && !agenda.is_full(false));
    }
}
