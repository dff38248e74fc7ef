//! A column: one 32-bit word for every row of a vector, aligned and padded for whole-register loads and stores.

/// Words behind the last row that a kernel may read or overwrite.
pub(crate) const SLACK: usize = 16;

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Lane([u32; 16]);

/// One 32-bit word for every row of a vector. The default has no room at all, and no memory.
#[derive(Default)]
pub struct Column {
    lanes: Box<[Lane]>,
}

impl Column {
    /// A column for up to `rows` rows, all zero.
    pub fn new(rows: usize) -> Self {
        Column {
            lanes: vec![Lane([0; 16]); (rows + SLACK).div_ceil(16)].into(),
        }
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

    /// The first `n` words in strips of 16, the last one filled up with whatever the slack holds: fixed arrays, so that
    /// loops over them become vector code without asking about lengths or overlaps.
    #[inline(always)]
    pub fn strips(&self, n: usize) -> &[[u32; 16]] {
        &self.all().as_chunks().0[..n.div_ceil(16)]
    }

    /// The same, to be written.
    #[inline(always)]
    pub fn strips_mut(&mut self, n: usize) -> &mut [[u32; 16]] {
        &mut self.all_mut().as_chunks_mut().0[..n.div_ceil(16)]
    }

    /// All words with the slack.
    #[inline(always)]
    pub(crate) fn all(&self) -> &[u32] {
        // SAFETY: `Lane` is sixteen words without padding; the length is in words.
        unsafe { std::slice::from_raw_parts(self.lanes.as_ptr().cast(), self.lanes.len() * 16) }
    }

    #[inline(always)]
    pub(crate) fn all_mut(&mut self) -> &mut [u32] {
        // SAFETY: as in `all`, and the borrow is exclusive.
        unsafe {
            std::slice::from_raw_parts_mut(self.lanes.as_mut_ptr().cast(), self.lanes.len() * 16)
        }
    }
}

/// `K` columns of header words, filled by [`crate::Vector::words`].
pub struct Words<const K: usize>(pub [Column; K]);

impl<const K: usize> Words<K> {
    /// Columns for up to `rows` rows.
    pub fn new(rows: usize) -> Self {
        Words(std::array::from_fn(|_| Column::new(rows)))
    }

    /// The first `n` words of each column, in strips.
    #[inline(always)]
    pub fn strips(&self, n: usize) -> [&[[u32; 16]]; K] {
        std::array::from_fn(|k| self.0[k].strips(n))
    }

    /// The first `n` words of each column.
    #[inline(always)]
    pub fn rows(&self, n: usize) -> [&[u32]; K] {
        std::array::from_fn(|k| self.0[k].words(n))
    }
}
