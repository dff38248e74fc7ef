//! When packets are due: a token bucket by the time stamp counter.
//!
//! Contract: packet `n` of a trial is due at a time that depends on the rate and on `n` alone, so a late round does not shift the packets
//! behind it. Tokens beyond the depth of the bucket are lost and counted as missed: the generator never sends more at once than that.

/// Rate, bursts and length of a trial.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// Cycles of the time stamp counter between two packets, on average; 0 for as many packets as possible.
    pub period: f64,
    /// Packets that are due at the same time.
    pub burst: u64,
    /// Most packets that are sent late.
    pub depth: u64,
    /// Number of packets that are sent; none for no limit.
    pub limit: Option<u64>,
}

/// The state of a trial.
#[derive(Clone, Debug)]
pub struct Bucket {
    plan: Plan,
    start: u64,
    /// Packets whose time has passed and that were sent or lost: the number of the next packet.
    done: u64,
    /// Tokens that were lost.
    missed: u64,
}

impl Bucket {
    /// A trial that begins now.
    pub fn new(plan: Plan, start: u64) -> Bucket {
        Bucket {
            plan,
            start,
            done: 0,
            missed: 0,
        }
    }

    /// Number of packets to send at the time `now`, at most `most`.
    #[inline(always)]
    pub fn due(&mut self, now: u64, most: usize) -> usize {
        let plan = &self.plan;
        let sent = self.done - self.missed;
        let left = plan.limit.map_or(u64::MAX, |limit| limit - sent);
        if plan.period <= 0.0 {
            return left.min(most as u64) as usize;
        }
        let elapsed = now.saturating_sub(self.start) as f64;
        let groups = (elapsed / (plan.period * plan.burst as f64)) as u64 + 1;
        let late = (groups * plan.burst).saturating_sub(self.done);
        if late > plan.depth && left > 0 {
            let lost = late - plan.depth;
            self.missed += lost;
            self.done += lost;
        }
        late.min(plan.depth).min(left).min(most as u64) as usize
    }

    /// Time at which the packet `ahead` packets after the next one is due; `now` without a rate.
    #[inline(always)]
    pub fn due_at(&self, ahead: usize, now: u64) -> u64 {
        if self.plan.period <= 0.0 {
            return now;
        }
        let group = (self.done + ahead as u64) / self.plan.burst;
        self.start + (group as f64 * self.plan.period * self.plan.burst as f64) as u64
    }

    /// Packets were sent.
    #[inline(always)]
    pub fn sent(&mut self, packets: usize) {
        self.done += packets as u64;
    }

    /// Whether all packets were sent.
    #[inline(always)]
    pub fn is_over(&self) -> bool {
        let sent = self.done - self.missed;
        self.plan.limit.is_some_and(|limit| sent >= limit)
    }

    /// Tokens that were lost because the generator was late by more than the depth.
    pub fn missed(&self) -> u64 {
        self.missed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(period: f64, burst: u64, depth: u64) -> Plan {
        Plan {
            period,
            burst,
            depth,
            limit: None,
        }
    }

    #[test]
    fn the_rate_is_exact_whatever_the_rounds() {
        let mut random = fastrand::Rng::with_seed(1);
        for (period, burst) in [(2600.7, 1), (87.3, 1), (500.0, 32)] {
            let mut bucket = Bucket::new(plan(period, burst, 1 << 20), 1_000);
            let (mut now, mut sent) = (1_000, 0);
            while now < 50_000_000 {
                let n = bucket.due(now, 256);
                for at in 0..n {
                    assert!(bucket.due_at(at, now) <= now, "no packet is early");
                }
                bucket.sent(n);
                sent += n as u64;
                now += random.u64(50..5_000);
            }
            let wanted = (50_000_000.0 - 1_000.0) / period;
            let error = (sent as f64 / wanted - 1.0).abs();
            assert!(error < 0.002, "{sent} of {wanted}");
            assert_eq!(bucket.missed(), 0);
        }
    }

    #[test]
    fn a_pause_loses_what_exceeds_the_depth() {
        let mut bucket = Bucket::new(plan(100.0, 1, 50), 0);
        assert_eq!(bucket.due(0, 256), 1);
        bucket.sent(1);
        assert_eq!(bucket.due(50, 256), 0);
        // 1,000 packets became due.
        assert_eq!(bucket.due(100_000, 256), 50);
        assert_eq!(bucket.missed(), 950);
        bucket.sent(50);
        assert_eq!(bucket.due(100_000, 256), 0);
        assert_eq!(bucket.due_at(0, 0), 100_100);
    }

    #[test]
    fn a_limit_ends_the_trial_also_without_a_rate() {
        for period in [0.0, 10.0] {
            let plan = Plan {
                limit: Some(300),
                ..plan(period, 1, 1_000)
            };
            let mut bucket = Bucket::new(plan, 0);
            let mut sent = 0;
            for now in (0..100_000).step_by(100) {
                let n = bucket.due(now, 256);
                bucket.sent(n);
                sent += n;
            }
            assert_eq!((sent, bucket.due(1 << 40, 256)), (300, 0));
        }
    }

    #[test]
    fn missed_packets_do_not_count_for_the_limit() {
        let plan = Plan {
            limit: Some(100),
            ..plan(100.0, 1, 50)
        };
        let mut bucket = Bucket::new(plan, 0);
        assert_eq!(bucket.due(100_000, 256), 50);
        bucket.sent(50);
        assert!(!bucket.is_over());
        assert_eq!(bucket.due(200_000, 256), 50);
        bucket.sent(50);
        assert!(bucket.is_over());
        assert_eq!(bucket.missed(), 1_901);
    }

    #[test]
    fn bursts_are_due_at_once() {
        let mut bucket = Bucket::new(plan(100.0, 8, 64), 0);
        let due: Vec<u64> = (0..16).map(|n| bucket.due_at(n, 0)).collect();
        assert_eq!(due[..8], [0; 8]);
        assert_eq!(due[8..], [800; 8]);
        assert_eq!(bucket.due(799, 256), 8);
    }
}
