//! Deferred-free list of indexes.
//!
//! A packet column of a worker may still contain a freed index, so it is allocated again only after every worker has passed a
//! quiescent point.

use std::collections::VecDeque;
use std::sync::Arc;

use volley_tables::Domain;

/// Waiting indexes for which memory is kept.
const KEPT: usize = 1024;

/// Allocates small indexes, and reuses freed ones after the grace period.
pub(crate) struct Slots {
    domain: Arc<Domain>,
    next: u32,
    free: Vec<u32>,
    deferred: VecDeque<(u64, u32)>,
}

impl Slots {
    /// Indexes start at `first`.
    pub fn new(domain: &Arc<Domain>, first: u32) -> Self {
        Self {
            domain: domain.clone(),
            next: first,
            free: Vec::new(),
            deferred: VecDeque::new(),
        }
    }

    pub fn take(&mut self) -> u32 {
        if self.free.is_empty() {
            self.reclaim();
        }
        self.free.pop().unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        })
    }

    /// Puts an index that no published word names any more on the deferred-free list.
    pub fn give_back(&mut self, index: u32) {
        self.deferred.push_back((self.domain.epoch(), index));
    }

    /// Moves indexes whose grace period has passed to the free list.
    pub fn reclaim(&mut self) {
        while let Some(&(ticket, index)) = self.deferred.front() {
            if !self.domain.passed(ticket) {
                break;
            }
            self.deferred.pop_front();
            self.free.push(index);
        }
        if self.deferred.is_empty() && self.deferred.capacity() > KEPT {
            self.deferred.shrink_to(KEPT);
        }
    }

    /// Indexes in their grace period.
    pub fn waiting(&self) -> usize {
        self.deferred.len()
    }
}
