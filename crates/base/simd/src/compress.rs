//! Row sets, and compress-to-front by a row set: how a vector splits.

/// A set of rows of one vector, up to 1024 of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bits {
    words: [u64; 16],
    rows: usize,
}

impl Bits {
    /// The most rows a set can speak of.
    pub const MAX_ROWS: usize = 1024;

    /// The empty set over `rows` rows (at most [`Bits::MAX_ROWS`], else the surplus is not in it).
    #[inline(always)]
    pub fn none(rows: usize) -> Self {
        Bits {
            words: [0; 16],
            rows: rows.min(Self::MAX_ROWS),
        }
    }

    /// How many rows the set speaks of.
    #[inline(always)]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// How many rows are in the set.
    #[inline(always)]
    pub fn count(&self) -> usize {
        self.words[..self.rows.div_ceil(64)]
            .iter()
            .map(|w| w.count_ones() as usize)
            .sum()
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

#[cfg(target_arch = "x86_64")]
pub(crate) mod x86 {
    use super::{Bits, compress_scalar, rows_equal_scalar};
    use core::arch::x86_64::*;

    /// Eight rows at a time: the byte positions of the set bits become a permutation (PDEP/PEXT), stored whole.
    #[inline]
    #[target_feature(enable = "avx2,bmi2,popcnt")]
    pub(crate) fn compress_v3(bits: &Bits, src: &[u32], dst: &mut [u32]) -> usize {
        let whole = bits.rows() / 8 * 8;
        let wanted = bits.count();
        if src.len() < bits.rows() || dst.len() < wanted + 8 {
            return compress_scalar(bits, src, dst);
        }
        let mut out = 0;
        for row in (0..whole).step_by(8) {
            let byte = bits.words[row / 64] >> (row % 64) & 0xff;
            let lanes = _pdep_u64(byte, 0x0101_0101_0101_0101).wrapping_mul(0xff);
            let order = _pext_u64(0x0706_0504_0302_0100, lanes);
            // SAFETY: row + 8 <= whole <= src.len(); out <= wanted and dst has 8 words behind wanted.
            unsafe {
                let index = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(order as i64));
                let data = _mm256_loadu_si256(src.as_ptr().add(row).cast());
                let packed = _mm256_permutevar8x32_epi32(data, index);
                _mm256_storeu_si256(dst.as_mut_ptr().add(out).cast(), packed);
            }
            out += byte.count_ones() as usize;
        }
        for (row, &word) in src.iter().enumerate().take(bits.rows()).skip(whole) {
            dst[out] = word;
            out += usize::from(bits.has(row));
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
