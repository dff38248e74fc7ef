//! The cycle counter: the time-stamp counter on x86-64, the virtual counter of the generic timer on AArch64 (Arm Architecture
//! Reference Manual, CNTVCT_EL0), nanoseconds elsewhere.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Read the cycle counter. Monotonic on one core; the unit is given by [`cycles_per_second`].
#[inline(always)]
pub fn cycles() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: RDTSC is available on every x86-64 processor and touches no memory.
    unsafe {
        core::arch::x86_64::_rdtsc()
    }
    #[cfg(target_arch = "aarch64")]
    {
        let count;
        // SAFETY: Linux lets programs read the counter, and reading it touches no memory.
        unsafe {
            core::arch::asm!("mrs {}, cntvct_el0", out(reg) count, options(nomem, nostack, preserves_flags));
        }
        count
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        static START: OnceLock<Instant> = OnceLock::new();
        START.get_or_init(Instant::now).elapsed().as_nanos() as u64
    }
}

/// Counter ticks per second, measured once against the system clock (about 20 ms on first use).
pub fn cycles_per_second() -> f64 {
    static RATE: OnceLock<f64> = OnceLock::new();
    *RATE.get_or_init(|| {
        let (t0, c0) = (Instant::now(), cycles());
        while t0.elapsed() < Duration::from_millis(20) {
            std::hint::spin_loop();
        }
        (cycles() - c0) as f64 / t0.elapsed().as_secs_f64()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counter_moves_forward() {
        let a = cycles();
        std::thread::sleep(Duration::from_millis(1));
        assert!(cycles() > a);
        // Generic timers count 1 million to a billion times a second.
        assert!(cycles_per_second() > 0.9e6);
    }
}
