//! The synchronisation primitives of this crate, which loom can replace.

// tidy: allow(Mutex) re-exported for the domain's registration
#[cfg(loom)]
pub(crate) use loom::{
    cell::UnsafeCell,
    sync::{
        Mutex, MutexGuard,
        atomic::{AtomicPtr, AtomicU64, Ordering, fence},
    },
};
#[cfg(not(loom))]
pub(crate) use std::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicPtr, AtomicU64, Ordering, fence},
};

/// Locks, also after a panic of another thread: the guarded lists are valid between any two statements.
pub(crate) fn lock<T>(m: &Mutex<T>) -> MutexGuard<'_, T> {
    m.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// `std`'s cell with loom's interface.
#[cfg(not(loom))]
pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

#[cfg(not(loom))]
impl<T> UnsafeCell<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }
    #[inline(always)]
    pub(crate) fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0.get())
    }
}
