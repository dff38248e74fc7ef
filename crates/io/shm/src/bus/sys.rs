//! The SIGBUS handler of the process, its table of ranges, and the pages that it charges.
//!
//! Two operations of a peer on the file behind a map result in SIGBUS at the worker's next access:
//!
//! - The peer shrinks the file. Anonymous memory replaces the whole range, and its state is [`SHRUNK`].
//! - The peer has left, or punched, a hole. In a *watched* range (userfaultfd with `UFFD_FEATURE_SIGBUS`, Linux 4.14)
//!   every access to a page that does not exist faults. The handler charges the page to the peer's account and lets the kernel
//!   allocate it; beyond the limit, anonymous memory replaces the range, and its state is [`COSTLY`].
//!
//! Where the kernel refuses userfaultfd (for example Docker's default seccomp profile), the holes that a file has when it
//! is mapped are charged at once: see `Map::of_peer`. hugetlbfs pages come from a separate pool and are not watched.
//!
//! The handler looks an address up in a table, so that the order and the number of maps do not matter. `install` is called
//! for every map and installs the handler again if another library has replaced it. A fault at an address outside all
//! ranges, or a signal that another process sends, takes the default action.

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

/// The maximum number of ranges, of all drivers together.
pub const RANGES: usize = 4096;
/// Every page of the range exists, or can be allocated.
pub const WHOLE: u32 = 0;
/// The peer removed pages.
pub const SHRUNK: u32 = 1;
/// The peer's pages would cost more than the limit.
pub const COSTLY: u32 = 2;

/// The number of faults on pages that exist, after which the range is replaced.
const STUBBORN: u32 = 1000;

/// An address range into which a peer's file is mapped.
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
/// No range with this number or a higher one was ever claimed.
static USED: AtomicUsize = AtomicUsize::new(0);
/// The userfaultfd of the process; negative before the first use, and if it is not available.
static WATCHER: AtomicI32 = AtomicI32::new(-1);

impl Range {
    /// Add a range to the table. `account` outlives it. `None`: the table is full.
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

    /// Let accesses to pages that do not exist fault. False when the kernel does not support it.
    pub(crate) fn watch(&self) -> bool {
        let done = watcher().is_some_and(|fd| {
            let mut request = Register {
                start: self.start.load(Relaxed) as u64,
                len: (self.len.load(Relaxed) as u64).next_multiple_of(PAGE),
                mode: 1,
                ioctls: 0,
            };
            // SAFETY: the request has the layout that the kernel documents, and concerns a mapping of the caller.
            unsafe { libc::ioctl(fd, REGISTER as libc::c_ulong, &mut request) == 0 }
        });
        self.watched.store(done, Ordering::Release);
        done
    }

    /// The state of the range.
    #[inline(always)]
    pub(crate) fn state(&self) -> u32 {
        self.state.load(Relaxed)
    }

    /// Release, step 1: the mapping is about to be removed, and no thread uses it any more.
    pub(crate) fn retire(&self) {
        self.len.store(0, Ordering::Release);
    }

    /// Release, step 2: the range's addresses are free.
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

    /// Resolve a fault at `address`. False when this is not possible.
    fn settle(&self, address: usize, code: i32) -> bool {
        let watched = self.watched.load(Ordering::Acquire) && self.state() == WHOLE;
        // Any other code means a page with a memory error.
        match watched && code == BUS_ADRERR {
            true => match self.supply(address) {
                Supply::Done => true,
                Supply::Gone => self.replace(SHRUNK),
                Supply::Denied => self.replace(COSTLY),
            },
            false => self.replace(SHRUNK),
        }
    }

    /// Charge a page and let the kernel allocate it.
    fn supply(&self, address: usize) -> Supply {
        // SAFETY: an account outlives its range: the caller of `claim` keeps it until `release`.
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
        // SAFETY: the request has the layout that the kernel documents; the page is in a mapping of a peer's file, where
        // any bytes are valid.
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

    /// Replace the range by anonymous zeros.
    fn replace(&self, why: u32) -> bool {
        let _ = self.state.compare_exchange(WHOLE, why, Relaxed, Relaxed);
        let (start, len) = (self.start.load(Relaxed), self.len.load(Relaxed));
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the range is a mapping of this process (it is removed from the table before it is unmapped) that is only used
        // through raw pointers, and any bytes are valid there.
        let place = unsafe { libc::mmap(start as *mut c_void, len, rights, flags, -1, 0) };
        place != libc::MAP_FAILED
    }
}

/// The result of [`Range::supply`].
enum Supply {
    /// The page exists.
    Done,
    /// The page is behind the end of its file.
    Gone,
    /// The page would exceed the limit.
    Denied,
}

/// `si_code` of an address without a page.
const BUS_ADRERR: i32 = 2;

/// Install the handler, unless it is in place.
pub(crate) fn install() -> io::Result<()> {
    let ours = on_bus_error as *const () as usize;
    // SAFETY: plain C structures, for which all-zero is valid; the handler has the type that SA_SIGINFO requires, and is
    // async-signal-safe.
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

/// Handle a failed access. Async-signal-safe: uses only atomics, `ioctl`, `mmap`.
extern "C" fn on_bus_error(signal: i32, info: *mut libc::siginfo_t, _: *mut c_void) {
    // SAFETY: the kernel passes a valid siginfo to a handler with SA_SIGINFO; `errno` belongs to this thread.
    let (address, code, errno) = unsafe {
        let errno = libc::__errno_location();
        ((*info).si_addr() as usize, (*info).si_code, *errno)
    };
    // The kernel generated the signal; no process sent it.
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
    // sent must be sent again.
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
/// `UFFD_USER_MODE_ONLY` (Linux 5.11), which requires no privilege.
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
        // SAFETY: the request has the layout that the kernel documents; an unusable descriptor is closed here,
        // before any other code has it.
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
