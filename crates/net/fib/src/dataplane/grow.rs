//! Arrays of atomics that one writer grows while workers read them.
//!
//! Contract: the writer changes cells in place; to grow it copies the cells into a larger array and publishes that. A reader of
//! the smaller array sees the old values until it takes a new guard, never garbage, because an object that an old value names
//! is freed only after the grace period. An index beyond the reader's array (written after its frame began) is looked up once
//! more in the newest array, so a growing table never makes a reader miss a cell.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use volley_tables::{Domain, Guard, Publisher, Snap};

/// A cell that can be created empty and copied by its one writer.
pub(crate) trait Cell: Send + Sync + 'static {
    fn empty() -> Self;
    fn copied(&self) -> Self;
}

impl Cell for AtomicU32 {
    fn empty() -> Self {
        AtomicU32::new(0)
    }
    fn copied(&self) -> Self {
        AtomicU32::new(self.load(Ordering::Relaxed))
    }
}

impl Cell for AtomicU64 {
    fn empty() -> Self {
        AtomicU64::new(0)
    }
    fn copied(&self) -> Self {
        AtomicU64::new(self.load(Ordering::Relaxed))
    }
}

/// Writer's side of a growing array.
pub(crate) struct Grow<T: Cell>(Publisher<Box<[T]>>);

impl<T: Cell> Grow<T> {
    pub fn new(domain: &Arc<Domain>, cells: usize) -> Self {
        let first: Box<[T]> = (0..cells.max(1)).map(|_| T::empty()).collect();
        Self(Publisher::new(domain, first))
    }

    /// The cell of index `i`; grows the array (doubling) if it is too short.
    pub fn cell(&mut self, i: usize) -> &T {
        self.reserve(i + 1);
        &self.0.current()[i]
    }

    /// The cell of index `i` if the array has it.
    pub fn get(&self, i: usize) -> Option<&T> {
        self.0.current().get(i)
    }

    /// Grows the array to at least `cells` cells.
    pub fn reserve(&mut self, cells: usize) {
        let old = self.0.current();
        if cells <= old.len() {
            return;
        }
        let len = cells.next_power_of_two();
        let mut grown = Vec::with_capacity(len);
        grown.extend(old.iter().map(Cell::copied));
        grown.resize_with(len, T::empty);
        self.0.publish(grown.into_boxed_slice());
    }

    pub fn snap(&self) -> GrowSnap<T> {
        GrowSnap(self.0.snap())
    }

    pub fn bytes(&self) -> usize {
        std::mem::size_of_val(&**self.0.current())
    }
}

/// Reader handle of a growing array.
pub(crate) struct GrowSnap<T: Cell>(Snap<Box<[T]>>);

impl<T: Cell> Clone for GrowSnap<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: Cell> GrowSnap<T> {
    #[inline(always)]
    pub fn read<'g>(&'g self, guard: Guard<'g>) -> GrowView<'g, T> {
        GrowView {
            cells: self.0.read(guard),
            snap: &self.0,
            guard,
        }
    }
}

/// The array as one reader sees it during one frame.
pub(crate) struct GrowView<'g, T: Cell> {
    cells: &'g [T],
    snap: &'g Snap<Box<[T]>>,
    guard: Guard<'g>,
}

impl<T: Cell> Clone for GrowView<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: Cell> Copy for GrowView<'_, T> {}

impl<'g, T: Cell> GrowView<'g, T> {
    #[inline(always)]
    pub fn get(&self, i: usize) -> Option<&'g T> {
        match self.cells.get(i) {
            Some(cell) => Some(cell),
            None => newest(self.snap, self.guard, i),
        }
    }

    /// Prefetches the cell of index `i`.
    #[inline(always)]
    pub fn prefetch(&self, i: u32) {
        volley_simd::prefetch(self.cells.as_ptr().wrapping_add(i as usize));
    }
}

/// The cell of index `i` of the newest array. Takes no reference to the view, so that the view stays in registers.
#[cold]
#[inline(never)]
fn newest<'g, T: Cell>(snap: &'g Snap<Box<[T]>>, guard: Guard<'g>, i: usize) -> Option<&'g T> {
    snap.read(guard).get(i)
}
