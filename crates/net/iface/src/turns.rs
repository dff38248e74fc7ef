//! Transmit queues that workers take turns at: each has its own as long as there are enough, and shares one else.
//!
//! Contract: a queue is in one pair of hands at a time, and comes back. A worker that finds its queue away tries again for
//! as long as a vector may take, then goes on without: the packets are counted as lost for congestion, nobody waits.

use crossbeam_queue::ArrayQueue;
use std::sync::Arc;

/// Looks for a queue that another worker has: it has it for one vector.
const TRIES: usize = 4096;

/// The transmit queues of one interface.
pub struct Turns<Q> {
    places: Box<[ArrayQueue<Box<Q>>]>,
}

/// A queue in a worker's hands. To be given back.
#[must_use = "a queue that is kept is lost to the others"]
pub struct Turn<Q> {
    /// Which queue of the interface.
    pub number: usize,
    /// The queue.
    pub queue: Box<Q>,
}

impl<Q> Turns<Q> {
    /// All of them, each free.
    pub fn new(queues: impl IntoIterator<Item = Q>) -> Arc<Self> {
        let place = |queue| {
            let place = ArrayQueue::new(1);
            // It is empty and has room for one.
            let _ = place.push(Box::new(queue));
            place
        };
        Arc::new(Turns {
            places: queues.into_iter().map(place).collect(),
        })
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The queue of the worker with so many others in front of it ([`volley_graph::Crew::rank`]); none when another worker
    /// keeps it, or there is none at all.
    #[inline(always)]
    pub fn take(&self, rank: usize) -> Option<Turn<Q>> {
        let number = rank % self.places.len().max(1);
        let place = self.places.get(number)?;
        let queue = place.pop().or_else(|| wait(place))?;
        Some(Turn { number, queue })
    }

    /// Give it back.
    #[inline(always)]
    pub fn give(&self, turn: Turn<Q>) {
        if let Some(place) = self.places.get(turn.number) {
            // There is room: it came from there.
            let _ = place.push(turn.queue);
        }
    }
}

#[cold]
fn wait<Q>(place: &ArrayQueue<Box<Q>>) -> Option<Box<Q>> {
    (0..TRIES).find_map(|_| {
        std::hint::spin_loop();
        place.pop()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_its_own_while_there_are_enough() {
        let turns = Turns::new([10, 20]);
        let (a, b) = (turns.take(0).unwrap(), turns.take(1).unwrap());
        assert_eq!((*a.queue, a.number, *b.queue, b.number), (10, 0, 20, 1));
        assert!(turns.take(2).is_none(), "the third shares the first one's");
        turns.give(a);
        assert_eq!(*turns.take(2).unwrap().queue, 10);
        assert!(Turns::<u8>::new([]).take(0).is_none());
    }

    #[test]
    fn one_pair_of_hands_at_a_time() {
        let turns = Turns::new([0u64]);
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
                    if let Some(mut turn) = turns.take(rank) {
                        // Not atomic: two at a time would lose steps.
                        *turn.queue += 1;
                        done += 1;
                        turns.give(turn);
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
        assert_eq!(*turns.take(0).unwrap().queue, done);
    }
}
