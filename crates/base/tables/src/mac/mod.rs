//! Exact match from 64-bit keys to entries: the stations of bridge domains.
//!
//! A key is a MAC address in the upper 48 bits and its domain in the lower 16. The control thread is the only writer; workers
//! look keys up in batches ([`MacView`]) and leave marks at the entries that they use, each worker in bytes of its own, which
//! it writes only where they change. So nothing is written by two workers, and a station that sends without pause costs its
//! worker one store between two sweeps of the writer.
//!
//! Buckets are cache lines of four keys with their answers. A key lies in its first bucket, or in its second one when that was
//! full; the first bucket then says so, and only then is the second one looked at. Where both are full a key of either makes
//! room by going to its own second bucket: it is there before it is gone here, so nobody misses it. The table is at most half
//! full and doubles; readers go over to the larger one with their next frame. A reader looks at the key before and behind the
//! answer: what it takes belongs to that key, although slots are used again at once.

mod store;

use crate::qsbr::{Domain, Guard, Publisher, Snap};
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::Arc;
use store::{Place, Store};

pub use store::{ID_BITS, MacView, TAG_MAX};

/// The most entries a table can hold: ids are from 1.
pub const MAX_ENTRIES: usize = (1 << ID_BITS) - 1;
/// Buckets of an empty table.
const FIRST: usize = 1 << 8;
/// Seeds that are tried where keys do not fit, before the table doubles.
const SEEDS: usize = 4;

/// The table has no room for one more key: it holds as many as it may, or both buckets of the key are full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the MAC table has no room for this address: let entries age, or flush some")]
pub struct Full;

/// The writer's half. Entries are named by ids from 1, which are small numbers and are used again.
pub struct MacTable {
    store: Publisher<Store>,
    /// Key and place of each id; a key of 0 is free.
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
    /// The table as it is now, for one worker and one frame.
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
    /// An empty table for `workers` workers that holds at most `max` entries.
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

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.used
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// How many buckets there are, of four entries each.
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

    /// Put a key there that is not yet there, with a tag of at most [`TAG_MAX`]; returns its id.
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
        // No room for it and its like: rare at half load, so a table twice as large as it need be is the most there is.
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
        // Whoever had the number before may have left a mark.
        self.store.take_mark(id);
        Ok(id)
    }

    /// Writes a key where there is room for it, or where another key makes room.
    fn place(&mut self, key: u64, id: u32, tag: u32) -> Option<Place> {
        let store = self.store.current();
        if let Some(place) = store.place(key, id, tag) {
            return Some(place);
        }
        let (moved, to) = store.make_room(key)?;
        self.entries[moved as usize].1 = to;
        store.place(key, id, tag)
    }

    /// Give an entry another tag.
    pub fn set(&mut self, id: u32, tag: u32) {
        if let Some((key, place)) = self.entries.get(id as usize)
            && *key != 0
        {
            self.store.set(*place, id, tag);
        }
    }

    /// Take an entry away.
    pub fn remove(&mut self, id: u32) {
        let Some(entry) = self.entries.get_mut(id as usize).filter(|e| e.0 != 0) else {
            return;
        };
        let (key, place) = std::mem::replace(entry, (0, Place::NOWHERE));
        self.store.unlink(key, place);
        self.free.push(id);
        self.used -= 1;
    }

    /// Whether a worker used an entry since this was last asked.
    pub fn take_mark(&mut self, id: u32) -> bool {
        self.store.take_mark(id)
    }

    /// Everything into a table of `buckets` buckets or more.
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
