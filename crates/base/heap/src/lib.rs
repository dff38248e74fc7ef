//! The heap: no two allocations share a cache line, so that a worker's writes never touch a line that another worker reads.
//!
//! Almost everything is allocated on the control thread: the data of one worker beside the data of another and beside tables
//! that all workers read. Without this allocator they would share lines at random. `cargo xtask contended` measures it.
//!
//! Small allocations come from mimalloc, whose blocks have no header and are aligned where their size is a multiple of a line.
//! The C library needs a longer search for each aligned allocation: a quarter of the time of a transaction with 100,000
//! requests.

use mimalloc::MiMalloc;
use std::alloc::{GlobalAlloc, Layout, System};

/// Bytes of a cache line.
const LINE: usize = 64;
/// Allocations of at least this size come from the system. They are not aligned, only followed by an unused line: the system
/// can then grow an allocation in place by moving pages, which mimalloc cannot.
const LARGE: usize = 32 * 1024;

/// The heap of the process, with separate cache lines for each allocation. For `#[global_allocator]`.
pub struct LineHeap;

/// The layout that is allocated for a requested one. It contains the requested layout and depends on nothing else, so that the
/// same layout is computed when the memory is released.
#[inline]
fn apart(layout: Layout) -> Layout {
    let (size, align) = (layout.size(), layout.align());
    let (size, align) = match is_large(layout) {
        true => (size.saturating_add(LINE), align),
        false => (size.next_multiple_of(LINE), align.max(LINE)),
    };
    Layout::from_size_align(size, align).unwrap_or(layout)
}

#[inline]
fn is_large(layout: Layout) -> bool {
    layout.size() >= LARGE
}

// SAFETY: each allocation comes from mimalloc or the system, which fulfil this contract, chosen by the requested size. The
// caller names that size again when it releases the memory. The layout passed on contains the requested one.
unsafe impl GlobalAlloc for LineHeap {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's contract; a size that is not zero stays so.
        unsafe {
            match is_large(layout) {
                true => System.alloc(apart(layout)),
                false => MiMalloc.alloc(apart(layout)),
            }
        }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as in `alloc`.
        unsafe {
            match is_large(layout) {
                true => System.alloc_zeroed(apart(layout)),
                false => MiMalloc.alloc_zeroed(apart(layout)),
            }
        }
    }

    #[inline]
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the memory was allocated with this layout, by the allocator for its size.
        unsafe {
            match is_large(layout) {
                true => System.dealloc(at, apart(layout)),
                false => MiMalloc.dealloc(at, apart(layout)),
            }
        }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's contract: the new size is valid for the alignment.
        let to = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        let (old, new) = (apart(layout), apart(to));
        if old == new {
            return at;
        }
        match (is_large(layout), is_large(to)) {
            // SAFETY: the memory was allocated with `old`, by the allocator for its size; large ones keep the requested
            // alignment.
            (true, true) => unsafe { System.realloc(at, old, new.size()) },
            // SAFETY: likewise; all small allocations have the same alignment.
            (false, false) => unsafe { MiMalloc.realloc(at, old, new.size()) },
            // SAFETY: both are at least as long as the copied bytes, and do not overlap.
            _ => unsafe {
                let there = self.alloc(to);
                if !there.is_null() {
                    std::ptr::copy_nonoverlapping(at, there, layout.size().min(size));
                    self.dealloc(at, layout);
                }
                there
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Allocations of many sizes, some grown and shrunk, keep their contents and touch no line of another allocation.
    #[test]
    fn no_two_allocations_share_a_line() {
        let sizes = [
            1,
            8,
            24,
            55,
            56,
            57,
            64,
            120,
            121,
            4096,
            LARGE - 1,
            LARGE,
            LARGE + 1,
            200_000,
        ];
        let mut there: Vec<(*mut u8, Layout, u8)> = Vec::new();
        let mut rng = 7u32;
        for round in 0..600 {
            rng = rng.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let size = sizes[(rng >> 16) as usize % sizes.len()];
            let mark = round as u8;
            if round % 3 == 2 {
                let at = (rng >> 8) as usize % there.len();
                let (old, layout, held) = there.swap_remove(at);
                // SAFETY: the memory was allocated with this layout; the new part is filled before it is read.
                unsafe {
                    let new = LineHeap.realloc(old, layout, size);
                    for byte in 0..layout.size().min(size) {
                        assert_eq!(*new.add(byte), held, "{layout:?} to {size}");
                    }
                    std::ptr::write_bytes(new, held, size);
                    there.push((
                        new,
                        Layout::from_size_align(size, layout.align()).unwrap(),
                        held,
                    ));
                }
                continue;
            }
            let layout = Layout::from_size_align(size, 1 << (rng >> 28)).unwrap();
            // SAFETY: the layout is not empty.
            unsafe {
                let at = LineHeap.alloc(layout);
                assert!(!at.is_null() && at.addr().is_multiple_of(layout.align()));
                std::ptr::write_bytes(at, mark, size);
                there.push((at, layout, mark));
            }
        }
        let line = |address: usize| address / LINE;
        let mut spans: Vec<_> = there
            .iter()
            .map(|(at, layout, _)| (line(at.addr()), line(at.addr() + layout.size() - 1)))
            .collect();
        spans.sort_unstable();
        assert!(spans.windows(2).all(|w| w[0].1 < w[1].0));
        for (at, layout, _) in there {
            // SAFETY: the memory was allocated with this layout.
            unsafe { LineHeap.dealloc(at, layout) };
        }
    }
}
