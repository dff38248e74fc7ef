//! A column: one 32-bit word for every row of a vector, aligned and padded for whole-register loads and stores.

use volley_simd::Isa;

/// Words behind the last row that a kernel may read or overwrite.
pub(crate) const SLACK: usize = 16;

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct ColumnBlock([u32; 16]);

/// The number of rows of strip number `strip` of `n` rows that a loop handles: all 16 in vector code, only the existing
/// rows in code for small vectors.
#[inline(always)]
pub fn strip_rows<I: Isa>(n: usize, strip: usize) -> usize {
    if I::FEW {
        n.saturating_sub(strip * 16).min(16)
    } else {
        16
    }
}

/// One 32-bit word for every row of a vector. The default column has capacity 0 and no memory.
#[derive(Default)]
pub struct Column {
    blocks: Box<[ColumnBlock]>,
}

impl Column {
    /// A column for up to `rows` rows, all zero.
    pub fn new(rows: usize) -> Self {
        Column {
            blocks: vec![ColumnBlock([0; 16]); (rows + SLACK).div_ceil(16)].into(),
        }
    }

    /// Whether it has no memory, because it was taken.
    pub(crate) fn is_unallocated(&self) -> bool {
        self.blocks.is_empty()
    }

    /// The first `n` words.
    #[inline(always)]
    pub fn words(&self, n: usize) -> &[u32] {
        &self.all()[..n]
    }

    /// The first `n` words, to be written.
    #[inline(always)]
    pub fn words_mut(&mut self, n: usize) -> &mut [u32] {
        &mut self.all_mut()[..n]
    }

    /// The first `n` words in strips of 16; the end of the last strip contains words of the slack. Strips are fixed arrays, so
    /// that loops over them become vector code without checks of lengths or overlaps.
    #[inline(always)]
    pub fn strips(&self, n: usize) -> &[[u32; 16]] {
        &self.all().as_chunks().0[..n.div_ceil(16)]
    }

    /// As [`Self::strips`], for writing.
    #[inline(always)]
    pub fn strips_mut(&mut self, n: usize) -> &mut [[u32; 16]] {
        &mut self.all_mut().as_chunks_mut().0[..n.div_ceil(16)]
    }

    /// The first strip, for code that handles small vectors.
    ///
    /// # Safety
    /// The column has memory, as every column of a frame has.
    #[inline(always)]
    pub(crate) unsafe fn first(&self) -> &[u32; 16] {
        debug_assert!(!self.is_unallocated());
        // SAFETY: the caller's promise: a column with memory has at least one block.
        unsafe { &self.blocks.get_unchecked(0).0 }
    }

    /// As [`Self::first`], for writing.
    ///
    /// # Safety
    /// As [`Self::first`].
    #[inline(always)]
    pub(crate) unsafe fn first_mut(&mut self) -> &mut [u32; 16] {
        debug_assert!(!self.is_unallocated());
        // SAFETY: as above.
        unsafe { &mut self.blocks.get_unchecked_mut(0).0 }
    }

    /// All words with the slack.
    #[inline(always)]
    pub(crate) fn all(&self) -> &[u32] {
        // SAFETY: `ColumnBlock` is sixteen words without padding; the length is in words.
        unsafe { std::slice::from_raw_parts(self.blocks.as_ptr().cast(), self.blocks.len() * 16) }
    }

    #[inline(always)]
    pub(crate) fn all_mut(&mut self) -> &mut [u32] {
        // SAFETY: as in `all`, and the borrow is exclusive.
        unsafe {
            std::slice::from_raw_parts_mut(self.blocks.as_mut_ptr().cast(), self.blocks.len() * 16)
        }
    }
}

/// `K` header words of every packet, filled by [`crate::Vector::words`]: strips of 16 packets; a strip contains word 0 of all
/// its packets, then word 1, and so on. Loops over strips need one pointer for any number of words.
pub struct Words<const K: usize> {
    strips: Box<[WordBlock<K>]>,
}

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct WordBlock<const K: usize>([[u32; 16]; K]);

impl<const K: usize> Words<K> {
    /// Capacity for up to `rows` rows.
    pub fn new(rows: usize) -> Self {
        Words {
            strips: vec![WordBlock([[0; 16]; K]); rows.div_ceil(16)].into(),
        }
    }

    /// The words of the first `n` rows: `[k][row]` in each strip. The end of the last strip contains old words.
    #[inline(always)]
    pub fn strips(&self, n: usize) -> &[[[u32; 16]; K]] {
        let strips = &self.strips[..n.div_ceil(16)];
        // SAFETY: `WordBlock` is its array with a larger alignment, and its size is a multiple of that alignment.
        unsafe { std::slice::from_raw_parts(strips.as_ptr().cast(), strips.len()) }
    }

    /// The words of one row.
    #[inline(always)]
    pub fn row(&self, row: usize) -> [u32; K] {
        let strip = &self.strips[row / 16].0;
        std::array::from_fn(|k| strip[k][row % 16])
    }

    /// The words of one row, to be written.
    #[inline(always)]
    pub(crate) fn set_row(&mut self, row: usize, words: [u32; K]) {
        let strip = &mut self.strips[row / 16].0;
        for (to, word) in strip.iter_mut().zip(words) {
            to[row % 16] = word;
        }
    }

    /// The destinations of the words of rows `8 * eight..`, one for each word: eight words each.
    ///
    /// # Panics
    /// If the capacity is too small for that row.
    #[inline(always)]
    pub(crate) fn places(&mut self, eight: usize) -> [*mut u32; K] {
        let strip = &mut self.strips[eight / 2].0;
        strip
            .each_mut()
            .map(|word| word[eight % 2 * 8..].as_mut_ptr())
    }
}
