//! Which worker polls a receive queue: passed on like a baton, so that two never poll it at a time and no packet is missed.
//!
//! Contract: the control thread says who is to have it ([`RxQueueOwner::request`]); who has it passes it on between two vectors,
//! once nothing of what it received waits on it any more, and does not poll it again. Nobody waits.

use std::sync::atomic::{AtomicU32, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use volley_graph::WorkerSet;

/// The place of one receive queue.
#[derive(Debug, Default)]
pub struct RxQueueOwner {
    current: AtomicU32,
    next: AtomicU32,
}

impl RxQueueOwner {
    /// With this worker.
    pub fn new(worker: usize) -> Self {
        RxQueueOwner {
            current: AtomicU32::new(worker as u32),
            next: AtomicU32::new(worker as u32),
        }
    }

    /// Control thread: it is with `worker` from now on. Nobody polls the queue yet.
    pub fn set(&self, worker: usize) {
        self.next.store(worker as u32, Relaxed);
        self.current.store(worker as u32, Release);
    }

    /// Control thread: it is to be with `worker`. Where its worker is gone, it is there at once.
    pub fn request(&self, worker: usize, worker_set: &WorkerSet) {
        if !worker_set.has(self.current.load(Acquire) as usize) {
            self.current.store(worker as u32, Release);
        }
        self.next.store(worker as u32, Relaxed);
    }

    /// The worker that is to have it.
    pub fn next(&self) -> usize {
        self.next.load(Relaxed) as usize
    }

    /// The worker that has it.
    pub fn current(&self) -> usize {
        self.current.load(Acquire) as usize
    }

    /// Whether `worker` has it, or is to have it.
    pub fn is_for(&self, worker: usize) -> bool {
        self.current() == worker || self.next() == worker
    }

    /// Whether `worker` has to stay awake for it: it is to come, or to go.
    pub fn involves(&self, worker: usize) -> bool {
        let (now, next) = (self.current(), self.next());
        now != next && (now == worker || next == worker)
    }

    /// Whether it is where it is to be.
    pub fn is_complete(&self) -> bool {
        self.current() == self.next()
    }

    /// On a worker: whether it polls the queue now. When it is to go elsewhere, it does so here, if the worker is `quiet`:
    /// no packet of the queue waits on it.
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
