//! Memory that a peer shares with us, and the few system calls around it. One of the crate's three files with unsafe code.
//!
//! Contract: a [`View`] lies inside its [`Map`] by construction, and every access is checked against it; so whatever
//! addresses the layers above work out from what a peer wrote, nothing outside the shared memory is touched. The peer
//! writes at the same time: what is read is a copy and may be anything. No reference to shared memory is ever made.
//!
//! A peer that shrinks its file behind our back makes accesses fail with SIGBUS. The handler here puts anonymous memory
//! in the map's place and marks the map broken ([`Map::is_broken`]); other faults are passed on to whoever had the signal.

use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// The most maps there can be at one time in the process.
const MAPS: usize = 4096;

struct Guard {
    start: AtomicUsize,
    end: AtomicUsize,
    hit: AtomicBool,
}

static GUARDS: [Guard; MAPS] = [const {
    Guard {
        start: AtomicUsize::new(0),
        end: AtomicUsize::new(0),
        hit: AtomicBool::new(false),
    }
}; MAPS];
/// What SIGBUS did before, and whether our handler is in place.
static BEFORE: OnceLock<io::Result<Before>> = OnceLock::new();

struct Before(libc::sigaction);

/// Shared memory, mapped for reading and writing.
pub struct Map {
    base: NonNull<u8>,
    len: usize,
    guard: &'static Guard,
}

// SAFETY: a map is plain memory that others write anyway; accesses go through `View`, which makes no references.
unsafe impl Send for Map {}
// SAFETY: as above.
unsafe impl Sync for Map {}

impl Map {
    /// Map `len` bytes of a file from `offset` on; both fit the file's block size.
    pub fn of(file: impl AsFd, offset: u64, len: usize) -> io::Result<Map> {
        use rustix::mm::{MapFlags, ProtFlags};
        watch_bus_errors()?;
        // SAFETY: the kernel chooses a free place, so nothing that exists is replaced.
        let base = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                len,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED | MapFlags::NORESERVE,
                file.as_fd(),
                offset,
            )?
        };
        let base = NonNull::new(base.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?;
        // A core dump should not hold a virtual machine's memory. When it cannot be had, nothing else depends on it.
        // SAFETY: the range is the map just made.
        let _ = unsafe {
            rustix::mm::madvise(base.as_ptr().cast(), len, rustix::mm::Advice::LinuxDontDump)
        };
        match claim_guard(base.as_ptr() as usize, len) {
            Some(guard) => Ok(Map { base, len, guard }),
            None => {
                // SAFETY: the map just made, which nobody else knows.
                let _ = unsafe { rustix::mm::munmap(base.as_ptr().cast(), len) };
                Err(io::Error::other("too many shared memory maps"))
            }
        }
    }

    /// Bytes mapped.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing is mapped: never.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether the peer has taken memory away that it shared.
    pub fn is_broken(&self) -> bool {
        self.guard.hit.load(Ordering::Relaxed)
    }

    /// The part from `at` on, `len` bytes.
    #[inline(always)]
    pub fn view(&self, at: usize, len: usize) -> Option<View<'_>> {
        let whole = View {
            base: self.base.as_ptr(),
            len: self.len,
            map: PhantomData,
        };
        whole.part(at, len)
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // The guard goes first: a new map may get the same address at once.
        self.guard.end.store(0, Ordering::Release);
        self.guard.start.store(0, Ordering::Release);
        // SAFETY: the map is ours, and views borrow it, so none is left.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.len) };
    }
}

/// A part of a map.
#[derive(Clone, Copy)]
pub struct View<'a> {
    base: *mut u8,
    len: usize,
    map: PhantomData<&'a Map>,
}

macro_rules! cells {
    ($($load:ident $store:ident $atomic:ident $word:ident;)*) => { $(
        /// A word at byte `at` (little endian), read once; 0 when it does not lie inside or is not aligned.
        #[inline(always)]
        pub fn $load(self, at: usize) -> $word {
            match self.cell::<$word>(at) {
                // SAFETY: `cell` gives an aligned place inside the map, and others access it with atomics or from
                // other processes.
                Some(cell) => $word::from_le(unsafe { $atomic::from_ptr(cell) }.load(Ordering::Acquire)),
                None => 0,
            }
        }
        /// Write a word at byte `at`; nothing happens when it does not lie inside or is not aligned.
        #[inline(always)]
        pub fn $store(self, at: usize, word: $word) {
            if let Some(cell) = self.cell::<$word>(at) {
                // SAFETY: as above.
                unsafe { $atomic::from_ptr(cell) }.store(word.to_le(), Ordering::Release);
            }
        }
    )* };
}

impl<'a> View<'a> {
    /// Bytes in it.
    #[inline(always)]
    pub fn len(self) -> usize {
        self.len
    }

    /// Whether it has no byte.
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// A part of the part.
    #[inline(always)]
    pub fn part(self, at: usize, len: usize) -> Option<View<'a>> {
        (at <= self.len && len <= self.len - at).then(|| View {
            base: self.base.wrapping_add(at),
            len,
            map: PhantomData,
        })
    }

    /// Where it begins in this process: for the kernel, which is told where our own rings are.
    pub fn address(self) -> u64 {
        self.base as u64
    }

    /// Whether its address is a multiple of `align`.
    pub fn is_aligned(self, align: usize) -> bool {
        (self.base as usize).is_multiple_of(align)
    }

    #[inline(always)]
    fn cell<T>(self, at: usize) -> Option<*mut T> {
        let place = self.base.wrapping_add(at);
        let inside = at <= self.len && size_of::<T>() <= self.len - at;
        (inside && (place as usize).is_multiple_of(size_of::<T>())).then_some(place.cast())
    }

    cells! {
        load16 store16 AtomicU16 u16;
        load32 store32 AtomicU32 u32;
        load64 store64 AtomicU64 u64;
    }

    /// Copy from byte `at` on into `to`; returns how many bytes there were.
    #[inline(always)]
    pub fn read(self, at: usize, to: &mut [u8]) -> usize {
        let at = at.min(self.len);
        let n = to.len().min(self.len - at);
        // SAFETY: `n` bytes lie inside both; our own memory is no shared memory, so they do not overlap.
        unsafe { copy(self.base.wrapping_add(at), to.as_mut_ptr(), n) };
        n
    }

    /// Copy `from` to byte `at` on; returns how many bytes there was room for.
    #[inline(always)]
    pub fn write(self, at: usize, from: &[u8]) -> usize {
        let at = at.min(self.len);
        let n = from.len().min(self.len - at);
        // SAFETY: as in `read`.
        unsafe { copy(from.as_ptr(), self.base.wrapping_add(at), n) };
        n
    }

    /// Make `bytes`, whose number is known, stand at byte `at`: a line that has them already is not written, and stays with both
    /// cores. Nothing happens when there is not room for all of them.
    #[inline(always)]
    pub fn settle<const N: usize>(self, at: usize, bytes: [u8; N]) {
        if at <= self.len && N <= self.len - at {
            let to = self.base.wrapping_add(at).cast::<[u8; N]>();
            // SAFETY: `N` bytes lie inside, and any alignment will do; whatever the peer writes there meanwhile is bytes.
            unsafe {
                if to.read_unaligned() != bytes {
                    to.write_unaligned(bytes);
                }
            }
        }
    }

    /// Ask for the line of byte `at`.
    #[inline(always)]
    pub fn prefetch(self, at: usize) {
        volley_graph::prefetch(self.base.wrapping_add(at));
    }

    /// Ask for the line of byte `at`, to write there.
    #[inline(always)]
    pub fn prefetch_write(self, at: usize) {
        volley_graph::prefetch_write(self.base.wrapping_add(at));
    }
}

/// Copy `n` bytes. Packets are mostly short, and a call costs more than copying 64 bytes.
///
/// # Safety
/// `n` bytes can be read at `from` and written at `to`, and they do not overlap.
#[inline(always)]
unsafe fn copy(from: *const u8, to: *mut u8, n: usize) {
    // SAFETY: the caller's contract; the two halves of each branch cover the `n` bytes and no more.
    unsafe {
        if !(8..=128).contains(&n) {
            std::ptr::copy_nonoverlapping(from, to, n);
        } else if n > 64 {
            two::<64>(from, to, n);
        } else if n > 32 {
            two::<32>(from, to, n);
        } else if n > 16 {
            two::<16>(from, to, n);
        } else {
            two::<8>(from, to, n);
        }
    }
}

/// Copy `n` bytes, `N` to `2 * N` of them, as the first `N` and the last `N`.
///
/// # Safety
/// As for [`copy`], and `n` is at least `N`.
#[inline(always)]
unsafe fn two<const N: usize>(from: *const u8, to: *mut u8, n: usize) {
    // SAFETY: the caller's contract.
    unsafe {
        let first = from.cast::<[u8; N]>().read_unaligned();
        let last = from.add(n - N).cast::<[u8; N]>().read_unaligned();
        to.cast::<[u8; N]>().write_unaligned(first);
        to.add(n - N).cast::<[u8; N]>().write_unaligned(last);
    }
}

fn claim_guard(start: usize, len: usize) -> Option<&'static Guard> {
    let free = |g: &&Guard| {
        g.start
            .compare_exchange(0, start, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    };
    let guard = GUARDS.iter().find(free)?;
    guard.hit.store(false, Ordering::Relaxed);
    guard.end.store(start + len, Ordering::Release);
    Some(guard)
}

fn watch_bus_errors() -> io::Result<()> {
    let set = || {
        // SAFETY: an all-zero `sigaction` is valid, and the handler only does what a signal handler may.
        unsafe {
            let mut new: libc::sigaction = std::mem::zeroed();
            let mut old: libc::sigaction = std::mem::zeroed();
            new.sa_sigaction = on_bus_error as *const () as usize;
            new.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            match libc::sigaction(libc::SIGBUS, &new, &mut old) {
                0 => Ok(Before(old)),
                _ => Err(io::Error::last_os_error()),
            }
        }
    };
    match BEFORE.get_or_init(set) {
        Ok(_) => Ok(()),
        Err(e) => Err(io::Error::new(e.kind(), e.to_string())),
    }
}

/// Replace a map that lost its file; give everything else back to the handler before us.
extern "C" fn on_bus_error(_: i32, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid `siginfo` for SIGBUS. Only `mmap` and `sigaction` are called, both fit for
    // signal handlers; the range replaced is one of our maps, which stays mapped throughout.
    unsafe {
        let at = (*info).si_addr() as usize;
        let owns = |g: &&Guard| {
            g.start.load(Ordering::Acquire) <= at && at < g.end.load(Ordering::Acquire)
        };
        if let Some(guard) = GUARDS.iter().find(owns) {
            let start = guard.start.load(Ordering::Relaxed);
            let len = guard.end.load(Ordering::Relaxed) - start;
            let flags =
                libc::MAP_FIXED | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
            let rights = libc::PROT_READ | libc::PROT_WRITE;
            let place = libc::mmap(start as *mut libc::c_void, len, rights, flags, -1, 0);
            guard.hit.store(true, Ordering::Relaxed);
            if place != libc::MAP_FAILED {
                return;
            }
        }
        match BEFORE.get() {
            Some(Ok(before)) => _ = libc::sigaction(libc::SIGBUS, &before.0, std::ptr::null_mut()),
            _ => _ = libc::signal(libc::SIGBUS, libc::SIG_DFL),
        }
    }
}

/// A file of memory of our own, to be shared; sealed against being resized by the peer.
pub fn memory_file(len: usize) -> io::Result<OwnedFd> {
    use rustix::fs::{MemfdFlags, SealFlags};
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let fd = rustix::fs::memfd_create("volley-virtio", flags)?;
    rustix::fs::ftruncate(&fd, len as u64)?;
    rustix::fs::fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    Ok(fd)
}

/// A new event counter that never blocks.
pub fn event() -> io::Result<OwnedFd> {
    use rustix::event::{EventfdFlags, eventfd};
    Ok(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)
}

/// Add one to an event counter. A peer that passed something else, or lets it overflow, is not waited for.
pub fn signal(event: BorrowedFd<'_>) {
    let _ = rustix::io::write(event, &1u64.to_ne_bytes());
}

/// Whether an event counter of our own has been added to since the last time.
pub fn has_rung(event: BorrowedFd<'_>) -> bool {
    rustix::io::read(event, &mut [0; 8]).is_ok()
}

/// Set an event counter back, without waiting even if the peer has made it one that waits.
pub fn calm(event: BorrowedFd<'_>) {
    let mut count = [0; 8];
    let mut into = [io::IoSliceMut::new(&mut count)];
    // No offset: -1.
    let flags = rustix::io::ReadWriteFlags::NOWAIT;
    let _ = rustix::io::preadv2(event, &mut into, u64::MAX, flags);
}

/// Whether writing eight bytes to what a peer calls an event counter can never block, made so where it is not.
pub fn make_event(event: &OwnedFd) -> io::Result<()> {
    use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
    let flags = fcntl_getfl(event)?;
    if !flags.contains(OFlags::NONBLOCK) {
        fcntl_setfl(event, flags | OFlags::NONBLOCK)?;
    }
    let name = rustix::fs::readlinkat(
        rustix::fs::CWD,
        format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(event)),
        Vec::new(),
    )?;
    if name.to_bytes().starts_with(b"anon_inode:[eventfd]") {
        Ok(())
    } else {
        Err(io::Error::other("it is no event counter"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(len: usize) -> (OwnedFd, Map) {
        let fd = rustix::fs::memfd_create("t", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        rustix::fs::ftruncate(&fd, len as u64).unwrap();
        let map = Map::of(&fd, 0, len).unwrap();
        (fd, map)
    }

    #[test]
    fn nothing_outside_can_be_reached() {
        let (_fd, map) = map(4096);
        assert!(map.view(0, 4097).is_none() && map.view(usize::MAX, 2).is_none());
        let view = map.view(4000, 96).unwrap();
        view.store32(92, 7);
        assert_eq!(
            (view.load32(92), map.view(4092, 4).unwrap().load32(0)),
            (7, 7)
        );
        view.store32(93, 9);
        view.store64(92, 9);
        view.store16(usize::MAX, 9);
        assert_eq!(
            (view.load32(93), view.load64(92), view.load16(96)),
            (0, 0, 0)
        );
        assert_eq!(view.load32(92), 7);
        assert_eq!(view.write(90, &[1; 100]), 6);
        let mut back = [0; 100];
        assert_eq!((view.read(90, &mut back), back[5], back[6]), (6, 1, 0));
        assert_eq!((view.read(500, &mut back), view.write(96, &back)), (0, 0));
    }

    #[test]
    fn what_is_to_stand_somewhere_stands_there_whatever_was_before() {
        let (_fd, map) = map(4096);
        let want = [1, 2, 3, 4, 5, 6, 7, 8];
        for at in [0, 3, 60] {
            for odd in 0..=8 {
                let mut before = want;
                before.iter_mut().skip(odd).take(1).for_each(|b| *b ^= 0x80);
                let view = map.view(64, 100).unwrap();
                view.write(0, &[0xaa; 100]);
                view.write(at, &before);
                view.settle(at, want);
                let mut now = [0; 100];
                view.read(0, &mut now);
                assert_eq!(now[at..at + 8], want, "{odd} at {at}");
                let others = now[..at].iter().chain(&now[at + 8..]);
                assert!(others.copied().all(|b| b == 0xaa), "{odd} at {at}");
            }
        }
        map.view(64, 7).unwrap().settle(0, want);
        map.view(64, 8).unwrap().settle(usize::MAX, want);
        let mut now = [0; 8];
        map.view(64, 8).unwrap().read(0, &mut now);
        assert_eq!(now, [0xaa; 8], "there is not room for all of it");
    }

    #[test]
    fn copies_of_every_length_are_right() {
        let (_fd, map) = map(4096);
        let from: Vec<u8> = (0..=255).cycle().take(300).collect();
        for n in 0..=300 {
            let view = map.view(64, 1024).unwrap();
            view.write(0, &[0xaa; 400]);
            assert_eq!(view.write(1, &from[..n]), n);
            let mut back = [0x55; 302];
            assert_eq!(view.read(1, &mut back[..n]), n);
            assert_eq!((&back[..n], back[n]), (&from[..n], 0x55), "{n}");
            let mut around = [0; 2];
            view.read(n + 1, &mut around);
            assert_eq!((view.load16(0) as u8, around), (0xaa, [0xaa; 2]), "{n}");
        }
    }

    #[test]
    fn a_file_that_shrinks_does_not_kill_us() {
        let (fd, map) = map(1 << 16);
        let view = map.view(0, 1 << 16).unwrap();
        view.store16(40_000, 5);
        rustix::fs::ftruncate(&fd, 4096).unwrap();
        assert!(!map.is_broken());
        assert_eq!(view.load16(40_000), 0);
        view.store16(50_000, 5);
        assert!(map.is_broken());
        drop(map);
        let (_fd, again) = super::tests::map(1 << 16);
        assert!(!again.is_broken(), "the next map begins whole");
    }

    #[test]
    fn an_event_is_set_back_without_waiting() {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let fd = rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC).unwrap();
        signal(fd.as_fd());
        calm(fd.as_fd());
        calm(fd.as_fd());
        let mut list = [PollFd::new(&fd, PollFlags::IN)];
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        assert_eq!(poll(&mut list, Some(&now)), Ok(0));
    }

    #[test]
    fn an_event_of_ours_has_rung_once() {
        let event = event().unwrap();
        assert!(!has_rung(event.as_fd()));
        signal(event.as_fd());
        signal(event.as_fd());
        assert!(has_rung(event.as_fd()) && !has_rung(event.as_fd()));
    }

    #[test]
    fn only_event_counters_pass_for_such() {
        assert!(make_event(&event().unwrap()).is_ok());
        let (reader, _writer) = std::io::pipe().unwrap();
        assert!(make_event(&reader.into()).is_err());
        let file = std::fs::File::open("/dev/zero").unwrap();
        assert!(make_event(&file.into()).is_err());
    }
}
