//! The transmit queues of an interface: each worker has its own while there are enough, otherwise workers share them.
//!
//! Contract: a queue is leased to one worker at a time and is released again. A worker that finds its queue leased
//! tries again for about the time of one vector, then continues without: the packets are counted as dropped for
//! congestion, and no worker waits.

use crossbeam_queue::ArrayQueue;
use std::sync::Arc;

/// Attempts to acquire a queue that another worker has for one vector.
const ACQUIRE_RETRIES: usize = 4096;

/// The transmit queues of one interface.
pub struct TxQueuePool<Q> {
    slots: Box<[ArrayQueue<Box<Q>>]>,
}

/// A queue that a worker has acquired and must release.
#[must_use = "a queue that is kept is lost to the others"]
pub struct TxQueueLease<Q> {
    /// The index of the queue on the interface.
    pub queue_index: usize,
    /// The queue.
    pub queue: Box<Q>,
}

impl<Q> TxQueuePool<Q> {
    /// A pool of these queues, all free.
    pub fn new(queues: impl IntoIterator<Item = Q>) -> Arc<Self> {
        let place = |queue| {
            let place = ArrayQueue::new(1);
            // The slot is empty and has capacity for one queue.
            let _ = place.push(Box::new(queue));
            place
        };
        Arc::new(TxQueuePool {
            slots: queues.into_iter().map(place).collect(),
        })
    }

    /// The number of queues.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there is no queue.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Acquires the queue of the worker with this rank ([`volley_graph::WorkerSet::rank`]); none if another worker keeps it, or
    /// if there is no queue.
    #[inline(always)]
    pub fn acquire(&self, rank: usize) -> Option<TxQueueLease<Q>> {
        let queue_index = rank % self.slots.len().max(1);
        let place = self.slots.get(queue_index)?;
        let queue = place.pop().or_else(|| wait(place))?;
        Some(TxQueueLease { queue_index, queue })
    }

    /// Releases a queue.
    #[inline(always)]
    pub fn release(&self, turn: TxQueueLease<Q>) {
        if let Some(place) = self.slots.get(turn.queue_index) {
            // The slot is empty: the queue was taken from it.
            let _ = place.push(turn.queue);
        }
    }
}

#[cold]
fn wait<Q>(place: &ArrayQueue<Box<Q>>) -> Option<Box<Q>> {
    (0..ACQUIRE_RETRIES).find_map(|_| {
        std::hint::spin_loop();
        place.pop()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_its_own_while_there_are_enough() {
        let turns = TxQueuePool::new([10, 20]);
        let (a, b) = (turns.acquire(0).unwrap(), turns.acquire(1).unwrap());
        assert_eq!(
            (*a.queue, a.queue_index, *b.queue, b.queue_index),
            (10, 0, 20, 1)
        );
        assert!(
            turns.acquire(2).is_none(),
            "the third shares the first one's"
        );
        turns.release(a);
        assert_eq!(*turns.acquire(2).unwrap().queue, 10);
        assert!(TxQueuePool::<u8>::new([]).acquire(0).is_none());
    }

    #[test]
    fn one_pair_of_hands_at_a_time() {
        let turns = TxQueuePool::new([0u64]);
        let rounds = if std::env::var_os("VOLLEY_SMALL").is_some() {
            500
        } else {
            50_000
        };
        let worker = |rank| {
            let turns = turns.clone();
            std::thread::spawn(move || {
                let mut done = 0;
                for _ in 0..rounds {
                    if let Some(mut turn) = turns.acquire(rank) {
                        // The increment is not atomic: two threads at the same time would lose increments.
                        *turn.queue += 1;
                        done += 1;
                        turns.release(turn);
                    }
                }
                done
            })
        };
        let done: u64 = [0, 1, 2]
            .map(worker)
            .map(|t| t.join().unwrap())
            .iter()
            .sum();
        assert_eq!(*turns.acquire(0).unwrap().queue, done);
    }
}
