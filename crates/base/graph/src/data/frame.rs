//! A frame: the columns of one vector while it waits for its node.

use crate::data::col::{COLUMNS, Col, ColumnSet, MANDATORY, TAGS};
use crate::data::column::Column;
use crate::data::lost;
use volley_simd::{Bits, Isa};

/// Column of buffer indices (private: rows own their buffers).
pub(crate) const IDX: usize = 0;
/// Column of data positions in the slot; bit 31 marks a chain.
pub(crate) const POS: usize = 1;
/// The flag of a chained packet in [`POS`].
pub(crate) const CHAINED: u32 = 1 << 31;

/// See [`Frame::firsts`].
type Firsts<'a, const C: usize> = (&'a [u32; 16], &'a [u32; 16], [&'a mut [u32; 16]; C]);

const _: () = assert!(IDX == 0 && POS == 1 && Col::LEN.at() == 2);

/// The columns of one vector.
pub(crate) struct Frame {
    pub(crate) n: usize,
    /// Rows at the front whose packets are in another frame: of frames that stages hold.
    pub(crate) moved: usize,
    pub(crate) valid: u32,
    /// Each has memory: [`Frame::new`] allocates it, and [`Frame::exchange`] checks it. Only the drop of a frame takes it.
    pub(crate) cols: [Column; COLUMNS],
    /// The columns that the running node has declared.
    pub(crate) declared: ColumnSet,
}

impl Frame {
    pub(crate) fn new(rows: usize) -> Box<Self> {
        Box::new(Frame {
            n: 0,
            moved: 0,
            valid: MANDATORY,
            cols: std::array::from_fn(|_| Column::new(rows)),
            declared: ColumnSet::ALL,
        })
    }

    #[inline(always)]
    pub(crate) fn has(&self, col: Col) -> bool {
        self.valid & col.bit() != 0
    }

    #[inline(always)]
    pub(crate) fn words(&self, col: usize) -> &[u32] {
        self.cols[col].words(self.n)
    }

    /// The words of the first 16 rows of a column.
    #[inline(always)]
    pub(crate) fn first(&self, col: usize) -> &[u32; 16] {
        // SAFETY: every column of a frame has memory.
        unsafe { self.cols[col].first() }
    }

    /// As [`Self::first`], for writing.
    #[inline(always)]
    pub(crate) fn first_mut(&mut self, col: usize) -> &mut [u32; 16] {
        // SAFETY: every column of a frame has memory.
        unsafe { self.cols[col].first_mut() }
    }

    /// The words of the first 16 rows: of the buffer indices, of the positions, and of other columns for writing. None where one
    /// is named twice, or is one of these two.
    #[inline(always)]
    pub(crate) fn firsts<const C: usize>(&mut self, cols: [usize; C]) -> Option<Firsts<'_, C>> {
        let [idx, pos, others @ ..] = &mut self.cols;
        let others = others.get_disjoint_mut(cols.map(|col| col.wrapping_sub(2)));
        // SAFETY: every column of a frame has memory.
        unsafe {
            let others = others.ok()?.map(|col| col.first_mut());
            Some((idx.first(), pos.first(), others))
        }
    }

    /// The positions and lengths of the first 16 rows.
    #[inline(always)]
    pub(crate) fn first_places(&mut self) -> [&mut [u32; 16]; 2] {
        let [_, pos, len, ..] = &mut self.cols;
        // SAFETY: every column of a frame has memory.
        unsafe { [pos.first_mut(), len.first_mut()] }
    }

    /// Exchange a column for another one.
    ///
    /// # Panics
    /// If the other one has no memory.
    #[inline(always)]
    pub(crate) fn exchange(&mut self, col: usize, other: &mut Column) {
        assert!(!other.is_unallocated(), "a column of a frame has memory");
        std::mem::swap(&mut self.cols[col], other);
    }

    /// Make `col` valid, filling it with `default` where it was not.
    #[inline(always)]
    pub(crate) fn make_valid(&mut self, col: Col, default: u32) {
        if !self.has(col) {
            self.cols[col.at()].words_mut(self.n).fill(default);
            self.valid |= col.bit();
        }
    }

    /// Keep only the rows of `set`, in order.
    #[inline(always)]
    pub(crate) fn retain_rows<I: Isa>(&mut self, isa: I, set: &Bits) {
        for col in bits(self.valid) {
            isa.close_gaps(set, self.cols[col].all_mut());
        }
        self.n = set.count();
    }

    /// Move the first packet that is in this frame to the first row.
    pub(crate) fn forget_moved(&mut self) {
        let (moved, n) = (std::mem::take(&mut self.moved), self.n);
        for col in bits(self.valid) {
            self.cols[col].words_mut(n).copy_within(moved.., 0);
        }
        self.n = n - moved;
    }

    /// Agree with `other` on the valid columns before rows of `other` are appended. Returns the tags that `other` lacks, for
    /// which the caller writes zeros.
    #[inline(always)]
    pub(crate) fn common_columns(&mut self, valid: u32) -> u32 {
        if self.n == 0 {
            self.valid = valid;
            return 0;
        }
        if self.valid == valid {
            return 0;
        }
        let mine_missing = valid & TAGS & !self.valid;
        for col in bits(mine_missing) {
            self.cols[col].words_mut(self.n).fill(0);
        }
        let theirs_missing = self.valid & TAGS & !valid;
        self.valid = (self.valid & valid) | mine_missing | theirs_missing;
        theirs_missing
    }
}

/// No frame with packets is dropped but by a panic in a node, or with a stage that has panicked: the packets are kept for the guard of
/// the node.
impl Drop for Frame {
    #[inline]
    fn drop(&mut self) {
        if self.n > self.moved && lost::is_keeping() {
            self.forget_moved();
            lost::keep(Box::new(Frame {
                n: std::mem::take(&mut self.n),
                moved: 0,
                valid: self.valid,
                cols: std::mem::take(&mut self.cols),
                declared: ColumnSet::ALL,
            }));
        }
    }
}

/// The numbers of the set bits.
#[inline(always)]
pub(crate) fn bits(mut set: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let col = (set != 0).then(|| set.trailing_zeros() as usize)?;
        set &= set - 1;
        Some(col)
    })
}
