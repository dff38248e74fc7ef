//! Groups that an interface listens to, and the times of their reports (RFC 3810, 6; RFC 2710, 4). The caller supplies time and
//! random numbers.

use super::packet::{Heard, Record};
use crate::link::SECOND;
use std::collections::BTreeMap;
use std::net::Ipv6Addr;

/// Number of state change reports (Robustness Variable, RFC 3810, 9.1).
const TIMES: u8 = 2;
/// Longest interval between them (Unsolicited Report Interval, 9.11).
const BETWEEN: u64 = SECOND;
/// After an MLDv1 query, MLDv1 is used for this long plus the query's maximum response delay (9.12).
const OLD: u64 = 250 * SECOND;
const MS: u64 = SECOND / 1000;

/// A group, whether it was left, and the reports that are due.
#[derive(Clone, Debug, Default)]
struct Group {
    left: bool,
    /// State change reports that remain to be sent; `change_at` is the time of the next one.
    changes: u8,
    change_at: u64,
    /// When the answer to a query is due.
    answer_at: Option<u64>,
}

/// A message to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MldReportOut {
    /// An MLDv2 report.
    Records(Vec<(Ipv6Addr, Record)>),
    /// An MLDv1 report (true) or done (false) for the group.
    Old(Ipv6Addr, bool),
}

/// The groups of one interface.
#[derive(Clone, Debug, Default)]
pub struct Groups {
    groups: BTreeMap<Ipv6Addr, Group>,
    old_until: u64,
}

impl Groups {
    /// Groups that the interface listens to.
    pub fn iter(&self) -> impl Iterator<Item = Ipv6Addr> {
        self.groups
            .iter()
            .filter(|(_, it)| !it.left)
            .map(|(group, _)| *group)
    }

    /// Whether MLDv1 is in use.
    pub fn is_old(&self, now: u64) -> bool {
        now < self.old_until
    }

    /// Replaces the groups that the interface listens to.
    pub fn set(&mut self, wanted: &[Ipv6Addr], now: u64) {
        let changed = |it: &mut Group, left| {
            *it = Group {
                left,
                changes: TIMES,
                change_at: now,
                answer_at: None,
            };
        };
        for (group, it) in &mut self.groups {
            if !it.left && !wanted.contains(group) {
                changed(it, true);
            }
        }
        for group in wanted {
            let known = self.groups.contains_key(group);
            let it = self.groups.entry(*group).or_default();
            if !known || it.left {
                changed(it, false);
            }
        }
    }

    /// Handles a received message; `chance` is a random number.
    pub fn hear(&mut self, heard: Heard, now: u64, chance: u64) {
        match heard {
            Heard::Report(group) => {
                // RFC 2710, 4: in MLDv1 the report of one listener suffices.
                if self.is_old(now)
                    && let Some(it) = self.groups.get_mut(&group)
                {
                    it.answer_at = None;
                }
            }
            Heard::Query {
                group,
                within_ms,
                old,
            } => {
                let within = u64::from(within_ms) * MS;
                if old {
                    self.old_until = now + OLD + within;
                }
                let old = self.is_old(now);
                let mut chance = chance;
                for (own, it) in &mut self.groups {
                    if it.left || group.is_some_and(|group| group != *own) {
                        continue;
                    }
                    let at = now + chance % (within + 1);
                    it.answer_at = Some(it.answer_at.map_or(at, |due| due.min(at)));
                    if old {
                        // In MLDv1 each group has a separate report at a separate time.
                        chance = chance.rotate_left(13).wrapping_mul(6364136223846793005) >> 8;
                    }
                }
            }
        }
    }

    /// When the next report is due.
    pub fn next(&self) -> Option<u64> {
        let due = |it: &Group| {
            let change = (it.changes > 0).then_some(it.change_at);
            change.into_iter().chain(it.answer_at).min()
        };
        self.groups.values().filter_map(due).min()
    }

    /// The reports that are due now.
    pub fn turn(&mut self, now: u64, chance: u64) -> Vec<MldReportOut> {
        let old = self.is_old(now);
        let mut records = Vec::new();
        for (group, it) in &mut self.groups {
            if it.changes > 0 && it.change_at <= now {
                it.changes -= 1;
                it.change_at = now + 1 + chance % BETWEEN;
                // In MLDv1 a leaving listener sends one done message.
                it.changes = if old && it.left { 0 } else { it.changes };
                let record = if it.left {
                    Record::Left
                } else {
                    Record::Joined
                };
                records.push((*group, record));
            } else if it.answer_at.is_some_and(|at| at <= now) {
                it.answer_at = None;
                records.push((*group, Record::Is));
            }
        }
        self.groups.retain(|_, it| !it.left || it.changes > 0);
        if old {
            let say = |(group, record)| MldReportOut::Old(group, record != Record::Left);
            return records.into_iter().map(say).collect();
        }
        let mut all = Vec::new();
        while !records.is_empty() {
            let rest = records.split_off(records.len().min(RECORDS));
            all.push(MldReportOut::Records(std::mem::replace(&mut records, rest)));
        }
        all
    }
}

/// Most records of one report, so that it fits the minimum link MTU.
const RECORDS: usize = 60;

#[cfg(test)]
mod tests {
    use super::*;

    fn group(n: u16) -> Ipv6Addr {
        Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00, n)
    }

    fn query(group: Option<Ipv6Addr>, old: bool) -> Heard {
        Heard::Query {
            group,
            within_ms: 1000,
            old,
        }
    }

    #[test]
    fn changes_are_said_twice_and_a_group_that_was_left_is_forgotten() {
        let mut groups = Groups::default();
        groups.set(&[group(1), group(2)], 0);
        let joined = |n| (group(n), Record::Joined);
        let both = || vec![MldReportOut::Records(vec![joined(1), joined(2)])];
        assert_eq!(groups.turn(0, 5), both());
        assert_eq!(groups.turn(5, 5), []);
        assert_eq!(groups.turn(6, 5), both());
        assert_eq!((groups.turn(3 * SECOND, 5), groups.next()), (vec![], None));
        groups.set(&[group(2)], 4 * SECOND);
        assert_eq!(groups.iter().collect::<Vec<_>>(), [group(2)]);
        let left = || vec![MldReportOut::Records(vec![(group(1), Record::Left)])];
        assert_eq!(groups.turn(4 * SECOND, 0), left());
        assert_eq!(groups.turn(5 * SECOND, 0), left());
        assert_eq!(groups.next(), None);
    }

    #[test]
    fn queries_are_answered_in_their_time_for_what_they_ask() {
        let mut groups = Groups::default();
        groups.set(&[group(1), group(2)], 0);
        groups.turn(0, 0);
        groups.turn(SECOND, 0);
        groups.hear(query(None, false), 2 * SECOND, 300 * MS);
        assert_eq!(groups.next(), Some(2 * SECOND + 300 * MS));
        assert_eq!(groups.turn(2 * SECOND + 299 * MS, 0), []);
        let is = |n| (group(n), Record::Is);
        assert_eq!(
            groups.turn(2 * SECOND + 300 * MS, 0),
            [MldReportOut::Records(vec![is(1), is(2)])]
        );
        groups.hear(query(Some(group(2)), false), 4 * SECOND, 0);
        groups.hear(query(Some(group(9)), false), 4 * SECOND, 0);
        assert_eq!(
            groups.turn(4 * SECOND, 0),
            [MldReportOut::Records(vec![is(2)])]
        );
    }

    #[test]
    fn after_an_old_query_version_1_is_spoken_for_a_while() {
        let mut groups = Groups::default();
        groups.set(&[group(1), group(2)], 0);
        groups.turn(0, 0);
        groups.turn(SECOND, 0);
        groups.hear(query(None, true), 2 * SECOND, 0);
        groups.hear(Heard::Report(group(2)), 2 * SECOND, 0);
        assert_eq!(
            groups.turn(3 * SECOND, 0),
            [MldReportOut::Old(group(1), true)],
            "somebody else spoke for the other"
        );
        groups.set(&[group(2)], 4 * SECOND);
        assert_eq!(
            groups.turn(4 * SECOND, 0),
            [MldReportOut::Old(group(1), false)]
        );
        assert_eq!(groups.next(), None);
        assert!(groups.is_old(252 * SECOND) && !groups.is_old(253 * SECOND));
        groups.hear(query(None, false), 254 * SECOND, 0);
        assert_eq!(
            groups.turn(255 * SECOND, 0),
            [MldReportOut::Records(vec![(group(2), Record::Is)])]
        );
    }
}
