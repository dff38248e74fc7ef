//! Cache prefetch hints.
//!
//! A hint never faults and never changes what the program computes, so it is safe for any address.

/// Bytes of a cache line.
const LINE: usize = 64;
/// Bytes that [`prefetch_write_all`] prefetches at most: a frame of common size.
const LONGEST: usize = 1536;

/// Prefetch the cache lines of the `len` bytes at `start` for a write soon, at most those of a frame of common size.
#[inline(always)]
pub fn prefetch_write_all(start: *const u8, len: usize) {
    let Some(last) = len.min(LONGEST).checked_sub(1) else {
        return;
    };
    for at in (0..last).step_by(LINE) {
        prefetch_write(start.wrapping_add(at));
    }
    // The last line, if the first one is not a whole line.
    prefetch_write(start.wrapping_add(last));
}

/// Prefetch the cache line that contains `p` into all cache levels, for a read soon.
#[inline(always)]
pub fn prefetch<T>(p: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch reads nothing architecturally and cannot fault, whatever the address.
    unsafe {
        core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(p.cast());
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above. In assembly, because the standard library's function is not stable.
    unsafe {
        core::arch::asm!("prfm pldl1keep, [{p}]", p = in(reg) p, options(readonly, nostack, preserves_flags));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = p;
}

/// Prefetch the cache line that contains `p` for a write soon, with exclusive ownership.
#[inline(always)]
pub fn prefetch_write<T>(p: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: as above. In assembly, because the compiler emits a prefetch for reads unless the level of the build includes
    // the extension; processors without the extension treat the instruction as a no-op.
    unsafe {
        core::arch::asm!("prefetchw [{p}]", p = in(reg) p, options(readonly, nostack, preserves_flags));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above.
    unsafe {
        core::arch::asm!("prfm pstl1keep, [{p}]", p = in(reg) p, options(readonly, nostack, preserves_flags));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = p;
}
