//! Rate limits of ICMP errors of a worker: one for each class, one for each receiver.
//!
//! A limit is one number, the time at which its bucket is full again (generic cell rate algorithm): a message that would move
//! this time further into the future than the burst allows is not sent.

use super::control::IcmpSwitches;
use super::message::Class;

/// Number of buckets for receivers; receivers with the same hash share one.
const RECEIVERS: usize = 1024;
const SECOND_NS: u64 = 1_000_000_000;
/// Burst of messages to one receiver.
const RECEIVER_BURST: u64 = 6;

/// The buckets of one worker.
pub(crate) struct Limits {
    classes: [u64; 5],
    receivers: Box<[u64]>,
}

/// Time at which the bucket is full again after one more message; none if it is exhausted.
fn taken(whole_ns: u64, now_ns: u64, rate: u64, burst: u64) -> Option<u64> {
    let cost = SECOND_NS / rate;
    let after = whole_ns.max(now_ns) + cost;
    (after <= now_ns + burst * cost).then_some(after)
}

impl Limits {
    pub(crate) fn new() -> Self {
        Limits {
            classes: [0; 5],
            receivers: vec![0; RECEIVERS].into(),
        }
    }

    /// Whether a class is exhausted for all receivers: checked before the reverse path is looked up.
    pub(crate) fn is_spent(&self, switches: &IcmpSwitches, class: Class, now_ns: u64) -> bool {
        let (rate, burst, _) = switches.limits();
        self.taken_of(class, now_ns, (rate, burst)).is_none()
    }

    /// The bucket of a class after one more message, unchanged if there is no limit; none if it is exhausted.
    fn taken_of(&self, class: Class, now_ns: u64, (rate, burst): (u32, u32)) -> Option<u64> {
        let whole_ns = self.classes[class as usize];
        match rate {
            0 => Some(whole_ns),
            rate => taken(whole_ns, now_ns, rate.into(), burst.max(1).into()),
        }
    }

    /// Takes one error of a class to `receiver` (a number derived from its address); whether it may be sent.
    pub(crate) fn take(
        &mut self,
        switches: &IcmpSwitches,
        class: Class,
        receiver: u128,
        now_ns: u64,
    ) -> bool {
        let (rate, burst, near) = switches.limits();
        let Some(whole_ns) = self.taken_of(class, now_ns, (rate, burst)) else {
            return false;
        };
        // Path MTU discovery must work under load: packet-too-big errors have no limit per receiver.
        if near > 0 && class != Class::TooBig {
            let mixed = (receiver ^ receiver >> 64) as u64 ^ (class as u64) << 60;
            let hash = mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54;
            let receiver = &mut self.receivers[hash as usize % RECEIVERS];
            match taken(*receiver, now_ns, near.into(), RECEIVER_BURST) {
                Some(after) => *receiver = after,
                None => return false,
            }
        }
        self.classes[class as usize] = whole_ns;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::IcmpSettings;

    fn sent(limits: &mut Limits, s: &IcmpSwitches, class: Class, n: usize, now_ns: u64) -> usize {
        (0..n)
            .filter(|i| {
                let spent = limits.is_spent(s, class, now_ns);
                let reported = limits.take(s, class, *i as u128 * 7919, now_ns);
                assert!(!(spent && reported), "what is spent is not given");
                reported
            })
            .count()
    }

    #[test]
    fn a_burst_then_the_rate() {
        let switches = IcmpSwitches::default();
        switches.set(&IcmpSettings {
            rate: 1000,
            burst: 50,
            receiver_rate: 0,
            ..IcmpSettings::default()
        });
        let mut limits = Limits::new();
        assert_eq!(sent(&mut limits, &switches, Class::Expired, 1000, 5), 50);
        assert!(limits.is_spent(&switches, Class::Expired, 5));
        assert_eq!(sent(&mut limits, &switches, Class::Unreachable, 9, 5), 9);
        assert!(!limits.is_spent(&switches, Class::Unreachable, 5));
        let later = 5 + SECOND_NS / 100;
        assert_eq!(
            sent(&mut limits, &switches, Class::Expired, 1000, later),
            10
        );
        let rested = later + 10 * SECOND_NS;
        assert_eq!(
            sent(&mut limits, &switches, Class::Expired, 1000, rested),
            50
        );
    }

    #[test]
    fn one_receiver_gets_few_and_path_mtu_discovery_goes_on() {
        let switches = IcmpSwitches::default();
        let mut limits = Limits::new();
        let to = |limits: &mut Limits, class, now_ns| {
            (0..40)
                .filter(|_| limits.take(&switches, class, 42, now_ns))
                .count()
        };
        assert_eq!(to(&mut limits, Class::Unreachable, 0), 6);
        assert_eq!(to(&mut limits, Class::Unreachable, 2 * SECOND_NS), 2);
        assert_eq!(to(&mut limits, Class::TooBig, 0), 40);
        switches.set(&IcmpSettings {
            rate: 0,
            receiver_rate: 0,
            ..IcmpSettings::default()
        });
        assert_eq!(to(&mut limits, Class::Unreachable, 0), 40);
    }
}
