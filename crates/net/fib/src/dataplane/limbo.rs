//! Indexes on their way back to the free list.
//!
//! A freed index may still sit in a packet column of a worker, so it is handed out again only after every worker has
//! passed a quiescent point.

use std::collections::VecDeque;
use std::sync::Arc;

use volley_tables::Domain;

/// Hands out small indexes, and takes freed ones back after the grace period.
pub(crate) struct Slots {
    domain: Arc<Domain>,
    next: u32,
    free: Vec<u32>,
    limbo: VecDeque<(u64, u32)>,
}

impl Slots {
    /// Indexes start at `first`.
    pub fn new(domain: &Arc<Domain>, first: u32) -> Self {
        Self {
            domain: domain.clone(),
            next: first,
            free: Vec::new(),
            limbo: VecDeque::new(),
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

    /// Puts an index that no published word names any more into limbo.
    pub fn give_back(&mut self, index: u32) {
        self.limbo.push_back((self.domain.epoch(), index));
    }

    /// Moves what every worker has let go of to the free list.
    pub fn reclaim(&mut self) {
        while let Some(&(ticket, index)) = self.limbo.front() {
            if !self.domain.passed(ticket) {
                break;
            }
            self.limbo.pop_front();
            self.free.push(index);
        }
    }

    /// Indexes that wait for the workers.
    pub fn waiting(&self) -> usize {
        self.limbo.len()
    }
}
