//! Migration of receive queues, in boxes: to a worker, from one worker to another, and back to the control thread.
//!
//! Contract: a box has one owner, so two workers never poll a queue at the same time. A worker passes a queue on when
//! the worker holds no packet of it, and neither side allocates, locks or waits.

use crossbeam_queue::ArrayQueue;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Relaxed};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize};

/// The worker that a queue is assigned to.
#[derive(Debug)]
pub struct QueueTarget {
    to: AtomicU32,
    /// Whether the queue is counted among those in migration.
    moving: AtomicBool,
}

/// A queue in its box.
pub struct WorkerQueue<Q> {
    queue: Q,
    way: Arc<QueueTarget>,
}

impl<Q> WorkerQueue<Q> {
    /// Whether the queue is assigned to `worker`. If not, it is not polled any more.
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

/// The queues of one worker. They are boxed because they migrate as boxes and return to the control thread, which
/// frees them.
#[allow(clippy::vec_box)]
pub type WorkerQueues<Q> = Vec<Box<WorkerQueue<Q>>>;

struct WorkerMailbox<Q> {
    incoming: ArrayQueue<Box<WorkerQueue<Q>>>,
    retired: ArrayQueue<Box<WorkerQueue<Q>>>,
}

/// The mailboxes of all workers for the receive queues of one type.
pub struct QueueMigration<Q> {
    mailboxes: Box<[WorkerMailbox<Q>]>,
    /// The number of queues in migration from one worker to another.
    moving: AtomicUsize,
}

impl<Q> QueueMigration<Q> {
    /// For this number of workers with at most `most` queues each.
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

    /// An empty list with capacity for the queues of one worker.
    pub fn new_queue_list(&self) -> WorkerQueues<Q> {
        Vec::with_capacity(self.mailboxes[0].incoming.capacity())
    }

    /// The maximum number of workers.
    pub fn workers(&self) -> usize {
        self.mailboxes.len()
    }

    /// For the control thread: assigns a queue to a worker. A queue above the maximum is not polled.
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

    /// For the control thread: assigns a queue to another worker. Its present worker passes the queue on.
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

    /// For the control thread: drops the queues that were returned. Returns their number.
    pub fn collect_retired(&self) -> usize {
        let all = self.mailboxes.iter();
        all.map(|lane| std::iter::from_fn(|| lane.retired.pop()).count())
            .sum()
    }

    /// For a worker: whether it must stay awake, because a queue is in its mailbox or in migration.
    pub fn is_waiting(&self, worker: usize) -> bool {
        !self.mailboxes[worker].incoming.is_empty() || self.moving.load(Relaxed) > 0
    }

    /// For a worker: takes the queues of its mailbox, passes on those that are assigned to another worker if this worker is
    /// `quiet` ([`volley_graph::Output::is_drained`]), and returns those that are `gone`.
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
                // The mailbox is full: the next call tries again.
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

    /// Records that a queue has reached worker `here`, or has ended (none). The queue is no longer in migration, unless it is
    /// assigned to another worker.
    fn arrived(&self, way: &QueueTarget, here: Option<usize>) {
        let leaves = || here.is_some_and(|here| way.to.load(Relaxed) != here as u32);
        if leaves() || !way.moving.swap(false, AcqRel) {
            return;
        }
        self.moving.fetch_sub(1, Relaxed);
        // The control thread has assigned the queue to another worker meanwhile, and counted it as still in migration.
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
        let migration = QueueMigration::new(3, 4);
        let (mut a, mut b, mut c) = (
            migration.new_queue_list(),
            migration.new_queue_list(),
            migration.new_queue_list(),
        );
        let way = migration.assign(0, 7);
        migration.exchange(0, true, &mut a, |_| false);
        assert_eq!((a.len(), a[0].belongs_to(0), **a[0]), (1, true, 7));
        migration.migrate(&way, 2);
        migration.exchange(0, false, &mut a, |_| false);
        assert!(
            !a[0].belongs_to(0) && migration.is_waiting(1),
            "it stays, unpolled"
        );
        migration.exchange(0, true, &mut a, |_| false);
        migration.exchange(1, true, &mut b, |_| false);
        // Assigned to another worker during the migration.
        migration.migrate(&way, 1);
        migration.exchange(2, true, &mut c, |_| false);
        assert!(a.is_empty() && b.is_empty() && c.is_empty());
        migration.exchange(1, true, &mut b, |_| false);
        assert!(b[0].belongs_to(1) && (0..3).all(|w| !migration.is_waiting(w)));
        migration.exchange(1, false, &mut b, |_| true);
        assert_eq!(
            (
                b.len(),
                migration.collect_retired(),
                migration.collect_retired()
            ),
            (0, 1, 0)
        );
    }

    #[test]
    fn a_queue_that_ends_while_it_is_to_go_elsewhere_keeps_nobody_awake() {
        let migration = QueueMigration::new(2, 4);
        let mut boxes = migration.new_queue_list();
        let way = migration.assign(0, 7);
        migration.exchange(0, true, &mut boxes, |_| false);
        migration.migrate(&way, 1);
        migration.exchange(0, false, &mut boxes, |_| true);
        assert!(boxes.is_empty() && !migration.is_waiting(0) && !migration.is_waiting(1));
    }

    #[test]
    fn one_place_at_a_time_whoever_sends_it_where() {
        let migration = QueueMigration::new(3, 8);
        let small = std::env::var_os("VOLLEY_SMALL").is_some();
        let stop = Arc::new(AtomicBool::new(false));
        let ways: Vec<_> = (0..4u64).map(|q| migration.assign(0, q)).collect();
        let worker = |w: usize| {
            let (migration, stop) = (migration.clone(), stop.clone());
            std::thread::spawn(move || {
                let mut boxes = migration.new_queue_list();
                while !stop.load(Relaxed) {
                    migration.exchange(w, true, &mut boxes, |_| false);
                    std::thread::yield_now();
                }
                boxes
            })
        };
        let threads = [0, 1, 2].map(worker);
        for n in 0..if small { 200 } else { 20_000 } {
            migration.migrate(&ways[n % 4], (n * 7 / 3) % 3);
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
        stop.store(true, Relaxed);
        let mut boxes = threads.map(|t| t.join().unwrap());
        for w in [0, 1, 2] {
            migration.exchange(w, false, &mut boxes[w], |_| false);
        }
        let mut all: Vec<u64> = boxes.iter().flatten().map(|b| ***b).collect();
        all.sort_unstable();
        assert_eq!(all, [0, 1, 2, 3]);
    }
}
