//! Memory shared with a peer that is not trusted, and the bell that wakes it.
//!
//! - True on entry of everything here: a file descriptor may be any file at all.
//! - [`Map`] is memory for as long as it lives, whatever the peer does to the file behind it: when a page is gone, the
//!   kernel's SIGBUS finds the mapping here, the whole of it is replaced by zeros of our own, and [`Map::is_broken`] says so.
//! - [`Bell::ring`] never waits, even when the peer has filled the eventfd's counter and made it blocking.

use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::mm::{MapFlags, ProtFlags};
use std::ffi::c_void;
use std::io;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Once, OnceLock};

/// Most mappings at a time, all interfaces together.
const MAPS: usize = 4096;
/// The largest region that is mapped.
pub const MAX_REGION: u64 = 16 << 30;
const PAGE: usize = 4096;
/// Untouchable bytes around a mapping: more than the longest packet.
const GUARD: usize = 128 << 10;
const TMPFS: i64 = 0x0102_1994;
const HUGETLBFS: i64 = 0x9584_58f6;

/// Why a peer's file is not mapped.
#[derive(Debug, thiserror::Error)]
pub enum MapError {
    /// It is a device, a file on a disk, a pipe, ...
    #[error("it is no shared memory (only memfds and files on tmpfs or hugetlbfs are)")]
    NotMemory,
    /// It is smaller than the peer says.
    #[error("the peer says {said} bytes, but the file has {has}")]
    Size {
        /// In the message.
        said: u64,
        /// In the file.
        has: u64,
    },
    /// Larger than anything sensible, or empty.
    #[error("{0} bytes are out of range: 1 to 16 GiB")]
    Range(u64),
    /// It cannot be unmapped in one piece.
    #[error("{0} bytes are not whole huge pages")]
    HugePages(u64),
    /// There are too many mappings.
    #[error("there are {MAPS} mappings already")]
    TooMany,
    /// The system refused.
    #[error("{0}")]
    System(#[from] io::Error),
}

impl From<rustix::io::Errno> for MapError {
    fn from(error: rustix::io::Errno) -> Self {
        MapError::System(error.into())
    }
}

/// One place for a mapping that the SIGBUS handler can find.
struct Guarded {
    start: AtomicUsize,
    len: AtomicUsize,
    broken: AtomicBool,
}

static GUARDED: [Guarded; MAPS] = [const {
    Guarded {
        start: AtomicUsize::new(0),
        len: AtomicUsize::new(0),
        broken: AtomicBool::new(false),
    }
}; MAPS];

/// Memory that a peer can write to at any time: read it once, check, then use.
pub struct Map {
    base: NonNull<u8>,
    len: usize,
    place: usize,
    outer: Outer,
}

/// A mapping with the address space around it that nobody may touch.
#[derive(Clone, Copy)]
struct Outer {
    start: usize,
    len: usize,
}

impl Outer {
    fn unmap(self) {
        // SAFETY: the span was reserved for one mapping, which its owner lets go of with this call.
        let _ = unsafe { rustix::mm::munmap(self.start as *mut c_void, self.len) };
    }
}

/// Map `len` bytes of `file` with [`GUARD`] bytes on either side whose use is a fault of ours and ends the process: a
/// packet copied past a region's end would otherwise land in whatever lies there.
fn map_between_guards(
    file: BorrowedFd<'_>,
    len: usize,
    page: usize,
) -> Result<(Outer, *mut u8), MapError> {
    let prot = ProtFlags::READ | ProtFlags::WRITE;
    let flags = MapFlags::SHARED | MapFlags::NORESERVE;
    if page != PAGE {
        // Huge pages lie where the kernel wants them.
        // SAFETY: a new mapping at an address of the kernel's choice touches nothing that exists.
        let base = unsafe { rustix::mm::mmap(null_mut(), len, prot, flags, file, 0) }?;
        let start = base as usize;
        return Ok((Outer { start, len }, base.cast()));
    }
    let whole = len.next_multiple_of(PAGE) + 2 * GUARD;
    let nothing = MapFlags::PRIVATE | MapFlags::NORESERVE;
    // SAFETY: as above.
    let span =
        unsafe { rustix::mm::mmap_anonymous(null_mut(), whole, ProtFlags::empty(), nothing) }?;
    let outer = Outer {
        start: span as usize,
        len: whole,
    };
    // SAFETY: the range lies inside the span that was reserved just now and that nobody uses.
    let base = unsafe {
        let at = span.cast::<u8>().add(GUARD).cast();
        rustix::mm::mmap(at, len, prot, flags | MapFlags::FIXED, file, 0)
    };
    match base {
        Ok(base) => Ok((outer, base.cast())),
        Err(error) => {
            outer.unmap();
            Err(error.into())
        }
    }
}

// SAFETY: the mapping is plain memory without a thread; whoever reads or writes it goes through raw pointers in `ring`.
unsafe impl Send for Map {}
// SAFETY: as above.
unsafe impl Sync for Map {}

impl Map {
    /// Map a peer's region of `size` bytes, after looking at what the file really is.
    pub fn of_peer(file: BorrowedFd<'_>, size: u64) -> Result<Map, MapError> {
        if !(1..=MAX_REGION).contains(&size) {
            return Err(MapError::Range(size));
        }
        let stat = rustix::fs::fstat(file)?;
        let regular = rustix::fs::FileType::from_raw_mode(stat.st_mode).is_file();
        let files = rustix::fs::fstatfs(file)?;
        let system = files.f_type as i64;
        // A file of another kind could keep our thread waiting for its server at every page.
        if !regular || !matches!(system, TMPFS | HUGETLBFS) {
            return Err(MapError::NotMemory);
        }
        if system == HUGETLBFS && !size.is_multiple_of((files.f_bsize as u64).max(1)) {
            return Err(MapError::HugePages(size));
        }
        let has = stat.st_size as u64;
        if has < size {
            return Err(MapError::Size { said: size, has });
        }
        let page = if system == HUGETLBFS {
            size
        } else {
            PAGE as u64
        };
        Map::new(file, size as usize, page as usize)
    }

    /// Memory of our own for a peer to map: its size is sealed.
    pub fn of_ours(size: usize) -> Result<(OwnedFd, Map), MapError> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = rustix::fs::memfd_create("volley-memif", flags)?;
        rustix::fs::ftruncate(&file, size as u64)?;
        let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
        rustix::fs::fcntl_add_seals(&file, seals)?;
        let map = Map::new(file.as_fd(), size, PAGE)?;
        Ok((file, map))
    }

    fn new(file: BorrowedFd<'_>, len: usize, page: usize) -> Result<Map, MapError> {
        static HANDLER: Once = Once::new();
        HANDLER.call_once(install_handler);
        let (outer, base) = map_between_guards(file, len, page)?;
        let claimed = GUARDED.iter().position(|g| {
            g.start
                .compare_exchange(0, 1, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
        });
        let (Some(place), Some(base)) = (claimed, NonNull::new(base)) else {
            outer.unmap();
            return Err(MapError::TooMany);
        };
        let guarded = &GUARDED[place];
        guarded.broken.store(false, Ordering::Relaxed);
        guarded.len.store(len, Ordering::Release);
        guarded
            .start
            .store(base.as_ptr() as usize, Ordering::Release);
        Ok(Map {
            base,
            len,
            place,
            outer,
        })
    }

    /// Its first byte.
    pub fn base(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// Its bytes.
    pub fn size(&self) -> usize {
        self.len
    }

    /// Whether the peer took pages away, so that it is zeros now.
    pub fn is_broken(&self) -> bool {
        GUARDED[self.place].broken.load(Ordering::Relaxed)
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        GUARDED[self.place].len.store(0, Ordering::Release);
        self.outer.unmap();
        GUARDED[self.place].start.store(0, Ordering::Release);
    }
}

/// What was there before us: asked when a SIGBUS is none of ours.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

fn install_handler() {
    // SAFETY: plain C structures without invalid values; the handler is a function of the type that SA_SIGINFO means.
    unsafe {
        let mut old: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(libc::SIGBUS, std::ptr::null(), &mut old) != 0 {
            return;
        }
        let _ = BEFORE.set(old);
        let mut new: libc::sigaction = std::mem::zeroed();
        new.sa_sigaction = on_bus_error as *const () as usize;
        new.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        libc::sigaction(libc::SIGBUS, &new, null_mut());
    }
}

/// A page of a mapping could not be had. Only what a signal handler may do: atomics and `mmap`.
extern "C" fn on_bus_error(signal: i32, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel hands a valid siginfo to a handler with SA_SIGINFO.
    let address = unsafe { (*info).si_addr() } as usize;
    for guarded in &GUARDED {
        let (start, len) = (
            guarded.start.load(Ordering::Acquire),
            guarded.len.load(Ordering::Acquire),
        );
        if start > 1 && address.wrapping_sub(start) < len {
            guarded.broken.store(true, Ordering::Relaxed);
            let flags =
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
            // SAFETY: the range is a mapping of ours (it leaves the table before it is unmapped) that is only used
            // through raw pointers, and any bytes are as good as any others there.
            let zeros = unsafe {
                let both = libc::PROT_READ | libc::PROT_WRITE;
                libc::mmap(start as *mut c_void, len, both, flags, -1, 0)
            };
            if zeros != libc::MAP_FAILED {
                return;
            }
        }
    }
    // SAFETY: not ours: the action from before is put back or called as the kernel would have called it.
    unsafe {
        match BEFORE.get() {
            Some(old) if old.sa_sigaction > 1 && old.sa_flags & libc::SA_SIGINFO != 0 => {
                let next: extern "C" fn(i32, *mut libc::siginfo_t, *mut c_void) =
                    std::mem::transmute(old.sa_sigaction);
                next(signal, info, context);
            }
            Some(old) => _ = libc::sigaction(signal, old, null_mut()),
            None => _ = libc::signal(signal, libc::SIG_DFL),
        }
    }
}

/// An eventfd shared with the peer.
#[derive(Debug)]
pub struct Bell(OwnedFd);

/// The kernel cannot read a bell without the risk of waiting: then it is not waited for, but polled.
static SLEEPLESS: AtomicBool = AtomicBool::new(false);

/// Whether a worker may sleep until a bell rings.
pub fn can_sleep() -> bool {
    !SLEEPLESS.load(Ordering::Relaxed)
}

/// The kernel's way to ring an eventfd without ever waiting: a read of nothing whose completion rings it.
struct Ringer {
    context: libc::c_ulong,
    nothing: OwnedFd,
}

/// Completions that may wait to be taken.
const COMPLETIONS: usize = 64;

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

/// Complete by ringing `ControlBlock::eventfd`.
const RING_EVENTFD: u32 = 1;

impl Ringer {
    /// The process's, when the kernel has the calls and permits them.
    fn get() -> Option<&'static Ringer> {
        static RINGER: OnceLock<Option<Ringer>> = OnceLock::new();
        RINGER.get_or_init(Ringer::new).as_ref()
    }

    fn new() -> Option<Ringer> {
        let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::CLOEXEC;
        let nothing = rustix::fs::open("/dev/null", flags, rustix::fs::Mode::empty()).ok()?;
        let mut context: libc::c_ulong = 0;
        // SAFETY: `context` is zero and ours to be written, as io_setup wants it.
        let made = unsafe {
            libc::syscall(
                libc::SYS_io_setup,
                COMPLETIONS as libc::c_long,
                &mut context,
            )
        };
        (made == 0).then(|| Ringer { context, nothing })
    }

    fn ring(&self, eventfd: BorrowedFd<'_>) -> io::Result<()> {
        let mut block = ControlBlock {
            file: self.nothing.as_raw_fd() as u32,
            flags: RING_EVENTFD,
            eventfd: eventfd.as_raw_fd() as u32,
            ..ControlBlock::default()
        };
        for _ in 0..3 {
            let mut blocks = [&raw mut block];
            // SAFETY: one valid control block that reads no bytes; the kernel copies it during the call.
            let done = unsafe {
                let one: libc::c_long = 1;
                libc::syscall(libc::SYS_io_submit, self.context, one, blocks.as_mut_ptr())
            };
            if done == 1 {
                return Ok(());
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::WouldBlock {
                return Err(error);
            }
            self.take_completions();
        }
        Err(io::ErrorKind::WouldBlock.into())
    }

    fn take_completions(&self) {
        let mut events = [[0u64; 4]; COMPLETIONS];
        let now = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: an io_event has 32 bytes, and there is room for as many as are asked for.
        unsafe {
            libc::syscall(
                libc::SYS_io_getevents,
                self.context,
                0 as libc::c_long,
                COMPLETIONS as libc::c_long,
                events.as_mut_ptr(),
                &now,
            );
        }
    }
}

impl Bell {
    /// A new one.
    pub fn new() -> io::Result<Bell> {
        let flags = rustix::event::EventfdFlags::CLOEXEC | rustix::event::EventfdFlags::NONBLOCK;
        Ok(Bell(rustix::event::eventfd(0, flags)?))
    }

    /// One that a peer sent; an error when it is something else.
    pub fn of_peer(file: OwnedFd) -> io::Result<Bell> {
        let bell = Bell(file);
        match Ringer::get() {
            // The kernel refuses anything but an eventfd; one ring too many does no harm.
            Some(ringer) => ringer.ring(bell.0.as_fd())?,
            None if bell.is_eventfd() => {}
            None => return Err(io::ErrorKind::InvalidInput.into()),
        }
        Ok(bell)
    }

    fn is_eventfd(&self) -> bool {
        let path = format!("/proc/self/fd/{}", self.0.as_raw_fd());
        let target = std::fs::read_link(path);
        target.is_ok_and(|t| t.as_os_str() == "anon_inode:[eventfd]")
    }

    /// Wake whoever waits for it.
    pub fn ring(&self) {
        match Ringer::get() {
            Some(ringer) => _ = ringer.ring(self.0.as_fd()),
            None => self.ring_by_write(),
        }
    }

    /// Take note that it was rung. Does not wait, even when the peer was faster and made the file blocking.
    pub fn silence(&self) {
        let mut count = [0u8; 8];
        let part = libc::iovec {
            iov_base: count.as_mut_ptr().cast(),
            iov_len: count.len(),
        };
        // SAFETY: one part, which has room for the eight bytes of a counter.
        let read = unsafe { libc::preadv2(self.0.as_raw_fd(), &part, 1, -1, libc::RWF_NOWAIT) };
        if read < 0 {
            let error = io::Error::last_os_error();
            if error.raw_os_error() == Some(libc::EOPNOTSUPP) {
                SLEEPLESS.store(true, Ordering::Relaxed);
            }
        }
    }

    /// Where the kernel forbids the other way: the write does not wait unless the peer fills the counter in between.
    #[cold]
    fn ring_by_write(&self) {
        let mut poll = [rustix::event::PollFd::new(
            &self.0,
            rustix::event::PollFlags::OUT,
        )];
        let now = rustix::event::Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        if rustix::event::poll(&mut poll, Some(&now)).is_ok_and(|n| n == 1) {
            let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
        }
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(map: &Map, at: usize) -> u8 {
        assert!(at < map.size());
        // SAFETY: inside the mapping, which lives.
        unsafe { map.base().add(at).read_volatile() }
    }

    #[test]
    fn a_truncated_region_reads_as_zeros_and_says_so() {
        let file = rustix::fs::memfd_create("t", MemfdFlags::CLOEXEC).unwrap();
        rustix::fs::ftruncate(&file, 1 << 16).unwrap();
        rustix::io::pwrite(&file, &[7], 40_000).unwrap();
        let map = Map::of_peer(file.as_fd(), 1 << 16).unwrap();
        assert_eq!((read(&map, 40_000), map.is_broken()), (7, false));
        rustix::fs::ftruncate(&file, 4096).unwrap();
        assert_eq!((read(&map, 40_000), map.is_broken()), (0, true));
        assert_eq!(read(&map, 65_535), 0);
    }

    #[test]
    fn many_threads_may_hit_the_same_hole() {
        let file = rustix::fs::memfd_create("t", MemfdFlags::CLOEXEC).unwrap();
        rustix::fs::ftruncate(&file, 1 << 20).unwrap();
        let map = Map::of_peer(file.as_fd(), 1 << 20).unwrap();
        rustix::fs::ftruncate(&file, 0).unwrap();
        std::thread::scope(|s| {
            for t in 0..4usize {
                let map = &map;
                s.spawn(move || assert_eq!(read(map, t * 4096 * 17), 0));
            }
        });
        assert!(map.is_broken());
    }

    #[test]
    fn what_is_no_memory_is_refused() {
        let null = std::fs::File::open("/dev/zero").unwrap();
        let error = Map::of_peer(null.as_fd(), 4096).err().unwrap();
        assert!(matches!(error, MapError::NotMemory), "{error}");
        let (pipe, _other) = std::io::pipe().unwrap();
        assert!(Map::of_peer(pipe.as_fd(), 4096).is_err());
        let (ours, _map) = Map::of_ours(8192).unwrap();
        let error = Map::of_peer(ours.as_fd(), 8193).err().unwrap();
        assert_eq!(
            error.to_string(),
            "the peer says 8193 bytes, but the file has 8192"
        );
        assert!(matches!(
            Map::of_peer(ours.as_fd(), 0),
            Err(MapError::Range(0))
        ));
        assert!(Map::of_peer(ours.as_fd(), u64::MAX).is_err());
        assert!(
            rustix::fs::ftruncate(&ours, 4096).is_err(),
            "our own cannot be shrunk"
        );
    }

    #[test]
    fn a_bell_rings_and_never_waits() {
        let bell = Bell::new().unwrap();
        let copy = bell.0.try_clone().unwrap();
        let other = Bell::of_peer(copy).unwrap();
        for _ in 0..1000 {
            other.ring();
        }
        let mut count = [0; 8];
        rustix::io::read(&bell.0, &mut count).unwrap();
        assert!(u64::from_ne_bytes(count) >= 1000);
        // What a hostile peer would do: fill the counter and make the file blocking.
        rustix::fs::fcntl_setfl(&bell.0, rustix::fs::OFlags::empty()).unwrap();
        rustix::io::write(&bell.0, &(u64::MAX - 1).to_ne_bytes()).unwrap();
        for _ in 0..200 {
            other.ring();
        }
        // Read twice: the second read of a blocking eventfd would wait for ever.
        other.silence();
        other.silence();
        assert!(can_sleep());
    }

    #[test]
    fn what_is_no_bell_is_refused() {
        let file = std::fs::File::open("/dev/null").unwrap();
        assert!(Bell::of_peer(file.into()).is_err());
        let (pipe, _other) = std::io::pipe().unwrap();
        assert!(Bell::of_peer(pipe.into()).is_err());
    }
}
