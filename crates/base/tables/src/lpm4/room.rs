//! Allocation of a view's memory by the writer: runs of answers, single answers, numbers of chunks and lines, pages.

use std::collections::HashMap;

use super::root::PageAllocator;
use super::view::{Full, Store, Word};

/// The maximum length of a run.
pub(super) const SLOTS: usize = 32;

/// Memory that readers may still access.
pub(super) enum Piece {
    Run {
        base: u32,
        len: u32,
    },
    /// A chunk or a line, in the writer's notation.
    Chunk(u32),
    /// A page of a paged root.
    Page(u8),
}

/// The free parts of a pool, by run length; parts from `next` on were never used.
pub(super) struct Runs {
    free: [Vec<u32>; SLOTS + 1],
    next: u32,
    end: u32,
    /// Answers in use or in the deferred-free list.
    pub(super) used: usize,
}

impl Runs {
    pub(super) fn new(leaves: usize) -> Self {
        Self {
            free: std::array::from_fn(|_| Vec::new()),
            // Index 0 is answer 0, to which every entry of an empty table refers.
            next: 1,
            end: leaves as u32,
            used: 0,
        }
    }

    pub(super) fn take(&mut self, len: u32) -> Option<u32> {
        let base = if let Some(base) = self.free[len as usize].pop() {
            base
        } else if self.next + len <= self.end {
            self.next += len;
            self.next - len
        } else {
            self.split(len)?
        };
        self.used += len as usize;
        Some(base)
    }

    /// Splits a longer free run into two.
    pub(super) fn split(&mut self, len: u32) -> Option<u32> {
        let longer = (len as usize + 1..=SLOTS).find(|&l| !self.free[l].is_empty())?;
        let base = self.free[longer].pop()?;
        self.free[longer - len as usize].push(base + len);
        Some(base)
    }

    pub(super) fn give(&mut self, base: u32, len: u32) {
        self.used -= len as usize;
        self.free[len as usize].push(base);
    }
}

/// The numbers of free chunks, or of free lines; those from `next` to `end` were never used.
#[derive(Default)]
pub(super) struct Numbers {
    pub(super) free: Vec<u32>,
    next: u32,
    pub(super) end: u32,
}

impl Numbers {
    pub(super) fn take(&mut self) -> Option<u32> {
        if let Some(chunk) = self.free.pop() {
            return Some(chunk);
        }
        (self.next < self.end).then(|| {
            self.next += 1;
            self.next - 1
        })
    }
}

pub(super) fn pack(bitmap: u32, base: u32) -> u64 {
    u64::from(bitmap) | u64::from(base) << 32
}

/// The run of a root entry: position and number of answers; a single answer may be shared.
pub(super) fn unpack(entry: u64) -> (u32, u32) {
    ((entry >> 32) as u32, (entry as u32).count_ones() + 1)
}

/// The positions of single answers. All blocks with only that answer share it.
#[derive(Default)]
pub(super) struct Singles(pub(super) HashMap<u32, Single>);

pub(super) struct Single {
    pub(super) base: u32,
    /// The number of entries that refer to the answer.
    pub(super) users: u32,
}

impl Singles {
    /// The position of `answer` for one more entry; position 0 is always answer 0.
    pub(super) fn take<W: Word>(
        &mut self,
        answer: u32,
        store: &Store<W>,
        runs: &mut Runs,
    ) -> Result<u32, Full> {
        if answer == 0 {
            return Ok(0);
        }
        if let Some(single) = self.0.get_mut(&answer) {
            single.users += 1;
            return Ok(single.base);
        }
        let base = runs.take(1).ok_or(Full)?;
        store.pool[base as usize].store(W::raw(answer));
        self.0.insert(answer, Single { base, users: 1 });
        Ok(base)
    }

    /// Adds `entries` references to `answer`.
    pub(super) fn more(&mut self, answer: u32, entries: u32) {
        if let Some(single) = self.0.get_mut(&answer) {
            single.users += entries;
        }
    }

    /// Removes one reference to the answer at `base`; returns its position if that was the last one.
    pub(super) fn give<W: Word>(&mut self, base: u32, store: &Store<W>) -> Option<(u32, u32)> {
        self.fewer(base, store, 1)
    }

    /// Removes `entries` references to the answer at `base`; returns its position if those were the last.
    pub(super) fn fewer<W: Word>(
        &mut self,
        base: u32,
        store: &Store<W>,
        entries: u32,
    ) -> Option<(u32, u32)> {
        let answer = W::answer(store.pool[base as usize].load());
        let single = self.0.get_mut(&answer)?;
        single.users -= entries;
        if single.users > 0 {
            return None;
        }
        self.0.remove(&answer);
        Some((base, 1))
    }
}

/// The writer's allocators: runs of several answers, shared single ones, and pages of a paged root.
pub(super) struct Room {
    pub(super) runs: Runs,
    pub(super) singles: Singles,
    pub(super) pages: PageAllocator,
}

impl Room {
    pub(super) fn new(leaves: usize) -> Self {
        Self {
            runs: Runs::new(leaves),
            singles: Singles::default(),
            pages: PageAllocator::new(),
        }
    }

    /// The memory that becomes free when `entry` is removed.
    pub(super) fn release<W: Word>(&mut self, entry: u64, store: &Store<W>) -> Option<(u32, u32)> {
        match unpack(entry) {
            (base, 1) => self.singles.give(base, store),
            run => Some(run),
        }
    }
}
