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
pub struct QueueTarget {
    to: AtomicU32,
    /// It is counted among those on their way.
    moving: AtomicBool,
}

/// A queue in its box.
pub struct WorkerQueue<Q> {
    queue: Q,
    way: Arc<QueueTarget>,
}

impl<Q> WorkerQueue<Q> {
    /// Whether it is where it is to be. Where not, it is not polled any more.
    #[inline(always)]
    pub fn belongs_to(&self, worker: usize) -> bool {
        self.way.to.load(Relaxed) == worker as u32
    }
}

impl<Q> Deref for WorkerQueue<Q> {
    type Target = Q;
    #[inline(always)]
    fn deref(&self) -> &Q {
        &self.queue
    }
}

impl<Q> DerefMut for WorkerQueue<Q> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut Q {
        &mut self.queue
    }
}

/// The queues of one worker. Boxes, because they came as boxes and go back as such, for the control thread to free.
#[allow(clippy::vec_box)]
pub type WorkerQueues<Q> = Vec<Box<WorkerQueue<Q>>>;

struct WorkerMailbox<Q> {
    incoming: ArrayQueue<Box<WorkerQueue<Q>>>,
    retired: ArrayQueue<Box<WorkerQueue<Q>>>,
}

/// The ways of all receive queues of one kind.
pub struct QueueMigration<Q> {
    mailboxes: Box<[WorkerMailbox<Q>]>,
    /// Queues on their way from one worker to another.
    moving: AtomicUsize,
}

impl<Q> QueueMigration<Q> {
    /// For so many workers, each with `most` queues at most.
    pub fn new(workers: usize, most: usize) -> Arc<Self> {
        let lane = |_| WorkerMailbox {
            incoming: ArrayQueue::new(most),
            retired: ArrayQueue::new(most),
        };
        Arc::new(QueueMigration {
            mailboxes: (0..workers).map(lane).collect(),
            moving: AtomicUsize::new(0),
        })
    }

    /// Room for the queues of one worker.
    pub fn new_queue_list(&self) -> WorkerQueues<Q> {
        Vec::with_capacity(self.mailboxes[0].incoming.capacity())
    }

    /// How many workers there may be.
    pub fn workers(&self) -> usize {
        self.mailboxes.len()
    }

    /// Control thread: hand a queue to a worker. A queue too many is polled by nobody.
    pub fn assign(&self, worker: usize, queue: Q) -> Arc<QueueTarget> {
        let way = Arc::new(QueueTarget {
            to: AtomicU32::new(worker as u32),
            moving: AtomicBool::new(false),
        });
        let boxed = WorkerQueue {
            queue,
            way: way.clone(),
        };
        let _ = self.mailboxes[worker].incoming.push(Box::new(boxed));
        way
    }

    /// Control thread: a queue is to go to another worker. Whoever has it passes it on.
    pub fn migrate(&self, way: &QueueTarget, worker: usize) {
        if way.to.swap(worker as u32, Relaxed) != worker as u32 {
            self.sets_out(way);
        }
    }

    fn sets_out(&self, way: &QueueTarget) {
        if !way.moving.swap(true, AcqRel) {
            self.moving.fetch_add(1, Relaxed);
        }
    }

    /// Control thread: drop the queues that came back; returns how many.
    pub fn collect_retired(&self) -> usize {
        let all = self.mailboxes.iter();
        all.map(|lane| std::iter::from_fn(|| lane.retired.pop()).count())
            .sum()
    }

    /// Worker: whether it has to stay awake: a queue waits to be taken in, or is on its way to somebody.
    pub fn is_waiting(&self, worker: usize) -> bool {
        !self.mailboxes[worker].incoming.is_empty() || self.moving.load(Relaxed) > 0
    }

    /// Worker: take new queues in, hand on those that are to be elsewhere if the worker is `quiet`
    /// ([`volley_graph::Output::is_drained`]), and give back those that are `gone`.
    #[inline(always)]
    pub fn exchange(
        &self,
        worker: usize,
        quiet: bool,
        queues: &mut WorkerQueues<Q>,
        gone: impl Fn(&Q) -> bool,
    ) {
        if !self.mailboxes[worker].incoming.is_empty() {
            self.take_in(worker, queues);
        }
        let leaves = |q: &WorkerQueue<Q>| gone(&q.queue) || quiet && !q.belongs_to(worker);
        while let Some(at) = queues.iter().position(|q| leaves(q)) {
            let queue = queues.swap_remove(at);
            let left = match gone(&queue.queue) {
                true => {
                    self.arrived(&queue.way, None);
                    self.mailboxes[worker].retired.push(queue)
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
    fn take_in(&self, worker: usize, queues: &mut WorkerQueues<Q>) {
        while queues.len() < queues.capacity() {
            let Some(queue) = self.mailboxes[worker].incoming.pop() else {
                return;
            };
            self.arrived(&queue.way, Some(worker));
            queues.push(queue);
        }
    }

    /// A queue has come to worker `here`, or ends (none). It is on its way no more, unless it is to go elsewhere.
    fn arrived(&self, way: &QueueTarget, here: Option<usize>) {
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
    fn hand_on(&self, queue: Box<WorkerQueue<Q>>) -> Result<(), Box<WorkerQueue<Q>>> {
        let to = queue.way.to.load(Relaxed) as usize % self.mailboxes.len();
        self.mailboxes[to].incoming.push(queue)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_goes_on_when_its_worker_is_quiet_and_comes_back_when_it_is_gone() {
        let yard = QueueMigration::new(3, 4);
        let (mut a, mut b, mut c) = (
            yard.new_queue_list(),
            yard.new_queue_list(),
            yard.new_queue_list(),
        );
        let way = yard.assign(0, 7);
        yard.exchange(0, true, &mut a, |_| false);
        assert_eq!((a.len(), a[0].belongs_to(0), **a[0]), (1, true, 7));
        yard.migrate(&way, 2);
        yard.exchange(0, false, &mut a, |_| false);
        assert!(
            !a[0].belongs_to(0) && yard.is_waiting(1),
            "it stays, unpolled"
        );
        yard.exchange(0, true, &mut a, |_| false);
        yard.exchange(1, true, &mut b, |_| false);
        // Sent elsewhere while it is on its way.
        yard.migrate(&way, 1);
        yard.exchange(2, true, &mut c, |_| false);
        assert!(a.is_empty() && b.is_empty() && c.is_empty());
        yard.exchange(1, true, &mut b, |_| false);
        assert!(b[0].belongs_to(1) && (0..3).all(|w| !yard.is_waiting(w)));
        yard.exchange(1, false, &mut b, |_| true);
        assert_eq!(
            (b.len(), yard.collect_retired(), yard.collect_retired()),
            (0, 1, 0)
        );
    }

    #[test]
    fn a_queue_that_ends_while_it_is_to_go_elsewhere_keeps_nobody_awake() {
        let yard = QueueMigration::new(2, 4);
        let mut boxes = yard.new_queue_list();
        let way = yard.assign(0, 7);
        yard.exchange(0, true, &mut boxes, |_| false);
        yard.migrate(&way, 1);
        yard.exchange(0, false, &mut boxes, |_| true);
        assert!(boxes.is_empty() && !yard.is_waiting(0) && !yard.is_waiting(1));
    }

    #[test]
    fn one_place_at_a_time_whoever_sends_it_where() {
        let yard = QueueMigration::new(3, 8);
        let small = std::env::var_os("VOLLEY_SMALL").is_some();
        let stop = Arc::new(AtomicBool::new(false));
        let ways: Vec<_> = (0..4u64).map(|q| yard.assign(0, q)).collect();
        let worker = |w: usize| {
            let (yard, stop) = (yard.clone(), stop.clone());
            std::thread::spawn(move || {
                let mut boxes = yard.new_queue_list();
                while !stop.load(Relaxed) {
                    yard.exchange(w, true, &mut boxes, |_| false);
                    std::thread::yield_now();
                }
                boxes
            })
        };
        let threads = [0, 1, 2].map(worker);
        for n in 0..if small { 200 } else { 20_000 } {
            yard.migrate(&ways[n % 4], (n * 7 / 3) % 3);
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
