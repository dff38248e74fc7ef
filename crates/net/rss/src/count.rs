//! Counters: cells that one worker writes and any thread reads.

use crate::table::ENTRIES;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Most interfaces with software RSS.
pub(crate) const RSS_INTERFACES: usize = 64;

/// Counters and reports of one worker.
pub(crate) struct Cells {
    /// Version of the last published table; shared by all workers.
    pub(crate) wanted: Arc<AtomicU64>,
    /// Version of the table that this worker uses, once no packet sent by an older one is left.
    pub(crate) settled: AtomicU64,
    /// Packets by index of the interface and entry.
    entries: Box<[AtomicU64]>,
}

impl Cells {
    /// Creates the cells of all workers.
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

    /// Counts a packet; only the owning worker calls this.
    #[inline(always)]
    pub(crate) fn count(&self, place: usize, entry: usize) {
        if let Some(cell) = self.entries.get(place * ENTRIES + entry) {
            cell.store(cell.load(Relaxed) + 1, Relaxed);
        }
    }

    /// Number of packets of an entry.
    pub(crate) fn packets(&self, place: usize, entry: usize) -> u64 {
        let cell = self.entries.get(place * ENTRIES + entry);
        cell.map_or(0, |cell| cell.load(Relaxed))
    }
}
