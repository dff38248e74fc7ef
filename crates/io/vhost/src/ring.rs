//! A value that one thread at a time may use; a worker never blocks on it.
//!
//! One of the crate's files with unsafe code. A worker calls [`Guarded::claim`] and continues without the value if it is
//! taken. Only the control thread, which inserts and removes ring ends, waits: for the duration of one vector, and never
//! longer than a time limit.

use std::cell::UnsafeCell;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Time between two attempts while a worker takes longer than expected.
const SHORT: Duration = Duration::from_micros(50);

/// A value with a flag that is set while a thread uses it.
#[derive(Default)]
pub struct Guarded<T> {
    taken: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: the flag lets one thread at a time have the value, so that it only moves between threads.
unsafe impl<T: Send> Sync for Guarded<T> {}

/// The right to use the value until this claim is dropped.
pub struct Claim<'a, T>(&'a Guarded<T>);

impl<T> Guarded<T> {
    /// Wrap a value.
    pub fn new(value: T) -> Self {
        Guarded {
            taken: AtomicBool::new(false),
            value: UnsafeCell::new(value),
        }
    }

    /// The value, unless another thread holds it.
    #[inline(always)]
    pub fn claim(&self) -> Option<Claim<'_, T>> {
        // Construct the claim lazily: a `Claim` that is created and discarded would release the holder's claim.
        (!self.taken.swap(true, Ordering::Acquire)).then(|| Claim(self))
    }

    /// The value, unless a worker holds it until `until`. For the control thread: a worker holds a claim for one vector.
    pub fn wait(&self, until: Instant) -> Option<Claim<'_, T>> {
        let mut turns = 0u32;
        loop {
            if let Some(claim) = self.claim() {
                return Some(claim);
            }
            turns += 1;
            match turns {
                0..100 => std::hint::spin_loop(),
                100..200 => std::thread::yield_now(),
                _ if Instant::now() >= until => return None,
                _ => std::thread::sleep(SHORT),
            }
        }
    }
}

impl<T> Deref for Claim<'_, T> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: this claim is the only existing one.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> DerefMut for Claim<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and the claim is borrowed exclusively.
        unsafe { &mut *self.0.value.get() }
    }
}

impl<T> Drop for Claim<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.0.taken.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn later() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    #[test]
    fn a_wait_has_a_limit() {
        let guarded = Guarded::new(0u64);
        let claim = guarded.claim().unwrap();
        assert!(guarded.wait(Instant::now() + SHORT).is_none());
        drop(claim);
        assert!(guarded.wait(Instant::now()).is_some());
    }

    #[test]
    fn one_at_a_time() {
        let guarded = Guarded::new(0u64);
        let claim = guarded.claim().unwrap();
        assert!(guarded.claim().is_none());
        drop(claim);
        std::thread::scope(|s| {
            for _ in 0..2 {
                s.spawn(|| (0..10_000).for_each(|_| *guarded.wait(later()).unwrap() += 1));
            }
        });
        assert_eq!(*guarded.wait(later()).unwrap(), 20_000);
    }
}
