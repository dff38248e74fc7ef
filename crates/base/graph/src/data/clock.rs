//! The clock of a worker. Tests use a manual clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The source of nanoseconds.
#[derive(Clone, Debug)]
pub enum Clock {
    /// The system's monotonic clock, read from the cycle counter between anchors.
    System {
        /// Cycle counter at the origin.
        origin: u64,
        /// Nanoseconds per cycle.
        scale: f64,
    },
    /// A clock that changes only when a test advances it.
    Manual(Arc<AtomicU64>),
}

impl Clock {
    /// The system's clock, starting at 0 now.
    pub fn system() -> Self {
        let scale = 1e9 / volley_simd::cycles_per_second();
        Clock::System {
            origin: volley_simd::cycles(),
            scale,
        }
    }

    /// A clock that shows 0 until [`Clock::advance`].
    pub fn manual() -> Self {
        Clock::Manual(Arc::new(AtomicU64::new(0)))
    }

    /// Nanoseconds since the origin at the cycle count `cycles`.
    #[inline(always)]
    pub fn at(&self, cycles: u64) -> u64 {
        match self {
            Clock::System { origin, scale } => (cycles.wrapping_sub(*origin) as f64 * scale) as u64,
            Clock::Manual(ns) => ns.load(Ordering::Relaxed),
        }
    }

    /// Nanoseconds now.
    pub fn now_ns(&self) -> u64 {
        self.at(volley_simd::cycles())
    }

    /// Milliseconds since midnight, universal time. A manual clock starts at midnight.
    pub fn day_ms(&self) -> u32 {
        const DAY: u128 = 86_400_000;
        let ms = match self {
            Clock::System { .. } => {
                let epoch = std::time::SystemTime::UNIX_EPOCH;
                epoch.elapsed().map_or(0, |since| since.as_millis())
            }
            Clock::Manual(ns) => u128::from(ns.load(Ordering::Relaxed) / 1_000_000),
        };
        (ms % DAY) as u32
    }

    /// Advance a manual clock by `ns` nanoseconds; the system's clock advances automatically.
    pub fn advance(&self, ns: u64) {
        if let Clock::Manual(now) = self {
            now.fetch_add(ns, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_begin_again() {
        let clock = Clock::manual();
        clock.advance(5_999_999);
        assert_eq!(clock.day_ms(), 5);
        clock.advance(86_400_000_000_001);
        assert_eq!(clock.day_ms(), 6);
        assert!(Clock::system().day_ms() < 86_400_000);
    }
}
