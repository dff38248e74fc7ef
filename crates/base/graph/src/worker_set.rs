//! Which workers there are, as nodes see it: whoever shares something out among workers (transmit queues, a budget of
//! messages) asks here for each vector, for workers come and go.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The most workers there can be.
pub const MAX_WORKERS: usize = 64;

/// One bit for each worker; written by the control thread.
#[derive(Debug, Default)]
pub struct WorkerSet {
    all: AtomicU64,
    /// Those that are to end: they get no new work.
    draining: AtomicU64,
}

impl WorkerSet {
    /// The workers with these numbers.
    pub fn from_ids(workers: impl IntoIterator<Item = usize>) -> Self {
        let worker_set = WorkerSet::default();
        workers.into_iter().for_each(|w| worker_set.add(w));
        worker_set
    }

    pub(crate) fn add(&self, worker: usize) {
        set(&self.all, worker, true);
    }

    /// Worker `worker` is to end: it gets no new work, or gets some again.
    pub fn set_draining(&self, worker: usize, on: bool) {
        set(&self.draining, worker, on);
    }

    pub(crate) fn remove(&self, worker: usize) {
        set(&self.all, worker, false);
        set(&self.draining, worker, false);
    }

    /// Whether a worker is to end.
    pub fn is_draining(&self, worker: usize) -> bool {
        self.draining.load(Relaxed) & bit(worker) != 0
    }

    /// Whether there is a worker of this number.
    pub fn has(&self, worker: usize) -> bool {
        self.all.load(Relaxed) & bit(worker) != 0
    }

    /// How many there are; one at least, so that it can be divided by.
    #[inline(always)]
    pub fn count(&self) -> usize {
        self.all.load(Relaxed).count_ones().max(1) as usize
    }

    /// How many workers have a lower number than `worker`, and how many there are: the first is less than the second for a
    /// worker that is there.
    #[inline(always)]
    pub fn rank(&self, worker: usize) -> (usize, usize) {
        let all = self.all.load(Relaxed);
        let lower = (all & (bit(worker) - 1)).count_ones() as usize;
        (lower, all.count_ones().max(1) as usize)
    }

    /// Their numbers, in order.
    pub fn iter(&self) -> impl Iterator<Item = usize> + use<> {
        numbers(self.all.load(Relaxed))
    }

    /// Those that take new work.
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
