//! The thread that signals event counters where the kernel has no AIO: this thread may block, workers may not.
//!
//! Workers set a flag and wake the thread by a private eventfd. It writes to the peer's eventfd under a timer whose
//! signal ends a write that sleeps (`EINTR`); the timer repeats, so that a signal that comes before the write begins
//! is followed by another one. A peer whose write was ended is not notified any more (`Deferred::is_stuck`): its
//! counter is full, which has the effect of a notification.

use super::sys;
// tidy: allow(Mutex) the control thread adds to the list and the notifier reads it; no worker locks it
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};

/// An event counter that the notifier signals.
#[derive(Debug)]
pub struct Deferred {
    file: Arc<OwnedFd>,
    due: AtomicBool,
    stuck: AtomicBool,
    shared: &'static Shared,
}

/// The state shared by the notifier and other threads.
#[derive(Debug)]
struct Shared {
    /// The notifier's eventfd: only this process has it.
    wake: OwnedFd,
    all: Mutex<Vec<Weak<Deferred>>>,
}

impl Deferred {
    /// Request that the notifier adds one. Requests that it has not handled yet are merged.
    pub(super) fn request(&self) {
        if !self.is_stuck() && !self.due.swap(true, Ordering::AcqRel) {
            let _ = rustix::io::write(&self.shared.wake, &1u64.to_ne_bytes());
        }
    }

    /// Whether the peer made a write block.
    pub(super) fn is_stuck(&self) -> bool {
        self.stuck.load(Ordering::Relaxed)
    }

    fn serve(&self, limit: &sys::Limit) {
        if !self.due.swap(false, Ordering::AcqRel) || self.is_stuck() {
            return;
        }
        if !limit.write(&self.file) {
            self.stuck.store(true, Ordering::Relaxed);
        }
    }
}

/// Let the notifier signal an event counter for as long as the returned value lives.
pub(super) fn take_on(file: Arc<OwnedFd>) -> io::Result<Arc<Deferred>> {
    let shared = shared()?;
    let deferred = Arc::new(Deferred {
        file,
        due: AtomicBool::new(false),
        stuck: AtomicBool::new(false),
        shared,
    });
    let mut all = shared.all.lock().unwrap_or_else(|e| e.into_inner());
    all.retain(|one| one.strong_count() > 0);
    all.push(Arc::downgrade(&deferred));
    Ok(deferred)
}

fn shared() -> io::Result<&'static Shared> {
    static SHARED: OnceLock<Result<Shared, io::ErrorKind>> = OnceLock::new();
    let begin = || {
        let wake = sys::event().map_err(|e| e.kind())?;
        let all = Mutex::default();
        std::thread::Builder::new()
            .name("volley-notifier".into())
            .spawn(notify)
            .map_err(|e| e.kind())?;
        Ok(Shared { wake, all })
    };
    match SHARED.get_or_init(begin) {
        Ok(shared) => Ok(shared),
        Err(kind) => Err((*kind).into()),
    }
}

/// The notifier's thread.
fn notify() {
    // Without a limit no write is safe. The peers are not notified then, and find packets when they poll.
    let Ok(limit) = sys::Limit::new() else { return };
    let Ok(shared) = shared() else { return };
    loop {
        if sys::wait(&shared.wake).is_err() {
            return;
        }
        let due: Vec<Arc<Deferred>> = {
            let all = shared.all.lock().unwrap_or_else(|e| e.into_inner());
            all.iter().filter_map(Weak::upgrade).collect()
        };
        due.iter().for_each(|one| one.serve(&limit));
    }
}
