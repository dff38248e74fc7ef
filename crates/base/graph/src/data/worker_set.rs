//! The set of workers, for nodes. A node that divides a resource among workers (transmit queues, a rate limit of
//! messages) reads it for each vector, because workers are added and removed while the daemon runs.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The maximum number of workers.
pub const MAX_WORKERS: usize = 64;

/// One bit for each worker, written by the control thread.
#[derive(Debug, Default)]
pub struct WorkerSet {
    all: AtomicU64,
    /// The workers that are being drained: they get no new work.
    draining: AtomicU64,
}

impl WorkerSet {
    /// The set of workers with these ids.
    pub fn from_ids(workers: impl IntoIterator<Item = usize>) -> Self {
        let worker_set = WorkerSet::default();
        workers.into_iter().for_each(|w| worker_set.add(w));
        worker_set
    }

    pub(crate) fn add(&self, worker: usize) {
        set(&self.all, worker, true);
    }

    /// Mark worker `worker` as draining, so that it gets no new work, or remove the mark.
    pub fn set_draining(&self, worker: usize, on: bool) {
        set(&self.draining, worker, on);
    }

    pub(crate) fn remove(&self, worker: usize) {
        set(&self.all, worker, false);
        set(&self.draining, worker, false);
    }

    /// Whether a worker is being drained.
    pub fn is_draining(&self, worker: usize) -> bool {
        self.draining.load(Relaxed) & bit(worker) != 0
    }

    /// Whether the set contains this worker.
    pub fn has(&self, worker: usize) -> bool {
        self.all.load(Relaxed) & bit(worker) != 0
    }

    /// The number of workers, at least one, so that it can be a divisor.
    #[inline(always)]
    pub fn count(&self) -> usize {
        self.all.load(Relaxed).count_ones().max(1) as usize
    }

    /// The number of workers with a lower id than `worker`, and the number of all workers. The first number is less than
    /// the second for a worker of the set.
    #[inline(always)]
    pub fn rank(&self, worker: usize) -> (usize, usize) {
        let all = self.all.load(Relaxed);
        let lower = (all & (bit(worker) - 1)).count_ones() as usize;
        (lower, all.count_ones().max(1) as usize)
    }

    /// The ids of the workers, in order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + use<> {
        numbers(self.all.load(Relaxed))
    }

    /// The workers that accept new work.
    pub fn accepting(&self) -> impl Iterator<Item = usize> + use<> {
        numbers(self.all.load(Relaxed) & !self.draining.load(Relaxed))
    }
}

fn set(word: &AtomicU64, worker: usize, on: bool) {
    let before = word.load(Relaxed) & !bit(worker);
    word.store(before | if on { bit(worker) } else { 0 }, Relaxed);
}

fn numbers(set: u64) -> impl Iterator<Item = usize> {
    (0..MAX_WORKERS).filter(move |w| set & bit(*w) != 0)
}

#[inline(always)]
fn bit(worker: usize) -> u64 {
    1 << (worker % MAX_WORKERS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_follow_who_comes_and_goes() {
        let worker_set = WorkerSet::from_ids([0, 2, 63]);
        assert_eq!(
            [0, 2, 63].map(|w| worker_set.rank(w)),
            [(0, 3), (1, 3), (2, 3)]
        );
        worker_set.set_draining(0, true);
        assert_eq!(worker_set.accepting().collect::<Vec<_>>(), [2, 63]);
        assert_eq!(
            (worker_set.rank(63), worker_set.is_draining(0)),
            ((2, 3), true)
        );
        worker_set.remove(0);
        worker_set.add(5);
        assert_eq!(worker_set.iter().collect::<Vec<_>>(), [2, 5, 63]);
        assert_eq!(
            (worker_set.rank(63), worker_set.has(0), worker_set.has(5)),
            ((2, 3), false, true)
        );
        assert_eq!(
            (WorkerSet::default().count(), WorkerSet::default().rank(3)),
            (1, (0, 1))
        );
    }
}
