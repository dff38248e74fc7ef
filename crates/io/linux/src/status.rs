//! Status shared by workers and the control thread, about a queue and its interface.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering::Relaxed};
use volley_iface::MAX_INTERFACES;

/// Maximum number of queues of one interface kind on one worker.
pub(crate) const MAX_QUEUES: usize = 2 * MAX_INTERFACES;

/// Shared between an interface's owner on the control thread and its queues on workers.
#[derive(Default)]
pub struct Status {
    gone: AtomicBool,
    fault: AtomicI32,
    interface: AtomicU32,
}

impl Status {
    /// Index of the interface, once it is known.
    pub fn interface(&self) -> u32 {
        self.interface.load(Relaxed)
    }

    /// Set the index of the interface.
    pub fn set_interface(&self, interface: u32) {
        self.interface.store(interface, Relaxed);
    }

    /// Mark the interface as deleted: workers return its queues.
    pub fn set_gone(&self) {
        self.gone.store(true, Relaxed);
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.gone.load(Relaxed)
    }

    /// Record an error of the kernel that does not concern a single packet.
    pub fn report(&self, error: &std::io::Error) {
        self.fault
            .store(error.raw_os_error().unwrap_or(libc::EIO), Relaxed);
    }

    /// The latest such error, unless it was cleared.
    pub fn fault(&self) -> Option<std::io::Error> {
        match self.fault.load(Relaxed) {
            0 => None,
            code => Some(std::io::Error::from_raw_os_error(code)),
        }
    }

    /// Clear the error.
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
    /// A queue of an interface, with its number.
    pub(crate) fn new(status: &Arc<Status>, number: usize, queue: Q) -> Self {
        Placed {
            status: status.clone(),
            number,
            queue,
        }
    }

    /// Whether the interface is deleted, so that the queue must be returned.
    pub(crate) fn is_gone(&self) -> bool {
        self.status.is_gone()
    }

    /// Whether the descriptor is ready because of a persistent error; it must not keep a worker awake.
    pub(crate) fn is_faulty(&self) -> bool {
        self.status.fault.load(Relaxed) != 0
    }
}
