//! Exchange rings from one thread to another: every slot always contains an item. The producer swaps a full item for
//! an empty one, the consumer an empty item for a full one. Nothing is allocated or freed, and both sides own as many
//! items as before.
//!
//! One thread produces and one consumes; neither waits for the other. [`Epochs`] keeps order across the rings of one
//! producer: items of an epoch may be used only when every consumer has completed the epoch before.

use crate::sync::{AtomicU64, Ordering, UnsafeCell};
use std::sync::Arc;

/// A counter on its own cache lines.
#[repr(align(128))]
struct Line(AtomicU64);

struct Ring<T> {
    slots: Box<[UnsafeCell<T>]>,
    /// The number of items enqueued.
    given: Line,
    /// The number of items dequeued.
    taken: Line,
}

// SAFETY: the producer accesses a slot while it is free and the consumer while it is full. The counters determine
// which; their release stores and acquire loads order the accesses.
unsafe impl<T: Send> Sync for Ring<T> {}
// SAFETY: the ring owns its items.
unsafe impl<T: Send> Send for Ring<T> {}

impl<T> Ring<T> {
    /// Exchange the item in the slot of number `at`.
    #[inline(always)]
    fn swap(&self, at: u64, item: &mut T) {
        // The number of slots is a power of two.
        let place = &self.slots[at as usize & (self.slots.len() - 1)];
        place.with_mut(|p| {
            // SAFETY: by the counters, only the caller may access the slot now.
            unsafe { std::ptr::swap(p, item) }
        });
    }
}

/// The producer's end.
pub struct Producer<T> {
    ring: Arc<Ring<T>>,
    given: u64,
    /// The number of items dequeued, when it was last read.
    taken: u64,
}

/// The consumer's end.
pub struct Consumer<T> {
    ring: Arc<Ring<T>>,
    taken: u64,
    /// The number of items enqueued, when it was last read.
    given: u64,
}

/// A ring with these items in its slots. Their number is rounded down to a power of two.
///
/// # Panics
/// If there is no item.
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
    /// Exchange `item` for the item of a free slot. Returns false, without a change, when fewer than `spare` slots
    /// would be free afterwards.
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

    /// Whether the consumer has dequeued all items.
    pub fn is_empty(&self) -> bool {
        self.ring.taken.0.load(Ordering::Acquire) == self.given
    }

    /// A lower bound of the number of free slots.
    pub fn free_slots(&mut self) -> usize {
        self.taken = self.ring.taken.0.load(Ordering::Acquire);
        self.ring.slots.len() - (self.given - self.taken) as usize
    }
}

impl<T> Consumer<T> {
    /// Exchange `item` for the oldest full item. Returns false, without a change, when there is none.
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

    /// As [`Consumer::is_empty`], without `&mut self`.
    pub fn is_empty_now(&self) -> bool {
        self.ring.given.0.load(Ordering::Acquire) == self.taken
    }

    /// Whether there is no full item.
    #[inline(always)]
    pub fn is_empty(&mut self) -> bool {
        if self.taken == self.given {
            self.given = self.ring.given.0.load(Ordering::Acquire);
        }
        self.taken == self.given
    }
}

/// The last complete epoch of each consumer of one producer's rings. Epochs are ascending numbers.
pub struct Epochs {
    arrived: Box<[Line]>,
}

/// The epoch of a consumer that does not exist.
const UNASSIGNED: u64 = u64::MAX;

impl Epochs {
    /// For at most `takers` consumers, none of which exists yet.
    pub fn new(takers: usize) -> Arc<Self> {
        let nobody = || Line(AtomicU64::new(UNASSIGNED));
        Arc::new(Epochs {
            arrived: (0..takers).map(|_| nobody()).collect(),
        })
    }

    /// Add a consumer, which has no items of epochs before `turn`.
    pub fn join(&self, consumer: usize, turn: u64) {
        if let Some(cell) = self.arrived.get(consumer) {
            cell.0.store(turn, Ordering::Release);
        }
    }

    /// Record that a consumer has used all items of the epochs before `turn`.
    pub fn complete(&self, consumer: usize, turn: u64) {
        if let Some(cell) = self.arrived.get(consumer) {
            // The consumer may have been removed already.
            cell.0.fetch_max(turn, Ordering::AcqRel);
        }
    }

    /// Remove a consumer: its epochs count as complete.
    pub fn leave(&self, consumer: usize) {
        self.complete(consumer, UNASSIGNED);
    }

    /// Whether every consumer has completed epoch `turn`.
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
