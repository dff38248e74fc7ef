//! The wake-up of a worker by another thread, and the conditions that end its sleep.

use rustix::event::{EventfdFlags, eventfd};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering, fence};

/// The maximum number of descriptors that a worker waits for.
const MAX_FDS: usize = 1024;

/// The conditions that end a worker's sleep.
pub struct WakeConditions {
    pub(crate) fds: Vec<RawFd>,
    pub(crate) until_ns: Option<u64>,
}

impl WakeConditions {
    pub(crate) fn new() -> Self {
        WakeConditions {
            fds: Vec::with_capacity(MAX_FDS),
            until_ns: None,
        }
    }

    /// Wake up when `fd` is readable. The source keeps it open until its [`crate::Source::wake`] is called. Returns
    /// false when there are too many descriptors: the source must then be polled.
    pub fn add_fd(&mut self, fd: impl AsFd) -> bool {
        let room = self.fds.len() < MAX_FDS;
        if room {
            self.fds.push(fd.as_fd().as_raw_fd());
        }
        room
    }

    /// Wake up at this time of the worker's clock.
    pub fn wake_at(&mut self, at_ns: u64) {
        self.until_ns = Some(self.until_ns.map_or(at_ns, |other| other.min(at_ns)));
    }
}

/// Wakes a worker from another thread.
pub(crate) struct Wakeup {
    pub(crate) asleep: AtomicBool,
    pub(crate) fd: OwnedFd,
}

impl Wakeup {
    pub(crate) fn new() -> std::io::Result<Self> {
        Ok(Wakeup {
            asleep: AtomicBool::new(false),
            fd: eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?,
        })
    }

    /// Whether the worker is asleep.
    pub(crate) fn is_asleep(&self) -> bool {
        self.asleep.load(Ordering::Relaxed)
    }

    /// Wake the worker if it is asleep. Enqueue its work before this call.
    pub(crate) fn notify(&self) {
        fence(Ordering::SeqCst);
        if self.asleep.load(Ordering::SeqCst) {
            let _ = rustix::io::write(&self.fd, &1u64.to_ne_bytes());
        }
    }
}
