//! What workers tell the control thread of a queue, and the way queues take between them.

use crossbeam_queue::ArrayQueue;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering::Relaxed};
use volley_iface::MAX_INTERFACES;

/// The most queues of one kind on one worker.
pub const MAX_QUEUES: usize = 2 * MAX_INTERFACES;

/// Shared between an interface's owner on the control thread and its queues on workers.
#[derive(Default)]
pub struct Status {
    gone: AtomicBool,
    fault: AtomicI32,
    interface: AtomicU32,
}

impl Status {
    /// The interface's number, once there is one.
    pub fn interface(&self) -> u32 {
        self.interface.load(Relaxed)
    }

    /// The interface has got a number.
    pub fn set_interface(&self, interface: u32) {
        self.interface.store(interface, Relaxed);
    }

    /// The interface goes: its queues are to come back.
    pub fn set_gone(&self) {
        self.gone.store(true, Relaxed);
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.gone.load(Relaxed)
    }

    /// The kernel answered with an error that is not about one packet.
    pub fn report(&self, error: &std::io::Error) {
        self.fault
            .store(error.raw_os_error().unwrap_or(libc::EIO), Relaxed);
    }

    /// The latest such error, as long as nobody said that all is well again.
    pub fn fault(&self) -> Option<std::io::Error> {
        match self.fault.load(Relaxed) {
            0 => None,
            code => Some(std::io::Error::from_raw_os_error(code)),
        }
    }

    /// All is well again.
    pub fn clear_fault(&self) {
        self.fault.store(0, Relaxed);
    }
}

/// A queue on a worker, with its interface.
pub struct Placed<Q> {
    pub(crate) status: Arc<Status>,
    pub(crate) number: usize,
    pub(crate) queue: Q,
}

impl<Q> Placed<Q> {
    /// Whether its descriptor says "ready" for an error that stays: it must not keep a worker awake.
    pub(crate) fn is_faulty(&self) -> bool {
        self.status.fault.load(Relaxed) != 0
    }
}

/// The way of receive queues to one worker and back.
pub struct Inbox<Q> {
    new: ArrayQueue<Box<Placed<Q>>>,
    gone: ArrayQueue<Box<Placed<Q>>>,
}

impl<Q> Inbox<Q> {
    /// One for each worker.
    pub fn for_workers(workers: usize) -> Vec<Arc<Self>> {
        let inbox = || Inbox {
            new: ArrayQueue::new(MAX_QUEUES),
            gone: ArrayQueue::new(MAX_QUEUES),
        };
        (0..workers).map(|_| Arc::new(inbox())).collect()
    }

    /// Hand a queue to the worker. False when it has too many.
    pub fn give(&self, status: &Arc<Status>, number: usize, queue: Q) -> bool {
        let status = status.clone();
        let placed = Placed {
            status,
            number,
            queue,
        };
        self.new.push(Box::new(placed)).is_ok()
    }

    /// Whether a queue waits to be taken in.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.new.is_empty()
    }

    /// Drop the queues that came back; returns how many.
    pub fn reap(&self) -> usize {
        std::iter::from_fn(|| self.gone.pop()).count()
    }

    /// On the worker: take new queues in, and give back those whose interface is gone. Neither allocates.
    #[allow(clippy::vec_box)]
    pub(crate) fn exchange(&self, queues: &mut Vec<Box<Placed<Q>>>) {
        while queues.len() < queues.capacity() {
            let Some(queue) = self.new.pop() else { break };
            queues.push(queue);
        }
        while let Some(at) = queues.iter().position(|q| q.status.is_gone()) {
            // There is room for as many as there may be queues.
            let _ = self.gone.push(queues.swap_remove(at));
        }
    }
}
