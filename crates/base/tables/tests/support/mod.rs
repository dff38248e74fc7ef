//! IPv6 batches at a level.

use volley_simd::{Isa, Kernel, Level, call};
use volley_tables::Lpm6View;

struct Batch6<'a>(&'a Lpm6View, &'a [u64], &'a [u64], &'a mut [u32]);

impl Kernel for Batch6<'_> {
    type Out = ();
    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        self.0.lookup_batch(isa, self.1, |row| self.2[row], self.3);
    }
}

/// Looks up the addresses of two halves.
pub fn batch6(level: Level, view: &Lpm6View, hi: &[u64], lo: &[u64], leaf: &mut [u32]) {
    call(level, Batch6(view, hi, lo, leaf));
}
