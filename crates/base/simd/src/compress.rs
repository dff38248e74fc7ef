//! Row sets, and moving the rows of a set to the front, in place or elsewhere. Vectors are split with them.

/// A set of rows of one vector, up to 1024 of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bits {
    words: [u64; 16],
    rows: usize,
}

impl Bits {
    /// The largest number of rows of a set.
    pub const MAX_ROWS: usize = 1024;

    /// The empty set over `rows` rows (at most [`Bits::MAX_ROWS`]; further rows are not in it).
    #[inline(always)]
    pub fn none(rows: usize) -> Self {
        Bits {
            words: [0; 16],
            rows: rows.min(Self::MAX_ROWS),
        }
    }

    /// The number of rows that the set covers.
    #[inline(always)]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The number of rows in the set.
    #[inline(always)]
    pub fn count(&self) -> usize {
        self.words[..self.rows.div_ceil(64)]
            .iter()
            .map(|w| w.count_ones() as usize)
            .sum()
    }

    /// The set as one bit for each row, 64 rows a word, the first row in the lowest bit.
    #[inline(always)]
    pub fn words(&self) -> &[u64; 16] {
        &self.words
    }

    /// Whether `row` is in the set.
    #[inline(always)]
    pub fn has(&self, row: usize) -> bool {
        row < self.rows && self.words[row / 64] >> (row % 64) & 1 == 1
    }

    /// Put `row` into the set.
    #[inline(always)]
    pub fn set(&mut self, row: usize) {
        if row < self.rows {
            self.words[row / 64] |= 1 << (row % 64);
        }
    }

    /// The rows that are not in the set.
    #[inline(always)]
    pub fn inverted(&self) -> Self {
        let mut out = Bits::none(self.rows);
        for i in 0..self.rows.div_ceil(64) {
            out.words[i] = !self.words[i];
        }
        if !self.rows.is_multiple_of(64) {
            out.words[self.rows / 64] &= (1 << (self.rows % 64)) - 1;
        }
        out
    }

    /// The rows in either set.
    #[inline(always)]
    pub fn or(&self, other: &Self) -> Self {
        let mut out = self.clone();
        for (a, b) in out.words.iter_mut().zip(other.words) {
            *a |= b;
        }
        out
    }

    /// The first row that is not in the set.
    #[inline(always)]
    pub fn first_missing(&self) -> Option<usize> {
        let words = self.rows.div_ceil(64);
        let word = self.words[..words].iter().position(|&w| w != u64::MAX)?;
        let row = word * 64 + self.words[word].trailing_ones() as usize;
        (row < self.rows).then_some(row)
    }

    /// The rows of the set, ascending.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.rows.div_ceil(64)).flat_map(move |w| {
            let mut left = self.words[w];
            std::iter::from_fn(move || {
                let bit = (left != 0).then(|| left.trailing_zeros() as usize)?;
                left &= left - 1;
                Some(w * 64 + bit)
            })
        })
    }
}

#[inline(always)]
pub(crate) fn rows_equal_scalar(column: &[u32], value: u32) -> Bits {
    let mut out = Bits::none(column.len());
    for (word, chunk) in out.words.iter_mut().zip(column.chunks(64)) {
        *word = chunk
            .iter()
            .enumerate()
            .fold(0, |acc, (i, &x)| acc | u64::from(x == value) << i);
    }
    out
}

#[inline(always)]
pub(crate) fn compress_scalar(bits: &Bits, src: &[u32], dst: &mut [u32]) -> usize {
    let mut out = 0;
    for row in bits.iter() {
        dst[out] = src[row];
        out += 1;
    }
    out
}

/// Rows in front of the first removed row stay where they are.
#[inline(always)]
pub(crate) fn close_gaps_scalar(bits: &Bits, words: &mut [u32]) -> usize {
    let Some(mut out) = bits.first_missing() else {
        return bits.rows();
    };
    for row in out + 1..bits.rows() {
        words[out] = words[row];
        out += usize::from(bits.has(row));
    }
    out
}

#[cfg(target_arch = "x86_64")]
pub(crate) mod x86 {
    use super::{Bits, close_gaps_scalar, compress_scalar, rows_equal_scalar};
    use core::arch::x86_64::*;

    /// Eight rows at a time: the byte positions of the set bits become a permutation (PDEP/PEXT), stored whole.
    #[inline]
    #[target_feature(enable = "avx2,bmi2,popcnt")]
    pub(crate) fn compress_v3(bits: &Bits, src: &[u32], dst: &mut [u32]) -> usize {
        if src.len() < bits.rows() || dst.len() < bits.count() + 8 {
            return compress_scalar(bits, src, dst);
        }
        // SAFETY: all rows are in `src`, and `dst` has 8 words behind the last stored row.
        unsafe { squeeze_v3(bits, 0, src.as_ptr(), dst.as_mut_ptr()) }
    }

    /// [`compress_v3`] in place, starting with the eight rows that contain the first gap.
    #[inline]
    #[target_feature(enable = "avx2,bmi2,popcnt")]
    pub(crate) fn close_gaps_v3(bits: &Bits, words: &mut [u32]) -> usize {
        let Some(gap) = bits.first_missing() else {
            return bits.rows();
        };
        if words.len() < bits.rows() {
            return close_gaps_scalar(bits, words);
        }
        let at = words.as_mut_ptr();
        // SAFETY: all rows are in `words`, and each row is stored at or before the position that it was read from.
        unsafe { squeeze_v3(bits, gap & !7, at, at) }
    }

    /// Append the rows of the set from row `first` on to the rows before. `first` is a multiple of 8, and no row before it is
    /// missing from the set.
    ///
    /// # Safety
    /// Every row can be read from `src`. Either `dst` is `src`, or `dst` has space for 8 words more than rows are stored.
    #[inline]
    #[target_feature(enable = "avx2,bmi2,popcnt")]
    unsafe fn squeeze_v3(bits: &Bits, first: usize, src: *const u32, dst: *mut u32) -> usize {
        let whole = bits.rows() / 8 * 8;
        let mut out = first;
        for row in (first..whole).step_by(8) {
            let byte = bits.words[row / 64] >> (row % 64) & 0xff;
            let lanes = _pdep_u64(byte, 0x0101_0101_0101_0101).wrapping_mul(0xff);
            let order = _pext_u64(0x0706_0504_0302_0100, lanes);
            // SAFETY: row + 8 <= whole, and out <= row: in place, only rows that have been read are overwritten; elsewhere
            // there are 8 words behind the stored rows.
            unsafe {
                let index = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(order as i64));
                let data = _mm256_loadu_si256(src.add(row).cast());
                let packed = _mm256_permutevar8x32_epi32(data, index);
                _mm256_storeu_si256(dst.add(out).cast(), packed);
            }
            out += byte.count_ones() as usize;
        }
        for row in whole.max(first)..bits.rows() {
            // SAFETY: a row of the set, and the position behind the stored rows, which is never behind the row.
            unsafe { *dst.add(out) = *src.add(row) };
            out += usize::from(bits.has(row));
        }
        out
    }

    /// Sixteen rows at a time. The compressed register is stored whole: VPCOMPRESSD to memory costs many times as much on
    /// Zen 4.
    #[inline]
    #[target_feature(enable = "avx512f,bmi2,popcnt")]
    pub(crate) fn compress_v4(bits: &Bits, src: &[u32], dst: &mut [u32]) -> usize {
        if src.len() < bits.rows() || dst.len() < bits.count() + 16 {
            return compress_scalar(bits, src, dst);
        }
        // SAFETY: all rows are in `src`, and `dst` has 16 words behind the last stored row.
        unsafe { squeeze_v4(bits, 0, src.as_ptr(), dst.as_mut_ptr()) }
    }

    /// [`compress_v4`] in place, starting with the sixteen rows that contain the first gap.
    #[inline]
    #[target_feature(enable = "avx512f,bmi2,popcnt")]
    pub(crate) fn close_gaps_v4(bits: &Bits, words: &mut [u32]) -> usize {
        let Some(gap) = bits.first_missing() else {
            return bits.rows();
        };
        if words.len() < bits.rows() {
            return close_gaps_scalar(bits, words);
        }
        let at = words.as_mut_ptr();
        // SAFETY: all rows are in `words`, and each row is stored at or before the position that it was read from.
        unsafe { squeeze_v4(bits, gap & !15, at, at) }
    }

    /// [`squeeze_v3`], sixteen rows at a time; `first` is a multiple of 16.
    ///
    /// # Safety
    /// Every row can be read from `src`. Either `dst` is `src`, or `dst` has space for 16 words more than rows are stored.
    #[inline]
    #[target_feature(enable = "avx512f,bmi2,popcnt")]
    unsafe fn squeeze_v4(bits: &Bits, first: usize, src: *const u32, dst: *mut u32) -> usize {
        let whole = bits.rows() / 16 * 16;
        let mut out = first;
        for row in (first..whole).step_by(16) {
            let set = (bits.words[row / 64] >> (row % 64)) as u16;
            // SAFETY: row + 16 <= whole, and out <= row: as in `squeeze_v3`.
            unsafe {
                let data = _mm512_loadu_si512(src.add(row).cast());
                let packed = _mm512_maskz_compress_epi32(set, data);
                _mm512_storeu_si512(dst.add(out).cast(), packed);
            }
            out += set.count_ones() as usize;
        }
        if whole < bits.rows() {
            let there = (1 << (bits.rows() - whole)) - 1;
            let set = (bits.words[whole / 64] >> (whole % 64)) as u16 & there;
            // SAFETY: only existing rows are read, and only rows of the set are stored, behind the others.
            unsafe {
                let data = _mm512_maskz_loadu_epi32(there, src.add(whole).cast());
                let packed = _mm512_maskz_compress_epi32(set, data);
                let places = (1 << set.count_ones()) - 1;
                _mm512_mask_storeu_epi32(dst.add(out).cast(), places, packed);
            }
            out += set.count_ones() as usize;
        }
        out
    }

    /// Compare eight rows at a time and gather the sign bits.
    #[inline]
    #[target_feature(enable = "avx2,bmi2,popcnt")]
    pub(crate) fn rows_equal_v3(column: &[u32], value: u32) -> Bits {
        let rows = column.len().min(Bits::MAX_ROWS);
        let whole = rows / 8 * 8;
        let mut out = rows_equal_scalar(&column[whole..rows], value);
        let tail = out.words[0];
        out = Bits::none(rows);
        let wanted = _mm256_set1_epi32(value as i32);
        for row in (0..whole).step_by(8) {
            // SAFETY: row + 8 <= whole <= column.len().
            let eq = unsafe {
                _mm256_cmpeq_epi32(_mm256_loadu_si256(column.as_ptr().add(row).cast()), wanted)
            };
            let byte = _mm256_movemask_ps(_mm256_castsi256_ps(eq)) as u8;
            out.words[row / 64] |= u64::from(byte) << (row % 64);
        }
        if whole < rows {
            out.words[whole / 64] |= tail << (whole % 64);
        }
        out
    }

    /// Compare sixteen rows at a time.
    #[inline]
    #[target_feature(enable = "avx512f,bmi2,popcnt")]
    pub(crate) fn rows_equal_v4(column: &[u32], value: u32) -> Bits {
        let rows = column.len().min(Bits::MAX_ROWS);
        let wanted = _mm512_set1_epi32(value as i32);
        let mut out = Bits::none(rows);
        for row in (0..rows).step_by(16) {
            let there = (u32::MAX >> 16) >> (16 - (rows - row).min(16));
            // SAFETY: only existing rows are read.
            let words =
                unsafe { _mm512_maskz_loadu_epi32(there as u16, column.as_ptr().add(row).cast()) };
            let equal = _mm512_mask_cmpeq_epi32_mask(there as u16, words, wanted);
            out.words[row / 64] |= u64::from(equal) << (row % 64);
        }
        out
    }
}

/// Kernels for registers of 16 bytes, generic over the instructions that they need: Advanced SIMD, and x86-64-v2.
#[cfg(any(
    target_arch = "aarch64",
    all(target_arch = "x86_64", target_feature = "sse4.2")
))]
mod four {
    use super::{Bits, close_gaps_scalar, compress_scalar, rows_equal_scalar};

    /// Instructions on registers of four words.
    pub(super) trait Four {
        /// Store at `to` the bytes that `order` selects from the four words at `from`.
        ///
        /// # Safety
        /// Four words are readable at `from` and writable at `to`.
        unsafe fn shuffle(from: *const u32, order: &[u8; 16], to: *mut u32);

        /// The set of rows whose word equals `value`, of the 16 words at `at`.
        ///
        /// # Safety
        /// 16 words are readable at `at`.
        unsafe fn equal(at: *const u32, value: u32) -> u16;
    }

    /// For each set of four rows, the bytes of its rows in order. Bytes behind the last one are taken from row 0.
    const ORDER: [[u8; 16]; 16] = {
        let mut order = [[0; 16]; 16];
        let mut set = 0;
        while set < 16 {
            let (mut row, mut out) = (0, 0);
            while row < 4 {
                if set >> row & 1 == 1 {
                    let mut byte = 0;
                    while byte < 4 {
                        order[set][4 * out + byte] = (4 * row + byte) as u8;
                        byte += 1;
                    }
                    out += 1;
                }
                row += 1;
            }
            set += 1;
        }
        order
    };

    /// Four rows at a time: a shuffle of bytes moves the rows of the set to the front, and all four are stored.
    #[inline(always)]
    pub(super) fn compress<F: Four>(bits: &Bits, src: &[u32], dst: &mut [u32]) -> usize {
        if src.len() < bits.rows() || dst.len() < bits.count() + 4 {
            return compress_scalar(bits, src, dst);
        }
        // SAFETY: all rows are in `src`, and `dst` has 4 words behind the last stored row.
        unsafe { squeeze::<F>(bits, 0, src.as_ptr(), dst.as_mut_ptr()) }
    }

    /// [`compress`] in place, starting with the four rows that contain the first gap.
    #[inline(always)]
    pub(super) fn close_gaps<F: Four>(bits: &Bits, words: &mut [u32]) -> usize {
        let Some(gap) = bits.first_missing() else {
            return bits.rows();
        };
        if words.len() < bits.rows() {
            return close_gaps_scalar(bits, words);
        }
        let at = words.as_mut_ptr();
        // SAFETY: all rows are in `words`, and each row is stored at or before the position that it was read from.
        unsafe { squeeze::<F>(bits, gap & !3, at, at) }
    }

    /// Append the rows of the set from row `first` on to the rows before. `first` is a multiple of 4, and no row before it is
    /// missing from the set.
    ///
    /// # Safety
    /// Every row can be read from `src`. Either `dst` is `src`, or `dst` has space for 4 words more than rows are stored.
    #[inline(always)]
    unsafe fn squeeze<F: Four>(bits: &Bits, first: usize, src: *const u32, dst: *mut u32) -> usize {
        let whole = bits.rows() / 4 * 4;
        let mut out = first;
        for row in (first..whole).step_by(4) {
            let set = (bits.words[row / 64] >> (row % 64) & 0xf) as usize;
            // SAFETY: row + 4 <= whole, and out <= row: in place, only rows that have been read are overwritten; elsewhere
            // there are 4 words behind the stored rows.
            unsafe { F::shuffle(src.add(row), &ORDER[set], dst.add(out)) };
            out += set.count_ones() as usize;
        }
        for row in whole.max(first)..bits.rows() {
            // SAFETY: a row of the set, and the position behind the stored rows, which is never behind the row.
            unsafe { *dst.add(out) = *src.add(row) };
            out += usize::from(bits.has(row));
        }
        out
    }

    /// Compare sixteen rows at a time.
    #[inline(always)]
    pub(super) fn rows_equal<F: Four>(column: &[u32], value: u32) -> Bits {
        let rows = column.len().min(Bits::MAX_ROWS);
        let whole = rows / 16 * 16;
        let tail = rows_equal_scalar(&column[whole..rows], value).words[0];
        let mut out = Bits::none(rows);
        for row in (0..whole).step_by(16) {
            // SAFETY: row + 16 <= whole <= column.len().
            let set = unsafe { F::equal(column.as_ptr().add(row), value) };
            out.words[row / 64] |= u64::from(set) << (row % 64);
        }
        if whole < rows {
            out.words[whole / 64] |= tail << (whole % 64);
        }
        out
    }
}

/// The kernels of [`crate::Level::Scalar`]: for x86-64-v2 if the program is built for it, otherwise plain Rust.
pub(crate) mod base {
    #[cfg(all(target_arch = "x86_64", target_feature = "sse4.2"))]
    pub(crate) use super::x86_v2::{close_gaps, compress, rows_equal};
    #[cfg(not(all(target_arch = "x86_64", target_feature = "sse4.2")))]
    pub(crate) use super::{
        close_gaps_scalar as close_gaps, compress_scalar as compress,
        rows_equal_scalar as rows_equal,
    };
}

/// Kernels for x86-64-v2, if the program is built for it.
#[cfg(all(target_arch = "x86_64", target_feature = "sse4.2"))]
pub(crate) mod x86_v2 {
    use super::four::{self, Four};
    use crate::Bits;
    use core::arch::x86_64::*;

    struct V2;

    impl Four for V2 {
        #[inline(always)]
        unsafe fn shuffle(from: *const u32, order: &[u8; 16], to: *mut u32) {
            // SAFETY: the caller's contract; the program is built for SSSE3.
            unsafe {
                let order = _mm_loadu_si128(order.as_ptr().cast());
                let packed = _mm_shuffle_epi8(_mm_loadu_si128(from.cast()), order);
                _mm_storeu_si128(to.cast(), packed);
            }
        }

        #[inline(always)]
        unsafe fn equal(at: *const u32, value: u32) -> u16 {
            // SAFETY: the caller's contract; every processor of this architecture has SSE2.
            unsafe {
                let wanted = _mm_set1_epi32(value as i32);
                let four = |of| _mm_cmpeq_epi32(_mm_loadu_si128(at.add(of).cast()), wanted);
                let low = _mm_packs_epi32(four(0), four(4));
                let high = _mm_packs_epi32(four(8), four(12));
                _mm_movemask_epi8(_mm_packs_epi16(low, high)) as u16
            }
        }
    }

    #[inline(always)]
    pub(crate) fn compress(bits: &Bits, src: &[u32], dst: &mut [u32]) -> usize {
        four::compress::<V2>(bits, src, dst)
    }

    #[inline(always)]
    pub(crate) fn close_gaps(bits: &Bits, words: &mut [u32]) -> usize {
        four::close_gaps::<V2>(bits, words)
    }

    #[inline(always)]
    pub(crate) fn rows_equal(column: &[u32], value: u32) -> Bits {
        four::rows_equal::<V2>(column, value)
    }
}

#[cfg(target_arch = "aarch64")]
pub(crate) mod neon {
    use super::four::{self, Four};
    use crate::Bits;
    use core::arch::aarch64::*;

    struct AdvancedSimd;

    impl Four for AdvancedSimd {
        /// TBL.
        #[inline(always)]
        unsafe fn shuffle(from: *const u32, order: &[u8; 16], to: *mut u32) {
            // SAFETY: the caller's contract; every processor of this architecture that runs Linux has Advanced SIMD.
            unsafe {
                let data = vreinterpretq_u8_u32(vld1q_u32(from));
                let packed = vqtbl1q_u8(data, vld1q_u8(order.as_ptr()));
                vst1q_u32(to, vreinterpretq_u32_u8(packed));
            }
        }

        /// There is no instruction that collects sign bits: each row's byte is reduced to the bit of its place, and the bytes
        /// of eight rows are added.
        #[inline(always)]
        unsafe fn equal(at: *const u32, value: u32) -> u16 {
            const PLACES: [u8; 16] = [1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128];
            // SAFETY: as above.
            unsafe {
                let wanted = vdupq_n_u32(value);
                let four = |of: usize| vmovn_u32(vceqq_u32(vld1q_u32(at.add(of)), wanted));
                let low = vmovn_u16(vcombine_u16(four(0), four(4)));
                let high = vmovn_u16(vcombine_u16(four(8), four(12)));
                let places = vandq_u8(vcombine_u8(low, high), vld1q_u8(PLACES.as_ptr()));
                let byte = |half: uint8x8_t| u16::from(vaddv_u8(half));
                byte(vget_low_u8(places)) | byte(vget_high_u8(places)) << 8
            }
        }
    }

    /// # Safety
    /// The processor has Advanced SIMD.
    #[inline(always)]
    pub(crate) unsafe fn compress(bits: &Bits, src: &[u32], dst: &mut [u32]) -> usize {
        four::compress::<AdvancedSimd>(bits, src, dst)
    }

    /// # Safety
    /// The processor has Advanced SIMD.
    #[inline(always)]
    pub(crate) unsafe fn close_gaps(bits: &Bits, words: &mut [u32]) -> usize {
        four::close_gaps::<AdvancedSimd>(bits, words)
    }

    /// # Safety
    /// The processor has Advanced SIMD.
    #[inline(always)]
    pub(crate) unsafe fn rows_equal(column: &[u32], value: u32) -> Bits {
        four::rows_equal::<AdvancedSimd>(column, value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Isa, Kernel, Level, call};

    struct Split<'a>(&'a [u32], u32);
    impl Kernel for Split<'_> {
        type Out = (Bits, Vec<u32>);
        #[inline(always)]
        fn run<I: Isa>(self, isa: I) -> Self::Out {
            let bits = isa.rows_equal(self.0, self.1);
            let src: Vec<u32> = (0..self.0.len() as u32).collect();
            let mut dst = vec![0; src.len() + 8];
            let n = isa.compress(&bits, &src, &mut dst);
            dst.truncate(n);
            // In place, with and without words behind the last row.
            for behind in [0, 16] {
                let mut words = src.clone();
                words.resize(src.len() + behind, u32::MAX);
                assert_eq!(isa.close_gaps(&bits, &mut words), n);
                assert_eq!(words[..n], dst);
                assert!(words[src.len()..].iter().all(|&w| w == u32::MAX));
            }
            (bits, dst)
        }
    }

    #[test]
    fn every_level_agrees_with_the_plain_definition() {
        for rows in [
            0usize, 1, 2, 3, 5, 7, 8, 9, 63, 64, 65, 255, 256, 1000, 1024,
        ] {
            for modulo in [1u32, 2, 3, 7, 100] {
                let column: Vec<u32> = (0..rows as u32)
                    .map(|i| i.wrapping_mul(2654435761) % modulo)
                    .collect();
                let want: Vec<u32> = (0..rows as u32)
                    .filter(|&i| column[i as usize] == 0)
                    .collect();
                for level in Level::available() {
                    let (bits, got) = call(level, Split(&column, 0));
                    assert_eq!(got, want, "{level} rows {rows} modulo {modulo}");
                    assert_eq!(bits.count(), want.len());
                    assert_eq!(bits.inverted().count(), rows - want.len());
                    assert_eq!(bits.iter().map(|r| r as u32).collect::<Vec<_>>(), want);
                    let hole = (0..rows).find(|&r| column[r] != 0);
                    assert_eq!(bits.first_missing(), hole);
                }
            }
        }
    }
}
