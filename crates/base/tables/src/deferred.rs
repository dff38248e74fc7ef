//! Deferred free of slots that readers may still read.
//!
//! A table that recycles parts of its memory (leaf runs, blocks) adds a piece to this list when no new reader can find
//! the piece. The pieces are freed in order, when every reader has passed a quiescent point. A grace period is started per
//! batch, not per piece, because a new epoch costs every worker a cache miss.

use std::collections::VecDeque;

use crate::qsbr::Domain;

/// The pieces of a batch, unless the caller needs memory at once.
const BATCH: usize = 64;

pub(crate) struct DeferredFree<T> {
    /// Unlinked pieces without a grace period yet.
    fresh: Vec<T>,
    /// Batches with their grace period, oldest first.
    waiting: VecDeque<(u64, Vec<T>)>,
    /// Empty vectors for reuse: regular updates do not allocate.
    spare: Vec<Vec<T>>,
}

impl<T> DeferredFree<T> {
    pub(crate) fn new() -> Self {
        Self {
            fresh: Vec::new(),
            waiting: VecDeque::new(),
            spare: Vec::new(),
        }
    }

    /// Add a piece. It must be unlinked from everything that a reader can reach before the next call of
    /// [`DeferredFree::collect`].
    pub(crate) fn push(&mut self, piece: T) {
        self.fresh.push(piece);
    }

    /// Drop all pieces at once, because the memory that contains them was replaced as a whole.
    pub(crate) fn clear(&mut self, mut piece: impl FnMut(T)) {
        self.fresh.drain(..).for_each(&mut piece);
        self.waiting
            .drain(..)
            .flat_map(|(_, batch)| batch)
            .for_each(piece);
    }

    /// Call `free` for every piece that no reader can read any more. Call this method only when all added pieces are
    /// unlinked (between two updates).
    pub(crate) fn collect(&mut self, domain: &Domain, mut free: impl FnMut(T)) {
        if self.fresh.len() < BATCH {
            return;
        }
        let batch = std::mem::replace(&mut self.fresh, self.spare.pop().unwrap_or_default());
        self.waiting.push_back((domain.epoch(), batch));
        while let Some((ticket, _)) = self.waiting.front() {
            if !domain.passed(*ticket) {
                break;
            }
            if let Some((_, mut batch)) = self.waiting.pop_front() {
                batch.drain(..).for_each(&mut free);
                self.spare.push(batch);
            }
        }
    }
}
