//! Large zeroed arrays, on huge pages if the kernel has them.
//!
//! Random lookups in a table of several MiB miss the TLB on 4 KiB pages. The memory is reserved, not touched:
//! pages that are never written cost nothing. No page contains other memory.

use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64};

use memmap2::{Advice, MmapMut};

const HUGE: usize = 2 << 20;

/// A type whose values may be zeroed memory.
///
/// # Safety
/// All-zero bytes are a valid value, no value needs dropping, and the alignment is at most a page.
pub unsafe trait Zeroed {}

// SAFETY: atomics of plain integers: zero is a value, nothing to drop, naturally aligned.
unsafe impl Zeroed for AtomicU16 {}
// SAFETY: as above.
unsafe impl Zeroed for AtomicU8 {}
// SAFETY: as above.
unsafe impl Zeroed for AtomicU32 {}
// SAFETY: as above.
unsafe impl Zeroed for AtomicU64 {}
// SAFETY: the values follow each other without gaps, and each may be zeroed memory.
unsafe impl<T: Zeroed, const N: usize> Zeroed for [T; N] {}

/// An array of `len` zeroed values of `T`.
pub struct Pages<T> {
    map: MmapMut,
    /// The offset of the first value in `map`, in bytes.
    start: usize,
    len: usize,
    of: PhantomData<[T]>,
}

impl<T: Zeroed> Pages<T> {
    /// Reserves the array. Like any allocation, this aborts when the system has no memory left.
    pub fn new(len: usize) -> Self {
        let bytes = len * size_of::<T>();
        let slack = if bytes >= HUGE { HUGE } else { 0 };
        let size = (bytes + slack).max(1);
        let Ok(map) = MmapMut::map_anon(size) else {
            let layout = std::alloc::Layout::from_size_align(size, 4096);
            std::alloc::handle_alloc_error(layout.unwrap_or(std::alloc::Layout::new::<T>()))
        };
        let start = if slack == 0 {
            // A kernel that always uses huge pages would otherwise merge small arrays into one.
            let _ = map.advise(Advice::NoHugePage);
            0
        } else {
            // Optional: without huge pages the table is slower, not wrong.
            let _ = map.advise(Advice::HugePage);
            (map.as_ptr() as usize).next_multiple_of(HUGE) - map.as_ptr() as usize
        };
        Self {
            map,
            start,
            len,
            of: PhantomData,
        }
    }

    /// The bytes of the array.
    pub fn bytes(&self) -> usize {
        self.len * size_of::<T>()
    }
}

impl<T: Zeroed> Deref for Pages<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: the mapping is private and anonymous, at least `start + len * size_of::<T>()` bytes long, page
        // aligned as is `start`, zeroed at first, and unmapped only with `self`. `Zeroed` makes its bytes
        // values of `T`; all later writes go through `&T`, and no other code accesses `map`.
        unsafe { std::slice::from_raw_parts(self.map.as_ptr().add(self.start).cast(), self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn zeroed_writable_and_aligned() {
        for len in [0, 1, 1000, HUGE / 8 + 3] {
            let p: Pages<AtomicU64> = Pages::new(len);
            assert_eq!(p.len(), len);
            assert!(p.iter().all(|w| w.load(Ordering::Relaxed) == 0));
            if let Some(last) = p.last() {
                last.store(7, Ordering::Relaxed);
                assert_eq!(p[len - 1].load(Ordering::Relaxed), 7);
            }
            assert_eq!(p.bytes(), len * 8);
            if p.bytes() >= HUGE {
                assert_eq!(p.as_ptr() as usize % HUGE, 0);
            }
        }
    }
}
