//! Schedule of an interface's router advertisements (RFC 4861, 6.2.4 to 6.2.6). The caller supplies time and random numbers.

use crate::link::SECOND;
use crate::model::RouterAdvertisement;

/// Number of initial advertisements (MAX_INITIAL_RTR_ADVERTISEMENTS).
const INITIAL: u8 = 3;
/// Longest interval between initial advertisements (MAX_INITIAL_RTR_ADVERT_INTERVAL).
const INITIAL_INTERVAL: u64 = 16 * SECOND;
/// Number of final advertisements, with lifetime 0 (MAX_FINAL_RTR_ADVERTISEMENTS).
const FINAL: u8 = 3;
/// Shortest interval between two multicast advertisements (MIN_DELAY_BETWEEN_RAS).
const BETWEEN: u64 = 3 * SECOND;
/// Longest delay of the answer to a solicitation (MAX_RA_DELAY_TIME).
const DELAY: u64 = SECOND / 2;

/// A number from `from` to `to`; `chance` is a random number.
fn between(from: u64, to: u64, chance: u64) -> u64 {
    from + chance % (to - from + 1)
}

/// Schedule of one interface.
#[derive(Clone, Debug)]
pub struct Schedule {
    min: u64,
    max: u64,
    next: u64,
    last: Option<u64>,
    initial: u8,
    /// Final advertisements that remain to be sent; none while the interface advertises.
    ending: Option<u8>,
}

impl Schedule {
    /// Starts the schedule now.
    pub fn new(it: &RouterAdvertisement, now: u64, chance: u64) -> Self {
        Schedule {
            min: u64::from(it.shortest_interval()) * SECOND,
            max: u64::from(it.max_interval) * SECOND,
            next: now + between(0, DELAY, chance),
            last: None,
            initial: INITIAL,
            ending: None,
        }
    }

    /// Restarts the schedule as soon as possible, after the contents have changed.
    pub fn again(&mut self, it: &RouterAdvertisement, now: u64, chance: u64) {
        let last = self.last;
        *self = Schedule::new(it, now, chance);
        self.last = last;
        self.next = self.earliest(self.next);
    }

    /// Ends the advertisements: final ones are sent.
    pub fn end(&mut self, now: u64) {
        // No final advertisement is needed if none was sent.
        self.ending = Some(if self.last.is_some() { FINAL } else { 0 });
        self.next = self.earliest(now);
    }

    /// Whether an advertisement was sent.
    pub fn has_begun(&self) -> bool {
        self.last.is_some()
    }

    /// Whether all final advertisements were sent.
    pub fn has_ended(&self) -> bool {
        self.ending == Some(0)
    }

    /// Whether final advertisements are being sent.
    pub fn is_ending(&self) -> bool {
        self.ending.is_some()
    }

    /// When the next advertisement is due.
    pub fn next(&self) -> u64 {
        self.next
    }

    fn earliest(&self, at: u64) -> u64 {
        self.last.map_or(at, |last| at.max(last + BETWEEN))
    }

    /// Handles a solicitation: an advertisement that is due earlier answers it too (6.2.6).
    pub fn solicited(&mut self, now: u64, chance: u64) {
        if self.ending.is_none() {
            let at = now + between(0, DELAY, chance);
            let at = match self.last {
                Some(last) if at < last + BETWEEN => last + BETWEEN + between(0, DELAY, chance),
                _ => at,
            };
            self.next = self.next.min(at);
        }
    }

    /// Whether an advertisement is due now; if so, it counts as sent.
    pub fn turn(&mut self, now: u64, chance: u64) -> bool {
        if now < self.next || self.has_ended() {
            return false;
        }
        self.last = Some(now);
        if let Some(left) = &mut self.ending {
            *left -= 1;
            self.next = now + BETWEEN;
            return true;
        }
        self.initial = self.initial.saturating_sub(1);
        let interval = between(self.min, self.max, chance);
        let interval = match self.initial {
            0 => interval,
            _ => interval.min(INITIAL_INTERVAL),
        };
        self.next = now + interval;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use volley_object::Object;

    const MS: u64 = SECOND / 1000;

    fn advert(max_interval: u32, min_interval: Option<u32>) -> RouterAdvertisement {
        RouterAdvertisement {
            max_interval,
            min_interval,
            ..RouterAdvertisement::defaults(["pg0".into()]).unwrap()
        }
    }

    /// Times in milliseconds of the advertisements until `until`, with random numbers from a fixed sequence.
    fn run(schedule: &mut Schedule, from: u64, until: u64) -> Vec<u64> {
        let mut chance = 12345u64;
        let mut times = Vec::new();
        for ms in from..until {
            chance = chance
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            if schedule.turn(ms * MS, chance >> 20) {
                times.push(ms);
            }
        }
        times
    }

    fn gaps(times: &[u64]) -> Vec<u64> {
        times.windows(2).map(|w| w[1] - w[0]).collect()
    }

    #[test]
    fn the_first_ones_come_soon_and_all_others_between_the_bounds() {
        let mut schedule = Schedule::new(&advert(100, Some(40)), 0, 499 * MS);
        let times = run(&mut schedule, 0, 2_000_000);
        assert!(times[0] <= 500, "{times:?}");
        let gaps = gaps(&times);
        assert_eq!(&gaps[..2], [16_000, 16_000]);
        assert!(
            gaps[2..].iter().all(|g| (40_000..=100_001).contains(g)),
            "{gaps:?}"
        );
        assert!(gaps.len() > 20);
        let (low, high) = (gaps[2..].iter().min(), gaps.iter().max());
        assert!(high.unwrap() - low.unwrap() > 10_000, "by chance: {gaps:?}");
    }

    #[test]
    fn solicitations_are_answered_soon_and_not_more_often_than_allowed() {
        let mut schedule = Schedule::new(&advert(1800, None), 0, 0);
        assert_eq!(run(&mut schedule, 0, 40_000).len(), 3);
        schedule.solicited(41_000 * MS, 200 * MS);
        schedule.solicited(41_100 * MS, 400 * MS);
        assert_eq!(
            run(&mut schedule, 41_100, 41_600),
            [41_200],
            "the first answers both"
        );
        let mut times = Vec::new();
        for ms in 41_600..60_000 {
            schedule.solicited(ms * MS, ms * MS);
            times.extend(run(&mut schedule, ms, ms + 1));
        }
        assert!(
            gaps(&times).iter().all(|g| (3000..=3501).contains(g)),
            "{times:?}"
        );
        assert!(times.len() >= 5, "{times:?}");
    }

    #[test]
    fn the_end_is_told_three_times() {
        let mut schedule = Schedule::new(&advert(1800, None), 0, 0);
        run(&mut schedule, 0, 1000);
        schedule.end(1000 * MS);
        schedule.solicited(1001 * MS, 0);
        assert_eq!(run(&mut schedule, 1000, 100_000), [3000, 6000, 9000]);
        assert!(schedule.has_ended());
        let mut unheard = Schedule::new(&advert(600, None), 0, 400 * MS);
        unheard.end(0);
        assert!(unheard.has_ended() && run(&mut unheard, 0, 10_000).is_empty());
    }
}
