//! The number of sorted bounds that a key exceeds: one step down a search tree.

/// Binary search without a branch.
#[inline(always)]
pub(crate) fn above_scalar<const N: usize>(bounds: &[i64; N], x: i64) -> usize {
    let (mut at, mut left) = (0, N);
    while left > 0 {
        let half = left.div_ceil(2);
        at += half * usize::from(x > bounds[at + half - 1]);
        left -= half;
    }
    at
}

#[cfg(target_arch = "x86_64")]
pub(crate) mod x86 {
    use std::arch::x86_64::*;

    /// Four or eight comparisons at once. The population count does not depend on their order, so that no data crosses lanes,
    /// as in the code that a compiler generates.
    ///
    /// # Safety
    /// The processor has x86-64-v3.
    #[inline(always)]
    pub(crate) unsafe fn above_v3<const N: usize>(bounds: &[i64; N], x: i64) -> usize {
        let mut above = 0;
        let (fours, rest) = bounds.as_chunks::<4>();
        // SAFETY: the caller's contract; each chunk is 32 readable bytes.
        unsafe {
            let x4 = _mm256_set1_epi64x(x);
            let over = |four: &[i64; 4]| {
                _mm256_cmpgt_epi64(x4, _mm256_loadu_si256(four.as_ptr().cast::<__m256i>()))
            };
            let (pairs, single) = fours.as_chunks::<2>();
            for [one, two] in pairs {
                let both = _mm256_packs_epi32(over(one), over(two));
                above += _mm256_movemask_ps(_mm256_castsi256_ps(both)).count_ones();
            }
            for one in single {
                above += _mm256_movemask_pd(_mm256_castsi256_pd(over(one))).count_ones();
            }
        }
        above as usize + rest.iter().map(|&b| usize::from(x > b)).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use crate::{Isa, Kernel, Level, call};

    struct Above<'a, const N: usize>(&'a [i64; N], i64);

    impl<const N: usize> Kernel for Above<'_, N> {
        type Out = usize;
        #[inline(always)]
        fn run<I: Isa>(self, isa: I) -> usize {
            isa.above(self.0, self.1)
        }
    }

    fn check<const N: usize>(bounds: &[i64; N], x: i64) {
        let wanted = bounds.iter().filter(|&&b| b < x).count();
        for level in Level::available() {
            assert_eq!(
                call(level, Above(bounds, x)),
                wanted,
                "{level} {bounds:?} {x}"
            );
        }
    }

    #[test]
    fn every_level_counts_alike() {
        let mut state = 88_172_645_463_325_252u64;
        let mut random = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as i64
        };
        for round in 0..300 {
            // Bounds with large distances, or with so small ones that many are equal.
            let narrow = if round % 2 == 0 { 0 } else { 60 };
            let mut bounds: [i64; 17] = std::array::from_fn(|_| random() >> narrow);
            bounds.sort_unstable();
            let near = bounds[round % 17];
            let around = [near, near.saturating_sub(1), near.saturating_add(1)];
            for x in around.into_iter().chain([random(), i64::MAX, i64::MIN]) {
                check(&bounds, x);
                check::<8>(bounds.first_chunk().unwrap(), x);
                check::<5>(bounds.first_chunk().unwrap(), x);
                check::<3>(bounds.first_chunk().unwrap(), x);
            }
        }
    }
}
