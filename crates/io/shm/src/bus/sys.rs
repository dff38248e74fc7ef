//! The process's one SIGBUS handler, the ranges that it knows, and the pages that it pays for.
//!
//! Two things a peer does with the file behind a map end in SIGBUS at the worker's next access:
//!
//! - It shrinks the file. Anonymous memory takes the place of the whole range, and the range says [`SHRUNK`].
//! - It has left, or punched, a hole. A range that is *watched* (userfaultfd with `UFFD_FEATURE_SIGBUS`, Linux 4.14) stops
//!   every access to a page that does not exist. The handler charges the page to the peer's account and has the kernel
//!   make it; beyond the limit, anonymous memory takes the range's place, and the range says [`COSTLY`].
//!
//! Where the kernel refuses userfaultfd (Docker's default seccomp profile does; hugetlbfs pages come from a pool of their
//! own and are not watched), the holes that a file has when it is mapped are charged at once: see `Map::of_peer`.
//!
//! A handler is installed once and looks for an address in a table, so that it does not matter who maps first, how many
//! ranges there are, or whether another library installed a handler in between: `install` is called for every map and
//! puts it back. A fault at an address of no range, or a signal that another process sends, takes the default action.

use crate::PAGE;
use crate::limits::Account;
use rustix::ioctl::{Opcode, opcode};
use std::ffi::c_void;
use std::io;
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{
    AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicUsize, Ordering, Ordering::Relaxed,
};

/// The most ranges at a time, of all drivers together.
pub const RANGES: usize = 4096;
/// Every page of the range is there, or can be.
pub const WHOLE: u32 = 0;
/// The peer took pages away.
pub const SHRUNK: u32 = 1;
/// The peer's pages would cost more than the limit.
pub const COSTLY: u32 = 2;

/// Times that a page exists, and its access faults all the same, before the range is given up.
const STUBBORN: u32 = 1000;

/// A range of addresses that a peer's file is mapped at.
pub(crate) struct Range {
    /// 0: free. 1: claimed.
    start: AtomicUsize,
    len: AtomicUsize,
    state: AtomicU32,
    watched: AtomicBool,
    account: AtomicPtr<Account>,
    repeated: AtomicU32,
}

static TABLE: [Range; RANGES] = [const {
    Range {
        start: AtomicUsize::new(0),
        len: AtomicUsize::new(0),
        state: AtomicU32::new(WHOLE),
        watched: AtomicBool::new(false),
        account: AtomicPtr::new(null_mut()),
        repeated: AtomicU32::new(0),
    }
}; RANGES];
/// No range beyond this number was ever claimed.
static USED: AtomicUsize = AtomicUsize::new(0);
/// The userfaultfd, for as long as the process lives; none yet, or none to be had.
static WATCHER: AtomicI32 = AtomicI32::new(-1);

impl Range {
    /// Let the handler know of a range. `account` outlives it. `None`: the table is full.
    pub(crate) fn claim(
        start: usize,
        len: usize,
        account: *const Account,
    ) -> Option<&'static Range> {
        let free = |r: &Range| {
            r.start
                .compare_exchange(0, 1, Ordering::AcqRel, Relaxed)
                .is_ok()
        };
        let number = TABLE.iter().position(free)?;
        USED.fetch_max(number + 1, Ordering::AcqRel);
        let range = &TABLE[number];
        range.state.store(WHOLE, Relaxed);
        range.repeated.store(0, Relaxed);
        range.watched.store(false, Relaxed);
        range.account.store(account.cast_mut(), Relaxed);
        range.len.store(len, Ordering::Release);
        range.start.store(start, Ordering::Release);
        Some(range)
    }

    /// Stop accesses to pages that do not exist. False when the kernel does not.
    pub(crate) fn watch(&self) -> bool {
        let done = watcher().is_some_and(|fd| {
            let mut request = Register {
                start: self.start.load(Relaxed) as u64,
                len: (self.len.load(Relaxed) as u64).next_multiple_of(PAGE),
                mode: 1,
                ioctls: 0,
            };
            // SAFETY: the request has the layout that the kernel documents, and concerns a mapping of the caller's.
            unsafe { libc::ioctl(fd, REGISTER as libc::c_ulong, &mut request) == 0 }
        });
        self.watched.store(done, Ordering::Release);
        done
    }

    /// What became of it.
    #[inline(always)]
    pub(crate) fn state(&self) -> u32 {
        self.state.load(Relaxed)
    }

    /// The first half of letting it go: the mapping is about to be removed, and no thread uses it any more.
    pub(crate) fn retire(&self) {
        self.len.store(0, Ordering::Release);
    }

    /// The second half: its addresses are free for others.
    pub(crate) fn release(&self) {
        self.account.store(null_mut(), Relaxed);
        self.start.store(0, Ordering::Release);
    }

    fn has(&self, address: usize) -> bool {
        let (start, len) = (
            self.start.load(Ordering::Acquire),
            self.len.load(Ordering::Acquire),
        );
        start > 1 && address.wrapping_sub(start) < len
    }

    /// Make the access at `address` possible. False when it cannot be.
    fn settle(&self, address: usize, code: i32) -> bool {
        let watched = self.watched.load(Ordering::Acquire) && self.state() == WHOLE;
        // Any other code is a page that the machine lost.
        match watched && code == BUS_ADRERR {
            true => match self.supply(address) {
                Supply::Done => true,
                Supply::Gone => self.replace(SHRUNK),
                Supply::Denied => self.replace(COSTLY),
            },
            false => self.replace(SHRUNK),
        }
    }

    /// Pay for a page and have the kernel make it.
    fn supply(&self, address: usize) -> Supply {
        // SAFETY: an account outlives its range: whoever claimed it holds it until `release`.
        let Some(account) = (unsafe { self.account.load(Relaxed).as_ref() }) else {
            return Supply::Gone;
        };
        if account.charge(PAGE).is_err() {
            return Supply::Denied;
        }
        let mut request = ZeroPage {
            start: (address as u64) & !(PAGE - 1),
            len: PAGE,
            mode: 0,
            zeroed: 0,
        };
        let fd = WATCHER.load(Relaxed);
        // SAFETY: the request has the layout that the kernel documents; the page lies in a mapping of a peer's file, where
        // any bytes are as good as any others.
        if unsafe { libc::ioctl(fd, ZEROPAGE as libc::c_ulong, &mut request) } == 0 {
            return Supply::Done;
        }
        account.refund(PAGE);
        match io::Error::last_os_error().raw_os_error() {
            // Another thread, or the peer, was faster; or the address space is being changed. The access is repeated.
            Some(libc::EEXIST | libc::EAGAIN) if self.repeated.fetch_add(1, Relaxed) < STUBBORN => {
                Supply::Done
            }
            Some(libc::ENOMEM) => Supply::Denied,
            _ => Supply::Gone,
        }
    }

    /// Zeros of our own take the range's place.
    fn replace(&self, why: u32) -> bool {
        let _ = self.state.compare_exchange(WHOLE, why, Relaxed, Relaxed);
        let (start, len) = (self.start.load(Relaxed), self.len.load(Relaxed));
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the range is a mapping of ours (it leaves the table before it is unmapped) that is only used through raw
        // pointers, and any bytes are as good as any others there.
        let place = unsafe { libc::mmap(start as *mut c_void, len, rights, flags, -1, 0) };
        place != libc::MAP_FAILED
    }
}

/// What became of a page.
enum Supply {
    /// It is there.
    Done,
    /// It lies behind the end of its file.
    Gone,
    /// It would cost too much.
    Denied,
}

/// `si_code` of an address without a page.
const BUS_ADRERR: i32 = 2;

/// Install the handler, unless it is in place.
pub(crate) fn install() -> io::Result<()> {
    let ours = on_bus_error as *const () as usize;
    // SAFETY: plain C structures, for which all-zero is valid; the handler has the type that SA_SIGINFO means, and does
    // only what a signal handler may.
    let done = unsafe {
        let mut now: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(libc::SIGBUS, std::ptr::null(), &mut now) == 0
            && now.sa_sigaction == ours
        {
            return Ok(());
        }
        let mut new: libc::sigaction = std::mem::zeroed();
        new.sa_sigaction = ours;
        new.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        libc::sigaction(libc::SIGBUS, &new, null_mut())
    };
    match done {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// An access failed. Only what a signal handler may do: atomics, `ioctl`, `mmap`.
extern "C" fn on_bus_error(signal: i32, info: *mut libc::siginfo_t, _: *mut c_void) {
    // SAFETY: the kernel hands a valid siginfo to a handler with SA_SIGINFO; `errno` is this thread's.
    let (address, code, errno) = unsafe {
        let errno = libc::__errno_location();
        ((*info).si_addr() as usize, (*info).si_code, *errno)
    };
    // Of the kernel's making, and not a signal that somebody sent.
    if code > 0 {
        let used = USED.load(Ordering::Acquire).min(RANGES);
        let mut found = TABLE[..used].iter().filter(|range| range.has(address));
        if found
            .next()
            .is_some_and(|range| range.settle(address, code))
        {
            // SAFETY: as above.
            unsafe { *libc::__errno_location() = errno };
            return;
        }
    }
    // SAFETY: plain system calls. A failed access is repeated after this and takes the default action; a signal that was
    // sent has to be sent again.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        if code <= 0 {
            libc::raise(signal);
        }
    }
}

/// `struct uffdio_register`.
#[repr(C)]
struct Register {
    start: u64,
    len: u64,
    mode: u64,
    ioctls: u64,
}

/// `struct uffdio_zeropage`.
#[repr(C)]
struct ZeroPage {
    start: u64,
    len: u64,
    mode: u64,
    zeroed: i64,
}

/// `struct uffdio_api`.
#[repr(C)]
struct Api {
    api: u64,
    features: u64,
    ioctls: u64,
}

const GROUP: u8 = 0xaa;
const REGISTER: Opcode = opcode::read_write::<Register>(GROUP, 0x00);
const ZEROPAGE: Opcode = opcode::read_write::<ZeroPage>(GROUP, 0x04);
const API: Opcode = opcode::read_write::<Api>(GROUP, 0x3f);
/// `UFFD_FEATURE_MISSING_SHMEM` and `UFFD_FEATURE_SIGBUS`.
const FEATURES: u64 = 1 << 5 | 1 << 7;
/// `UFFD_USER_MODE_ONLY` (Linux 5.11), with which no privilege is needed.
const USER_MODE_ONLY: i32 = 1;

/// The userfaultfd, opened once; none when the kernel refuses it.
fn watcher() -> Option<i32> {
    static OPENED: OnceLock<Option<i32>> = OnceLock::new();
    let open = || {
        let flags = libc::O_CLOEXEC | libc::O_NONBLOCK;
        // SAFETY: a system call without pointers.
        let attempt = |more: i32| unsafe { libc::syscall(libc::SYS_userfaultfd, flags | more) };
        let fd = [USER_MODE_ONLY, 0]
            .into_iter()
            .map(attempt)
            .find(|fd| *fd >= 0)? as i32;
        let mut request = Api {
            api: GROUP.into(),
            features: FEATURES,
            ioctls: 0,
        };
        // SAFETY: the request has the layout that the kernel documents; a descriptor that cannot be used is closed here,
        // where nothing else knows of it.
        unsafe {
            if libc::ioctl(fd, API as libc::c_ulong, &mut request) != 0 {
                libc::close(fd);
                return None;
            }
        }
        WATCHER.store(fd, Ordering::Release);
        Some(fd)
    };
    *OPENED.get_or_init(open)
}
