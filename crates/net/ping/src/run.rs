//! One run of requests: what is sent when, and what the answers make of it. No clock, no packets, no queues.
//!
//! A ping sends its requests at a fixed pace, all with the same hops. A traceroute sends all requests of one number of hops, waits for
//! their answers, and goes on until the destination, or somebody who says that it cannot be reached, has answered.

use crate::reply::{ProbeAnswer, ProbeResult};
use std::collections::VecDeque;
use std::net::IpAddr;

/// Nanoseconds of a millisecond.
pub const MILLISECOND: u64 = 1_000_000;
/// How long after it was asked for a request may be unsent, before it counts as lost.
const UNSENT: u64 = 1000 * MILLISECOND;

/// Requests that a run keeps whose outcome was not taken: no more are sent until it is.
const KEPT: usize = 2048;

/// What a run does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// So many requests, so many nanoseconds apart, each with so many hops.
    Ping {
        /// Requests; 0 = until the run is stopped.
        count: u32,
        /// Between two.
        interval: u64,
        /// Hops of each.
        hops: u8,
    },
    /// Hops from one on.
    Trace {
        /// The most hops.
        most: u8,
        /// Requests of each number of hops.
        each: u32,
    },
}

/// One request.
#[derive(Clone, Copy, Debug)]
pub struct Probe {
    /// Its hops.
    pub hops: u8,
    /// When it was asked for.
    asked: u64,
    /// When it left.
    sent: Option<u64>,
    /// What came of it.
    pub answer: Option<ProbeAnswer>,
}

/// Requests whose outcome was taken, and times of those that the destination answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Requests.
    pub sent: u32,
    /// Those that the destination answered.
    pub received: u32,
    /// The shortest time in microseconds.
    pub min_us: Option<u64>,
    /// The longest time.
    pub max_us: Option<u64>,
    /// All times together.
    sum_us: u64,
}

impl Tally {
    fn add(&mut self, answer: Option<ProbeAnswer>) {
        self.sent = self.sent.saturating_add(1);
        let Some(answer) = answer.filter(|a| a.result == ProbeResult::Reply) else {
            return;
        };
        self.received = self.received.saturating_add(1);
        let time = answer.rtt_us;
        self.min_us = Some(self.min_us.map_or(time, |min| min.min(time)));
        self.max_us = self.max_us.max(Some(time));
        self.sum_us = self.sum_us.saturating_add(time);
    }

    /// The mean time.
    pub fn avg_us(&self) -> Option<u64> {
        self.sum_us.checked_div(u64::from(self.received))
    }
}

/// A run.
#[derive(Debug)]
pub struct Run {
    plan: Plan,
    timeout: u64,
    begun: u64,
    /// Requests whose outcome was not taken.
    probes: VecDeque<Probe>,
    /// Requests in front of these.
    taken: u64,
    tally: Tally,
    /// An answer came from the end of the path.
    at_end: bool,
    stopped: bool,
}

impl Run {
    /// A run that begins now; requests are waited for so long.
    pub fn new(plan: Plan, timeout: u64, now: u64) -> Self {
        Run {
            plan,
            timeout,
            begun: now,
            probes: VecDeque::new(),
            taken: 0,
            tally: Tally::default(),
            at_end: false,
            stopped: false,
        }
    }

    /// Requests so far.
    fn asked(&self) -> u64 {
        self.taken + self.probes.len() as u64
    }

    /// The request to be sent now: its number and its hops. Call it until there is none.
    pub fn next(&mut self, now: u64) -> Option<(u16, u8)> {
        let asked = self.asked();
        if self.stopped {
            return None;
        }
        let hops = match self.plan {
            Plan::Ping {
                count,
                interval,
                hops,
            } => {
                let due = self.begun + asked * interval;
                if now < due || (count != 0 && asked >= u64::from(count)) {
                    return None;
                }
                if self.probes.len() >= KEPT {
                    // The pace goes on from here: what was due meanwhile is not sent at once later.
                    self.begun += now - due;
                    return None;
                }
                hops
            }
            Plan::Trace { most, each } => {
                let begun = asked / u64::from(each.max(1));
                let goes_on = !asked.is_multiple_of(u64::from(each.max(1)));
                let free = goes_on || self.probes.iter().all(|p| self.is_over(p, now));
                let more = begun < u64::from(most) && (goes_on || !self.at_end);
                (free && more).then_some(begun as u8 + 1)?
            }
        };
        self.probes.push_back(Probe {
            hops,
            asked: now,
            sent: None,
            answer: None,
        });
        Some((asked as u16, hops))
    }

    /// Whether nothing more can come of a request.
    fn is_over(&self, probe: &Probe, now: u64) -> bool {
        let until = match probe.sent {
            Some(sent) => sent + self.timeout,
            None => probe.asked + self.timeout + UNSENT,
        };
        probe.answer.is_some() || now >= until
    }

    /// Takes the requests in front that are over, as far as they are groups of this size.
    pub fn take(&mut self, group: usize, now: u64) -> Vec<Probe> {
        let over = self.probes.iter().take_while(|p| self.is_over(p, now));
        let over = over.count();
        let all: Vec<Probe> = self.probes.drain(..over - over % group.max(1)).collect();
        all.iter().for_each(|probe| self.tally.add(probe.answer));
        self.taken += all.len() as u64;
        all
    }

    /// The outcome of the requests that were taken.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// Sends no more, and waits for no answer.
    pub fn stop(&mut self) {
        self.stopped = true;
    }

    /// Whether everything was asked and answered, or waited for long enough.
    pub fn is_done(&self, now: u64) -> bool {
        let asked = self.asked();
        let all = match self.plan {
            Plan::Ping { count, .. } => count != 0 && asked >= u64::from(count),
            Plan::Trace { most, each } => {
                let whole = asked.is_multiple_of(u64::from(each.max(1)));
                asked >= u64::from(most) * u64::from(each) || whole && self.at_end
            }
        };
        self.stopped || all && self.probes.iter().all(|p| self.is_over(p, now))
    }

    /// The request of a number: numbers begin again behind the largest one.
    fn probe(&mut self, number: u16) -> Option<&mut Probe> {
        let at = number.wrapping_sub(self.taken as u16);
        self.probes.get_mut(usize::from(at))
    }

    /// A request left.
    pub fn sent(&mut self, number: u16, at: u64) {
        if let Some(probe) = self.probe(number) {
            probe.sent = probe.sent.or(Some(at));
        }
    }

    /// An answer came. The first one to each request counts, and none that comes too late.
    pub fn answered(&mut self, number: u16, at: u64, from: IpAddr, result: ProbeResult, hops: u8) {
        let timeout = self.timeout;
        let Some(probe) = self.probe(number) else {
            return;
        };
        let sent = probe.sent.unwrap_or(probe.asked);
        if probe.answer.is_none() && at <= sent.saturating_add(timeout) {
            probe.answer = Some(ProbeAnswer {
                from,
                rtt_us: at.saturating_sub(sent) / 1000,
                result,
                hops,
            });
            self.at_end |= result != ProbeResult::TimeExceeded;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = MILLISECOND;

    fn here() -> IpAddr {
        "192.0.2.9".parse().unwrap()
    }

    #[test]
    fn a_ping_keeps_its_pace_and_ends() {
        let plan = Plan::Ping {
            count: 3,
            interval: 100 * MS,
            hops: 64,
        };
        let mut run = Run::new(plan, 500 * MS, 0);
        assert_eq!((run.next(0), run.next(0)), (Some((0, 64)), None));
        run.sent(0, MS);
        run.answered(0, 3 * MS, here(), ProbeResult::Reply, 60);
        run.answered(0, 9 * MS, here(), ProbeResult::HostUnreachable, 60);
        assert_eq!(
            run.probes[0].answer.unwrap().rtt_us,
            2000,
            "the first counts"
        );
        assert_eq!(run.next(99 * MS), None);
        assert_eq!(run.next(250 * MS), Some((1, 64)));
        assert_eq!(run.next(250 * MS), Some((2, 64)));
        assert_eq!(run.next(900 * MS), None);
        run.sent(1, 250 * MS);
        run.sent(2, 251 * MS);
        assert!(!run.is_done(750 * MS));
        run.answered(1, 751 * MS, here(), ProbeResult::Reply, 60);
        assert!(run.probes[1].answer.is_none(), "too late");
        assert!(run.is_done(751 * MS));
        run.answered(77, 0, here(), ProbeResult::Reply, 60);
    }

    #[test]
    fn a_trace_goes_hop_by_hop_to_the_end() {
        let mut run = Run::new(Plan::Trace { most: 9, each: 2 }, 100 * MS, 0);
        let both = |run: &mut Run, now| (run.next(now), run.next(now), run.next(now));
        assert_eq!(both(&mut run, 0), (Some((0, 1)), Some((1, 1)), None));
        run.sent(0, 0);
        run.sent(1, 0);
        run.answered(0, MS, here(), ProbeResult::TimeExceeded, 64);
        assert_eq!(run.next(99 * MS), None, "the other may still come");
        assert_eq!(both(&mut run, 100 * MS), (Some((2, 2)), Some((3, 2)), None));
        for number in [2, 3] {
            run.sent(number, 100 * MS);
            run.answered(number, 101 * MS, here(), ProbeResult::Reply, 64);
        }
        assert!(run.is_done(102 * MS));
        assert_eq!(run.next(500 * MS), None);
    }

    #[test]
    fn a_trace_into_nowhere_ends() {
        let mut run = Run::new(Plan::Trace { most: 3, each: 1 }, 10 * MS, 0);
        let mut now = 0;
        while !run.is_done(now) {
            while let Some((number, _)) = run.next(now) {
                run.sent(number, now);
            }
            now += MS;
        }
        assert_eq!((run.probes.len(), now), (3, 30 * MS));
    }

    #[test]
    fn what_is_never_sent_ends_too() {
        let plan = Plan::Ping {
            count: 1,
            interval: MS,
            hops: 1,
        };
        let mut run = Run::new(plan, 10 * MS, 0);
        run.next(0);
        assert!(!run.is_done(1009 * MS) && run.is_done(1010 * MS));
    }

    #[test]
    fn what_is_taken_is_counted_and_kept_no_longer() {
        let plan = Plan::Ping {
            count: 0,
            interval: MS,
            hops: 64,
        };
        let mut run = Run::new(plan, 10 * MS, 0);
        for number in 0..70_000u64 {
            let now = number * MS;
            assert_eq!(run.next(now), Some((number as u16, 64)));
            run.sent(number as u16, now);
            let result = match number % 2 {
                0 => ProbeResult::Reply,
                _ => ProbeResult::HostUnreachable,
            };
            run.answered(number as u16, now + 3000, here(), result, 60);
            assert_eq!(run.take(1, now).len(), 1);
        }
        let tally = run.tally();
        assert_eq!((tally.sent, tally.received), (70_000, 35_000));
        let times = (tally.min_us, tally.avg_us(), tally.max_us);
        assert_eq!(times, (Some(3), Some(3), Some(3)));
        assert!(run.probes.is_empty() && !run.is_done(u64::MAX));
        run.next(70_000 * MS);
        run.stop();
        assert!(run.is_done(0) && run.take(1, 70_000 * MS).is_empty());
        assert_eq!(run.next(80_000 * MS), None);
        assert_eq!(run.tally().sent, 70_000, "what is stopped is not lost");
    }

    #[test]
    fn outcomes_that_are_not_taken_are_bounded() {
        let plan = Plan::Ping {
            count: 0,
            interval: MS,
            hops: 64,
        };
        let mut run = Run::new(plan, MS, 0);
        let sent = |run: &mut Run, now| std::iter::from_fn(|| run.next(now)).count();
        assert_eq!(sent(&mut run, 100_000 * MS), KEPT);
        assert_eq!(run.take(1, 200_000 * MS).len(), KEPT);
        assert_eq!(sent(&mut run, 100_000 * MS), 1, "no burst follows");
    }
}
