//! Exact match from 64-bit keys to entries: the MAC entries of bridge domains.
//!
//! A key is a MAC address in the upper 48 bits and its domain in the lower 16. The control thread is the only writer. Workers
//! look keys up in batches ([`MacView`]) and mark the entries that they use. Each worker has separate mark bytes, which it
//! writes only where they change. So no byte is written by two workers, and a host that sends continuously costs its
//! worker one store between two sweeps of the writer.
//!
//! Buckets are cache lines of four keys with their answers. A key is in its first bucket, or in its second one if the first was
//! full; the first bucket counts such keys, and a lookup reads the second bucket only if there are any. If both are full, a key
//! in one of them is moved to its own second bucket: it is inserted there before it is removed here, so that no lookup misses
//! it. The table is at most half full and doubles; readers switch to the larger one with their next frame. A reader reads the
//! key before and after the answer: the answer then belongs to that key, although slots are reused at once.

mod store;

use crate::qsbr::{Domain, Guard, Publisher, Snap};
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::Arc;
use store::{Place, Store};

pub use store::{ID_BITS, MacView, TAG_MAX};

/// The maximum number of entries of a table: ids start at 1.
pub const MAX_ENTRIES: usize = (1 << ID_BITS) - 1;
/// Buckets of an empty table.
const FIRST: usize = 1 << 8;
/// The number of seeds that are tried when keys do not fit, before the table doubles.
const SEEDS: usize = 4;

/// The table has no free slot for another key: it contains the maximum, or both buckets of the key are full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the MAC table has no room for this address: let entries age, or flush some")]
pub struct Full;

/// The writer's half. Entries are named by ids, which start at 1, are small and are reused.
pub struct MacTable {
    store: Publisher<Store>,
    /// Key and position of each id; a key of 0 means that the id is free.
    entries: Vec<(u64, Place)>,
    free: Vec<u32>,
    used: usize,
    max: usize,
    workers: usize,
}

/// A reader's handle. Clone it into every worker.
#[derive(Clone)]
pub struct MacSnap(Snap<Store>);

impl MacSnap {
    /// The current table, for one worker and one frame.
    #[inline(always)]
    pub fn read<'g>(&self, guard: Guard<'g>, worker: usize) -> MacView<'g> {
        self.0.read(guard).view(worker)
    }
}

fn seeds() -> (u32, u32) {
    let random = RandomState::new().hash_one(0u8);
    (random as u32, (random >> 32) as u32)
}

impl MacTable {
    /// An empty table for `workers` workers with at most `max` entries.
    pub fn new(domain: &Arc<Domain>, workers: usize, max: usize) -> Self {
        MacTable {
            store: Publisher::new(domain, Store::new(FIRST, workers, seeds())),
            entries: vec![(0, Place::NOWHERE)],
            free: Vec::new(),
            used: 0,
            max: max.min(MAX_ENTRIES),
            workers,
        }
    }

    /// A handle for readers.
    pub fn snap(&self) -> MacSnap {
        MacSnap(self.store.snap())
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.used
    }

    /// Whether the table is empty.
    pub fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// The number of buckets, of four slots each.
    pub fn buckets(&self) -> usize {
        self.store.buckets()
    }

    /// One more than the largest id in use so far.
    pub fn ids(&self) -> u32 {
        self.entries.len() as u32
    }

    /// The key of an entry.
    pub fn key(&self, id: u32) -> Option<u64> {
        let entry = self.entries.get(id as usize)?;
        (entry.0 != 0).then_some(entry.0)
    }

    /// The entry of a key.
    pub fn get(&self, key: u64) -> Option<u32> {
        let answer = self.store.view(0).find(key);
        (answer != 0).then_some(answer & MAX_ENTRIES as u32)
    }

    /// Insert a new key, with a tag of at most [`TAG_MAX`]; returns its id. The key must not exist.
    pub fn insert(&mut self, key: u64, tag: u32) -> Result<u32, Full> {
        debug_assert!(key != 0 && key != u64::MAX && self.get(key).is_none());
        if self.used >= self.max {
            return Err(Full);
        }
        if self.used >= self.store.capacity() {
            self.grow(self.store.buckets() * 2)?;
        }
        let spare = self.free.last().copied();
        let id = spare.unwrap_or(self.entries.len() as u32);
        let mut placed = self.place(key, id, tag);
        // Neither bucket has a free slot. This is rare at half load, so the table is at most twice as large as necessary.
        if placed.is_none() && self.store.capacity() < 2 * self.max {
            self.grow(self.store.buckets() * 2)?;
            placed = self.place(key, id, tag);
        }
        let place = placed.ok_or(Full)?;
        self.free.pop();
        if id as usize == self.entries.len() {
            self.entries.push((0, Place::NOWHERE));
        }
        self.entries[id as usize] = (key, place);
        self.used += 1;
        // The previous entry with this id may have left a mark.
        self.store.take_mark(id);
        Ok(id)
    }

    /// Writes a key into a free slot, or into a slot from which another key is moved.
    fn place(&mut self, key: u64, id: u32, tag: u32) -> Option<Place> {
        let store = self.store.current();
        if let Some(place) = store.place(key, id, tag) {
            return Some(place);
        }
        let (moved, to) = store.make_room(key)?;
        self.entries[moved as usize].1 = to;
        store.place(key, id, tag)
    }

    /// Change the tag of an entry.
    pub fn set(&mut self, id: u32, tag: u32) {
        if let Some((key, place)) = self.entries.get(id as usize)
            && *key != 0
        {
            self.store.set(*place, id, tag);
        }
    }

    /// Remove an entry.
    pub fn remove(&mut self, id: u32) {
        let Some(entry) = self.entries.get_mut(id as usize).filter(|e| e.0 != 0) else {
            return;
        };
        let (key, place) = std::mem::replace(entry, (0, Place::NOWHERE));
        self.store.unlink(key, place);
        self.free.push(id);
        self.used -= 1;
    }

    /// Whether a worker has used an entry since the last call.
    pub fn take_mark(&mut self, id: u32) -> bool {
        self.store.take_mark(id)
    }

    /// Moves all entries into a table of at least `buckets` buckets.
    fn grow(&mut self, buckets: usize) -> Result<(), Full> {
        for attempt in 0..2 * SEEDS {
            let fresh = Store::new(buckets << (attempt / SEEDS), self.workers, seeds());
            let Some(places) = self.fill(&fresh) else {
                continue;
            };
            for (entry, place) in self.entries.iter_mut().zip(places) {
                entry.1 = place;
            }
            fresh.take_over(&self.store);
            self.store.publish(fresh);
            return Ok(());
        }
        Err(Full)
    }

    fn fill(&self, fresh: &Store) -> Option<Vec<Place>> {
        let place = |(id, &(key, place)): (usize, &(u64, Place))| match key {
            0 => Some(Place::NOWHERE),
            key => fresh.place(key, id as u32, self.store.tag(place)),
        };
        self.entries.iter().enumerate().map(place).collect()
    }
}

#[cfg(test)]
mod tests;
