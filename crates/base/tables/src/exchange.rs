//! Rings from one thread to another whose places always hold something: whoever gives puts a full thing in and takes an
//! empty one out, whoever takes does the opposite. Nothing is allocated or freed on the way, and both sides own as many
//! things as before.
//!
//! One thread gives, one takes; neither waits for the other. [`Epochs`] keeps order across the rings of one giver: what
//! it gives behind a turn may be used only when every taker has arrived at that turn.

use crate::sync::{AtomicU64, Ordering, UnsafeCell};
use std::sync::Arc;

/// A counter on cache lines of its own.
#[repr(align(128))]
struct Line(AtomicU64);

struct Ring<T> {
    slots: Box<[UnsafeCell<T>]>,
    /// How many things have been given.
    given: Line,
    /// How many of them have been taken.
    taken: Line,
}

// SAFETY: a place is touched by the giver while it is free, by the taker while it is full; which of both it is follows
// from the counters, whose release stores and acquire loads order what is done to it.
unsafe impl<T: Send> Sync for Ring<T> {}
// SAFETY: it owns its things.
unsafe impl<T: Send> Send for Ring<T> {}

impl<T> Ring<T> {
    /// Exchange what is in the place that number `at` falls on.
    #[inline(always)]
    fn swap(&self, at: u64, item: &mut T) {
        // The number of places is a power of two.
        let place = &self.slots[at as usize & (self.slots.len() - 1)];
        place.with_mut(|p| {
            // SAFETY: the caller found in the counters that the place is its own for now.
            unsafe { std::ptr::swap(p, item) }
        });
    }
}

/// The side that gives.
pub struct Producer<T> {
    ring: Arc<Ring<T>>,
    given: u64,
    /// What was taken when it was looked at last.
    taken: u64,
}

/// The side that takes.
pub struct Consumer<T> {
    ring: Arc<Ring<T>>,
    taken: u64,
    /// What was given when it was looked at last.
    given: u64,
}

/// A ring with these things in its places; how many counts, rounded down to a power of two.
///
/// # Panics
/// If there is nothing.
pub fn swap_ring<T: Send>(mut places: Vec<T>) -> (Producer<T>, Consumer<T>) {
    assert!(!places.is_empty(), "a ring has places");
    places.truncate(1 << places.len().ilog2());
    let ring = Arc::new(Ring {
        slots: places.into_iter().map(UnsafeCell::new).collect(),
        given: Line(AtomicU64::new(0)),
        taken: Line(AtomicU64::new(0)),
    });
    let producer = Producer {
        ring: ring.clone(),
        given: 0,
        taken: 0,
    };
    let consumer = Consumer {
        ring,
        taken: 0,
        given: 0,
    };
    (producer, consumer)
}

impl<T> Producer<T> {
    /// Exchange `item` for what is in a free place. False when fewer than `spare` places would be left free: `item` stays.
    #[inline(always)]
    pub fn enqueue(&mut self, item: &mut T, spare: usize) -> bool {
        let room = self.ring.slots.len().saturating_sub(spare) as u64;
        if self.given - self.taken >= room {
            self.taken = self.ring.taken.0.load(Ordering::Acquire);
            if self.given - self.taken >= room {
                return false;
            }
        }
        self.ring.swap(self.given, item);
        self.given += 1;
        self.ring.given.0.store(self.given, Ordering::Release);
        true
    }

    /// Whether everything given has been taken.
    pub fn is_empty(&self) -> bool {
        self.ring.taken.0.load(Ordering::Acquire) == self.given
    }

    /// How many places are free at least.
    pub fn free_slots(&mut self) -> usize {
        self.taken = self.ring.taken.0.load(Ordering::Acquire);
        self.ring.slots.len() - (self.given - self.taken) as usize
    }
}

impl<T> Consumer<T> {
    /// Exchange `item` for the oldest thing given. False when there is none: `item` stays.
    #[inline(always)]
    pub fn dequeue(&mut self, item: &mut T) -> bool {
        if self.is_empty() {
            return false;
        }
        self.ring.swap(self.taken, item);
        self.taken += 1;
        self.ring.taken.0.store(self.taken, Ordering::Release);
        true
    }

    /// As [`Consumer::is_empty`], for whoever only looks.
    pub fn is_empty_now(&self) -> bool {
        self.ring.given.0.load(Ordering::Acquire) == self.taken
    }

    /// Whether there is nothing to take.
    #[inline(always)]
    pub fn is_empty(&mut self) -> bool {
        if self.taken == self.given {
            self.given = self.ring.given.0.load(Ordering::Acquire);
        }
        self.taken == self.given
    }
}

/// How far each taker of one giver's rings has come. A turn is a number that grows.
pub struct Epochs {
    arrived: Box<[Line]>,
}

/// What a taker that does not exist has arrived at.
const NOBODY: u64 = u64::MAX;

impl Epochs {
    /// For up to `takers` takers, none of which exists.
    pub fn new(takers: usize) -> Arc<Self> {
        let nobody = || Line(AtomicU64::new(NOBODY));
        Arc::new(Epochs {
            arrived: (0..takers).map(|_| nobody()).collect(),
        })
    }

    /// `taker` comes; nothing was given to it before `turn`.
    pub fn join(&self, consumer: usize, turn: u64) {
        if let Some(cell) = self.arrived.get(consumer) {
            cell.0.store(turn, Ordering::Release);
        }
    }

    /// `taker` has used everything that it was given before `turn`.
    pub fn complete(&self, consumer: usize, turn: u64) {
        if let Some(cell) = self.arrived.get(consumer) {
            // It may have been said already that nobody waits for it.
            cell.0.fetch_max(turn, Ordering::AcqRel);
        }
    }

    /// `taker` exists no more: nobody waits for it.
    pub fn leave(&self, consumer: usize) {
        self.complete(consumer, NOBODY);
    }

    /// Whether every taker has arrived at `turn`.
    pub fn is_complete(&self, turn: u64) -> bool {
        let came = |cell: &Line| cell.0.load(Ordering::Acquire) >= turn;
        self.arrived.iter().all(came)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn things_change_hands_in_order_and_none_is_lost() {
        let (mut producer, mut consumer) = swap_ring(vec![100, 101, 102, 103, 104]);
        let mut item = 0;
        assert!(!consumer.dequeue(&mut item) && item == 0 && consumer.is_empty());
        for n in 1..=4 {
            item = n;
            assert!(producer.enqueue(&mut item, 0));
            assert!(item >= 100, "an empty one for a full one");
        }
        item = 5;
        assert!(!producer.enqueue(&mut item, 0) && item == 5, "four places");
        for n in 1..=4 {
            item = 200;
            assert!(consumer.dequeue(&mut item) && item == n);
        }
        assert!(!consumer.dequeue(&mut item));
    }

    #[test]
    fn spare_places_stay_free() {
        let (mut producer, mut consumer) = swap_ring(vec![0; 4]);
        for n in 1..=3 {
            assert!(producer.enqueue(&mut { n }, 1));
        }
        assert!(!producer.enqueue(&mut 4, 1) && producer.free_slots() == 1);
        assert!(producer.enqueue(&mut 4, 0) && producer.free_slots() == 0);
        assert!(consumer.dequeue(&mut 0) && producer.free_slots() == 1);
    }

    #[test]
    fn threads_lose_and_double_nothing() {
        let (mut producer, mut consumer) = swap_ring((0..8).map(|_| Box::new(0)).collect());
        let most = if std::env::var_os("VOLLEY_SMALL").is_some() {
            2_000
        } else {
            200_000
        };
        std::thread::scope(|s| {
            s.spawn(move || {
                let mut item = Box::new(0u64);
                for n in 1..=most {
                    *item = n;
                    while !producer.enqueue(&mut item, 0) {
                        std::thread::yield_now();
                    }
                    assert_eq!(*item, 0, "what comes back is empty");
                }
            });
            let mut item = Box::new(0u64);
            for n in 1..=most {
                while !consumer.dequeue(&mut item) {
                    std::thread::yield_now();
                }
                assert_eq!(*item, n);
                *item = 0;
            }
        });
    }

    #[test]
    fn a_turn_is_over_when_all_that_exist_have_arrived() {
        let turns = Epochs::new(3);
        assert!(turns.is_complete(7), "nobody to wait for");
        turns.join(0, 6);
        turns.join(2, 6);
        turns.complete(0, 7);
        assert!(!turns.is_complete(7) && turns.is_complete(6));
        turns.complete(2, 7);
        assert!(turns.is_complete(7));
        turns.join(1, 0);
        assert!(!turns.is_complete(7));
        turns.leave(1);
        turns.complete(1, 3);
        assert!(turns.is_complete(7), "nobody waits for one that leaves");
    }
}
