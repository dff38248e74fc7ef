//! Event counters (eventfd) that are shared with a peer: signalled and cleared without blocking.
//!
//! # Why not a plain write
//!
//! `O_NONBLOCK` belongs to the open file, which the peer shares: the peer clears it, fills the counter, and the next
//! `write` sleeps until a process reads. `poll` before `write` leaves a window. `pwritev2` with `RWF_NOWAIT` is refused
//! (eventfd has no `write_iter`: `EOPNOTSUPP`), and an eventfd cannot be opened again for a private open file
//! (`ENXIO`).
//!
//! # Signal
//!
//! The kernel itself adds to an eventfd with `eventfd_signal`, which takes a spin lock and never sleeps; a full counter
//! stays full, and is readable in any case. Linux AIO makes that call for a process (`IOCB_FLAG_RESFD`, Linux 2.6.22):
//! the `sys` module submits a read of no bytes from `/dev/null`, whose completion signals the eventfd. The read completes
//! within `io_submit`, whatever the eventfd's flags and counter are. So workers signal directly, with one system call, and
//! no other thread must wake up in between.
//!
//! Where the kernel has no AIO (`CONFIG_AIO=n`, a seccomp filter, `fs.aio-max-nr` used up), workers set a flag and wake
//! the notifier ([`notifier`]) by a private eventfd. The notifier writes, and a timer signal interrupts a
//! write that blocks: this delays the other peers by 2 ms, once.
//!
//! # Clear
//!
//! `preadv2` with `RWF_NOWAIT` returns `EAGAIN` where a read would sleep, whatever the file's flags say (Linux 5.8; before
//! that it is refused, and workers do not sleep: [`can_sleep`]).

pub mod notifier;
#[allow(unsafe_code)]
pub(crate) mod sys;

use notifier::Deferred;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// An event counter.
#[derive(Debug)]
pub struct Event {
    file: Arc<OwnedFd>,
    way: Way,
}

/// The method to signal it.
#[derive(Debug)]
enum Way {
    /// By the completion of an AIO request.
    Completion,
    /// By the notifier.
    Notifier(Arc<Deferred>),
    /// By a write: only this process and its kernel have the file.
    Write,
}

/// The kernel cannot read an event counter without the risk of blocking.
static CANNOT_SLEEP: AtomicBool = AtomicBool::new(false);

/// Whether a worker may sleep until a peer signals.
pub fn can_sleep() -> bool {
    !CANNOT_SLEEP.load(Relaxed)
}

impl Event {
    /// A new event counter, to be shared with a peer.
    pub fn new() -> io::Result<Event> {
        Event::shared(sys::event()?)
    }

    /// A new event counter that is shared with the kernel, but with no peer.
    pub fn private() -> io::Result<Event> {
        Ok(Event {
            file: Arc::new(sys::event()?),
            way: Way::Write,
        })
    }

    /// An event counter that a peer sent; an error for any other file.
    pub fn of_peer(file: OwnedFd) -> io::Result<Event> {
        if !is_eventfd(&file)? {
            let text = "it is no event counter (eventfd)";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        Event::shared(file)
    }

    fn shared(file: OwnedFd) -> io::Result<Event> {
        let file = Arc::new(file);
        let way = match sys::completions() {
            true => Way::Completion,
            false => Way::Notifier(notifier::take_on(file.clone())?),
        };
        Ok(Event { file, way })
    }

    /// Like [`Event::of_peer`], but always signalled by the notifier.
    pub fn deferred(file: OwnedFd) -> io::Result<Event> {
        let file = Arc::new(file);
        let way = Way::Notifier(notifier::take_on(file.clone())?);
        Ok(Event { file, way })
    }

    /// Add one. Never blocks.
    pub fn signal(&self) {
        match &self.way {
            Way::Completion => sys::signal(self.file.as_fd()),
            Way::Notifier(deferred) => deferred.request(),
            Way::Write => _ = rustix::io::write(&self.file, &1u64.to_ne_bytes()),
        }
    }

    /// Set the counter to zero; returns whether it was more. Never blocks.
    pub fn clear(&self) -> bool {
        match sys::read_nowait(self.file.as_fd()) {
            Ok(()) => true,
            Err(error) => {
                if error.raw_os_error() == Some(libc::EOPNOTSUPP) {
                    CANNOT_SLEEP.store(true, Relaxed);
                }
                false
            }
        }
    }

    /// Whether the peer made a write block: the peer is not notified any more.
    pub fn is_stuck(&self) -> bool {
        matches!(&self.way, Way::Notifier(deferred) if deferred.is_stuck())
    }
}

impl AsFd for Event {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Whether a file is an event counter.
fn is_eventfd(file: &OwnedFd) -> io::Result<bool> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    match std::fs::read_link(path) {
        Ok(target) => Ok(target.as_os_str() == "anon_inode:[eventfd]"),
        // Without /proc, test it: AIO completions signal only event counters. An additional signal is harmless.
        Err(_) if sys::completions() => Ok(sys::try_signal(file.as_fd()).is_ok()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    /// The descriptors, of this process and of the peer, of one open file, which blocks.
    fn shared() -> (OwnedFd, OwnedFd) {
        let file = rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC).unwrap();
        (file.try_clone().unwrap(), file)
    }

    fn fill(peer: &OwnedFd) {
        let full = (u64::MAX - 1).to_ne_bytes();
        assert_eq!(rustix::io::write(peer, &full), Ok(8));
    }

    fn count(peer: &OwnedFd) -> u64 {
        let mut count = [0; 8];
        rustix::io::read(peer, &mut count).unwrap();
        u64::from_ne_bytes(count)
    }

    fn within(limit: Duration, mut done: impl FnMut() -> bool) -> bool {
        let start = Instant::now();
        while start.elapsed() < limit {
            if done() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        false
    }

    #[test]
    fn every_signal_counts() {
        let (ours, peer) = shared();
        let event = Event::of_peer(ours).unwrap();
        // More than the number of completions that the kernel keeps.
        (0..5000).for_each(|_| event.signal());
        assert_eq!(count(&peer), 5000);
    }

    #[test]
    fn threads_lose_no_signal() {
        let (ours, peer) = shared();
        let event = Event::of_peer(ours).unwrap();
        std::thread::scope(|s| {
            for _ in 0..20 {
                s.spawn(|| (0..2000).for_each(|_| event.signal()));
            }
        });
        assert_eq!(count(&peer), 40_000);
    }

    #[test]
    fn a_full_counter_that_blocks_stops_neither_signal_nor_clear() {
        let (ours, peer) = shared();
        let event = Event::of_peer(ours).unwrap();
        fill(&peer);
        (0..200).for_each(|_| event.signal());
        assert!(event.clear());
        // A blocking read would wait forever here.
        assert!(!event.clear());
        assert!(can_sleep() && !event.is_stuck());
    }

    #[test]
    fn the_notifier_gives_up_a_peer_that_blocks_it_and_serves_the_others() {
        let ((bad, filled), (good, reads)) = (shared(), shared());
        let (bad, good) = (
            Event::deferred(bad).unwrap(),
            Event::deferred(good).unwrap(),
        );
        good.signal();
        assert_eq!(count(&reads), 1);
        fill(&filled);
        let start = Instant::now();
        bad.signal();
        assert!(
            start.elapsed() < Duration::from_millis(500),
            "a worker does not wait"
        );
        assert!(
            within(Duration::from_secs(10), || bad.is_stuck()),
            "its write was interrupted"
        );
        for _ in 0..100 {
            bad.signal();
            good.signal();
            assert_eq!(count(&reads), 1);
        }
        assert!(!good.is_stuck());
    }

    #[test]
    fn what_is_no_event_counter_is_refused() {
        let (reader, writer) = std::io::pipe().unwrap();
        let zero = std::fs::File::open("/dev/zero").unwrap();
        for file in [reader.into(), writer.into(), OwnedFd::from(zero)] {
            assert!(Event::of_peer(file).is_err());
        }
    }

    #[test]
    fn one_of_the_kernel_is_signalled_and_cleared() {
        let event = Event::private().unwrap();
        assert!(!event.clear());
        event.signal();
        event.signal();
        assert!(event.clear() && !event.clear());
    }
}
