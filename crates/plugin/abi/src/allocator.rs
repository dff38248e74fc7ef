//! The allocator of a plugin, which uses the router's allocator.

use std::alloc::{GlobalAlloc, Layout};
use std::sync::atomic::{AtomicPtr, Ordering::Acquire, Ordering::Release};

/// The router's allocator, as functions.
#[repr(C)]
pub struct HostCalls {
    alloc: extern "C" fn(usize, usize) -> *mut u8,
    alloc_zeroed: extern "C" fn(usize, usize) -> *mut u8,
    dealloc: extern "C" fn(*mut u8, usize, usize),
    realloc: extern "C" fn(*mut u8, usize, usize, usize) -> *mut u8,
}

impl HostCalls {
    /// The functions of the program or library that contains this code. They are valid as long as it is mapped: the router's
    /// are never unmapped.
    pub const HERE: HostCalls = HostCalls {
        alloc,
        alloc_zeroed,
        dealloc,
        realloc,
    };
}

/// The layout that an allocator was called with.
fn layout(size: usize, align: usize) -> Layout {
    // SAFETY: the four functions below are called by `HostAllocator` alone, with the parts of a `Layout`.
    unsafe { Layout::from_size_align_unchecked(size, align) }
}

extern "C" fn alloc(size: usize, align: usize) -> *mut u8 {
    // SAFETY: the caller keeps the contract of `GlobalAlloc::alloc`: the size is not 0.
    unsafe { std::alloc::alloc(layout(size, align)) }
}

extern "C" fn alloc_zeroed(size: usize, align: usize) -> *mut u8 {
    // SAFETY: as in `alloc`.
    unsafe { std::alloc::alloc_zeroed(layout(size, align)) }
}

extern "C" fn dealloc(at: *mut u8, size: usize, align: usize) {
    // SAFETY: `at` is from this allocator with this layout: both sides have no other.
    unsafe { std::alloc::dealloc(at, layout(size, align)) }
}

extern "C" fn realloc(at: *mut u8, size: usize, align: usize, new: usize) -> *mut u8 {
    // SAFETY: as in `dealloc`, and `new` is not 0.
    unsafe { std::alloc::realloc(at, layout(size, align), new) }
}

/// The global allocator of a plugin: it calls the router's functions, which the entry call provides before the first
/// allocation.
pub struct HostAllocator(AtomicPtr<HostCalls>);

impl HostAllocator {
    /// An allocator without functions: each allocation fails.
    #[allow(clippy::new_without_default)]
    pub const fn new() -> Self {
        HostAllocator(AtomicPtr::new(std::ptr::null_mut()))
    }

    /// Use these functions from now on.
    pub fn set(&self, calls: &'static HostCalls) {
        let calls: *const HostCalls = calls;
        self.0.store(calls.cast_mut(), Release);
    }

    #[inline]
    fn calls(&self) -> Option<&HostCalls> {
        // SAFETY: null or from `set`, whose argument lives forever and is never written.
        unsafe { self.0.load(Acquire).as_ref() }
    }
}

// SAFETY: each call is passed on to the router's global allocator with its layout; without functions `alloc` returns null, and
// there is nothing to free.
unsafe impl GlobalAlloc for HostAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let calls = self.calls();
        calls.map_or(std::ptr::null_mut(), |calls| {
            (calls.alloc)(layout.size(), layout.align())
        })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let calls = self.calls();
        calls.map_or(std::ptr::null_mut(), |calls| {
            (calls.alloc_zeroed)(layout.size(), layout.align())
        })
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        if let Some(calls) = self.calls() {
            (calls.dealloc)(at, layout.size(), layout.align());
        }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, new: usize) -> *mut u8 {
        let calls = self.calls();
        calls.map_or(std::ptr::null_mut(), |calls| {
            (calls.realloc)(at, layout.size(), layout.align(), new)
        })
    }
}
