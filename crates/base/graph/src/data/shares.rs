//! Shares of the buffer pool: the number of buffers that each type of holder may keep outside the graph between two rounds. The
//! rest is always available for forwarding.
//!
//! - Always true: the limits of all shares together leave [`RESERVE`] sixteenths of the pool, which no holder may touch.
//! - A share is divided equally among the workers that exist. It is computed from the pool and the worker set at every use,
//!   so a new worker lowers the limit of every other worker at once. A holder above its limit releases its oldest packets.
//! - A holder counts buffers, not packets: a packet of several segments counts each of them.

use crate::data::error::GraphError;
use crate::data::worker_set::{MAX_WORKERS, WorkerSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Sixteenths of the pool that are reserved for forwarding.
pub const RESERVE: usize = 8;
/// The denominator of shares.
const PARTS: usize = 16;

/// The buffers that one worker holds of a share. Only that worker writes them.
#[derive(Default)]
#[repr(align(64))]
struct Cells {
    held: AtomicU64,
    evicted: AtomicU64,
    refused: AtomicU64,
}

/// The share of one type of holder.
pub struct Share {
    name: &'static str,
    /// Buffers of all workers in total.
    limit: usize,
    worker_set: Arc<WorkerSet>,
    cells: Box<[Cells]>,
}

/// A share at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShareReport {
    /// The holder.
    pub name: &'static str,
    /// Buffers that all workers together may hold.
    pub limit: u64,
    /// Buffers that one worker may hold.
    pub each: u64,
    /// Buffers that are held now.
    pub held: u64,
    /// Packets that were released in favour of newer ones since the start.
    pub evicted: u64,
    /// Packets that found no free buffer in the share since the start.
    pub refused: u64,
}

impl Share {
    /// Buffers that one worker may hold now.
    #[inline]
    pub fn each(&self) -> usize {
        self.limit / self.worker_set.count()
    }

    /// Set the number of buffers that worker `worker` holds now.
    pub fn set_held(&self, worker: usize, buffers: usize) {
        self.cells[worker % MAX_WORKERS]
            .held
            .store(buffers as u64, Relaxed);
    }

    /// Count packets of worker `worker` that were released in favour of newer ones. Called by that worker only.
    pub fn count_evicted(&self, worker: usize, packets: u64) {
        add(&self.cells[worker % MAX_WORKERS].evicted, packets);
    }

    /// Count packets of worker `worker` that found the share full. Called by that worker only.
    pub fn count_refused(&self, worker: usize, packets: u64) {
        add(&self.cells[worker % MAX_WORKERS].refused, packets);
    }

    /// The current state of the share.
    pub fn report(&self) -> ShareReport {
        let sum = |read: fn(&Cells) -> &AtomicU64| {
            let all = self.cells.iter().map(read);
            all.map(|cell| cell.load(Relaxed)).sum()
        };
        ShareReport {
            name: self.name,
            limit: self.limit as u64,
            each: self.each() as u64,
            held: sum(|c| &c.held),
            evicted: sum(|c| &c.evicted),
            refused: sum(|c| &c.refused),
        }
    }
}

/// Add to a cell whose only writer is the caller.
fn add(cell: &AtomicU64, n: u64) {
    if n > 0 {
        cell.store(cell.load(Relaxed) + n, Relaxed);
    }
}

/// All shares of a pool.
#[derive(Default)]
pub(crate) struct Shares {
    all: Vec<Arc<Share>>,
    /// Sixteenths of the pool that are assigned to shares.
    parts: usize,
}

impl Shares {
    /// A share of `parts` sixteenths of a pool of `total` buffers. Refused if less than [`RESERVE`] sixteenths would be left.
    pub(crate) fn add(
        &mut self,
        name: &'static str,
        parts: usize,
        total: usize,
        worker_set: &Arc<WorkerSet>,
    ) -> Result<Arc<Share>, GraphError> {
        let left = PARTS - RESERVE - self.parts;
        if parts > left {
            return Err(GraphError::ShareOfBuffers { name, parts, left });
        }
        let share = Arc::new(Share {
            name,
            limit: total * parts / PARTS,
            worker_set: worker_set.clone(),
            cells: (0..MAX_WORKERS).map(|_| Cells::default()).collect(),
        });
        self.parts += parts;
        self.all.push(share.clone());
        Ok(share)
    }

    /// Every share, in the order in which they were added.
    pub(crate) fn reports(&self) -> Vec<ShareReport> {
        self.all.iter().map(|share| share.report()).collect()
    }

    /// Buffers that all holders together may hold.
    pub(crate) fn limit(&self) -> usize {
        self.all.iter().map(|share| share.limit).sum()
    }
}
