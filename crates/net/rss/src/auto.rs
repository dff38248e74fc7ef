//! Mode `auto`: packets are spread while one worker is overloaded and others are not.

/// Busy share from which a worker counts as overloaded.
const HOT: f64 = 0.8;
/// Largest busy share of a worker that may take over packets.
const COOL: f64 = 0.5;
/// Total busy share of all workers up to which one worker suffices.
const CALM: f64 = 0.5;
/// Consecutive samples of overload before packets are spread.
const HOT_LOOKS: u32 = 3;
/// Consecutive calm samples before spreading ends.
const CALM_LOOKS: u32 = 20;

/// State of an interface.
#[derive(Clone, Debug, Default)]
pub(crate) struct Auto {
    pub(crate) spread: bool,
    /// Consecutive samples that indicate a change.
    looks: u32,
}

impl Auto {
    /// Adds a sample. `busy` is the busy share of each worker since the last sample, `takes_part` has the workers that packets
    /// may be spread over, `receives` those that receive the interface's packets. True if the decision has changed.
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
            // Both workers are half busy: below the overload limit, but too much for one.
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
