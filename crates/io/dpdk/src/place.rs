//! What both sides know of an interface, and its receive queues.

use crate::ring::RxQueue;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};

/// The most queues on one worker.
pub(crate) const MOST: usize = 256;

/// Shared between an interface's owner on the control thread and its queues on workers.
#[derive(Default)]
pub struct Shared {
    interface: AtomicU32,
    gone: AtomicBool,
    /// What the port lost and no node has counted yet.
    lost: AtomicU64,
}

impl Shared {
    pub(crate) fn interface(&self) -> u32 {
        self.interface.load(Relaxed)
    }

    pub(crate) fn set_interface(&self, interface: u32) {
        self.interface.store(interface, Relaxed);
    }

    /// The interface goes: its queues are to come back.
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
    /// Whether its interface is gone: it is to come back.
    pub(crate) fn is_gone(&self) -> bool {
        self.shared.is_gone()
    }
}
