//! Random numbers by seed: the same seed gives the same simulation on every machine.

use std::cell::Cell;
use std::rc::Rc;

/// A source of numbers (splitmix64); clones share the state.
#[derive(Clone, Debug)]
pub(super) struct Random(Rc<Cell<u64>>);

impl Random {
    pub(super) fn new(seed: u64) -> Random {
        let random = Random(Rc::new(Cell::new(seed)));
        // Consecutive seeds must not produce the same sequence shifted by one.
        random.0.set(random.next());
        random
    }

    fn next(&self) -> u64 {
        let state = self.0.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.0.set(state);
        let a = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let b = (a ^ (a >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        b ^ (b >> 31)
    }

    /// A number below `end`; 0 if there is none.
    pub(super) fn below(&self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    /// True with this percentage.
    pub(super) fn percent(&self, of: usize) -> bool {
        self.below(100) < of
    }

    /// One of the values.
    pub(super) fn pick<'a, T>(&self, all: &'a [T]) -> Option<&'a T> {
        all.get(self.below(all.len()))
    }
}
