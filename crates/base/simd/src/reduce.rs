//! Reductions of whole columns, as plain loops that the compiler vectorises at every level.

/// Whether every word equals the first one (true for an empty column).
#[inline(always)]
pub fn all_equal(column: &[u32]) -> bool {
    let Some(&first) = column.first() else {
        return true;
    };
    column.iter().fold(0, |acc, &x| acc | (x ^ first)) == 0
}

/// All ones for true, all zeros for false, like the result of a vector comparison: loops over columns need no conversion.
#[inline(always)]
pub fn mask(is: bool) -> u32 {
    u32::from(is).wrapping_neg()
}

/// The OR of all words.
#[inline(always)]
pub fn or_all(column: &[u32]) -> u32 {
    column.iter().fold(0, |acc, &x| acc | x)
}

/// Whether a word of the first `rows` of a strip has a bit; the others are undefined. A loop over strips that ends there is not made into
/// one over single rows of many strips by compilers, which is slow (gathers).
#[inline(always)]
pub fn any_bit(strip: &[u32; 16], rows: usize) -> bool {
    let rows = rows.min(16) as u32;
    let mut bits = 0;
    for row in 0..16 {
        bits |= strip[row] & mask((row as u32) < rows);
    }
    bits != 0
}

/// The sum of all words, without overflow.
#[inline(always)]
pub fn sum(column: &[u32]) -> u64 {
    column.iter().map(|&x| u64::from(x)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_behind_the_last_row_do_not_count() {
        let mut strip = [0; 16];
        assert!(!any_bit(&strip, 16) && !any_bit(&strip, 256));
        strip[5] = 1 << 31;
        assert!(any_bit(&strip, 6) && any_bit(&strip, 100));
        assert!(!any_bit(&strip, 5) && !any_bit(&strip, 0));
    }

    #[test]
    fn whole_column_answers() {
        assert!(all_equal(&[]) && all_equal(&[7]) && all_equal(&[7; 33]));
        assert!(!all_equal(&[7, 7, 8]));
        assert_eq!((mask(true), mask(false)), (u32::MAX, 0));
        assert_eq!(or_all(&[1, 4, 0]), 5);
        assert_eq!(sum(&[u32::MAX; 3]), 3 * u64::from(u32::MAX));
    }
}
