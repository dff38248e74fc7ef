//! Header words of eight packets at once: eight rows of bytes become columns of words.

/// The number of bytes that a load of `words` words reads at every address: whole 16-byte quarters of a line.
pub const fn bytes_read(words: usize) -> usize {
    words.next_multiple_of(4) * 4
}

/// Scalar definition: word `k` of row `r`, big-endian, to `out[k][r]`.
///
/// # Safety
/// `K` words are readable at every address, and eight words writable at every `out`, which do not overlap.
#[inline(always)]
pub(crate) unsafe fn load_words_scalar<const K: usize>(at: &[*const u8; 8], out: &[*mut u32; K]) {
    for (row, from) in at.iter().enumerate() {
        // SAFETY: the caller's contract.
        let words = unsafe { from.cast::<[[u8; 4]; K]>().read_unaligned() };
        for (word, to) in words.into_iter().zip(out) {
            // SAFETY: the caller's contract.
            unsafe { to.add(row).write(u32::from_be_bytes(word)) };
        }
    }
}

#[cfg(target_arch = "x86_64")]
pub(crate) mod x86 {
    use core::arch::x86_64::*;

    /// 16 bytes of two rows, one in each half of a register.
    ///
    /// # Safety
    /// 16 bytes are readable at both addresses, and the processor has AVX2.
    #[inline]
    #[target_feature(enable = "avx2")]
    unsafe fn two_rows(low: *const u8, high: *const u8) -> __m256i {
        // SAFETY: the caller's contract.
        unsafe { _mm256_loadu2_m128i(high.cast(), low.cast()) }
    }

    /// Transposes of 4 x 4 words in both halves of registers. Rows `r` and `r + 4` share a register, so that the columns are
    /// in row order. Bytes are swapped at the end, once for each column.
    ///
    /// # Safety
    /// [`super::bytes_read`]`(K)` bytes are readable at every address, eight words writable at every `out`, which do not
    /// overlap, and the processor has AVX2.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(crate) unsafe fn load_words_v3<const K: usize>(at: &[*const u8; 8], out: &[*mut u32; K]) {
        let swap = _mm256_setr_epi8(
            3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12, 3, 2, 1, 0, 7, 6, 5, 4, 11, 10,
            9, 8, 15, 14, 13, 12,
        );
        for first in (0..K).step_by(4) {
            // SAFETY: the caller's contract.
            let row =
                |r: usize| unsafe { two_rows(at[r].add(4 * first), at[r + 4].add(4 * first)) };
            let (a, b, c, d) = (row(0), row(1), row(2), row(3));
            let (ab, cd) = (_mm256_unpacklo_epi32(a, b), _mm256_unpacklo_epi32(c, d));
            let (ef, gh) = (_mm256_unpackhi_epi32(a, b), _mm256_unpackhi_epi32(c, d));
            let columns = [
                _mm256_unpacklo_epi64(ab, cd),
                _mm256_unpackhi_epi64(ab, cd),
                _mm256_unpacklo_epi64(ef, gh),
                _mm256_unpackhi_epi64(ef, gh),
            ];
            for (to, column) in out[first..].iter().zip(columns) {
                // SAFETY: the caller's contract.
                unsafe { _mm256_storeu_si256(to.cast(), _mm256_shuffle_epi8(column, swap)) };
            }
        }
    }

    /// 16 bytes of four rows, one in each quarter of a register.
    ///
    /// # Safety
    /// 16 bytes are readable at every address, and the processor has AVX-512.
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn four_rows(at: [*const u8; 4]) -> __m512i {
        // SAFETY: the caller's contract.
        let [a, b, c, d] = at.map(|at| unsafe { _mm_loadu_si128(at.cast()) });
        let low = _mm512_inserti32x4::<1>(_mm512_castsi128_si512(a), b);
        _mm512_inserti32x4::<3>(_mm512_inserti32x4::<2>(low, c), d)
    }

    /// As [`load_words_v3`], with rows `r`, `r + 4`, `r + 8` and `r + 12` in one register.
    ///
    /// # Safety
    /// [`super::bytes_read`]`(K)` bytes are readable at every address, 16 words writable at every `out`, which do not
    /// overlap, and the processor has AVX-512 F and BW.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    pub(crate) unsafe fn load_sixteen_v4<const K: usize>(
        at: &[*const u8; 16],
        out: &[*mut u32; K],
    ) {
        let swap = _mm512_broadcast_i32x4(_mm_setr_epi8(
            3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12,
        ));
        for first in (0..K).step_by(4) {
            let row = |r: usize| {
                let four = [at[r], at[r + 4], at[r + 8], at[r + 12]];
                // SAFETY: the caller's contract.
                unsafe { four_rows(four.map(|at| at.add(4 * first))) }
            };
            let (a, b, c, d) = (row(0), row(1), row(2), row(3));
            let (ab, cd) = (_mm512_unpacklo_epi32(a, b), _mm512_unpacklo_epi32(c, d));
            let (ef, gh) = (_mm512_unpackhi_epi32(a, b), _mm512_unpackhi_epi32(c, d));
            let columns = [
                _mm512_unpacklo_epi64(ab, cd),
                _mm512_unpackhi_epi64(ab, cd),
                _mm512_unpacklo_epi64(ef, gh),
                _mm512_unpackhi_epi64(ef, gh),
            ];
            for (to, column) in out[first..].iter().zip(columns) {
                // SAFETY: the caller's contract.
                unsafe { _mm512_storeu_si512(to.cast(), _mm512_shuffle_epi8(column, swap)) };
            }
        }
    }
}

#[cfg(target_arch = "aarch64")]
pub(crate) mod neon {
    use core::arch::aarch64::*;

    /// Transposes of 4 x 4 words, rows 0 to 3 and rows 4 to 7. Bytes are swapped when a row is loaded.
    ///
    /// # Safety
    /// [`super::bytes_read`]`(K)` bytes are readable at every address, eight words writable at every `out`, which do not
    /// overlap, and the processor has Advanced SIMD.
    #[inline(always)]
    pub(crate) unsafe fn load_words<const K: usize>(at: &[*const u8; 8], out: &[*mut u32; K]) {
        for first in (0..K).step_by(4) {
            for half in [0, 4] {
                // SAFETY: the caller's contract.
                unsafe {
                    let row = |r: usize| {
                        vreinterpretq_u32_u8(vrev32q_u8(vld1q_u8(at[half + r].add(4 * first))))
                    };
                    let (a, b, c, d) = (row(0), row(1), row(2), row(3));
                    let even = |x, y| vreinterpretq_u64_u32(vtrn1q_u32(x, y));
                    let odd = |x, y| vreinterpretq_u64_u32(vtrn2q_u32(x, y));
                    let columns = [
                        vtrn1q_u64(even(a, b), even(c, d)),
                        vtrn1q_u64(odd(a, b), odd(c, d)),
                        vtrn2q_u64(even(a, b), even(c, d)),
                        vtrn2q_u64(odd(a, b), odd(c, d)),
                    ];
                    for (to, column) in out[first..].iter().zip(columns) {
                        vst1q_u32(to.add(half), vreinterpretq_u32_u64(column));
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Isa, Kernel, Level, call};

    /// The words of 24 rows: of the first eight by themselves, and of the others together.
    struct Load<'a, const K: usize>(&'a [u8]);
    impl<const K: usize> Kernel for Load<'_, K> {
        type Out = [[u32; 24]; K];
        #[inline(always)]
        fn run<I: Isa>(self, isa: I) -> Self::Out {
            let at = |r: usize| self.0[r * 49..].as_ptr();
            let mut out = [[0; 24]; K];
            let eight = out.each_mut().map(|c| c.as_mut_ptr());
            // SAFETY: 24 rows of 49 bytes are in the slice, at most 48 are read; every column has 24 words.
            unsafe {
                isa.load_words(&std::array::from_fn(at), &eight);
                let others = eight.map(|to| to.add(8));
                isa.load_sixteen(&std::array::from_fn(|r| at(8 + r)), &others);
            }
            out
        }
    }

    fn check<const K: usize>(bytes: &[u8]) {
        for level in Level::available() {
            let got = call(level, Load::<K>(bytes));
            for (k, column) in got.iter().enumerate() {
                for (r, word) in column.iter().enumerate() {
                    let at = r * 49 + 4 * k;
                    let want = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
                    assert_eq!(*word, u32::from_be_bytes(want), "{level} {k} {r}");
                }
            }
        }
    }

    #[test]
    fn every_level_agrees_with_the_plain_definition() {
        let bytes: Vec<u8> = (0..24 * 49u32).map(|i| (i * 7 + i / 13) as u8).collect();
        check::<1>(&bytes);
        check::<4>(&bytes);
        check::<5>(&bytes);
        check::<8>(&bytes);
        check::<10>(&bytes);
        check::<12>(&bytes);
    }
}
