//! Receive queues in boxes: on their way to a worker, from one worker to another, and back to the control thread.
//!
//! Contract: a box is in one place, so two workers never poll a queue at a time. A worker hands a queue on once no packet of
//! it waits on the worker, and neither side allocates, locks or waits.

use crossbeam_queue::ArrayQueue;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Relaxed};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize};

/// Where a queue is to be.
#[derive(Debug)]
pub struct Way {
    to: AtomicU32,
    /// It is counted among those on their way.
    moving: AtomicBool,
}

/// A queue in its box.
pub struct Boxed<Q> {
    queue: Q,
    way: Arc<Way>,
}

impl<Q> Boxed<Q> {
    /// Whether it is where it is to be. Where not, it is not polled any more.
    #[inline(always)]
    pub fn stays(&self, worker: usize) -> bool {
        self.way.to.load(Relaxed) == worker as u32
    }
}

impl<Q> Deref for Boxed<Q> {
    type Target = Q;
    #[inline(always)]
    fn deref(&self) -> &Q {
        &self.queue
    }
}

impl<Q> DerefMut for Boxed<Q> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Q {
        &mut self.queue
    }
}

/// The queues of one worker. Boxes, because they came as boxes and go back as such, for the control thread to free.
#[allow(clippy::vec_box)]
pub type Boxes<Q> = Vec<Box<Boxed<Q>>>;

struct Lane<Q> {
    new: ArrayQueue<Box<Boxed<Q>>>,
    gone: ArrayQueue<Box<Boxed<Q>>>,
}

/// The ways of all receive queues of one kind.
pub struct Yard<Q> {
    lanes: Box<[Lane<Q>]>,
    /// Queues on their way from one worker to another.
    moving: AtomicUsize,
}

impl<Q> Yard<Q> {
    /// For so many workers, each with `most` queues at most.
    pub fn new(workers: usize, most: usize) -> Arc<Self> {
        let lane = |_| Lane {
            new: ArrayQueue::new(most),
            gone: ArrayQueue::new(most),
        };
        Arc::new(Yard {
            lanes: (0..workers).map(lane).collect(),
            moving: AtomicUsize::new(0),
        })
    }

    /// Room for the queues of one worker.
    pub fn boxes(&self) -> Boxes<Q> {
        Vec::with_capacity(self.lanes[0].new.capacity())
    }

    /// How many workers there may be.
    pub fn workers(&self) -> usize {
        self.lanes.len()
    }

    /// Control thread: hand a queue to a worker. A queue too many is polled by nobody.
    pub fn put(&self, worker: usize, queue: Q) -> Arc<Way> {
        let way = Arc::new(Way {
            to: AtomicU32::new(worker as u32),
            moving: AtomicBool::new(false),
        });
        let boxed = Boxed {
            queue,
            way: way.clone(),
        };
        let _ = self.lanes[worker].new.push(Box::new(boxed));
        way
    }

    /// Control thread: a queue is to go to another worker. Whoever has it passes it on.
    pub fn steer(&self, way: &Way, worker: usize) {
        if way.to.swap(worker as u32, Relaxed) != worker as u32 {
            self.sets_out(way);
        }
    }

    fn sets_out(&self, way: &Way) {
        if !way.moving.swap(true, AcqRel) {
            self.moving.fetch_add(1, Relaxed);
        }
    }

    /// Control thread: drop the queues that came back; returns how many.
    pub fn reap(&self) -> usize {
        let all = self.lanes.iter();
        all.map(|lane| std::iter::from_fn(|| lane.gone.pop()).count())
            .sum()
    }

    /// Worker: whether it has to stay awake: a queue waits to be taken in, or is on its way to somebody.
    pub fn is_waiting(&self, worker: usize) -> bool {
        !self.lanes[worker].new.is_empty() || self.moving.load(Relaxed) > 0
    }

    /// Worker: take new queues in, hand on those that are to be elsewhere if the worker is `quiet`
    /// ([`volley_graph::Output::is_quiet`]), and give back those that are `gone`.
    #[inline(always)]
    pub fn exchange(
        &self,
        worker: usize,
        quiet: bool,
        queues: &mut Boxes<Q>,
        gone: impl Fn(&Q) -> bool,
    ) {
        if !self.lanes[worker].new.is_empty() {
            self.take_in(worker, queues);
        }
        let leaves = |q: &Boxed<Q>| gone(&q.queue) || quiet && !q.stays(worker);
        while let Some(at) = queues.iter().position(|q| leaves(q)) {
            let queue = queues.swap_remove(at);
            let left = match gone(&queue.queue) {
                true => {
                    self.arrived(&queue.way, None);
                    self.lanes[worker].gone.push(queue)
                }
                false => self.hand_on(queue),
            };
            if let Err(queue) = left {
                // No room there now: the next look tries again.
                queues.push(queue);
                return;
            }
        }
    }

    #[cold]
    fn take_in(&self, worker: usize, queues: &mut Boxes<Q>) {
        while queues.len() < queues.capacity() {
            let Some(queue) = self.lanes[worker].new.pop() else {
                return;
            };
            self.arrived(&queue.way, Some(worker));
            queues.push(queue);
        }
    }

    /// A queue has come to worker `here`, or ends (none). It is on its way no more, unless it is to go elsewhere.
    fn arrived(&self, way: &Way, here: Option<usize>) {
        let leaves = || here.is_some_and(|here| way.to.load(Relaxed) != here as u32);
        if leaves() || !way.moving.swap(false, AcqRel) {
            return;
        }
        self.moving.fetch_sub(1, Relaxed);
        // It was sent elsewhere meanwhile, by the control thread, which took it to be still on its way.
        if leaves() {
            self.sets_out(way);
        }
    }

    #[cold]
    fn hand_on(&self, queue: Box<Boxed<Q>>) -> Result<(), Box<Boxed<Q>>> {
        let to = queue.way.to.load(Relaxed) as usize % self.lanes.len();
        self.lanes[to].new.push(queue)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_goes_on_when_its_worker_is_quiet_and_comes_back_when_it_is_gone() {
        let yard = Yard::new(3, 4);
        let (mut a, mut b, mut c) = (yard.boxes(), yard.boxes(), yard.boxes());
        let way = yard.put(0, 7);
        yard.exchange(0, true, &mut a, |_| false);
        assert_eq!((a.len(), a[0].stays(0), **a[0]), (1, true, 7));
        yard.steer(&way, 2);
        yard.exchange(0, false, &mut a, |_| false);
        assert!(!a[0].stays(0) && yard.is_waiting(1), "it stays, unpolled");
        yard.exchange(0, true, &mut a, |_| false);
        yard.exchange(1, true, &mut b, |_| false);
        // Sent elsewhere while it is on its way.
        yard.steer(&way, 1);
        yard.exchange(2, true, &mut c, |_| false);
        assert!(a.is_empty() && b.is_empty() && c.is_empty());
        yard.exchange(1, true, &mut b, |_| false);
        assert!(b[0].stays(1) && (0..3).all(|w| !yard.is_waiting(w)));
        yard.exchange(1, false, &mut b, |_| true);
        assert_eq!((b.len(), yard.reap(), yard.reap()), (0, 1, 0));
    }

    #[test]
    fn a_queue_that_ends_while_it_is_to_go_elsewhere_keeps_nobody_awake() {
        let yard = Yard::new(2, 4);
        let mut boxes = yard.boxes();
        let way = yard.put(0, 7);
        yard.exchange(0, true, &mut boxes, |_| false);
        yard.steer(&way, 1);
        yard.exchange(0, false, &mut boxes, |_| true);
        assert!(boxes.is_empty() && !yard.is_waiting(0) && !yard.is_waiting(1));
    }

    #[test]
    fn one_place_at_a_time_whoever_sends_it_where() {
        let yard = Yard::new(3, 8);
        let small = std::env::var_os("VOLLEY_SMALL").is_some();
        let stop = Arc::new(AtomicBool::new(false));
        let ways: Vec<_> = (0..4u64).map(|q| yard.put(0, q)).collect();
        let worker = |w: usize| {
            let (yard, stop) = (yard.clone(), stop.clone());
            std::thread::spawn(move || {
                let mut boxes = yard.boxes();
                while !stop.load(Relaxed) {
                    yard.exchange(w, true, &mut boxes, |_| false);
                    std::thread::yield_now();
                }
                boxes
            })
        };
        let threads = [0, 1, 2].map(worker);
        for n in 0..if small { 200 } else { 20_000 } {
            yard.steer(&ways[n % 4], (n * 7 / 3) % 3);
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
        stop.store(true, Relaxed);
        let mut boxes = threads.map(|t| t.join().unwrap());
        for w in [0, 1, 2] {
            yard.exchange(w, false, &mut boxes[w], |_| false);
        }
        let mut all: Vec<u64> = boxes.iter().flatten().map(|b| ***b).collect();
        all.sort_unstable();
        assert_eq!(all, [0, 1, 2, 3]);
    }
}
