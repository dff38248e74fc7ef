//! The number of sorted bounds that a key exceeds: one step down a search tree. The number of bytes up to a limit.

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

/// The kernel of [`crate::Level::Scalar`]: for x86-64-v2 if the program is built for it, otherwise plain Rust.
pub(crate) mod base {
    #[cfg(not(all(target_arch = "x86_64", target_feature = "sse4.2")))]
    pub(crate) use super::above_scalar as above;
    #[cfg(all(target_arch = "x86_64", target_feature = "sse4.2"))]
    pub(crate) use super::x86::above_v2 as above;
}

/// The number of bytes of two words that are at most `limit`.
#[inline(always)]
pub fn bytes_up_to(words: [u64; 2], limit: u8) -> u32 {
    #[cfg(target_arch = "x86_64")]
    {
        x86::bytes_up_to(words, limit)
    }
    #[cfg(target_arch = "aarch64")]
    {
        neon::bytes_up_to(words, limit)
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        bytes_up_to_scalar(words, limit)
    }
}

/// Compares the bytes of each word at once.
#[cfg(any(test, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
#[inline(always)]
fn bytes_up_to_scalar(words: [u64; 2], limit: u8) -> u32 {
    const ONES: u64 = u64::MAX / 0xff;
    const HIGHEST: u64 = 0x80 * ONES;
    let limit = u64::from(limit) * ONES;
    let up_to = |word: u64| {
        // The lower bits decide where the highest bits are equal. No byte takes a bit from the next one, because the highest bit of each
        // minuend is set.
        let lower = (limit | HIGHEST) - (word & !HIGHEST);
        ((limit & !word) | (!(limit ^ word) & lower)) & HIGHEST
    };
    words.into_iter().map(|word| up_to(word).count_ones()).sum()
}

#[cfg(target_arch = "x86_64")]
pub(crate) mod x86 {
    use std::arch::x86_64::*;

    /// One comparison of 16 bytes: each processor of this architecture has vectors of 16 bytes.
    #[inline(always)]
    pub(crate) fn bytes_up_to([first, second]: [u64; 2], limit: u8) -> u32 {
        // SAFETY: every processor of this architecture has SSE2.
        let equal = unsafe {
            let bytes = _mm_set_epi64x(second as i64, first as i64);
            let lower = _mm_min_epu8(bytes, _mm_set1_epi8(limit as i8));
            _mm_movemask_epi8(_mm_cmpeq_epi8(lower, bytes))
        };
        (equal as u32).count_ones()
    }

    /// Two comparisons at once. A comparison that holds is -1: subtracting it counts, and lanes are added once.
    #[cfg(target_feature = "sse4.2")]
    #[inline(always)]
    pub(crate) fn above_v2<const N: usize>(bounds: &[i64; N], x: i64) -> usize {
        let (pairs, rest) = bounds.as_chunks::<2>();
        // SAFETY: the program is built for SSE4.2; each chunk is 16 readable bytes.
        let above = unsafe {
            let wanted = _mm_set1_epi64x(x);
            let mut count = _mm_setzero_si128();
            for pair in pairs {
                let bounds = _mm_loadu_si128(pair.as_ptr().cast());
                count = _mm_sub_epi64(count, _mm_cmpgt_epi64(wanted, bounds));
            }
            _mm_cvtsi128_si64(count) + _mm_extract_epi64::<1>(count)
        };
        above as usize + rest.iter().map(|&b| usize::from(x > b)).sum::<usize>()
    }

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

#[cfg(target_arch = "aarch64")]
pub(crate) mod neon {
    use std::arch::aarch64::*;

    /// One comparison of 16 bytes; the highest bit of each result counts.
    #[inline(always)]
    pub(crate) fn bytes_up_to([first, second]: [u64; 2], limit: u8) -> u32 {
        // SAFETY: every processor of this architecture that runs Linux has Advanced SIMD.
        let count = unsafe {
            let bytes = vcombine_u8(vcreate_u8(first), vcreate_u8(second));
            vaddvq_u8(vshrq_n_u8::<7>(vcleq_u8(bytes, vdupq_n_u8(limit))))
        };
        u32::from(count)
    }

    /// Two comparisons at once. A comparison that holds is -1: subtracting it counts, and lanes are added once.
    ///
    /// # Safety
    /// The processor has Advanced SIMD.
    #[inline(always)]
    pub(crate) unsafe fn above<const N: usize>(bounds: &[i64; N], x: i64) -> usize {
        let (pairs, rest) = bounds.as_chunks::<2>();
        // SAFETY: the caller's contract; each chunk is 16 readable bytes.
        let above = unsafe {
            let wanted = vdupq_n_s64(x);
            let mut count = vdupq_n_u64(0);
            for pair in pairs {
                count = vsubq_u64(count, vcgtq_s64(wanted, vld1q_s64(pair.as_ptr())));
            }
            vaddvq_u64(count)
        };
        above as usize + rest.iter().map(|&b| usize::from(x > b)).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::{bytes_up_to, bytes_up_to_scalar};
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
    fn every_pair_of_byte_and_limit_is_compared() {
        for limit in 0..=u8::MAX {
            for of in 0..=u8::MAX {
                // The bytes beside are the extremes that could borrow or carry.
                for beside in [0, u8::MAX] {
                    let first = [beside, of, beside, of, of, beside, beside, of];
                    let second = [of, beside, beside, beside, of, of, beside, beside];
                    let bytes = first.iter().chain(&second);
                    let wanted = bytes.filter(|&&byte| byte <= limit).count() as u32;
                    let words = [u64::from_le_bytes(first), u64::from_le_bytes(second)];
                    assert_eq!(bytes_up_to(words, limit), wanted, "{of} {limit}");
                    assert_eq!(bytes_up_to_scalar(words, limit), wanted, "{of} {limit}");
                }
            }
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
