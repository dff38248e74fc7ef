//! The way of receive queues to a worker and back, and what both sides know of an interface.

use crate::ring::RxQueue;
use crossbeam_queue::ArrayQueue;
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

/// The way of queues to one worker and back.
pub struct Inbox {
    new: ArrayQueue<Box<Placed>>,
    gone: ArrayQueue<Box<Placed>>,
}

impl Inbox {
    /// One for each worker.
    pub(crate) fn for_workers(workers: usize) -> Vec<Arc<Self>> {
        let inbox = || Inbox {
            new: ArrayQueue::new(MOST),
            gone: ArrayQueue::new(MOST),
        };
        (0..workers).map(|_| Arc::new(inbox())).collect()
    }

    /// Hand a queue to the worker. False when it has too many.
    pub(crate) fn give(&self, shared: &Arc<Shared>, queue: RxQueue) -> bool {
        let shared = shared.clone();
        self.new.push(Box::new(Placed { shared, queue })).is_ok()
    }

    pub(crate) fn is_waiting(&self) -> bool {
        !self.new.is_empty()
    }

    /// Drop the queues that came back.
    pub(crate) fn reap(&self) {
        while self.gone.pop().is_some() {}
    }

    /// On the worker: take new queues in, and give back those whose interface is gone. Neither allocates.
    #[allow(clippy::vec_box)]
    #[inline(always)]
    pub(crate) fn exchange(&self, queues: &mut Vec<Box<Placed>>) {
        while queues.len() < queues.capacity() {
            let Some(queue) = self.new.pop() else { break };
            queues.push(queue);
        }
        while let Some(at) = queues.iter().position(|q| q.shared.is_gone()) {
            // There is room for as many as there may be queues.
            let _ = self.gone.push(queues.swap_remove(at));
        }
    }
}
