//! State machine of one run: schedule of the requests and evaluation of the answers, without clock, packets or queues.
//!
//! A ping sends its requests at a fixed interval, all with the same hop limit. A traceroute sends all requests of one hop
//! limit, waits for their answers, and continues until the destination answers, or a router reports that it is unreachable.

use crate::reply::{ProbeAnswer, ProbeResult};
use std::collections::VecDeque;
use std::net::IpAddr;

/// Nanoseconds in a millisecond.
pub const MILLISECOND: u64 = 1_000_000;
/// A request that is not sent within this time after it was due counts as lost.
const UNSENT: u64 = 1000 * MILLISECOND;

/// Most requests whose result was not taken: no more are sent beyond these.
const KEPT: usize = 2048;

/// Schedule of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// `count` requests at a fixed interval, all with the same hop limit.
    Ping {
        /// Number of requests; 0 = until the run is stopped.
        count: u32,
        /// Interval in nanoseconds.
        interval: u64,
        /// Hop limit of the requests.
        hops: u8,
    },
    /// Hop limits from one on.
    Trace {
        /// Largest hop limit.
        most: u8,
        /// Requests per hop limit.
        each: u32,
    },
}

/// One request.
#[derive(Clone, Copy, Debug)]
pub struct Probe {
    /// Hop limit.
    pub hops: u8,
    /// When the request was due.
    asked: u64,
    /// When the request was sent.
    sent: Option<u64>,
    /// The answer.
    pub answer: Option<ProbeAnswer>,
}

/// Totals of the taken requests, and round-trip times of those that the destination answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Number of requests.
    pub sent: u32,
    /// Number of requests that the destination answered.
    pub received: u32,
    /// Shortest round-trip time in microseconds.
    pub min_us: Option<u64>,
    /// Longest round-trip time.
    pub max_us: Option<u64>,
    /// Sum of the round-trip times.
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

    /// Mean round-trip time.
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
    /// Requests whose result was not taken.
    probes: VecDeque<Probe>,
    /// Number of requests before these.
    taken: u64,
    tally: Tally,
    /// Whether the end of the path has answered.
    at_end: bool,
    stopped: bool,
}

impl Run {
    /// Starts a run; `timeout` is the time to wait for an answer.
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

    /// Number of requests so far.
    fn asked(&self) -> u64 {
        self.taken + self.probes.len() as u64
    }

    /// The request to send now: its number and its hop limit. Call this until it returns none.
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
                    // The schedule continues from here: missed requests are not sent in a burst.
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

    /// Whether no further answer to a request can be accepted.
    fn is_over(&self, probe: &Probe, now: u64) -> bool {
        let until = match probe.sent {
            Some(sent) => sent + self.timeout,
            None => probe.asked + self.timeout + UNSENT,
        };
        probe.answer.is_some() || now >= until
    }

    /// Takes completed requests from the front, in groups of this size.
    pub fn take(&mut self, group: usize, now: u64) -> Vec<Probe> {
        let over = self.probes.iter().take_while(|p| self.is_over(p, now));
        let over = over.count();
        let all: Vec<Probe> = self.probes.drain(..over - over % group.max(1)).collect();
        all.iter().for_each(|probe| self.tally.add(probe.answer));
        self.taken += all.len() as u64;
        all
    }

    /// Totals of the taken requests.
    pub fn tally(&self) -> Tally {
        self.tally
    }

    /// Stops the run: no more requests are sent, and no answers are waited for.
    pub fn stop(&mut self) {
        self.stopped = true;
    }

    /// Whether all requests were sent, and each was answered or has timed out.
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

    /// The request of a sequence number, which wraps.
    fn probe(&mut self, number: u16) -> Option<&mut Probe> {
        let at = number.wrapping_sub(self.taken as u16);
        self.probes.get_mut(usize::from(at))
    }

    /// Records when a request was sent.
    pub fn sent(&mut self, number: u16, at: u64) {
        if let Some(probe) = self.probe(number) {
            probe.sent = probe.sent.or(Some(at));
        }
    }

    /// Handles an answer. The first answer to a request is used unless it is too late.
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
