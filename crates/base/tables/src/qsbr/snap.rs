//! One published value: a writer that replaces it, and readers.

use std::ops::Deref;
use std::sync::Arc;

use super::{Domain, Guard};
use crate::sync::{AtomicPtr, Ordering};

/// The pointer to the published value.
struct Place<T: Send + Sync + 'static> {
    /// Always from `Box::into_raw`, never null.
    ptr: AtomicPtr<T>,
    domain: Arc<Domain>,
}

impl<T: Send + Sync + 'static> Place<T> {
    /// Stores `new` and retires the old value.
    fn replace(&self, new: *mut T) -> u64 {
        let old = self.ptr.swap(new, Ordering::AcqRel);
        // SAFETY: `ptr` only ever contains pointers from `Box::into_raw`, and each is removed exactly once,
        // by a swap. The domain waits for readers of the value before it drops the value.
        self.domain.retire(unsafe { Box::from_raw(old) })
    }
}

impl<T: Send + Sync + 'static> Drop for Place<T> {
    fn drop(&mut self) {
        let last = self.ptr.load(Ordering::Acquire);
        // SAFETY: as in `replace`; this is the last use of `ptr`. The value is retired and not dropped
        // here, because a reader may hold a reference that outlives its `Snap`.
        self.domain.retire(unsafe { Box::from_raw(last) });
    }
}

/// A reader's handle on a published value. Clone it into every worker.
pub struct Snap<T: Send + Sync + 'static>(Arc<Place<T>>);

impl<T: Send + Sync + 'static> Snap<T> {
    /// The current value. Read it once per frame, so that the frame sees one version.
    ///
    /// # Panics
    /// If the guard is of another [`Domain`] than the publisher's: it would protect nothing.
    #[inline]
    pub fn read<'g>(&self, guard: Guard<'g>) -> &'g T {
        assert!(
            Arc::ptr_eq(guard.domain(), &self.0.domain),
            "a guard of one Domain cannot protect a value of another"
        );
        let ptr = self.0.ptr.load(Ordering::Acquire);
        // SAFETY: `ptr` comes from `Box::into_raw` and is dropped only after a grace period of this domain that
        // began after it was unlinked; the reader behind `guard` is online and not quiescent during 'g,
        // so no such period ends before 'g does.
        unsafe { &*ptr }
    }
}

impl<T: Send + Sync + 'static> Clone for Snap<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

/// The one writer of a published value.
pub struct Publisher<T: Send + Sync + 'static>(Arc<Place<T>>);

impl<T: Send + Sync + 'static> Publisher<T> {
    /// Publishes a first value.
    pub fn new(domain: &Arc<Domain>, value: T) -> Self {
        Self(Arc::new(Place {
            ptr: AtomicPtr::new(Box::into_raw(Box::new(value))),
            domain: domain.clone(),
        }))
    }

    /// A handle for readers.
    pub fn snap(&self) -> Snap<T> {
        Snap(self.0.clone())
    }

    /// Replaces the value and returns the ticket of the change, without waiting for readers.
    pub fn publish(&mut self, value: T) -> u64 {
        self.0.replace(Box::into_raw(Box::new(value)))
    }

    /// The published value.
    pub fn current(&self) -> &T {
        let ptr = self.0.ptr.load(Ordering::Acquire);
        // SAFETY: only `publish` unlinks the value, and it needs `&mut self`; `Place::drop` runs only after this
        // publisher's reference to the `Arc` was dropped.
        unsafe { &*ptr }
    }

    /// The domain that protects the value.
    pub fn domain(&self) -> &Arc<Domain> {
        &self.0.domain
    }
}

impl<T: Send + Sync + 'static> Deref for Publisher<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.current()
    }
}
