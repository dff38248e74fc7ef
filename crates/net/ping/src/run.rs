//! One run of requests: what is sent when, and what the answers make of it. No clock, no packets, no queues.
//!
//! A ping sends its requests at a fixed pace, all with the same hops. A traceroute sends all requests of one number of hops, waits for
//! their answers, and goes on until the destination, or somebody who says that it cannot be reached, has answered.

use std::net::IpAddr;
use volley_model::reply::{ProbeAnswer, ProbeResult};

/// Nanoseconds of a millisecond.
pub const MILLISECOND: u64 = 1_000_000;
/// How long after it was asked for a request may be unsent, before it counts as lost.
const UNSENT: u64 = 1000 * MILLISECOND;

/// What a run does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// So many requests, so many nanoseconds apart, each with so many hops.
    Ping {
        /// Requests.
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

/// A run.
#[derive(Debug)]
pub struct Run {
    plan: Plan,
    timeout: u64,
    begun: u64,
    probes: Vec<Probe>,
}

impl Run {
    /// A run that begins now; requests are waited for so long.
    pub fn new(plan: Plan, timeout: u64, now: u64) -> Self {
        Run {
            plan,
            timeout,
            begun: now,
            probes: Vec::new(),
        }
    }

    /// What was asked so far.
    pub fn probes(&self) -> &[Probe] {
        &self.probes
    }

    /// The request to be sent now: its number and its hops. Call it until there is none.
    pub fn next(&mut self, now: u64) -> Option<(u16, u8)> {
        let asked = self.probes.len() as u64;
        let hops = match self.plan {
            Plan::Ping {
                count,
                interval,
                hops,
            } => {
                let due = asked < u64::from(count) && now >= self.begun + asked * interval;
                due.then_some(hops)?
            }
            Plan::Trace { most, each } => {
                let begun = asked / u64::from(each.max(1));
                let goes_on = !asked.is_multiple_of(u64::from(each.max(1)));
                let free = goes_on || self.probes.iter().all(|p| self.is_over(p, now));
                let more = begun < u64::from(most) && (goes_on || !self.is_at_its_end());
                (free && more).then_some(begun as u8 + 1)?
            }
        };
        self.probes.push(Probe {
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

    /// Whether somebody answered behind whom is nobody.
    fn is_at_its_end(&self) -> bool {
        let last = |a: ProbeAnswer| a.result != ProbeResult::TimeExceeded;
        self.probes.iter().filter_map(|p| p.answer).any(last)
    }

    /// Whether everything was asked and answered, or waited for long enough.
    pub fn is_done(&self, now: u64) -> bool {
        let all = match self.plan {
            Plan::Ping { count, .. } => self.probes.len() as u32 >= count,
            Plan::Trace { most, each } => {
                let whole = (self.probes.len() as u32).is_multiple_of(each.max(1));
                let asked = self.probes.len() as u32 >= u32::from(most) * each;
                asked || whole && self.is_at_its_end()
            }
        };
        all && self.probes.iter().all(|p| self.is_over(p, now))
    }

    /// A request left.
    pub fn sent(&mut self, number: u16, at: u64) {
        if let Some(probe) = self.probes.get_mut(usize::from(number)) {
            probe.sent = probe.sent.or(Some(at));
        }
    }

    /// An answer came. The first one to each request counts, and none that comes too late.
    pub fn answered(&mut self, number: u16, at: u64, from: IpAddr, result: ProbeResult, hops: u8) {
        let timeout = self.timeout;
        let Some(probe) = self.probes.get_mut(usize::from(number)) else {
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
            run.probes()[0].answer.unwrap().rtt_us,
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
        assert!(run.probes()[1].answer.is_none(), "too late");
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
        assert_eq!((run.probes().len(), now), (3, 30 * MS));
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
}
