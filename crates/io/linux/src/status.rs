//! What workers tell the control thread of a queue, and the control thread of its interface.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, Ordering::Relaxed};
use volley_iface::MAX_INTERFACES;

/// The most queues of one kind on one worker.
pub(crate) const MAX_QUEUES: usize = 2 * MAX_INTERFACES;

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
    /// A queue of an interface, by number.
    pub(crate) fn new(status: &Arc<Status>, number: usize, queue: Q) -> Self {
        Placed {
            status: status.clone(),
            number,
            queue,
        }
    }

    /// Whether its interface is gone: it is to come back.
    pub(crate) fn is_gone(&self) -> bool {
        self.status.is_gone()
    }

    /// Whether its descriptor says "ready" for an error that stays: it must not keep a worker awake.
    pub(crate) fn is_faulty(&self) -> bool {
        self.status.fault.load(Relaxed) != 0
    }
}
