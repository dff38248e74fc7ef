//! Which sources and stages a worker calls in a round: those that have something to do.
//!
//! A source without a queue is left out ([`crate::Source::is_vacant`]), and so is a stage that holds nothing
//! ([`crate::Stage::is_holding`]). All of them are called in the round after the control thread has handed something over
//! ([`crate::Engine::wake`], [`crate::Engine::send`]): the worker looks at one word for that, so what has nothing to do costs
//! nothing. A stage is called again from the vector on that it takes packets from.

use crate::data::ids::{MAX_NODES, NodeId};

/// Rounds after which all sources and stages are called whatever they said: a notice that was forgotten costs a delay.
const SWEEP: u32 = 1024;

/// The sources that are polled, and when all are again.
pub(crate) struct Agenda {
    /// In the order of all sources.
    pub(crate) sources: Vec<NodeId>,
    /// Notices of the control thread that were seen.
    pub(crate) seen: u64,
    /// Rounds until all are called.
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

    /// Have all sources and stages called in the next round.
    pub(crate) fn call_all(&mut self) {
        self.left = 0;
    }

    /// A round begins: whether it calls all, for it is time, or there is news.
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
