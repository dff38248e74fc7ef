//! The worker that polls a receive queue. Ownership is passed from worker to worker, so that two workers never poll
//! the queue at the same time and no packet is missed.
//!
//! Contract: the control thread requests an owner ([`RxQueueOwner::request`]). The present owner passes the queue on
//! between two vectors, when it holds no packet of the queue, and does not poll it again. No thread waits.

use std::sync::atomic::{AtomicU32, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use volley_graph::WorkerSet;

/// The owner of one receive queue.
#[derive(Debug, Default)]
pub struct RxQueueOwner {
    current: AtomicU32,
    next: AtomicU32,
}

impl RxQueueOwner {
    /// A queue that this worker owns.
    pub fn new(worker: usize) -> Self {
        RxQueueOwner {
            current: AtomicU32::new(worker as u32),
            next: AtomicU32::new(worker as u32),
        }
    }

    /// For the control thread: sets the owner. No worker polls the queue yet.
    pub fn set(&self, worker: usize) {
        self.next.store(worker as u32, Relaxed);
        self.current.store(worker as u32, Release);
    }

    /// For the control thread: requests that `worker` becomes the owner. If the present owner has ended, the change is
    /// immediate.
    pub fn request(&self, worker: usize, worker_set: &WorkerSet) {
        if !worker_set.has(self.current.load(Acquire) as usize) {
            self.current.store(worker as u32, Release);
        }
        self.next.store(worker as u32, Relaxed);
    }

    /// The requested owner.
    pub fn next(&self) -> usize {
        self.next.load(Relaxed) as usize
    }

    /// The present owner.
    pub fn current(&self) -> usize {
        self.current.load(Acquire) as usize
    }

    /// Whether `worker` is the present or the requested owner.
    pub fn is_for(&self, worker: usize) -> bool {
        self.current() == worker || self.next() == worker
    }

    /// Whether `worker` must stay awake, because the queue is about to move to or from this worker.
    pub fn involves(&self, worker: usize) -> bool {
        let (now, next) = (self.current(), self.next());
        now != next && (now == worker || next == worker)
    }

    /// Whether the requested owner is the owner.
    pub fn is_complete(&self) -> bool {
        self.current() == self.next()
    }

    /// For a worker: whether it polls the queue now. If another owner is requested, this call passes the queue on, provided
    /// that the worker is `quiet`: it holds no packet of the queue.
    #[inline(always)]
    pub fn is_owner(&self, worker: usize, quiet: bool) -> bool {
        if self.current.load(Acquire) != worker as u32 {
            return false;
        }
        let next = self.next.load(Relaxed);
        if next == worker as u32 {
            return true;
        }
        if quiet {
            self.current.store(next, Release);
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_worker_at_a_time_and_only_when_it_is_quiet() {
        let worker_set = WorkerSet::from_ids([0, 1]);
        let place = RxQueueOwner::new(0);
        assert!(place.is_owner(0, true) && !place.is_owner(1, true));
        place.request(1, &worker_set);
        assert!(!place.is_complete() && !place.is_owner(1, true));
        assert!(!place.is_owner(0, false), "it is polled no more");
        assert!(
            !place.is_owner(1, true),
            "but what was received still waits"
        );
        assert!(!place.is_owner(0, true) && place.is_complete());
        assert!(place.is_owner(1, false) && !place.is_owner(0, true));
        place.request(0, &WorkerSet::from_ids([0]));
        assert!(place.is_owner(0, true), "its worker was gone");
    }
}
