//! When packets are spread by themselves: one worker has too much to do, others have not, and it lasts.

/// The share of its time that a hot worker is busy.
const HOT: f64 = 0.8;
/// The share that a worker may be busy which is to help.
const COOL: f64 = 0.5;
/// What all workers together do may be so little that one does it alone.
const CALM: f64 = 0.5;
/// Looks in a row that must be alike before packets are spread.
const HOT_LOOKS: u32 = 3;
/// Looks in a row before they are no longer spread.
const CALM_LOOKS: u32 = 20;

/// What has been seen of an interface.
#[derive(Clone, Debug, Default)]
pub(crate) struct Auto {
    pub(crate) spread: bool,
    /// Looks in a row that speak for a change.
    looks: u32,
}

impl Auto {
    /// Another look: `busy` is the share of its time that each worker was busy since the last one, `takes_part` names
    /// those that packets may be spread over, `receives` those that the interface's packets came in on. True when what is
    /// done has changed.
    pub(crate) fn look(&mut self, busy: &[f64], takes_part: &[usize], receives: &[usize]) -> bool {
        let share = |worker: &usize| busy.get(*worker).copied().unwrap_or(0.0);
        let speaks = if self.spread {
            takes_part.iter().map(share).sum::<f64>() < CALM
        } else {
            let hot = receives.iter().any(|w| share(w) > HOT);
            let helper = |w: &usize| share(w) < COOL && !receives.contains(w);
            hot && takes_part.iter().any(helper)
        };
        self.looks = if speaks { self.looks + 1 } else { 0 };
        let enough = if self.spread { CALM_LOOKS } else { HOT_LOOKS };
        if self.looks < enough {
            return false;
        }
        *self = Auto {
            spread: !self.spread,
            looks: 0,
        };
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hot_worker_gets_help_after_a_while_and_keeps_it_until_all_is_calm() {
        let mut auto = Auto::default();
        let all = [0, 1];
        assert!(!auto.look(&[0.95, 0.1], &all, &[0]));
        assert!(!auto.look(&[0.3, 0.1], &all, &[0]), "a burst is no load");
        for _ in 0..2 {
            assert!(!auto.look(&[0.95, 0.1], &all, &[0]));
        }
        assert!(auto.look(&[0.95, 0.1], &all, &[0]) && auto.spread);
        for _ in 0..50 {
            // Both are half busy now: less than hot, more than one could do.
            assert!(!auto.look(&[0.5, 0.5], &all, &[0]));
        }
        for _ in 0..19 {
            assert!(!auto.look(&[0.2, 0.2], &all, &[0]));
        }
        assert!(auto.look(&[0.2, 0.2], &all, &[0]) && !auto.spread);
    }

    #[test]
    fn there_must_be_somebody_to_help() {
        let mut auto = Auto::default();
        for _ in 0..10 {
            assert!(!auto.look(&[0.95, 0.9], &[0, 1], &[0]), "all are busy");
            assert!(!auto.look(&[0.95, 0.0], &[0], &[0]), "none takes part");
            assert!(!auto.look(&[0.1, 0.9], &[0, 1], &[0]), "another's load");
        }
    }
}
