//! The data that lookups of MAC addresses read: buckets of one cache line, and the marks of each worker.

use crate::pages::{Pages, Zeroed};
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use volley_simd::prefetch;

/// Bits of an entry's id in an answer.
pub const ID_BITS: u32 = 20;
/// The largest tag of an entry.
pub const TAG_MAX: u32 = (1 << (32 - ID_BITS)) - 1;
/// The number of keys of a bucket.
const SLOTS: usize = 4;
/// Four keys and their answers: tag and id.
#[repr(C, align(64))]
struct Bucket {
    keys: [AtomicU64; SLOTS],
    answers: [AtomicU32; SLOTS],
    /// The number of keys that are in their second bucket because this one was full.
    more: AtomicU32,
}

// SAFETY: atomics of plain integers: zero is a value, nothing to drop, aligned to a cache line.
unsafe impl Zeroed for Bucket {}

const _: () = assert!(size_of::<Bucket>() == 64);

/// With at least this number of buckets (2 MB), slots are compared without branches: mispredicted branches cost more than the comparisons.
/// With few buckets most keys are in the first slots, and the processor learns which.
pub(super) const MANY_BUCKETS: usize = 1 << 15;

impl Bucket {
    /// The slot of a key; [`SLOTS`] if it is in none. No branch depends on the slot.
    #[inline(always)]
    fn slot_of(&self, key: u64) -> usize {
        let keys = self.keys.each_ref().map(|k| k.load(Ordering::Acquire));
        let at = |slot: usize, other: usize| if keys[slot] == key { slot } else { other };
        at(0, at(1, at(2, at(3, SLOTS))))
    }

    /// The answer of a slot that contained `key` before; 0 if it does not any more. An answer is written (release) after
    /// the old key was removed, so that a reader that reads (acquire) a new answer sees that the key has changed.
    #[inline(always)]
    fn answer(&self, slot: usize, key: u64) -> u32 {
        let answer = self.answers[slot].load(Ordering::Acquire);
        let still = self.keys[slot].load(Ordering::Relaxed) == key;
        if still { answer } else { 0 }
    }
}

/// The position of a key: bucket and slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place(u32);

impl Place {
    pub(super) const NOWHERE: Place = Place(u32::MAX);

    fn new(bucket: u32, slot: usize) -> Self {
        Place(bucket << 2 | slot as u32)
    }

    fn bucket(self) -> u32 {
        self.0 >> 2
    }

    fn slot(self) -> usize {
        self.0 as usize % SLOTS
    }
}

/// The hash of keys to the buckets of one table.
#[derive(Clone, Copy)]
struct Spread {
    high: u32,
    low: u32,
    shift: u32,
}

impl Spread {
    /// Addresses of one vendor differ in few bits, and rarely in the low bits of a half: two rounds of multiplication.
    #[inline(always)]
    fn mix(self, high: u32, low: u32) -> u32 {
        let low = low.rotate_left(16).wrapping_mul(self.low);
        let sum = high.wrapping_mul(self.high).wrapping_add(low);
        let mixed = (sum ^ (sum >> 16)).wrapping_mul(0x85eb_ca6b);
        (mixed ^ (mixed >> 13)).wrapping_mul(0xc2b2_ae35)
    }

    #[inline(always)]
    fn first(self, high: u32, low: u32) -> u32 {
        self.mix(high, low) >> self.shift
    }

    /// Never equal to the first bucket: the lowest bit differs.
    #[inline(always)]
    fn second(self, high: u32, low: u32) -> u32 {
        let mixed = self.mix(high, low);
        let other = (mixed ^ (mixed >> 15)).wrapping_mul(0x297a_2d39) >> self.shift;
        (mixed >> self.shift) ^ (other | 1)
    }
}

/// The buckets and marks of a table size.
pub(super) struct Store {
    buckets: Pages<Bucket>,
    /// For each worker, a byte for each entry's id.
    marks: Box<[Pages<AtomicU8>]>,
    spread: Spread,
}

/// The table for one worker during one frame.
#[derive(Clone, Copy)]
pub struct MacView<'g> {
    buckets: &'g [Bucket],
    marks: &'g [AtomicU8],
    spread: Spread,
}

fn halves(key: u64) -> (u32, u32) {
    ((key >> 32) as u32, key as u32)
}

impl Store {
    /// `buckets` is a power of two.
    pub(super) fn new(buckets: usize, workers: usize, (high, low): (u32, u32)) -> Self {
        let spread = Spread {
            high: high | 1,
            low: low | 1,
            shift: 32 - buckets.ilog2(),
        };
        let numbers = (buckets * SLOTS / 2 + 1).min(1 << ID_BITS);
        Store {
            buckets: Pages::new(buckets),
            marks: (0..workers.max(1)).map(|_| Pages::new(numbers)).collect(),
            spread,
        }
    }

    pub(super) fn buckets(&self) -> usize {
        self.buckets.len()
    }

    /// The maximum number of entries for this size: half of the slots.
    pub(super) fn capacity(&self) -> usize {
        self.buckets.len() * SLOTS / 2
    }

    pub(super) fn view(&self, worker: usize) -> MacView<'_> {
        MacView {
            buckets: &self.buckets,
            marks: self.marks.get(worker).map_or(&[], |marks| marks),
            spread: self.spread,
        }
    }

    /// A free slot of a bucket.
    fn free_in(&self, bucket: u32) -> Option<Place> {
        let keys = &self.buckets[bucket as usize].keys;
        let free = keys.iter().position(|k| k.load(Ordering::Relaxed) == 0)?;
        Some(Place::new(bucket, free))
    }

    /// Writes a key into a free slot of one of its buckets.
    pub(super) fn place(&self, key: u64, id: u32, tag: u32) -> Option<Place> {
        let (high, low) = halves(key);
        let first = self.free_in(self.spread.first(high, low));
        let place = first.or_else(|| self.free_in(self.spread.second(high, low)))?;
        self.write(key, place, id, tag);
        Some(place)
    }

    fn write(&self, key: u64, place: Place, id: u32, tag: u32) {
        // A reader that finds the key finds its answer, and a reader that misses it in the first bucket finds the overflow
        // count.
        self.set(place, id, tag);
        let bucket = &self.buckets[place.bucket() as usize];
        bucket.keys[place.slot()].store(key, Ordering::Release);
        self.overflow(key, place, 1);
    }

    /// Adjusts the overflow count of the first bucket of a key that is in its second one.
    fn overflow(&self, key: u64, place: Place, by: i32) {
        let (high, low) = halves(key);
        let first = self.spread.first(high, low);
        if place.bucket() != first {
            let more = &self.buckets[first as usize].more;
            let now = more.load(Ordering::Relaxed);
            more.store(now.saturating_add_signed(by), Ordering::Release);
        }
    }

    pub(super) fn set(&self, place: Place, id: u32, tag: u32) {
        let bucket = &self.buckets[place.bucket() as usize];
        bucket.answers[place.slot()].store(tag << ID_BITS | id, Ordering::Release);
    }

    pub(super) fn tag(&self, place: Place) -> u32 {
        let bucket = &self.buckets[place.bucket() as usize];
        bucket.answers[place.slot()].load(Ordering::Relaxed) >> ID_BITS
    }

    /// Removes the key: readers do not find it any more.
    pub(super) fn unlink(&self, key: u64, place: Place) {
        let bucket = &self.buckets[place.bucket() as usize];
        bucket.keys[place.slot()].store(0, Ordering::Release);
        self.overflow(key, place, -1);
    }

    /// Moves a key out of a bucket of `key` into its own second one; returns its id and its new position.
    pub(super) fn make_room(&self, key: u64) -> Option<(u32, Place)> {
        let (high, low) = halves(key);
        let full = [self.spread.first(high, low), self.spread.second(high, low)];
        for (bucket, slot) in full
            .into_iter()
            .flat_map(|b| (0..SLOTS).map(move |s| (b, s)))
        {
            let of = &self.buckets[bucket as usize];
            let (other, answer) = (
                of.keys[slot].load(Ordering::Relaxed),
                of.answers[slot].load(Ordering::Relaxed),
            );
            let (high, low) = halves(other);
            // Only from first to second bucket: readers check the first bucket first and could miss a key that moves back.
            if self.spread.first(high, low) != bucket {
                continue;
            }
            let (id, tag) = (answer & ((1 << ID_BITS) - 1), answer >> ID_BITS);
            if let Some(place) = self.free_in(self.spread.second(high, low)) {
                self.write(other, place, id, tag);
                of.keys[slot].store(0, Ordering::Release);
                return Some((id, place));
            }
        }
        None
    }

    pub(super) fn take_mark(&self, id: u32) -> bool {
        let marks = self.marks.iter().filter_map(|marks| marks.get(id as usize));
        // Read first: a swap would take the cache line from a worker that has not set its mark.
        let taken = marks
            .map(|mark| mark.load(Ordering::Relaxed) != 0 && mark.swap(0, Ordering::Relaxed) != 0);
        taken.fold(false, |any, one| any | one)
    }

    /// Copies the marks of a smaller table.
    pub(super) fn take_over(&self, old: &Store) {
        for (new, old) in self.marks.iter().zip(&old.marks) {
            for (new, old) in new.iter().zip(old.iter()) {
                new.store(old.load(Ordering::Relaxed), Ordering::Relaxed);
            }
        }
    }
}

impl MacView<'_> {
    /// The first bucket of a key. Plain arithmetic: loops over columns become vector code.
    #[inline(always)]
    pub fn bucket(&self, high: u32, low: u32) -> u32 {
        self.spread.first(high, low)
    }

    /// Prefetch a bucket's cache line.
    #[inline(always)]
    pub fn ask(&self, bucket: u32) {
        prefetch(self.buckets.as_ptr().wrapping_add(bucket as usize));
    }

    /// The answer to a key whose bucket is known: the entry's tag above [`ID_BITS`] bits of its id; 0 for no entry.
    #[inline(always)]
    pub fn find_in(&self, bucket: u32, high: u32, low: u32) -> u32 {
        let at = bucket as usize & (self.buckets.len() - 1);
        // SAFETY: the number of buckets is a power of two, so the masked number is below it.
        let bucket = unsafe { self.buckets.get_unchecked(at) };
        let key = u64::from(high) << 32 | u64::from(low);
        if self.buckets.len() >= MANY_BUCKETS {
            let slot = bucket.slot_of(key);
            if slot < SLOTS {
                let answer = bucket.answer(slot, key);
                if answer != 0 {
                    return answer;
                }
            }
        } else {
            for slot in 0..SLOTS {
                if bucket.keys[slot].load(Ordering::Acquire) == key {
                    let answer = bucket.answer(slot, key);
                    if answer != 0 {
                        return answer;
                    }
                }
            }
        }
        if bucket.more.load(Ordering::Acquire) == 0 {
            return 0;
        }
        self.find_second(high, low)
    }

    #[cold]
    #[inline(never)]
    fn find_second(&self, high: u32, low: u32) -> u32 {
        let bucket = &self.buckets[self.spread.second(high, low) as usize];
        let key = u64::from(high) << 32 | u64::from(low);
        let mut keys = bucket.keys.iter();
        let slot = keys.position(|k| k.load(Ordering::Acquire) == key);
        slot.map_or(0, |slot| bucket.answer(slot, key))
    }

    /// The answer to a key; see [`Self::find_in`].
    pub fn find(&self, key: u64) -> u32 {
        let (high, low) = halves(key);
        self.find_in(self.bucket(high, low), high, low)
    }

    /// Mark the entry of an answer. Written only if the mark is not set.
    #[inline(always)]
    pub fn mark(&self, answer: u32) {
        let id = answer as usize & ((1 << ID_BITS) - 1);
        if let Some(mark) = self.marks.get(id)
            && mark.load(Ordering::Relaxed) == 0
        {
            mark.store(1, Ordering::Relaxed);
        }
    }
}
