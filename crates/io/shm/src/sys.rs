//! Mappings of shared files: a peer's file, after its examination, and sealed files of this process.

use crate::bus::{self, Range};
use crate::limits::Account;
use crate::{Kind, MapError, PAGE};
use rustix::fs::{MemfdFlags, SealFlags};
use rustix::mm::{Advice, MapFlags, ProtFlags};
use std::ffi::c_void;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::ptr::{NonNull, null_mut};
use std::sync::Arc;

/// Guard bytes around a mapping. An access to them is a defect of this process and ends it. More than the longest packet.
const GUARD: usize = 128 << 10;

/// The state of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The map contains the peer's memory.
    Whole,
    /// The peer shrank its file: the map is zeros.
    Shrunk,
    /// The missing pages of the peer's file would cost this process more than the limit: the map is zeros.
    Costly,
}

/// Shared memory, mapped for reading and writing. The peer can write to it at any time: read once, check, then use.
pub struct Map {
    base: NonNull<u8>,
    len: usize,
    outer: Outer,
    range: &'static Range,
    /// The account of the map, unless the memory is this process's own. The range points to it.
    account: Option<Arc<Account>>,
}

// SAFETY: the mapping is plain memory, independent of threads; it is read and written through raw pointers only.
unsafe impl Send for Map {}
// SAFETY: as above.
unsafe impl Sync for Map {}

/// A mapping with the address space around it.
#[derive(Clone, Copy)]
struct Outer {
    start: usize,
    len: usize,
}

impl Outer {
    fn unmap(self) {
        // SAFETY: the span was reserved for one mapping, whose owner releases it with this call.
        let _ = unsafe { rustix::mm::munmap(self.start as *mut c_void, self.len) };
    }
}

/// A part of a file to be mapped.
struct Part<'a> {
    file: BorrowedFd<'a>,
    offset: u64,
    len: usize,
    /// The pages are huge, and the kernel chooses their address.
    is_huge: bool,
}

impl Part<'_> {
    /// Map the part with [`GUARD`] inaccessible bytes on either side: a packet copied past a region's end would
    /// otherwise overwrite other memory.
    fn map(&self) -> Result<(Outer, *mut u8), MapError> {
        let (file, len, offset) = (self.file, self.len, self.offset);
        let prot = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::SHARED | MapFlags::NORESERVE;
        if self.is_huge {
            // SAFETY: a new mapping at an address that the kernel chooses changes nothing that exists.
            let base = unsafe { rustix::mm::mmap(null_mut(), len, prot, flags, file, offset) }?;
            let start = base as usize;
            return Ok((Outer { start, len }, base.cast()));
        }
        let whole = len.next_multiple_of(PAGE as usize) + 2 * GUARD;
        let nothing = MapFlags::PRIVATE | MapFlags::NORESERVE;
        // SAFETY: as above.
        let span =
            unsafe { rustix::mm::mmap_anonymous(null_mut(), whole, ProtFlags::empty(), nothing) }?;
        let (start, len_of_all) = (span as usize, whole);
        let outer = Outer {
            start,
            len: len_of_all,
        };
        // SAFETY: the range is inside the span that was just reserved and is not used by other code.
        let base = unsafe {
            let at = span.cast::<u8>().add(GUARD).cast();
            rustix::mm::mmap(at, len, prot, flags | MapFlags::FIXED, file, offset)
        };
        match base {
            Ok(base) => Ok((outer, base.cast())),
            Err(error) => {
                outer.unmap();
                Err(error.into())
            }
        }
    }
}

impl Map {
    /// Map `len` bytes of a peer's file from `offset` on, after examining the file. The rest
    /// of their first and last page is mapped, too. The bytes count against `account`.
    pub fn of_peer(
        file: BorrowedFd<'_>,
        offset: u64,
        len: u64,
        account: &Arc<Account>,
    ) -> Result<(Map, usize), MapError> {
        let end = offset
            .checked_add(len)
            .filter(|end| len > 0 && *end <= i64::MAX as u64);
        let end = end.ok_or(MapError::Range(len))?;
        let kind = Kind::of(file)?;
        if end > kind.size {
            return Err(MapError::Size {
                stated: end,
                has: kind.size,
            });
        }
        // A peer that cannot shrink its file any more cannot cause faults by it. The file may forbid seals.
        let _ = rustix::fs::fcntl_add_seals(file, SealFlags::SHRINK);
        let first = offset / kind.page * kind.page;
        let last = end.next_multiple_of(kind.page);
        if kind.is_huge() && last > kind.size.next_multiple_of(kind.page) {
            return Err(MapError::HugePages(len));
        }
        let part = Part {
            file,
            offset: first,
            len: (last - first) as usize,
            is_huge: kind.is_huge(),
        };
        let map = Map::counted(&part, account)?;
        // Huge pages come from a separate pool, whose size limits them.
        if !part.is_huge && !map.range.watch() {
            map.charge_holes(&kind)?;
        }
        Ok((map, (offset - first) as usize))
    }

    /// Charge all missing pages of the file at once, where the kernel does not let accesses to them fault.
    fn charge_holes(&self, kind: &Kind) -> Result<(), MapError> {
        let Some(account) = &self.account else {
            return Ok(());
        };
        let holes = kind
            .size
            .saturating_sub(kind.allocated)
            .min(self.len as u64);
        account.charge(holes).map_err(|limit| MapError::Charge {
            wanted: holes >> 20,
            limit: limit >> 20,
        })
    }

    fn counted(part: &Part<'_>, account: &Arc<Account>) -> Result<Map, MapError> {
        let bytes = part.len as u64;
        account
            .map(bytes)
            .map_err(|(what, sum, limit)| MapError::Memory {
                what,
                wanted: sum >> 20,
                limit: limit >> 20,
            })?;
        let map = Map::new(part, Some(account.clone()));
        if map.is_err() {
            account.unmap(bytes);
        }
        map
    }

    /// Memory of this process for a peer to map: `len` bytes of zeros in a file with name `name`. Its size is sealed.
    pub fn of_ours(name: &str, len: usize) -> Result<(OwnedFd, Map), MapError> {
        let file = file(name, len)?;
        let part = Part {
            file: file.as_fd(),
            offset: 0,
            len,
            is_huge: false,
        };
        let map = Map::new(&part, None)?;
        Ok((file, map))
    }

    fn new(part: &Part<'_>, account: Option<Arc<Account>>) -> Result<Map, MapError> {
        bus::install()?;
        let (outer, base) = part.map()?;
        let pointer = account.as_ref().map_or(std::ptr::null(), Arc::as_ptr);
        let range = Range::claim(base as usize, part.len, pointer);
        let (Some(range), Some(base)) = (range, NonNull::new(base)) else {
            outer.unmap();
            return Err(MapError::TooMany);
        };
        // Keep a virtual machine's memory out of core dumps. A failure has no other effect.
        // SAFETY: the range is the mapping just made.
        let _ =
            unsafe { rustix::mm::madvise(base.as_ptr().cast(), part.len, Advice::LinuxDontDump) };
        Ok(Map {
            base,
            len: part.len,
            outer,
            range,
            account,
        })
    }

    /// The address of the first byte.
    #[inline(always)]
    pub fn base(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// The number of mapped bytes.
    #[inline(always)]
    pub fn size(&self) -> usize {
        self.len
    }

    /// Whether zeros have replaced the peer's memory.
    #[inline(always)]
    pub fn is_broken(&self) -> bool {
        self.range.state() != bus::WHOLE
    }

    /// The state of the map.
    pub fn state(&self) -> State {
        match self.range.state() {
            bus::WHOLE => State::Whole,
            bus::COSTLY => State::Costly,
            _ => State::Shrunk,
        }
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        self.range.retire();
        self.outer.unmap();
        self.range.release();
        if let Some(account) = &self.account {
            account.unmap(self.len as u64);
        }
    }
}

/// A memfd of this process with `len` zero bytes, sealed against shrinking and growing.
pub fn file(name: &str, len: usize) -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let file = rustix::fs::memfd_create(name, flags)?;
    rustix::fs::ftruncate(&file, len as u64)?;
    rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    Ok(file)
}

/// Copy `n` bytes. Most packets are short, and a call costs more than copying 64 bytes.
///
/// # Safety
/// `n` bytes can be read at `from` and written at `to`, and they do not overlap.
#[inline(always)]
pub unsafe fn copy(from: *const u8, to: *mut u8, n: usize) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;

    /// A memfd of a peer that forbids seals.
    fn peers(len: u64) -> OwnedFd {
        let file = rustix::fs::memfd_create("t", MemfdFlags::CLOEXEC).unwrap();
        rustix::fs::ftruncate(&file, len).unwrap();
        file
    }

    fn mapped(file: &OwnedFd, len: u64) -> Map {
        let map = Map::of_peer(file.as_fd(), 0, len, &Account::new());
        map.unwrap().0
    }

    fn read(map: &Map, at: usize) -> u8 {
        assert!(at < map.size());
        // SAFETY: inside the mapping, which exists.
        unsafe { map.base().add(at).read_volatile() }
    }

    #[test]
    fn a_file_that_shrinks_reads_as_zeros_and_the_map_says_so() {
        let file = peers(1 << 16);
        rustix::io::pwrite(&file, &[7], 40_000).unwrap();
        let map = mapped(&file, 1 << 16);
        assert_eq!((read(&map, 40_000), map.state()), (7, State::Whole));
        rustix::fs::ftruncate(&file, 4096).unwrap();
        assert_eq!((read(&map, 40_000), map.state()), (0, State::Shrunk));
        assert_eq!(read(&map, 65_535), 0);
        drop(map);
        assert!(
            !mapped(&peers(1 << 16), 1 << 16).is_broken(),
            "the next map begins whole"
        );
    }

    /// Limits are global to the process, so one test contains all accesses to holes.
    #[test]
    fn holes_and_limits() {
        threads_hit_many_holes_of_many_maps_at_once();
        pages_that_a_peer_left_out_count_and_end_at_the_limit();
    }

    fn threads_hit_many_holes_of_many_maps_at_once() {
        let maps: Vec<(OwnedFd, Map)> = (0..40)
            .map(|_| {
                let file = peers(1 << 20);
                let map = mapped(&file, 1 << 20);
                (file, map)
            })
            .collect();
        let (shrunk, whole) = maps.split_at(20);
        shrunk
            .iter()
            .for_each(|(file, _)| rustix::fs::ftruncate(file, 0).unwrap());
        std::thread::scope(|s| {
            for t in 0..4usize {
                let maps = &maps;
                let at = t * 4096 * 17;
                s.spawn(move || {
                    maps.iter()
                        .for_each(|(_, map)| assert_eq!(read(map, at), 0))
                });
            }
        });
        assert!(shrunk.iter().all(|(_, map)| map.state() == State::Shrunk));
        assert!(whole.iter().all(|(_, map)| map.state() == State::Whole));
    }

    #[test]
    fn what_is_no_memory_is_refused() {
        let account = Account::new();
        let of = |file: BorrowedFd<'_>, offset, len| {
            Map::of_peer(file, offset, len, &account)
                .map(|_| ())
                .unwrap_err()
        };
        let zero = std::fs::File::open("/dev/zero").unwrap();
        assert!(matches!(of(zero.as_fd(), 0, 4096), MapError::NotMemory));
        let disk = std::fs::File::open("/proc/self/status").unwrap();
        assert!(matches!(of(disk.as_fd(), 0, 1), MapError::NotMemory));
        let (pipe, _other) = std::io::pipe().unwrap();
        assert!(matches!(of(pipe.as_fd(), 0, 1), MapError::NotMemory));
        let ours = file("t", 8192).unwrap();
        let error = of(ours.as_fd(), 0, 8193);
        assert_eq!(
            error.to_string(),
            "the peer says 8193 bytes, but the file has 8192"
        );
        assert!(matches!(of(ours.as_fd(), 1, 8192), MapError::Size { .. }));
        for (offset, len) in [(0, 0), (0, u64::MAX), (u64::MAX, 1), (1 << 63, 1)] {
            assert!(matches!(of(ours.as_fd(), offset, len), MapError::Range(_)));
        }
        assert!(
            rustix::fs::ftruncate(&ours, 4096).is_err(),
            "our own cannot be shrunk"
        );
        assert_eq!(account.mapped(), 0, "what was refused does not count");
    }

    #[test]
    fn a_peer_that_permits_seals_cannot_shrink_its_file() {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = rustix::fs::memfd_create("t", flags).unwrap();
        rustix::fs::ftruncate(&file, 1 << 16).unwrap();
        let _map = mapped(&file, 1 << 16);
        assert!(rustix::fs::ftruncate(&file, 4096).is_err());
    }

    #[test]
    fn a_region_that_begins_in_a_page_is_found_there() {
        let file = peers(3 * 4096);
        rustix::io::pwrite(&file, &[9], 5000).unwrap();
        let (map, at) = Map::of_peer(file.as_fd(), 5000, 100, &Account::new()).unwrap();
        assert_eq!((map.size(), at, read(&map, at)), (4096, 904, 9));
    }

    fn pages_that_a_peer_left_out_count_and_end_at_the_limit() {
        let usual = Limits::now();
        let account = Account::new();
        let file = peers(64 << 20);
        rustix::io::pwrite(&file, &[1; 8192], 0).unwrap();
        let (map, _) = Map::of_peer(file.as_fd(), 0, 64 << 20, &account).unwrap();
        if !map.range.watch() {
            println!("SKIP this kernel refuses userfaultfd");
            return;
        }
        assert_eq!((read(&map, 0), read(&map, 4096)), (1, 1));
        assert_eq!(
            account.charged(),
            0,
            "pages that the peer wrote are the peer's"
        );
        (10..20).for_each(|page| assert_eq!(read(&map, page * 4096), 0));
        (10..20).for_each(|page| assert_eq!(read(&map, page * 4096 + 1), 0));
        assert_eq!(account.charged(), 10 * 4096);
        // A hole that is punched and accessed again is charged again.
        let punch = rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE;
        rustix::fs::fallocate(&file, punch, 10 * 4096, 10 * 4096).unwrap();
        (10..20).for_each(|page| assert_eq!(read(&map, page * 4096), 0));
        assert_eq!((account.charged(), map.state()), (20 * 4096, State::Whole));
        let charge = 2 * (account.charged() + 100 * 4096);
        Limits { charge, ..usual }.set();
        (1000..2000).for_each(|page| assert_eq!(read(&map, page * 4096), 0));
        assert_eq!(map.state(), State::Costly);
        assert_eq!(account.charged(), 120 * 4096);
        usual.set();
        let stat = rustix::fs::fstat(&file).unwrap();
        assert!(
            stat.st_blocks as u64 * 512 <= 8192 + 110 * 4096,
            "no page beyond the limit"
        );
    }

    #[test]
    fn short_and_long_copies_write_their_bytes_and_no_others() {
        let from: Vec<u8> = (0..300).map(|n| n as u8 | 1).collect();
        for n in 0..=300 {
            let mut to = vec![0; 320];
            // SAFETY: both are longer than `n` bytes behind these places, and separate.
            unsafe { copy(from.as_ptr(), to.as_mut_ptr().add(8), n) };
            assert_eq!(to[8..8 + n], from[..n]);
            assert!(
                to[..8].iter().chain(&to[8 + n..]).all(|byte| *byte == 0),
                "{n}"
            );
        }
    }

    #[test]
    fn regions_count_until_they_are_unmapped() {
        let account = Account::new();
        let limit = Limits::now().memory;
        let sparse = peers(limit);
        let (half, _) = Map::of_peer(sparse.as_fd(), 0, limit / 2, &account).unwrap();
        let error = Map::of_peer(sparse.as_fd(), 0, limit, &account)
            .map(|_| ())
            .unwrap_err();
        assert!(
            matches!(
                error,
                MapError::Memory {
                    what: "this peer",
                    ..
                }
            ),
            "{error}"
        );
        drop(half);
        assert_eq!(account.mapped(), 0);
    }
}
