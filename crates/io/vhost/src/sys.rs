//! Checked access to memory that a peer shares. One of the crate's three files with unsafe code.
//!
//! Contract: a [`View`] lies inside its [`Map`] by construction, and every access is bounds-checked. Whatever addresses
//! the callers compute from a peer's data, nothing outside the shared memory is accessed. The peer writes concurrently: a
//! read returns a copy and any value. No reference to shared memory is ever made.
//!
//! A peer that shrinks its file, or leaves more pages unwritten than the limit permits, breaks its map
//! ([`Map::is_broken`]): see `volley_shm`.

use crate::memory::RegionSpec;
use std::marker::PhantomData;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};
use volley_shm::{Account, MapError, State, copy};

/// Shared memory, mapped for reading and writing.
pub struct Map(volley_shm::Map);

impl Map {
    /// Map the region's part of a peer's file; also returns the offset in the map at which the region begins.
    pub fn of_peer(
        file: &OwnedFd,
        spec: &RegionSpec,
        account: &Arc<Account>,
    ) -> Result<(Map, usize), MapError> {
        let map = volley_shm::Map::of_peer(file.as_fd(), spec.offset, spec.size, account);
        map.map(|(map, at)| (Map(map), at))
    }

    /// New memory of this process.
    pub fn of_ours(len: usize) -> Result<(OwnedFd, Map), MapError> {
        let made = volley_shm::Map::of_ours("volley-virtio", len);
        made.map(|(file, map)| (file, Map(map)))
    }

    /// Bytes mapped.
    pub fn len(&self) -> usize {
        self.0.size()
    }

    /// Whether nothing is mapped: never.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the map was replaced by zeros because the peer broke it.
    #[inline(always)]
    pub fn is_broken(&self) -> bool {
        self.0.is_broken()
    }

    /// State of the map.
    pub fn state(&self) -> State {
        self.0.state()
    }

    /// The `len` bytes from `at`.
    #[inline(always)]
    pub fn view(&self, at: usize, len: usize) -> Option<View<'_>> {
        let whole = View {
            base: self.0.base(),
            len: self.0.size(),
            map: PhantomData,
        };
        whole.part(at, len)
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
        /// Read the little-endian word at byte `at` once; 0 if it is out of bounds or not aligned.
        #[inline(always)]
        pub fn $load(self, at: usize) -> $word {
            match self.cell::<$word>(at) {
                // SAFETY: `cell` returns an aligned address inside the map, and other threads access it with atomics or
                // are in other processes.
                Some(cell) => $word::from_le(unsafe { $atomic::from_ptr(cell) }.load(Ordering::Acquire)),
                None => 0,
            }
        }
        /// Write the word at byte `at`; do nothing if it is out of bounds or not aligned.
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
    /// Length in bytes.
    #[inline(always)]
    pub fn len(self) -> usize {
        self.len
    }

    /// Whether the view is empty.
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// A part of the view.
    #[inline(always)]
    pub fn part(self, at: usize, len: usize) -> Option<View<'a>> {
        (at <= self.len && len <= self.len - at).then(|| View {
            base: self.base.wrapping_add(at),
            len,
            map: PhantomData,
        })
    }

    /// Address of the view in this process, for the kernel, which gets the addresses of driver rings.
    pub fn address(self) -> u64 {
        self.base as u64
    }

    /// Whether the address is a multiple of `align`.
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

    /// Copy from byte `at` into `to`; returns the number of bytes copied.
    #[inline(always)]
    pub fn read(self, at: usize, to: &mut [u8]) -> usize {
        let at = at.min(self.len);
        let n = to.len().min(self.len - at);
        // SAFETY: `n` bytes lie inside both; `to` is private memory, so they do not overlap.
        unsafe { copy(self.base.wrapping_add(at), to.as_mut_ptr(), n) };
        n
    }

    /// Copy `from` to byte `at`; returns the number of bytes copied.
    #[inline(always)]
    pub fn write(self, at: usize, from: &[u8]) -> usize {
        let at = at.min(self.len);
        let n = from.len().min(self.len - at);
        // SAFETY: as in `read`.
        unsafe { copy(from.as_ptr(), self.base.wrapping_add(at), n) };
        n
    }

    /// Write `bytes` at byte `at` unless they are already there: an unchanged cache line stays shared between both cores.
    /// Does nothing if not all of them fit.
    #[inline(always)]
    pub fn settle<const N: usize>(self, at: usize, bytes: [u8; N]) {
        if at <= self.len && N <= self.len - at {
            let to = self.base.wrapping_add(at).cast::<[u8; N]>();
            // SAFETY: `N` bytes lie inside, and any alignment is allowed; any value that the peer writes concurrently is
            // valid.
            unsafe {
                if to.read_unaligned() != bytes {
                    to.write_unaligned(bytes);
                }
            }
        }
    }

    /// Prefetch the cache line of byte `at`.
    #[inline(always)]
    pub fn prefetch(self, at: usize) {
        volley_graph::prefetch(self.base.wrapping_add(at));
    }

    /// Prefetch the view from byte `at` on for writing, as far as a frame of common size.
    #[inline(always)]
    pub fn prefetch_write_all(self, at: usize) {
        volley_graph::prefetch_write_all(self.base.wrapping_add(at), self.len.saturating_sub(at));
    }

    /// Prefetch the cache line of byte `at` for writing.
    #[inline(always)]
    pub fn prefetch_write(self, at: usize) {
        volley_graph::prefetch_write(self.base.wrapping_add(at));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(len: usize) -> (OwnedFd, Map) {
        let fd = rustix::fs::memfd_create("t", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        rustix::fs::ftruncate(&fd, len as u64).unwrap();
        let spec = RegionSpec {
            guest: 0,
            size: len as u64,
            user: 0,
            offset: 0,
        };
        let (map, _) = Map::of_peer(&fd, &spec, &Account::new()).unwrap();
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
}
