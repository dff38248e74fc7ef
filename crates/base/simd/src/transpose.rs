//! Header words of eight packets at once: eight rows of bytes become eight columns of words.

/// Words that one call turns into columns.
pub const WORDS: usize = 8;

/// Plain definition: word `k` of row `r`, big-endian, at `[k][r]`.
///
/// # Safety
/// 32 bytes are readable at every address.
#[inline(always)]
pub(crate) unsafe fn load_words_scalar(at: [*const u8; 8]) -> [[u32; 8]; WORDS] {
    let mut out = [[0; 8]; WORDS];
    for (row, from) in at.into_iter().enumerate() {
        // SAFETY: the caller's contract.
        let words = unsafe { from.cast::<[[u8; 4]; WORDS]>().read_unaligned() };
        for k in 0..WORDS {
            out[k][row] = u32::from_be_bytes(words[k]);
        }
    }
    out
}

#[cfg(target_arch = "x86_64")]
pub(crate) mod x86 {
    use super::WORDS;
    use core::arch::x86_64::*;

    /// An 8 x 8 transpose in registers, bytes swapped on the way in.
    ///
    /// # Safety
    /// 32 bytes are readable at every address, and the processor has AVX2.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(crate) unsafe fn load_words_v3(at: [*const u8; 8]) -> [[u32; 8]; WORDS] {
        let swap = _mm256_setr_epi8(
            3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8, 15, 14, 13, 12, 3, 2, 1, 0, 7, 6, 5, 4, 11, 10,
            9, 8, 15, 14, 13, 12,
        );
        // SAFETY: the caller's contract.
        let row = |r: usize| unsafe { _mm256_shuffle_epi8(_mm256_loadu_si256(at[r].cast()), swap) };
        let pair = |a, b| (_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
        let quad = |a, b| (_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b));
        let half = |r: usize| {
            let ((a, b), (c, d)) = (pair(row(r), row(r + 1)), pair(row(r + 2), row(r + 3)));
            let ((w0, w1), (w2, w3)) = (quad(a, c), quad(b, d));
            [w0, w1, w2, w3]
        };
        let (low, high) = (half(0), half(4));
        let mut out = [[0; 8]; WORDS];
        for k in 0..4 {
            let first = _mm256_permute2x128_si256::<0x20>(low[k], high[k]);
            let second = _mm256_permute2x128_si256::<0x31>(low[k], high[k]);
            // SAFETY: eight words fit each array.
            unsafe {
                _mm256_storeu_si256(out[k].as_mut_ptr().cast(), first);
                _mm256_storeu_si256(out[k + 4].as_mut_ptr().cast(), second);
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use crate::{Isa, Kernel, Level, call};

    struct Load<'a>(&'a [u8]);
    impl Kernel for Load<'_> {
        type Out = [[u32; 8]; super::WORDS];
        #[inline(always)]
        fn run<I: Isa>(self, isa: I) -> Self::Out {
            let at = std::array::from_fn(|r| self.0[r * 33..].as_ptr());
            // SAFETY: 8 rows of 33 bytes and 32 more are in the slice.
            unsafe { isa.load_words(at) }
        }
    }

    #[test]
    fn every_level_agrees_with_the_plain_definition() {
        let bytes: Vec<u8> = (0..300u32).map(|i| (i * 7 + i / 13) as u8).collect();
        for level in Level::available() {
            let got = call(level, Load(&bytes));
            for (k, column) in got.iter().enumerate() {
                for (r, word) in column.iter().enumerate() {
                    let at = r * 33 + 4 * k;
                    assert_eq!(
                        *word,
                        u32::from_be_bytes([
                            bytes[at],
                            bytes[at + 1],
                            bytes[at + 2],
                            bytes[at + 3]
                        ]),
                        "{level}"
                    );
                }
            }
        }
    }
}
