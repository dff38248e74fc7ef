//! A waiting room for slots that readers may still look at.
//!
//! A table that recycles pieces of its own memory (leaf runs, blocks) puts a piece here when no new reader
//! can find it any more. Pieces come out, in order, once every reader has passed a quiescent point.
//! Tickets are taken per batch, not per piece: advancing the epoch makes every worker miss one cache line.

use std::collections::VecDeque;

use crate::qsbr::Domain;

/// Pieces per ticket, unless the caller is in need.
const BATCH: usize = 64;

pub(crate) struct DeferredFree<T> {
    /// Unlinked, not yet under a ticket.
    fresh: Vec<T>,
    /// Batches under their ticket, oldest first.
    waiting: VecDeque<(u64, Vec<T>)>,
    /// Empty vectors for reuse: steady updates do not allocate.
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

    /// Takes in a piece. It must be unlinked from everything a reader can reach
    /// before the next call of [`DeferredFree::collect`].
    pub(crate) fn push(&mut self, piece: T) {
        self.fresh.push(piece);
    }

    /// Hands everything over at once, because the memory the pieces lie in was replaced as a whole.
    pub(crate) fn clear(&mut self, mut piece: impl FnMut(T)) {
        self.fresh.drain(..).for_each(&mut piece);
        self.waiting
            .drain(..)
            .flat_map(|(_, batch)| batch)
            .for_each(piece);
    }

    /// Hands every piece that no reader can see any more to `free`.
    /// Call only when all pushed pieces are unlinked (between two updates).
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
