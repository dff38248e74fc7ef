//! The matcher: finds the rule that matches a packet's features.
//!
//! Rules without ranges that test the same bits of the same fields form a group with one hash table; rules with ranges are
//! compared one by one. Groups are in order of their best rule, so that the search ends at a match as soon as no better one is
//! possible. The result is the same as that of testing every rule in order.

use crate::parser::{Features, SLOTS};

/// No rule.
pub(crate) const NONE: u32 = u32::MAX;

/// A rule in terms of features.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Test {
    /// Headers that must be present.
    pub(crate) need: u64,
    /// Slot, mask, value; by slot.
    pub(crate) masked: Vec<(u8, u128, u128)>,
    /// Slot, lowest, highest.
    pub(crate) ranges: Vec<(u8, u128, u128)>,
    /// The whole path.
    pub(crate) path: Option<u64>,
}

impl Test {
    /// Whether a packet matches.
    #[inline(always)]
    pub(crate) fn holds(&self, of: &Features) -> bool {
        let value = |slot: u8| of.values[slot as usize % SLOTS];
        of.seen & self.need == self.need
            && self.path.is_none_or(|p| p == of.path)
            && self.masked.iter().all(|&(s, mask, v)| value(s) & mask == v)
            && self
                .ranges
                .iter()
                .all(|&(s, low, high)| (low..=high).contains(&value(s)))
    }
}

#[derive(Clone, Debug)]
struct Group {
    need: u64,
    masks: Vec<(u8, u128)>,
    path: bool,
    /// The best rank of the group.
    best: u32,
    /// Ranks by hash, [`NONE`] where empty; a power of two, at most half full.
    table: Vec<u32>,
}

/// All rules.
#[derive(Clone, Debug, Default)]
pub(crate) struct Matcher {
    /// By rank, best first.
    tests: Vec<Test>,
    groups: Vec<Group>,
    /// Ranks of rules with ranges.
    ranged: Vec<u32>,
}

#[inline(always)]
fn mix(hash: u64, value: u128) -> u64 {
    let folded = (value as u64) ^ ((value >> 64) as u64).rotate_left(29);
    (hash.rotate_left(5) ^ folded).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[inline(always)]
fn place(hash: u64, size: usize) -> usize {
    (hash ^ hash >> 32) as usize & (size - 1)
}

impl Group {
    #[inline(always)]
    fn hash(&self, of: &Features) -> u64 {
        let start = if self.path { of.path } else { 0 };
        let masked = self
            .masks
            .iter()
            .map(|&(s, m)| of.values[s as usize % SLOTS] & m);
        masked.fold(mix(1, start.into()), mix)
    }

    fn hash_of(&self, test: &Test) -> u64 {
        let values = test.masked.iter().map(|m| m.2);
        values.fold(mix(1, test.path.unwrap_or(0).into()), mix)
    }
}

impl Matcher {
    /// A matcher for rules in order, best first.
    pub(crate) fn new(tests: Vec<Test>) -> Matcher {
        let mut groups: Vec<(Group, Vec<u32>)> = Vec::new();
        let mut ranged = Vec::new();
        for (rank, test) in tests.iter().enumerate() {
            let rank = rank as u32;
            if !test.ranges.is_empty() {
                ranged.push(rank);
                continue;
            }
            let masks: Vec<_> = test.masked.iter().map(|m| (m.0, m.1)).collect();
            let path = test.path.is_some();
            let same = |g: &&mut (Group, Vec<u32>)| {
                g.0.need == test.need && g.0.masks == masks && g.0.path == path
            };
            match groups.iter_mut().find(same) {
                Some((_, ranks)) => ranks.push(rank),
                None => {
                    let group = Group {
                        need: test.need,
                        masks,
                        path,
                        best: rank,
                        table: Vec::new(),
                    };
                    groups.push((group, vec![rank]));
                }
            }
        }
        let fill = |(mut group, ranks): (Group, Vec<u32>)| {
            let size = (2 * ranks.len()).next_power_of_two();
            group.table = vec![NONE; size];
            for rank in ranks {
                let mut at = place(group.hash_of(&tests[rank as usize]), size);
                while group.table[at] != NONE {
                    at = (at + 1) & (size - 1);
                }
                group.table[at] = rank;
            }
            group
        };
        // Ranks are ascending, so groups are in order of their best rank.
        let groups = groups.into_iter().map(fill).collect();
        Matcher {
            tests,
            groups,
            ranged,
        }
    }

    /// The rank of the best matching rule, or [`NONE`].
    #[inline(always)]
    pub(crate) fn find(&self, of: &Features) -> u32 {
        let mut best = NONE;
        for group in &self.groups {
            if best < group.best {
                break;
            }
            if of.seen & group.need == group.need {
                best = best.min(self.probe(group, of));
            }
        }
        for &rank in &self.ranged {
            if best < rank || self.tests[rank as usize].holds(of) {
                best = best.min(rank);
                break;
            }
        }
        best
    }

    #[inline(always)]
    fn probe(&self, group: &Group, of: &Features) -> u32 {
        let size = group.table.len();
        let mut at = place(group.hash(of), size);
        // Equal tests are adjacent in order of rank, so the first match is the best.
        loop {
            let rank = group.table[at];
            if rank == NONE || self.tests[rank as usize].holds(of) {
                return rank;
            }
            at = (at + 1) & (size - 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn linear(tests: &[Test], of: &Features) -> u32 {
        tests
            .iter()
            .position(|t| t.holds(of))
            .map_or(NONE, |at| at as u32)
    }

    fn features() -> impl Strategy<Value = Features> {
        (0u64..8, prop::array::uniform4(0u128..6), 0u64..3).prop_map(|(seen, some, path)| {
            let mut values = [0; SLOTS];
            values[..4].copy_from_slice(&some);
            Features { seen, values, path }
        })
    }

    fn test() -> impl Strategy<Value = Test> {
        let masked = prop::collection::btree_map(0u8..4, (0u128..8, 0u128..6), 0..3);
        let ranges = prop::collection::vec((0u8..4, 0u128..4, 0u128..4), 0..2);
        (0u64..8, masked, ranges, prop::option::of(0u64..3)).prop_map(
            |(need, masked, ranges, path)| {
                let masked = masked
                    .into_iter()
                    .map(|(s, (m, v))| (s, m, v & m))
                    .collect();
                let ranges = ranges
                    .into_iter()
                    .map(|(s, a, b)| (s, a.min(b), a.max(b)))
                    .collect();
                Test {
                    need,
                    masked,
                    ranges,
                    path,
                }
            },
        )
    }

    proptest! {
        /// The groups give the same result as testing every rule in order.
        #[test]
        fn as_rule_by_rule(
            tests in prop::collection::vec(test(), 0..40),
            packets in prop::collection::vec(features(), 1..60),
        ) {
            let matcher = Matcher::new(tests.clone());
            for packet in &packets {
                prop_assert_eq!(matcher.find(packet), linear(&tests, packet));
            }
        }
    }
}
