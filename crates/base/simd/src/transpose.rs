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
pub(crate) unsafe fn load_words_scalar<const K: usize>(
    at: impl Fn(usize) -> *const u8,
    out: &[*mut u32; K],
) {
    for row in 0..8 {
        // SAFETY: the caller's contract.
        let words = unsafe { at(row).cast::<[[u8; 4]; K]>().read_unaligned() };
        for (word, to) in words.into_iter().zip(out) {
            // SAFETY: the caller's contract.
            unsafe { to.add(row).write(u32::from_be_bytes(word)) };
        }
    }
}

/// The kernel of [`crate::Level::Scalar`]: for x86-64-v2 if the program is built for it, otherwise plain Rust.
pub(crate) mod base {
    #[cfg(not(all(target_arch = "x86_64", target_feature = "sse4.2")))]
    pub(crate) use super::load_words_scalar as load_words;
    #[cfg(all(target_arch = "x86_64", target_feature = "sse4.2"))]
    pub(crate) use super::x86::load_words_v2 as load_words;
}

#[cfg(target_arch = "x86_64")]
pub(crate) mod x86 {
    //! Functions without `target_feature`, so that each is inlined into its caller, which has the level.

    use core::arch::x86_64::*;

    /// The order of bytes that swaps those of each word.
    #[inline(always)]
    fn swap() -> __m128i {
        // SAFETY: every processor of this architecture has SSE2.
        unsafe { _mm_setr_epi8(3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12) }
    }

    /// Transposes 4 x 4 words in each quarter of four registers, by instructions for registers of one width.
    macro_rules! columns {
        ($rows:expr, $low4:ident, $high4:ident, $low8:ident, $high8:ident) => {{
            let [a, b, c, d] = $rows;
            let (ab, cd) = ($low4(a, b), $low4(c, d));
            let (ef, gh) = ($high4(a, b), $high4(c, d));
            [$low8(ab, cd), $high8(ab, cd), $low8(ef, gh), $high8(ef, gh)]
        }};
    }

    /// Transposes of 4 x 4 words, rows 0 to 3 and rows 4 to 7. Bytes are swapped at the end, once for each column.
    ///
    /// # Safety
    /// [`super::bytes_read`]`(K)` bytes are readable at every address, eight words writable at every `out`, which do not
    /// overlap.
    #[cfg(target_feature = "sse4.2")]
    #[inline(always)]
    pub(crate) unsafe fn load_words_v2<const K: usize>(
        at: impl Fn(usize) -> *const u8,
        out: &[*mut u32; K],
    ) {
        for first in (0..K).step_by(4) {
            for half in [0, 4] {
                // SAFETY: the caller's contract; the program is built for SSSE3.
                unsafe {
                    let order = swap();
                    let row = |r: usize| _mm_loadu_si128(at(half + r).add(4 * first).cast());
                    let rows = [row(0), row(1), row(2), row(3)];
                    let columns = columns!(
                        rows,
                        _mm_unpacklo_epi32,
                        _mm_unpackhi_epi32,
                        _mm_unpacklo_epi64,
                        _mm_unpackhi_epi64
                    );
                    for (to, column) in out[first..].iter().zip(columns) {
                        _mm_storeu_si128(to.add(half).cast(), _mm_shuffle_epi8(column, order));
                    }
                }
            }
        }
    }

    /// As `load_words_v2`. Rows `r` and `r + 4` share a register, so that the columns are in row order.
    ///
    /// # Safety
    /// As for `load_words_v2`, and the processor has AVX2.
    #[inline(always)]
    pub(crate) unsafe fn load_words_v3<const K: usize>(
        at: impl Fn(usize) -> *const u8,
        out: &[*mut u32; K],
    ) {
        for first in (0..K).step_by(4) {
            // SAFETY: the caller's contract.
            unsafe {
                let order = _mm256_broadcastsi128_si256(swap());
                let row = |r: usize| {
                    let [low, high] = [at(r), at(r + 4)].map(|at| at.add(4 * first));
                    _mm256_loadu2_m128i(high.cast(), low.cast())
                };
                let rows = [row(0), row(1), row(2), row(3)];
                let columns = columns!(
                    rows,
                    _mm256_unpacklo_epi32,
                    _mm256_unpackhi_epi32,
                    _mm256_unpacklo_epi64,
                    _mm256_unpackhi_epi64
                );
                for (to, column) in out[first..].iter().zip(columns) {
                    _mm256_storeu_si256(to.cast(), _mm256_shuffle_epi8(column, order));
                }
            }
        }
    }

    /// As [`load_words_v3`], with rows `r`, `r + 4`, `r + 8` and `r + 12` in one register.
    ///
    /// # Safety
    /// As for `load_words_v2`, with 16 words at every `out`, and the processor has AVX-512 F and BW.
    #[inline(always)]
    pub(crate) unsafe fn load_sixteen_v4<const K: usize>(
        at: impl Fn(usize) -> *const u8,
        out: &[*mut u32; K],
    ) {
        // An array: with each address computed where it is used, `ethernet-input` took 13.7 cycles a packet of the mix, not 12.6.
        let at: [*const u8; 16] = std::array::from_fn(at);
        for first in (0..K).step_by(4) {
            // SAFETY: the caller's contract.
            unsafe {
                let order = _mm512_broadcast_i32x4(swap());
                let row = |r: usize| {
                    let [a, b, c, d] = [r, r + 4, r + 8, r + 12]
                        .map(|r| _mm_loadu_si128(at[r].add(4 * first).cast()));
                    let low = _mm512_inserti32x4::<1>(_mm512_castsi128_si512(a), b);
                    _mm512_inserti32x4::<3>(_mm512_inserti32x4::<2>(low, c), d)
                };
                let rows = [row(0), row(1), row(2), row(3)];
                let columns = columns!(
                    rows,
                    _mm512_unpacklo_epi32,
                    _mm512_unpackhi_epi32,
                    _mm512_unpacklo_epi64,
                    _mm512_unpackhi_epi64
                );
                for (to, column) in out[first..].iter().zip(columns) {
                    _mm512_storeu_si512(to.cast(), _mm512_shuffle_epi8(column, order));
                }
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
    pub(crate) unsafe fn load_words<const K: usize>(
        at: impl Fn(usize) -> *const u8,
        out: &[*mut u32; K],
    ) {
        for first in (0..K).step_by(4) {
            for half in [0, 4] {
                // SAFETY: the caller's contract.
                unsafe {
                    let row = |r: usize| {
                        vreinterpretq_u32_u8(vrev32q_u8(vld1q_u8(at(half + r).add(4 * first))))
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
                isa.load_words(at, &eight);
                let others = eight.map(|to| to.add(8));
                isa.load_sixteen(|r| at(8 + r), &others);
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
