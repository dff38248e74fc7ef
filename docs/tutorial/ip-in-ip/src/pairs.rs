//! The table of pairs: a destination, and the two addresses of the outer header.
//!
//! A bucket is a cache line of four slots. The control thread is the only writer, and it changes a slot while workers read it: the
//! word with the pair is written before the word with the destination. A slot has the same destination as long as the table
//! lives, so a reader never finds the pair of another destination. A larger table replaces one that is a quarter full.

use std::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Release};

/// Slots of a bucket.
pub const SLOTS: usize = 4;
/// Bit of a slot with a pair; without it the pair was removed.
const LIVE: u64 = 1 << 32;
/// Bit of a slot that has a destination.
const USED: u64 = 1 << 33;
/// Buckets of an empty table.
const FIRST: usize = 16;

// ANCHOR: bucket
#[derive(Default)]
#[repr(align(64))]
pub struct Bucket {
    keys: [AtomicU64; SLOTS],
    pairs: [AtomicU64; SLOTS],
}

/// The table, as workers read it.
pub struct Pairs {
    buckets: Box<[Bucket]>,
    shift: u32,
}
// ANCHOR_END: bucket

impl Pairs {
    fn new(buckets: usize) -> Self {
        Pairs {
            buckets: (0..buckets).map(|_| Bucket::default()).collect(),
            shift: u32::BITS - buckets.trailing_zeros(),
        }
    }

    /// An empty table.
    pub fn empty() -> Self {
        Pairs::new(FIRST)
    }

    /// The number of the bucket in which the search for a destination begins.
    #[inline(always)]
    pub fn start(&self, destination: u32) -> u32 {
        destination.wrapping_mul(0x9e37_79b1) >> self.shift
    }

    /// A bucket, for a prefetch.
    #[inline(always)]
    pub fn bucket(&self, at: u32) -> &Bucket {
        &self.buckets[at as usize & (self.buckets.len() - 1)]
    }

    /// The pair of a destination, 0 for none: slot after slot, as one would write it.
    // ANCHOR: find
    #[inline(always)]
    pub fn find(&self, destination: u32) -> u64 {
        let (live, mut at) = (
            u64::from(destination) | LIVE | USED,
            self.start(destination),
        );
        loop {
            let bucket = self.bucket(at);
            for (key, pair) in bucket.keys.iter().zip(&bucket.pairs) {
                let key = key.load(Acquire);
                if key == live {
                    return pair.load(Acquire);
                }
                if key == 0 {
                    return 0;
                }
            }
            at += 1;
        }
    }
    // ANCHOR_END: find

    /// As [`Pairs::find`], with one branch, which is nearly always the same: all four slots of a bucket are compared, and the pair is
    /// chosen by masks. Only a full bucket without the destination leads to the next one.
    // ANCHOR: find_straight
    #[inline(always)]
    pub fn find_straight(&self, destination: u32) -> u64 {
        let (live, mut at) = (
            u64::from(destination) | LIVE | USED,
            self.start(destination),
        );
        loop {
            let bucket = self.bucket(at);
            let (mut found, mut is_full) = (0, 1);
            for (key, pair) in bucket.keys.iter().zip(&bucket.pairs) {
                let key = key.load(Acquire);
                found |= pair.load(Acquire) & u64::from(key == live).wrapping_neg();
                is_full &= u64::from(key != 0);
            }
            if found | (is_full ^ 1) != 0 {
                return found;
            }
            at += 1;
        }
    }
    // ANCHOR_END: find_straight

    /// The slot of a destination, or the free one where it would be, and whether it is free.
    fn slot(&self, destination: u32) -> (&AtomicU64, &AtomicU64, bool) {
        let mut at = self.start(destination);
        loop {
            let bucket = self.bucket(at);
            for (key, pair) in bucket.keys.iter().zip(&bucket.pairs) {
                let word = key.load(Acquire);
                if word == 0 || word as u32 == destination {
                    return (key, pair, word == 0);
                }
            }
            at += 1;
        }
    }

    /// Write the pair of a destination; 0 removes it. Returns whether the destination took a free slot.
    pub fn set(&self, destination: u32, new: u64) -> bool {
        let (key, pair, is_free) = self.slot(destination);
        if new == 0 && is_free {
            return false;
        }
        let live = if new == 0 { 0 } else { LIVE };
        if new != 0 {
            pair.store(new, Release);
        }
        key.store(u64::from(destination) | USED | live, Release);
        is_free
    }

    /// Whether `used` slots are as many as the table may have.
    pub fn is_full(&self, used: usize) -> bool {
        4 * used >= SLOTS * self.buckets.len()
    }

    /// A table of twice the size with the same pairs, and their number. Removed destinations are not in it.
    pub fn larger(&self) -> (Pairs, usize) {
        let larger = Pairs::new(2 * self.buckets.len());
        let mut used = 0;
        for bucket in &self.buckets {
            for (key, pair) in bucket.keys.iter().zip(&bucket.pairs) {
                let key = key.load(Acquire);
                if key & LIVE != 0 {
                    used += usize::from(larger.set(key as u32, pair.load(Acquire)));
                }
            }
        }
        (larger, used)
    }
}
