//! The self-test of the generator: its rate, and its time stamps against a delay line.
//!
//! Another program that takes the core delays packets, which no clock can tell from an error of the generator. So many short trials
//! are made, and those count in which the worker never waited long for the core.

use super::frame::{Frame, FrameSpec};
use super::instruments::Offer;
use super::outcome::Outcome;
use super::rig::{Ports, Rig};
use crate::error::LabError;
use crate::stats::Summary;
use serde::Serialize;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};
use volley_model::Mac;

/// Rates in packets per second.
const RATES: [f64; 3] = [50e3, 500e3, 2e6];
/// Delays of the delay line.
const DELAYS: [Duration; 2] = [Duration::from_micros(20), Duration::from_micros(100)];
/// Undisturbed trials of each rate and each delay.
const WANTED: usize = 16;
/// Undisturbed trials from which on there is a result.
const ENOUGH: usize = 4;
/// Most trials, and the time after which no other begins.
const MOST: usize = 4_000;
/// Longest time of a check.
const LONGEST: Duration = Duration::from_secs(10);
/// Length of a trial in seconds: the scheduler takes the core less often than that, even on a busy machine.
const TRIAL: f64 = 0.0005;
/// Longest time between two rounds of an undisturbed trial, in microseconds.
const UNDISTURBED_US: f64 = 20.0;
/// Longest time of a trial that is disturbed.
const LATEST: Duration = Duration::from_secs(1);
/// Length of a trial without a rate.
const UNLIMITED: Duration = Duration::from_millis(50);
/// Rate with the delay line.
const DELAYED: f64 = 50e3;
/// Largest relative error of the rate.
pub const RATE_ERROR: f64 = 0.005;
/// Largest error of a time.
pub const TIME_ERROR_US: f64 = 1.0;

/// One line of the self-test.
#[derive(Clone, Debug, Serialize)]
pub struct Check {
    /// What was checked.
    pub what: String,
    /// Median error of the undisturbed trials; none if there were too few of them.
    pub error: Option<f64>,
    /// Undisturbed trials.
    pub undisturbed: usize,
    /// All trials.
    pub trials: usize,
    /// Largest error that is allowed.
    pub limit: f64,
    /// Unit of the errors.
    pub unit: &'static str,
}

impl Check {
    /// Make trials until enough were undisturbed. A trial gives its error, if a packet arrived, and its outcome.
    fn new(
        (what, limit, unit): (String, f64, &'static str),
        mut trial: impl FnMut() -> Result<(Option<f64>, Outcome), LabError>,
    ) -> Result<Check, LabError> {
        let (mut errors, mut trials, start) = (Vec::new(), 0, Instant::now());
        while trials < MOST && errors.len() < WANTED && start.elapsed() < LONGEST {
            let (error, outcome) = trial()?;
            trials += 1;
            let is_quiet = outcome.polls.is_some_and(|p| p.max_us <= UNDISTURBED_US);
            errors.extend(error.filter(|_| is_quiet));
        }
        let summary = Summary::of(&errors).filter(|s| s.count >= ENOUGH);
        Ok(Check {
            what,
            error: summary.map(|s| s.median),
            undisturbed: errors.len(),
            trials,
            limit,
            unit,
        })
    }

    /// Whether the undisturbed trials are good enough; none without a result.
    pub fn is_passed(&self) -> Option<bool> {
        self.error.map(|error| error <= self.limit)
    }

    fn text(&self) -> String {
        let verdict = match self.is_passed() {
            Some(true) => "pass",
            Some(false) => "FAIL",
            None => "busy",
        };
        let error = match self.error {
            Some(error) => format!("{error:.4} {}", self.unit),
            None => "unknown".to_owned(),
        };
        format!(
            "{verdict}  {}: error {error} (median of the {} undisturbed of {} trials), at most {} is allowed\n",
            self.what, self.undisturbed, self.trials, self.limit
        )
    }
}

/// The result of the self-test.
#[derive(Clone, Debug, Serialize)]
pub struct SelfTest {
    /// Checks.
    pub checks: Vec<Check>,
    /// Packets per second of the generator and the sink alone, as many as possible, in the best trial.
    pub most_pps: f64,
    /// Packets lost, duplicated, or out of order in all trials; there is no device that could do this.
    pub wrong: u64,
}

impl SelfTest {
    /// Whether all checks have passed; none if the machine was too busy for one of them, and no other has failed.
    pub fn is_passed(&self) -> Option<bool> {
        let all = || self.checks.iter().map(Check::is_passed);
        match self.wrong > 0 || all().any(|passed| passed == Some(false)) {
            true => Some(false),
            false => all().collect::<Option<Vec<bool>>>().map(|_| true),
        }
    }

    /// Lines for people.
    pub fn text(&self) -> String {
        let mut text: String = self.checks.iter().map(Check::text).collect();
        text += &format!(
            "{}  {} packets lost, duplicated or out of order\n",
            if self.wrong == 0 { "pass" } else { "FAIL" },
            self.wrong
        );
        text += &format!(
            "generator and sink alone: {:.1} million packets per second\n",
            self.most_pps / 1e6
        );
        text
    }
}

fn frame() -> Result<Frame, LabError> {
    let spec = FrameSpec {
        source_mac: Mac([2, 0, 0, 0, 0, 0x99]),
        destination_mac: Mac([2, 0, 0, 0, 0, 1]),
        source: Ipv4Addr::new(198, 19, 0, 1).into(),
        destination: Ipv4Addr::new(20, 0, 0, 1).into(),
        addresses: 1,
        size: 64,
        vlan: None,
    };
    Frame::new(&spec).map_err(LabError::Argument)
}

fn wrong(outcome: &Outcome) -> u64 {
    let of = |r: super::outcome::Return| r.lost + r.duplicates + r.reordered + r.others;
    outcome.returned.map_or(0, of)
}

/// Run the self-test, in a few seconds.
///
/// # Errors
/// If the generator cannot be set up.
pub fn run() -> Result<SelfTest, LabError> {
    let mut test = SelfTest {
        checks: Vec::new(),
        most_pps: 0.0,
        wrong: 0,
    };
    let mut rig = Rig::new(&Ports::default(), &[vec![frame()?]])?;
    for rate in RATES {
        let what = format!("rate of {rate} packets per second");
        let check = Check::new((what, RATE_ERROR * 100.0, "%"), || {
            let outcome = rig.run(&short(rate), LATEST, &|| false)?;
            test.wrong += wrong(&outcome);
            Ok((outcome.rate_error().map(|e| e.abs() * 100.0), outcome))
        })?;
        test.checks.push(check);
    }
    let offer = Offer {
        rate: None,
        burst: 1,
        packets: None,
    };
    for _ in 0..4 {
        let outcome = rig.run(&offer, UNLIMITED, &|| false)?;
        test.wrong += wrong(&outcome);
        test.most_pps = test.most_pps.max(outcome.sent_pps);
    }
    drop(rig);
    for delay in DELAYS {
        delayed(&mut test, delay)?;
    }
    Ok(test)
}

/// Compare the median latency with the delay of a delay line.
fn delayed(test: &mut SelfTest, delay: Duration) -> Result<(), LabError> {
    let ports = Ports {
        delay: Some(delay),
        ..Ports::default()
    };
    let mut rig = Rig::new(&ports, &[vec![frame()?]])?;
    let wanted = delay.as_secs_f64() * 1e6;
    let what = format!("median latency of a delay line of {wanted} us");
    let check = Check::new((what, TIME_ERROR_US, "us"), || {
        let outcome = rig.run(&short(DELAYED), LATEST, &|| false)?;
        test.wrong += wrong(&outcome);
        let latency = outcome.returned.and_then(|r| r.latency);
        Ok((latency.map(|l| (l.median_us - wanted).abs()), outcome))
    })?;
    test.checks.push(check);
    Ok(())
}

/// A trial of this rate.
fn short(rate: f64) -> Offer {
    Offer {
        packets: Some((rate * TRIAL) as u64),
        ..Offer::of(rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(longest_us: f64) -> Outcome {
        Outcome {
            asked_pps: None,
            burst: 1,
            seconds: 0.0,
            sent: 0,
            sent_pps: 0.0,
            missed: 0,
            no_buffers: 0,
            largest_vector: 0,
            polls: Some(super::super::outcome::Polls {
                median_us: 0.1,
                p99_us: 0.1,
                max_us: longest_us,
            }),
            returned: None,
        }
    }

    /// A check whose trials have these errors; every second one is disturbed.
    fn check(error: f64, disturbed: f64) -> Check {
        let mut number = 0;
        let what = ("x".to_owned(), 0.5, "%");
        let check = Check::new(what, || {
            number += 1;
            Ok(match number % 2 {
                0 => (Some(error), outcome(1.0)),
                _ => (Some(disturbed), outcome(3_000.0)),
            })
        });
        check.unwrap()
    }

    #[test]
    fn disturbed_trials_do_not_count_and_errors_do() {
        assert_eq!(check(0.1, 9.0).is_passed(), Some(true));
        assert_eq!(check(0.6, 0.0).is_passed(), Some(false));
        let what = ("x".to_owned(), 0.5, "%");
        let busy = Check::new(what, || Ok((Some(0.0), outcome(3_000.0)))).unwrap();
        assert_eq!((busy.is_passed(), busy.trials), (None, MOST));
        let mut test = SelfTest {
            checks: vec![check(0.1, 9.0)],
            most_pps: 1e6,
            wrong: 0,
        };
        assert_eq!(test.is_passed(), Some(true));
        test.checks.push(busy);
        assert_eq!(test.is_passed(), None);
        test.wrong = 1;
        assert_eq!(test.is_passed(), Some(false));
        assert!(test.text().contains("FAIL  1 packets lost"));
    }
}
