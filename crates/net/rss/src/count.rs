//! What is counted: cells that one worker writes and anybody reads.

use crate::table::ENTRIES;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Interfaces whose packets are spread over workers by software.
pub(crate) const RSS_INTERFACES: usize = 64;

/// What one worker has counted and said.
pub(crate) struct Cells {
    /// The table that the control thread has published last; the same for all workers.
    pub(crate) wanted: Arc<AtomicU64>,
    /// The table that this worker uses, with nothing left that was sent by another.
    pub(crate) settled: AtomicU64,
    /// Packets by place of the interface and entry.
    entries: Box<[AtomicU64]>,
}

impl Cells {
    /// For each worker.
    pub(crate) fn of(workers: usize) -> Vec<Arc<Cells>> {
        let wanted = Arc::new(AtomicU64::new(0));
        let cells = |_| {
            let entries = (0..RSS_INTERFACES * ENTRIES).map(|_| AtomicU64::new(0));
            Arc::new(Cells {
                wanted: wanted.clone(),
                settled: AtomicU64::new(0),
                entries: entries.collect(),
            })
        };
        (0..workers).map(cells).collect()
    }

    /// Count a packet, by the only writer.
    #[inline(always)]
    pub(crate) fn count(&self, place: usize, entry: usize) {
        if let Some(cell) = self.entries.get(place * ENTRIES + entry) {
            cell.store(cell.load(Relaxed) + 1, Relaxed);
        }
    }

    /// Packets of an entry.
    pub(crate) fn packets(&self, place: usize, entry: usize) -> u64 {
        let cell = self.entries.get(place * ENTRIES + entry);
        cell.map_or(0, |cell| cell.load(Relaxed))
    }
}
