//! State of an interface that the control thread and workers share, and its receive queues.

use crate::ring::RxQueue;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};

/// Maximum number of queues on one worker.
pub(crate) const MOST: usize = 256;

/// Shared between an interface's owner on the control thread and its queues on workers.
#[derive(Default)]
pub struct Shared {
    interface: AtomicU32,
    gone: AtomicBool,
    /// Packets that the port lost and that no node has counted yet.
    lost: AtomicU64,
}

impl Shared {
    pub(crate) fn interface(&self) -> u32 {
        self.interface.load(Relaxed)
    }

    pub(crate) fn set_interface(&self, interface: u32) {
        self.interface.store(interface, Relaxed);
    }

    /// Mark the interface as deleted: workers return its queues.
    pub(crate) fn set_gone(&self) {
        self.gone.store(true, Relaxed);
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.gone.load(Relaxed)
    }

    pub(crate) fn add_lost(&self, packets: u64) {
        self.lost.fetch_add(packets, Relaxed);
    }

    #[inline(always)]
    pub(crate) fn take_lost(&self) -> u64 {
        match self.lost.load(Relaxed) {
            0 => 0,
            _ => self.lost.swap(0, Relaxed),
        }
    }
}

/// A queue on a worker, with its interface.
pub struct Placed {
    pub(crate) shared: Arc<Shared>,
    pub(crate) queue: RxQueue,
}

impl Placed {
    /// Whether the interface is deleted, so that the queue must be returned.
    pub(crate) fn is_gone(&self) -> bool {
        self.shared.is_gone()
    }
}
