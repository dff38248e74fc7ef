//! The shared free list: a bounded lock-free queue of batches of buffer indices, many producers, many consumers.
//!
//! Each cell carries a sequence number that states which side may use it: equal to the position when empty, position + 1 when
//! full (D. Vyukov's bounded queue). First in, first out: a pool as large as the cache therefore returns cold buffers.

use crate::sync::{AtomicUsize, Ordering, UnsafeCell};

/// Indices in one batch.
pub const BATCH: usize = 64;

struct Cell {
    turn: AtomicUsize,
    batch: UnsafeCell<[u32; BATCH]>,
}

/// A bounded lock-free queue of full batches.
pub struct BatchRing {
    cells: Box<[Cell]>,
    mask: usize,
    head: Line,
    tail: Line,
}

/// A counter on a cache line that contains nothing else.
#[repr(align(64))]
struct Line(AtomicUsize);

// SAFETY: only the thread that moved head or tail over a cell touches its batch, and `turn` (acquire / release) orders the
// reads and writes.
unsafe impl Sync for BatchRing {}
// SAFETY: the ring owns plain integers.
unsafe impl Send for BatchRing {}

impl BatchRing {
    /// A ring for at least `batches` batches.
    pub fn new(batches: usize) -> Self {
        let size = batches.max(2).next_power_of_two();
        let cell = |i| Cell {
            turn: AtomicUsize::new(i),
            batch: UnsafeCell::new([0; BATCH]),
        };
        BatchRing {
            cells: (0..size).map(cell).collect(),
            mask: size - 1,
            head: Line(AtomicUsize::new(0)),
            tail: Line(AtomicUsize::new(0)),
        }
    }

    /// Append a batch; false when the ring is full, or when the thread that last emptied the next cell has not released the
    /// cell yet: the caller keeps the batch and tries again later.
    pub fn push(&self, batch: &[u32; BATCH]) -> bool {
        self.turn(&self.tail.0, 0, |cell| {
            cell.with_mut(|p| {
                // SAFETY: `turn` gives this thread exclusive access to the cell until it publishes the next sequence number.
                unsafe { *p = *batch }
            })
        })
        .is_some()
    }

    /// Take the oldest batch.
    pub fn pop(&self, out: &mut [u32; BATCH]) -> bool {
        self.turn(&self.head.0, 1, |cell| {
            cell.with(|p| {
                // SAFETY: as in `push`.
                unsafe { *out = *p }
            })
        })
        .is_some()
    }

    /// Batches in the ring now (approximate while other threads use it).
    pub fn len(&self) -> usize {
        let tail = self.tail.0.load(Ordering::Relaxed);
        tail.saturating_sub(self.head.0.load(Ordering::Relaxed))
            .min(self.cells.len())
    }

    /// Whether the ring holds no batch.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Claim the cell at `counter` once its sequence number is `counter + lag`, use it, publish the next sequence number.
    fn turn(
        &self,
        counter: &AtomicUsize,
        lag: usize,
        work: impl FnOnce(&UnsafeCell<[u32; BATCH]>),
    ) -> Option<()> {
        let mut at = counter.load(Ordering::Relaxed);
        loop {
            let cell = &self.cells[at & self.mask];
            let turn = cell.turn.load(Ordering::Acquire);
            match (turn.wrapping_sub(at.wrapping_add(lag))) as isize {
                0 => match counter.compare_exchange_weak(
                    at,
                    at + 1,
                    Ordering::Relaxed,
                    Ordering::Relaxed,
                ) {
                    Ok(_) => {
                        work(&cell.batch);
                        let next = if lag == 0 { at + 1 } else { at + self.mask + 1 };
                        cell.turn.store(next, Ordering::Release);
                        return Some(());
                    }
                    Err(now) => at = now,
                },
                behind if behind < 0 => return None,
                _ => at = counter.load(Ordering::Relaxed),
            }
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn batch(first: u32) -> [u32; BATCH] {
        std::array::from_fn(|i| first + i as u32)
    }

    #[test]
    fn first_in_first_out_and_bounded() {
        let ring = BatchRing::new(4);
        assert!((0..4).all(|i| ring.push(&batch(i * 100))));
        assert!(!ring.push(&batch(999)), "a full ring refuses");
        let mut out = [0; BATCH];
        for i in 0..4 {
            assert!(ring.pop(&mut out));
            assert_eq!(out, batch(i * 100));
        }
        assert!(!ring.pop(&mut out) && ring.is_empty());
    }

    #[test]
    fn threads_lose_and_double_nothing() {
        let ring = BatchRing::new(16);
        for i in 0..16 {
            assert!(ring.push(&batch(i * BATCH as u32)));
        }
        std::thread::scope(|s| {
            for _ in 0..3 {
                s.spawn(|| {
                    let mut out = [0; BATCH];
                    for _ in 0..5000 {
                        if ring.pop(&mut out) {
                            // Another thread may not have released the cell yet.
                            while !ring.push(&out) {
                                std::thread::yield_now();
                            }
                        }
                    }
                });
            }
        });
        let (mut seen, mut out) = (vec![], [0; BATCH]);
        while ring.pop(&mut out) {
            seen.extend(out);
        }
        seen.sort_unstable();
        assert_eq!(seen, (0..16 * BATCH as u32).collect::<Vec<_>>());
    }
}
