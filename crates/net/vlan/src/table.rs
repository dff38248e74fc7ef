//! Table from VLAN tags to sub-interfaces. The control thread is the only writer; workers read without locks.
//!
//! A single tag is looked up in an array of the parent, by type and VLAN. Two tags are looked up in a hash table of all
//! parents, whose entries are single words with key and result, so no reader sees half an entry. A table that becomes full is
//! rebuilt with more slots, and readers use the new one from their next frame on.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use volley_iface::{IfIdx, MAX_INTERFACE_INDEXES, MAX_INTERFACES, Sub, TagKind, Tags};
use volley_tables::{Domain, Guard, Publisher, Snap};

/// VLAN identifiers of both types.
const VLANS: usize = 2 << 12;
/// Slots of the first hash table.
const FIRST: usize = 64;
/// A deleted slot: searches continue after it.
const LEFT: u64 = 1 << 63;
/// Bits of a result.
const ANSWER: u32 = 16;

const _: () = assert!(MAX_INTERFACE_INDEXES < 1 << ANSWER && MAX_INTERFACES <= 1 << 10);

/// Array of each parent that ever had sub-interfaces, by type and VLAN: the low 16 bits are 1 + the sub-interface with this tag
/// alone, the high 16 bits the number of sub-interfaces with this tag in front of another one.
struct Vlans(Box<[OnceLock<Box<[AtomicU32]>>]>);

impl Vlans {
    #[inline(always)]
    fn word(&self, parent: u32, kind: TagKind, vlan: u16) -> u32 {
        let all = self.0[parent as usize % MAX_INTERFACES].get();
        all.map_or(0, |all| all[place(kind, vlan)].load(Ordering::Acquire))
    }

    fn cell(&self, parent: IfIdx, kind: TagKind, vlan: u16) -> &AtomicU32 {
        let all = &self.0[parent.0 as usize % MAX_INTERFACES];
        let all = all.get_or_init(|| (0..VLANS).map(|_| AtomicU32::new(0)).collect());
        &all[place(kind, vlan)]
    }
}

#[inline(always)]
fn place(kind: TagKind, vlan: u16) -> usize {
    usize::from(kind == TagKind::Dot1ad) << 12 | usize::from(vlan & 0xfff)
}

/// Hash table of tag pairs.
struct Pairs {
    words: Box<[AtomicU64]>,
    shift: u32,
}

/// Key of two tags of a parent: a number of 35 bits.
#[inline(always)]
fn pair(parent: u32, kind: TagKind, vlan: u16, inner: u16) -> u64 {
    let outer = (parent as u64 % MAX_INTERFACES as u64) << 13 | place(kind, vlan) as u64;
    outer << 12 | u64::from(inner & 0xfff)
}

impl Pairs {
    /// An empty table with `places` slots, a power of two.
    fn new(places: usize) -> Self {
        Pairs {
            words: (0..places).map(|_| AtomicU64::new(0)).collect(),
            shift: 64 - places.trailing_zeros(),
        }
    }

    /// The slots to search for a key, in order.
    #[inline(always)]
    fn places(&self, key: u64) -> impl Iterator<Item = &AtomicU64> {
        let first = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift) as usize;
        let mask = self.words.len() - 1;
        (0..self.words.len()).map(move |step| &self.words[(first + step) & mask])
    }

    /// The result for a key, 0 for none.
    #[inline(always)]
    fn find(&self, key: u64) -> u32 {
        for place in self.places(key) {
            let word = place.load(Ordering::Acquire);
            if word >> ANSWER == key && word != 0 {
                return word as u16 as u32;
            }
            if word == 0 {
                break;
            }
        }
        0
    }

    /// Inserts a new key; false if it uses a slot that was never used.
    fn put(&self, key: u64, answer: u32) -> bool {
        let free = |place: &&AtomicU64| matches!(place.load(Ordering::Relaxed), 0 | LEFT);
        let Some(place) = self.places(key).find(free) else {
            return true;
        };
        let again = place.load(Ordering::Relaxed) == LEFT;
        place.store(key << ANSWER | u64::from(answer), Ordering::Release);
        again
    }

    fn take(&self, key: u64) {
        let here = |place: &&AtomicU64| place.load(Ordering::Relaxed) >> ANSWER == key;
        if let Some(place) = self.places(key).find(here) {
            place.store(LEFT, Ordering::Release);
        }
    }
}

/// The writer's side.
pub struct TagTable {
    vlans: Arc<Vlans>,
    pairs: Publisher<Pairs>,
    /// Slots of the hash table that were ever used.
    spent: usize,
    /// Pairs in the hash table.
    used: usize,
}

/// Reader handle, to be cloned for every worker.
#[derive(Clone)]
pub struct TagSnap {
    vlans: Arc<Vlans>,
    pairs: Snap<Pairs>,
}

/// The table as one worker sees it during one frame.
#[derive(Clone, Copy)]
pub struct TagView<'g> {
    vlans: &'g Vlans,
    pairs: &'g Pairs,
}

/// Why no sub-interface accepts a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unknown {
    /// No sub-interface has the outer tag.
    Vlan,
    /// The outer tag is known, but only with another inner tag or without one.
    Inner,
}

impl TagSnap {
    /// The table for one frame.
    #[inline(always)]
    pub fn read<'g>(&'g self, guard: Guard<'g>) -> TagView<'g> {
        TagView {
            vlans: &self.vlans,
            pairs: self.pairs.read(guard),
        }
    }
}

impl TagView<'_> {
    /// The sub-interface of `parent` with exactly these tags.
    #[inline(always)]
    pub fn find(&self, parent: u32, tags: Tags) -> Result<u32, Unknown> {
        let Tags { kind, vlan, inner } = tags;
        let word = self.vlans.word(parent, kind, vlan);
        let answer = match inner {
            None => word as u16 as u32,
            Some(_) if word >> ANSWER == 0 => 0,
            Some(inner) => self.pairs.find(pair(parent, kind, vlan, inner)),
        };
        match (answer, word) {
            (0, 0) => Err(Unknown::Vlan),
            (0, _) => Err(Unknown::Inner),
            (answer, _) => Ok(answer - 1),
        }
    }
}

impl TagTable {
    /// An empty table.
    pub fn new(domain: &Arc<Domain>) -> Self {
        let vlans = Vlans((0..MAX_INTERFACES).map(|_| OnceLock::new()).collect());
        TagTable {
            vlans: Arc::new(vlans),
            pairs: Publisher::new(domain, Pairs::new(FIRST)),
            spent: 0,
            used: 0,
        }
    }

    /// A reader handle.
    pub fn snap(&self) -> TagSnap {
        TagSnap {
            vlans: self.vlans.clone(),
            pairs: self.pairs.snap(),
        }
    }

    /// The sub-interface with these tags.
    pub fn get(&self, Sub { parent, tags }: Sub) -> Option<IfIdx> {
        let view = TagView {
            vlans: &self.vlans,
            pairs: &self.pairs,
        };
        view.find(parent.0, tags).ok().map(IfIdx)
    }

    /// Adds a sub-interface, whose tags must not be in the table.
    pub fn insert(&mut self, Sub { parent, tags }: Sub, index: IfIdx) {
        let cell = self.vlans.cell(parent, tags.kind, tags.vlan);
        let Some(inner) = tags.inner else {
            cell.fetch_or(index.0 + 1, Ordering::Release);
            return;
        };
        if 2 * (self.spent + 1) > self.pairs.words.len() {
            self.renew();
        }
        let key = pair(parent.0, tags.kind, tags.vlan, inner);
        let again = self.pairs.put(key, index.0 + 1);
        self.spent += usize::from(!again);
        self.used += 1;
        let cell = self.vlans.cell(parent, tags.kind, tags.vlan);
        cell.fetch_add(1 << ANSWER, Ordering::Release);
    }

    /// Removes a sub-interface.
    pub fn remove(&mut self, Sub { parent, tags }: Sub) {
        if self.get(Sub { parent, tags }).is_none() {
            return;
        }
        let cell = self.vlans.cell(parent, tags.kind, tags.vlan);
        let Some(inner) = tags.inner else {
            cell.fetch_and(!0xffff, Ordering::Release);
            return;
        };
        cell.fetch_sub(1 << ANSWER, Ordering::Release);
        self.pairs.take(pair(parent.0, tags.kind, tags.vlan, inner));
        self.used -= 1;
    }

    /// Copies all pairs into a new table that is at most a quarter full.
    fn renew(&mut self) {
        let places = (4 * (self.used + 1)).next_power_of_two().max(FIRST);
        let fresh = Pairs::new(places);
        let words = self.pairs.words.iter();
        for word in words.map(|w| w.load(Ordering::Relaxed)) {
            if !matches!(word, 0 | LEFT) {
                fresh.put(word >> ANSWER, word as u16 as u32);
            }
        }
        self.spent = self.used;
        self.pairs.publish(fresh);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn tags() -> impl Strategy<Value = Tags> {
        let kind = prop_oneof![Just(TagKind::Dot1q), Just(TagKind::Dot1ad)];
        // Few VLANs, so that tags collide; both ends of the range are included.
        let vlan = || prop_oneof![1..6u16, 4090..=4094u16];
        let inner = prop::option::of(vlan());
        (kind, vlan(), inner).prop_map(|(kind, vlan, inner)| Tags { kind, vlan, inner })
    }

    fn parents() -> impl Strategy<Value = u32> {
        prop_oneof![Just(0), Just(1), Just(1023)]
    }

    /// The expected result by linear search.
    fn plain(list: &BTreeMap<(u32, Tags), u32>, parent: u32, tags: Tags) -> Result<u32, Unknown> {
        if let Some(index) = list.get(&(parent, tags)) {
            return Ok(*index);
        }
        let outer =
            |(p, t): &(u32, Tags)| *p == parent && (t.kind, t.vlan) == (tags.kind, tags.vlan);
        let known = list.keys().any(outer);
        Err(if known { Unknown::Inner } else { Unknown::Vlan })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if std::env::var_os("VOLLEY_SMALL").is_some() { 8 } else { 128 }))]
        #[test]
        fn a_table_answers_as_a_list_does(
            steps in prop::collection::vec((parents(), tags(), any::<bool>()), 1..400),
            asked in prop::collection::vec((parents(), tags()), 50),
        ) {
            let domain = Domain::new();
            let reader = domain.register();
            let mut table = TagTable::new(&domain);
            let snap = table.snap();
            let mut list = BTreeMap::new();
            for (number, (parent, tags, add)) in steps.into_iter().enumerate() {
                let sub = Sub { parent: IfIdx(parent), tags };
                let index = 1024 + number as u32;
                prop_assert_eq!(table.get(sub).map(|i| i.0), list.get(&(parent, tags)).copied());
                if !add {
                    table.remove(sub);
                    list.remove(&(parent, tags));
                } else if table.get(sub).is_none() {
                    table.insert(sub, IfIdx(index));
                    list.insert((parent, tags), index);
                }
            }
            let view = snap.read(reader.guard());
            for (parent, tags) in asked.into_iter().chain(list.keys().copied()) {
                prop_assert_eq!(view.find(parent, tags), plain(&list, parent, tags));
            }
            let pairs = list.keys().filter(|k| k.1.inner.is_some()).count();
            prop_assert_eq!(table.used, pairs);
            prop_assert!(table.spent * 2 <= table.pairs.words.len());
        }
    }

    #[test]
    fn thousands_of_pairs_come_and_go() {
        let domain = Domain::new();
        let mut table = TagTable::new(&domain);
        let sub = |n: u32| Sub {
            parent: IfIdx(n % 3),
            tags: Tags {
                kind: TagKind::Dot1ad,
                vlan: (n % 4094 + 1) as u16,
                inner: Some((n / 4094 * 7 + 1) as u16),
            },
        };
        for n in 0..12_000 {
            table.insert(sub(n), IfIdx(1024 + n));
        }
        for n in 0..12_000 {
            assert_eq!(table.get(sub(n)), Some(IfIdx(1024 + n)));
        }
        (0..12_000)
            .filter(|n| n % 2 == 0)
            .for_each(|n| table.remove(sub(n)));
        for n in 0..12_000 {
            let want = (n % 2 == 1).then_some(IfIdx(1024 + n));
            assert_eq!(table.get(sub(n)), want);
        }
        for _ in 0..40_000 {
            table.insert(sub(0), IfIdx(5));
            table.remove(sub(0));
        }
        assert!(
            table.pairs.words.len() <= 1 << 16,
            "what comes and goes takes no room"
        );
    }
}
