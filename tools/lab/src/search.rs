//! Searches the largest rate that a device forwards with a bounded loss: NDR and PDR (RFC 2544, RFC 9971).
//!
//! The search has the economy of MLRsearch: short trials narrow the interval first, and only the last phase has trials of full
//! length. A bound that a shorter trial found is tried again at full length before it counts. One search serves
//! several loss ratios, and each trial serves all of them.
//!
//! Contract:
//! - Of a result, `lower` was measured at full length with at most the goal's loss ratio, and `upper` at full length with more,
//!   except at the ends of the range.
//! - Where loss is not monotonic, a lower bound is below the smallest rate that failed at full length.
//! - The number of trials is bounded by the settings; a search that does not converge is an error with the bounds so far.

use serde::{Deserialize, Serialize};

/// Loss ratio of the non-drop rate.
pub const NDR: f64 = 0.0;
/// Loss ratio of the partial drop rate.
pub const PDR: f64 = 0.005;

/// Packets of one trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trial {
    /// Packets sent.
    pub sent: u64,
    /// Packets that came back.
    pub received: u64,
}

impl Trial {
    /// Fraction of the packets that were lost. A trial that sent nothing lost everything.
    pub fn loss(&self) -> f64 {
        match self.sent {
            0 => 1.0,
            sent => sent.saturating_sub(self.received) as f64 / sent as f64,
        }
    }
}

/// Why a trial could not be made, in a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The generator did not send at the rate.
    Late(String),
    /// Another reason.
    Failed(String),
}

/// A device under test with its generator and sink.
pub trait Device {
    /// Send at a rate in packets per second for a time in seconds.
    ///
    /// # Errors
    /// If the trial could not be made.
    fn trial(&mut self, rate: f64, seconds: f64) -> Result<Trial, Refusal>;
}

/// What a search looks for, and its limits.
#[derive(Clone, Debug, PartialEq)]
pub struct Goal {
    /// Loss ratios, in any order.
    pub loss_ratios: Vec<f64>,
    /// Lowest rate of the range in packets per second.
    pub min_rate: f64,
    /// Highest rate: that of the generator or of the line.
    pub max_rate: f64,
    /// Largest relative width between the bounds.
    pub width: f64,
    /// Seconds of the trials that count.
    pub seconds: f64,
    /// Phases before the last one; the trials of each are a quarter as long as those of the next.
    pub phases: u32,
    /// Largest number of trials of all phases together.
    pub most_trials: usize,
}

impl Goal {
    /// NDR and PDR within half a percent, trials of up to one second.
    pub fn new(min_rate: f64, max_rate: f64) -> Goal {
        Goal {
            loss_ratios: vec![NDR, PDR],
            min_rate,
            max_rate,
            width: 0.005,
            seconds: 1.0,
            phases: 2,
            most_trials: 60,
        }
    }
}

/// Bounds of the rate for one loss ratio.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bounds {
    /// The loss ratio.
    pub loss_ratio: f64,
    /// Largest rate with at most this loss; zero if the lowest rate of the range has more.
    pub lower: f64,
    /// Smallest rate with more loss; none if the highest rate of the range has no more.
    pub upper: Option<f64>,
}

/// The result of a search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// Bounds by loss ratio, in the order of the goal.
    pub bounds: Vec<Bounds>,
    /// Number of trials.
    pub trials: usize,
    /// Seconds of all trials.
    pub seconds: f64,
}

/// Errors of a search.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SearchError {
    /// The goal contradicts itself.
    #[error("the search cannot begin: {0}")]
    Goal(String),
    /// A trial could not be made.
    #[error("the trial at {rate:.0} packets per second failed: {why}")]
    Trial {
        /// Rate of the trial.
        rate: f64,
        /// Reason.
        why: String,
    },
    /// The generator did not send at a rate: the range ends below it, or other programs run.
    #[error("the trial at {rate:.0} packets per second failed: {why}")]
    Late {
        /// Rate of the trial.
        rate: f64,
        /// Reason.
        why: String,
    },
    /// Too many trials.
    #[error(
        "the search did not converge in {trials} trials (loss ratio {ratio}: between {lower:.0} and {upper:.0} packets per second): \
         choose a larger width, longer trials or more trials"
    )]
    TooLong {
        /// Trials made.
        trials: usize,
        /// Loss ratio that is open.
        ratio: f64,
        /// Lower bound so far.
        lower: f64,
        /// Upper bound so far.
        upper: f64,
    },
}

/// One measured trial.
#[derive(Clone, Copy)]
struct Measured {
    rate: f64,
    seconds: f64,
    loss: f64,
}

/// State of a search.
struct Search<'a> {
    device: &'a mut dyn Device,
    goal: &'a Goal,
    trials: Vec<Measured>,
}

/// Search the bounds of all loss ratios of the goal.
///
/// # Errors
/// If the goal is not usable, a trial fails, or the bounds do not meet within the number of trials.
pub fn search(device: &mut dyn Device, goal: &Goal) -> Result<Found, SearchError> {
    check(goal)?;
    let mut search = Search {
        device,
        goal,
        trials: Vec::new(),
    };
    for phase in (0..=goal.phases).rev() {
        let seconds = goal.seconds / f64::from(4u32.pow(phase));
        let width = goal.width * f64::from(2u32.pow(phase));
        for &ratio in &goal.loss_ratios {
            search.narrow(ratio, seconds, width)?;
        }
    }
    let bounds = goal.loss_ratios.iter().map(|&loss_ratio| {
        let (lower, upper) = search.bounds(loss_ratio, goal.seconds);
        Bounds {
            loss_ratio,
            lower: lower.unwrap_or(0.0),
            upper,
        }
    });
    Ok(Found {
        bounds: bounds.collect(),
        trials: search.trials.len(),
        seconds: search.trials.iter().map(|t| t.seconds).sum(),
    })
}

fn check(goal: &Goal) -> Result<(), SearchError> {
    let bad = |text: String| Err(SearchError::Goal(text));
    if !(goal.min_rate > 0.0 && goal.max_rate > goal.min_rate && goal.max_rate.is_finite()) {
        return bad(format!(
            "choose a range of rates above 0, not {} to {}",
            goal.min_rate, goal.max_rate
        ));
    }
    if !(goal.width > 0.0 && goal.width < 1.0) {
        return bad(format!(
            "choose a width between 0 and 1, not {}",
            goal.width
        ));
    }
    if !(goal.seconds > 0.0 && goal.seconds.is_finite()) {
        return bad(format!(
            "choose more than 0 seconds for a trial, not {}",
            goal.seconds
        ));
    }
    if goal.phases > 8 {
        return bad(format!("choose at most 8 phases, not {}", goal.phases));
    }
    if goal.loss_ratios.is_empty() || goal.loss_ratios.iter().any(|r| !(0.0..1.0).contains(r)) {
        return bad("choose loss ratios of at least 0 and less than 1".to_owned());
    }
    Ok(())
}

impl Search<'_> {
    /// Largest rate that passed below the smallest that failed, and the smallest that failed, in trials of at least this length.
    fn bounds(&self, ratio: f64, seconds: f64) -> (Option<f64>, Option<f64>) {
        let long = || self.trials.iter().filter(|t| t.seconds >= seconds);
        let failed = long().filter(|t| t.loss > ratio).map(|t| t.rate);
        let upper = failed.min_by(f64::total_cmp);
        let below = |t: &&Measured| upper.is_none_or(|upper| t.rate < upper);
        let passed = long().filter(|t| t.loss <= ratio).filter(below);
        (passed.map(|t| t.rate).max_by(f64::total_cmp), upper)
    }

    /// Make trials of one length until the bounds of a loss ratio are closer than the width.
    fn narrow(&mut self, ratio: f64, seconds: f64, width: f64) -> Result<(), SearchError> {
        // Bounds of shorter trials are candidates: the lower one first, since it is the result if it passes again.
        let (lower, upper) = self.bounds(ratio, 0.0);
        for rate in [lower, upper].into_iter().flatten() {
            if self.is_useful(rate, ratio, seconds) {
                self.measure(rate, seconds)?;
            }
        }
        // Distance of the next step away from a bound that failed to hold, doubled with each step.
        let mut step = width;
        loop {
            let rate = match self.bounds(ratio, seconds) {
                (None, None) => self.goal.max_rate,
                (Some(lower), None) if lower >= self.goal.max_rate => return Ok(()),
                (None, Some(upper)) if upper <= self.goal.min_rate => return Ok(()),
                (Some(lower), None) => {
                    step *= 2.0;
                    (lower * (1.0 + step)).min(self.goal.max_rate)
                }
                (None, Some(upper)) => {
                    step *= 2.0;
                    (upper * (1.0 - step.min(0.5))).max(self.goal.min_rate)
                }
                (Some(lower), Some(upper)) if upper - lower <= width * upper => return Ok(()),
                (Some(lower), Some(upper)) => self.between(lower, upper, width),
            };
            if self.trials.len() >= self.goal.most_trials {
                let (lower, upper) = self.bounds(ratio, seconds);
                return Err(SearchError::TooLong {
                    trials: self.trials.len(),
                    ratio,
                    lower: lower.unwrap_or(0.0),
                    upper: upper.unwrap_or(self.goal.max_rate),
                });
            }
            self.measure(rate, seconds)?;
        }
    }

    /// Whether a trial of this rate and length can change the bounds.
    fn is_useful(&self, rate: f64, ratio: f64, seconds: f64) -> bool {
        let (lower, upper) = self.bounds(ratio, seconds);
        lower.is_none_or(|lower| rate > lower) && upper.is_none_or(|upper| rate < upper)
    }

    /// The next rate between two bounds: the geometric mean, or one width below the upper bound if that is all that is left.
    fn between(&self, lower: f64, upper: f64, width: f64) -> f64 {
        let target = upper * (1.0 - 0.9 * width);
        match upper - lower <= 2.0 * width * upper && target > lower {
            true => target,
            false => (lower * upper).sqrt(),
        }
    }

    fn measure(&mut self, rate: f64, seconds: f64) -> Result<(), SearchError> {
        let trial = self.device.trial(rate, seconds);
        let trial = trial.map_err(|refusal| match refusal {
            Refusal::Late(why) => SearchError::Late { rate, why },
            Refusal::Failed(why) => SearchError::Trial { rate, why },
        })?;
        self.trials.push(Measured {
            rate,
            seconds,
            loss: trial.loss(),
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A device that forwards up to a rate, with optional noise and other behaviour.
    struct Synthetic<F: FnMut(f64, f64) -> f64> {
        loss: F,
    }

    impl<F: FnMut(f64, f64) -> f64> Device for Synthetic<F> {
        fn trial(&mut self, rate: f64, seconds: f64) -> Result<Trial, Refusal> {
            let sent = (rate * seconds) as u64;
            let lost = (sent as f64 * (self.loss)(rate, seconds).clamp(0.0, 1.0)) as u64;
            Ok(Trial {
                sent,
                received: sent - lost,
            })
        }
    }

    /// Loss of a device with a capacity.
    fn over(rate: f64, capacity: f64) -> f64 {
        (1.0 - capacity / rate).max(0.0)
    }

    fn found(loss: impl FnMut(f64, f64) -> f64) -> Found {
        search(&mut Synthetic { loss }, &Goal::new(1e4, 40e6)).unwrap()
    }

    #[test]
    fn converges_to_known_rates_within_one_percent_in_30_trials() {
        for capacity in [2e4, 1e6, 7.77e6, 12_345_678.0, 39.9e6] {
            let found = found(|rate, _| over(rate, capacity));
            let [ndr, pdr] = found.bounds[..] else {
                panic!("{found:?}")
            };
            assert!((ndr.lower / capacity - 1.0).abs() < 0.01, "{found:?}");
            let partial = (capacity / (1.0 - PDR)).min(40e6);
            assert!((pdr.lower / partial - 1.0).abs() < 0.01, "{found:?}");
            assert!(pdr.lower >= ndr.lower, "{found:?}");
            assert!(found.trials <= 30, "{} trials for {capacity}", found.trials);
        }
    }

    #[test]
    fn most_of_the_trials_are_short() {
        let found = found(|rate, _| over(rate, 7.77e6));
        let full = found.trials as f64 * 1.0;
        assert!(found.seconds < 0.6 * full, "{found:?}");
    }

    #[test]
    fn noise_of_the_capacity_moves_the_result_by_less_than_one_percent() {
        for seed in 0..100 {
            let mut random = fastrand::Rng::with_seed(seed);
            // Short trials vary more than long ones.
            let found = found(|rate, seconds| {
                let noise = (random.f64() - 0.5) * 0.006 / seconds.sqrt();
                over(rate, 7.77e6 * (1.0 + noise))
            });
            for (bounds, known) in found.bounds.iter().zip([7.77e6, 7.77e6 / (1.0 - PDR)]) {
                let off = (bounds.lower / known - 1.0).abs();
                assert!(off < 0.01, "seed {seed}: {off} {found:?}");
            }
            assert!(found.trials <= 45, "seed {seed}: {} trials", found.trials);
        }
    }

    #[test]
    fn loss_that_is_not_monotonic_gives_a_bound_below_all_failures_that_were_measured() {
        // A band of loss at half of the capacity, as of a driver that handles some burst length badly.
        for band in [(4e6, 4.4e6), (7.0e6, 7.7e6), (1e6, 1.05e6)] {
            let mut failed = f64::INFINITY;
            let found = found(|rate, seconds| {
                let loss = match (band.0..band.1).contains(&rate) {
                    true => 0.02,
                    false => over(rate, 8e6),
                };
                if loss > 0.0 && seconds >= 1.0 {
                    failed = failed.min(rate);
                }
                loss
            });
            let ndr = found.bounds[0];
            assert!(ndr.lower < failed, "{band:?} {found:?}");
            let at = |rate: f64| (ndr.lower / rate - 1.0).abs() < 0.01;
            assert!(at(8e6) || at(band.0), "{band:?} {found:?}");
        }
    }

    #[test]
    fn loss_in_short_trials_only_does_not_lower_the_result() {
        let found = found(|rate, seconds| match seconds < 1.0 {
            true => over(rate, 5e6),
            false => over(rate, 8e6),
        });
        assert!(
            (found.bounds[0].lower / 8e6 - 1.0).abs() < 0.01,
            "{found:?}"
        );
    }

    #[test]
    fn the_ends_of_the_range_are_results() {
        let all = found(|_, _| 0.0);
        assert_eq!((all.bounds[0].lower, all.bounds[0].upper), (40e6, None));
        let none = found(|_, _| 0.5);
        assert_eq!(
            (none.bounds[0].lower, none.bounds[0].upper),
            (0.0, Some(1e4))
        );
    }

    #[test]
    fn a_device_at_random_ends_the_search_with_an_error() {
        let mut random = fastrand::Rng::with_seed(3);
        let goal = Goal {
            most_trials: 10,
            ..Goal::new(1e4, 40e6)
        };
        let loss = |_: f64, _: f64| if random.bool() { 0.1 } else { 0.0 };
        let error = search(&mut Synthetic { loss }, &goal).unwrap_err();
        assert!(matches!(error, SearchError::TooLong { .. }), "{error}");
    }

    #[test]
    fn goals_that_contradict_themselves_and_trials_that_fail() {
        struct Broken;
        impl Device for Broken {
            fn trial(&mut self, _: f64, _: f64) -> Result<Trial, Refusal> {
                Err(Refusal::Failed("the port is down".to_owned()))
            }
        }
        let error = search(&mut Broken, &Goal::new(1.0, 2.0)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the trial at 2 packets per second failed: the port is down"
        );
        for goal in [
            Goal::new(2.0, 1.0),
            Goal {
                width: 0.0,
                ..Goal::new(1.0, 2.0)
            },
            Goal {
                loss_ratios: vec![],
                ..Goal::new(1.0, 2.0)
            },
        ] {
            let error = search(&mut Broken, &goal).unwrap_err();
            assert!(matches!(error, SearchError::Goal(_)), "{error}");
        }
    }
}
