//! System calls: AIO completions that signal, reads that do not wait, and a timer that ends a write.

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// A new event counter. It does not block as long as no other process has it.
pub(crate) fn event() -> io::Result<OwnedFd> {
    Ok(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)
}

/// Read a counter to zero; `WouldBlock` when it is zero. Never sleeps, whatever flags the file has.
pub(super) fn read_nowait(event: BorrowedFd<'_>) -> io::Result<()> {
    let mut count = [0; 8];
    let mut into = [io::IoSliceMut::new(&mut count)];
    // No offset: -1.
    let flags = rustix::io::ReadWriteFlags::NOWAIT;
    rustix::io::preadv2(event, &mut into, u64::MAX, flags)?;
    Ok(())
}

/// Sleep until a counter is more than zero, and set it to zero.
pub(super) fn wait(event: &OwnedFd) -> io::Result<()> {
    loop {
        let mut one = [PollFd::new(event, PollFlags::IN)];
        match poll(&mut one, None) {
            Ok(_) => return read_nowait(event.as_fd()),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// The number of AIO contexts: threads are distributed over them, so that they rarely collide.
const CONTEXTS: usize = 8;
/// The number of completions that a context keeps until they are taken.
const COMPLETIONS: usize = 128;
/// The maximum number of attempts to signal. Each first takes completions out of the context; only other threads that fill the
/// context again between two calls, every time, could use all of them up.
const ATTEMPTS: usize = 1000;

/// The process's AIO contexts.
struct Completions {
    contexts: Vec<libc::c_ulong>,
    /// The file of the empty reads.
    nothing: OwnedFd,
}

/// The kernel's `struct iocb`, little endian.
#[repr(C)]
#[derive(Default)]
struct ControlBlock {
    data: u64,
    key: u32,
    rw_flags: u32,
    opcode: u16,
    priority: i16,
    file: u32,
    buffer: u64,
    bytes: u64,
    offset: i64,
    reserved: u64,
    flags: u32,
    eventfd: u32,
}

/// `IOCB_FLAG_RESFD`: complete by signalling `ControlBlock::eventfd`.
const SIGNAL_EVENTFD: u32 = 1;

static ALL: OnceLock<Option<Completions>> = OnceLock::new();

/// Whether the kernel signals by completions. The control thread calls this for each event counter before a worker gets it.
pub(super) fn completions() -> bool {
    ALL.get_or_init(Completions::new).is_some()
}

/// Add one to an event counter. Cannot block.
#[inline]
pub(super) fn signal(event: BorrowedFd<'_>) {
    let _ = try_signal(event);
}

/// As [`signal`]; an error when the file is not an event counter.
pub(super) fn try_signal(event: BorrowedFd<'_>) -> io::Result<()> {
    match ALL.get() {
        Some(Some(all)) => all.signal(event),
        _ => Err(io::ErrorKind::Unsupported.into()),
    }
}

/// A number for each thread.
fn thread_number() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static NUMBER: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    NUMBER.with(|number| {
        if number.get() == usize::MAX {
            number.set(NEXT.fetch_add(1, Relaxed));
        }
        number.get()
    })
}

impl Completions {
    fn new() -> Option<Completions> {
        let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::CLOEXEC;
        let nothing = rustix::fs::open("/dev/null", flags, rustix::fs::Mode::empty()).ok()?;
        let contexts: Vec<_> = (0..CONTEXTS).filter_map(|_| set_up()).collect();
        let all = Completions { contexts, nothing };
        // The system calls may exist, but refuse the flag.
        let own = event().ok()?;
        (!all.contexts.is_empty() && all.signal(own.as_fd()).is_ok()).then_some(all)
    }

    #[inline]
    fn signal(&self, event: BorrowedFd<'_>) -> io::Result<()> {
        let context = self.contexts[thread_number() % self.contexts.len()];
        let mut block = ControlBlock {
            file: self.nothing.as_raw_fd() as u32,
            flags: SIGNAL_EVENTFD,
            eventfd: event.as_raw_fd() as u32,
            ..ControlBlock::default()
        };
        for _ in 0..ATTEMPTS {
            let mut blocks = [&raw mut block];
            // SAFETY: one valid control block that reads no bytes; the kernel copies it during the call.
            let done = unsafe {
                let one: libc::c_long = 1;
                libc::syscall(libc::SYS_io_submit, context, one, blocks.as_mut_ptr())
            };
            if done == 1 {
                return Ok(());
            }
            let error = io::Error::last_os_error();
            match error.kind() {
                io::ErrorKind::WouldBlock => take(context),
                io::ErrorKind::Interrupted => {}
                _ => return Err(error),
            }
        }
        Err(io::ErrorKind::WouldBlock.into())
    }
}

fn set_up() -> Option<libc::c_ulong> {
    let mut context: libc::c_ulong = 0;
    // SAFETY: `context` is zero and may be written, as io_setup requires.
    let made = unsafe {
        let most = COMPLETIONS as libc::c_long;
        libc::syscall(libc::SYS_io_setup, most, &mut context)
    };
    (made == 0).then_some(context)
}

/// Take completions out of a context, without waiting.
#[cold]
fn take(context: libc::c_ulong) {
    let mut events = [[0u64; 4]; COMPLETIONS];
    let now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: an io_event has 32 bytes, and the buffer has space for the requested number.
    unsafe {
        libc::syscall(
            libc::SYS_io_getevents,
            context,
            0 as libc::c_long,
            COMPLETIONS as libc::c_long,
            events.as_mut_ptr(),
            &now,
        );
    }
}

/// A limit on how long a write of this thread may sleep: a timer whose signal ends the write.
pub(super) struct Limit(libc::timer_t);

/// How long a write may sleep, at most twice.
const LIMIT_NS: i64 = 1_000_000;

/// The signal: a real-time signal without another use in Volley.
fn number() -> i32 {
    libc::SIGRTMIN() + 7
}

extern "C" fn nothing(_: i32) {}

impl Limit {
    /// A limit for the calling thread, which must be the one that writes.
    pub(super) fn new() -> io::Result<Limit> {
        // SAFETY: plain C structures, for which all-zero is valid; the handler does nothing, and without SA_RESTART a call
        // that it interrupts ends. The timer signals this thread only.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = nothing as *const () as usize;
            let mut mask: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&mut mask);
            libc::sigaddset(&mut mask, number());
            if libc::sigaction(number(), &action, null_mut()) != 0
                || libc::pthread_sigmask(libc::SIG_UNBLOCK, &mask, null_mut()) != 0
            {
                return Err(io::Error::last_os_error());
            }
            let mut how: libc::sigevent = std::mem::zeroed();
            how.sigev_notify = libc::SIGEV_THREAD_ID;
            how.sigev_signo = number();
            how.sigev_notify_thread_id = libc::gettid();
            let mut timer: libc::timer_t = std::mem::zeroed();
            match libc::timer_create(libc::CLOCK_MONOTONIC, &mut how, &mut timer) {
                0 => Ok(Limit(timer)),
                _ => Err(io::Error::last_os_error()),
            }
        }
    }

    fn set(&self, every_ns: i64) -> bool {
        let time = libc::timespec {
            tv_sec: 0,
            tv_nsec: every_ns,
        };
        let both = libc::itimerspec {
            it_interval: time,
            it_value: time,
        };
        // SAFETY: a timer of this process, and a valid time.
        unsafe { libc::timer_settime(self.0, 0, &both, null_mut()) == 0 }
    }

    /// Add one to an event counter. False when the write slept longer than the limit.
    pub(super) fn write(&self, event: &OwnedFd) -> bool {
        if !self.set(LIMIT_NS) {
            return false;
        }
        let done = rustix::io::write(event, &1u64.to_ne_bytes());
        self.set(0);
        done != Err(rustix::io::Errno::INTR)
    }
}
