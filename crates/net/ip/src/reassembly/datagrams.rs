//! Datagrams by key, with a `D` each, in lists ordered by age: bounded, without allocation after creation.
//!
//! `find` returns only datagrams in a list. A datagram that left its list keeps its slot until `close`.

use super::Span;
use super::chains::{Chain, Chains, Place};
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hash};
use std::ops::{Index, IndexMut};

/// Permission to store a fragment with its datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use = "the fragment is to be put there"]
pub(crate) struct Leave {
    pub(super) slot: Place,
    pub(super) span: Span,
}

/// A datagram.
struct Slot<K, D> {
    key: K,
    line: usize,
    /// Time at which the datagram came to its position in the list.
    since_ns: u64,
    bucket: u32,
    /// The next datagram in the bucket.
    next: Option<Place>,
    it: D,
}

/// The datagrams of one worker, in `LINES` lists.
pub(super) struct Datagrams<K, D, const LINES: usize> {
    slots: Chains<Slot<K, D>>,
    lines: [Chain; LINES],
    buckets: Box<[Option<Place>]>,
    hasher: RandomState,
}

impl<K: Copy + Eq + Hash + Default, D: Default, const LINES: usize> Datagrams<K, D, LINES> {
    /// Capacity for `room` datagrams.
    pub fn new(room: usize) -> Self {
        let empty = || Slot {
            key: K::default(),
            line: 0,
            since_ns: 0,
            bucket: 0,
            next: None,
            it: D::default(),
        };
        Datagrams {
            slots: Chains::new(room, empty),
            lines: [Chain::default(); LINES],
            buckets: vec![None; room.next_power_of_two()].into(),
            hasher: RandomState::new(),
        }
    }

    /// Number of datagrams in a list.
    pub fn len(&self, line: usize) -> u32 {
        self.lines[line].len
    }

    /// The list of a datagram, or its last list if it left.
    pub fn line(&self, at: Place) -> usize {
        self.slots[at].line
    }

    /// Time of the oldest datagram of all lists.
    pub fn oldest_ns(&self) -> Option<u64> {
        let oldest = self.lines.iter().filter_map(|line| line.first);
        oldest.map(|at| self.slots[at].since_ns).min()
    }

    /// The oldest datagram of a list other than `but`.
    pub fn oldest_but(&self, line: usize, but: Option<Place>) -> Option<Place> {
        let oldest = self.lines[line].first?;
        match but {
            Some(but) if but == oldest => self.slots.after(oldest),
            _ => Some(oldest),
        }
    }

    /// The oldest datagram of a list, if it has timed out.
    pub fn overdue(&self, line: usize, timeout_ns: u64, now_ns: u64) -> Option<Place> {
        let is_over = |at: &Place| now_ns.saturating_sub(self.slots[*at].since_ns) >= timeout_ns;
        self.lines[line].first.filter(is_over)
    }

    /// Slot of the datagram with this key.
    pub fn find(&self, key: &K) -> Option<Place> {
        let mut at = self.buckets[self.bucket(key)];
        while let Some(place) = at.filter(|place| self.slots[*place].key != *key) {
            at = self.slots[place].next;
        }
        at
    }

    /// Appends a new datagram to a list. None if no slot is free.
    pub fn open(&mut self, key: &K, line: usize, now_ns: u64, it: D) -> Option<Place> {
        let at = self.slots.open()?;
        let bucket = self.bucket(key);
        self.slots[at] = Slot {
            key: *key,
            line,
            since_ns: now_ns,
            bucket: bucket as u32,
            next: self.buckets[bucket].replace(at),
            it,
        };
        self.slots.push(&mut self.lines[line], at);
        Some(at)
    }

    /// Moves a datagram to the end of a list, the same or another.
    pub fn step_back(&mut self, at: Place, line: usize, now_ns: u64) {
        let slot = &mut self.slots[at];
        let from = std::mem::replace(&mut slot.line, line);
        slot.since_ns = now_ns;
        self.slots.remove(&mut self.lines[from], at);
        self.slots.push(&mut self.lines[line], at);
    }

    /// Removes a datagram from its list and bucket.
    pub fn leave(&mut self, at: Place) {
        let Slot {
            line, bucket, next, ..
        } = self.slots[at];
        self.slots.remove(&mut self.lines[line], at);
        let first = &mut self.buckets[bucket as usize];
        if *first == Some(at) {
            *first = next;
            return;
        }
        let mut other = *first;
        while let Some(place) = other {
            let slot = &mut self.slots[place];
            if slot.next == Some(at) {
                slot.next = next;
                return;
            }
            other = slot.next;
        }
    }

    /// Frees the slot of a datagram that left its list.
    pub fn close(&mut self, at: Place) {
        self.slots.close(at);
    }

    fn bucket(&self, key: &K) -> usize {
        self.hasher.hash_one(key) as usize & (self.buckets.len() - 1)
    }
}

impl<K, D, const LINES: usize> Index<Place> for Datagrams<K, D, LINES> {
    type Output = D;

    fn index(&self, at: Place) -> &D {
        &self.slots[at].it
    }
}

impl<K, D, const LINES: usize> IndexMut<Place> for Datagrams<K, D, LINES> {
    fn index_mut(&mut self, at: Place) -> &mut D {
        &mut self.slots[at].it
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Model test of two lists against two vectors of keys and times. The few slots, and so few buckets, are shared by many
        /// keys.
        #[test]
        fn lines_hold_what_vectors_hold(all in prop::collection::vec((0u8..4, 0u32..12, 0usize..2), 1..200)) {
            const ROOM: usize = 8;
            let mut datagrams = Datagrams::<u32, u32, 2>::new(ROOM);
            let mut models = [Vec::<(u32, u64)>::new(), Vec::new()];
            for (now_ns, (what, key, line)) in (0u64..).zip(all) {
                let stood = models.iter().position(|model| model.iter().any(|(k, _)| *k == key));
                let found = datagrams.find(&key);
                prop_assert_eq!(found.map(|at| (datagrams[at], datagrams.line(at))), stood.map(|line| (key + 100, line)));
                match (what, found, stood) {
                    (0 | 1, None, _) => {
                        let room = models[0].len() + models[1].len() < ROOM;
                        prop_assert_eq!(datagrams.open(&key, line, now_ns, key + 100).is_some(), room);
                        if room {
                            models[line].push((key, now_ns));
                        }
                    }
                    (2, Some(at), Some(stood)) => {
                        datagrams.step_back(at, line, now_ns);
                        models[stood].retain(|(k, _)| *k != key);
                        models[line].push((key, now_ns));
                    }
                    (3, Some(at), Some(stood)) => {
                        datagrams.leave(at);
                        prop_assert_eq!(datagrams[at], key + 100, "it keeps its place");
                        prop_assert_eq!(datagrams.find(&key), None);
                        datagrams.close(at);
                        models[stood].retain(|(k, _)| *k != key);
                    }
                    _ => {}
                }
                for (line, model) in models.iter().enumerate() {
                    prop_assert_eq!(datagrams.len(line) as usize, model.len());
                    let keys = datagrams.slots.iter(&datagrams.lines[line]).map(|slot| (slot.key, slot.since_ns));
                    prop_assert_eq!(keys.collect::<Vec<_>>(), model.clone());
                    let overdue = datagrams.overdue(line, 9, now_ns).map(|at| datagrams[at]);
                    let want = model.first().filter(|(_, since)| now_ns - since >= 9);
                    prop_assert_eq!(overdue, want.map(|(k, _)| k + 100));
                    let oldest = datagrams.oldest_but(line, None);
                    let second = datagrams.oldest_but(line, oldest).filter(|_| oldest.is_some());
                    let message = [oldest, second].map(|at| at.map(|at| datagrams[at]));
                    prop_assert_eq!(message, [0, 1].map(|n| model.get(n).map(|(k, _)| k + 100)));
                }
                let oldest = models.iter().flatten().map(|(_, since)| *since).min();
                prop_assert_eq!(datagrams.oldest_ns(), oldest);
            }
        }
    }
}
