//! Numbers that an element on a worker shares with the control thread.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Cell of a queue, and of a link: packets in it.
pub(crate) const LENGTH: usize = 0;
/// Cell of a queue: when the first packet in it arrived.
pub(crate) const OLDEST: usize = 4;

/// The numbers of an element.
pub struct Cells(Box<[AtomicU64]>);

impl Cells {
    /// This many numbers, all 0.
    pub fn new(count: usize) -> Cells {
        Cells((0..count).map(|_| AtomicU64::new(0)).collect())
    }

    /// A number; 0 where there is none.
    #[inline]
    pub fn get(&self, cell: usize) -> u64 {
        self.0.get(cell).map_or(0, |it| it.load(Relaxed))
    }

    /// Set a number.
    #[inline]
    pub fn set(&self, cell: usize, value: u64) {
        if let Some(it) = self.0.get(cell) {
            it.store(value, Relaxed);
        }
    }

    /// Add to a number.
    #[inline]
    pub fn add(&self, cell: usize, by: u64) {
        if let Some(it) = self.0.get(cell) {
            it.fetch_add(by, Relaxed);
        }
    }
}
