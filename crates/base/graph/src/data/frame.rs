//! A frame: the columns of one vector while it waits for its node.

use crate::data::column::Column;
use volley_simd::{Bits, Isa};

/// How many columns a frame has.
pub(crate) const COLUMNS: usize = 18;

/// Column of buffer indices (private: rows own their buffers).
pub(crate) const IDX: usize = 0;
/// Column of data positions in the slot; bit 31 says that the packet is a chain.
pub(crate) const POS: usize = 1;
/// The flag of a chained packet in [`POS`].
pub(crate) const CHAINED: u32 = 1 << 31;

/// A column that nodes may read, write and hand on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Col {
    /// Bytes of the packet from its current position, all segments together. Always valid.
    Len = 2,
    /// Index of the interface that the packet came in by. Always valid.
    Rx = 3,
    /// First word of the key that later nodes look up, such as an address. The crate whose nodes write it defines it.
    Key0 = 4,
    /// Second word of the key.
    Key1 = 5,
    /// Third word of the key.
    Key2 = 6,
    /// Fourth word of the key.
    Key3 = 7,
    /// The flow's hash, where the packet by itself does not tell it: a fragment without ports. 0 for none.
    Hash = 8,
    /// What a lookup found: the FIB's forwarding object.
    Dpo = 9,
    /// Index of the interface that the packet leaves by.
    Tx = 10,
    /// Why the packet is dropped: see [`crate::NodeId::reason`].
    Err = 11,
    /// Where the packet stands on a feature arc.
    Feature = 12,
    /// Trace number, 0 for none.
    Trace = 13,
    /// Free for two neighbouring nodes to agree on.
    User0 = 14,
    /// Free for two neighbouring nodes to agree on.
    User1 = 15,
    /// What is left to be done with the packet before it is on a wire, 0 for nothing: see [`crate::Offload`].
    Offload = 16,
    /// Bytes in front of the packet's Ethernet header that belong to it no more: tags that were taken off. 0 for none.
    Lead = 17,
}

impl Col {
    /// The columns that follow from where a packet is to go: nodes that make others from packets forget them.
    pub const DESTINATION: [Col; 5] = [Col::Key0, Col::Key1, Col::Key2, Col::Key3, Col::Dpo];

    /// The columns that say where a packet goes: nodes that end or turn it round forget them.
    pub const FORWARDING: [Col; 6] = [
        Col::Key0,
        Col::Key1,
        Col::Key2,
        Col::Key3,
        Col::Hash,
        Col::Dpo,
    ];

    #[inline(always)]
    pub(crate) fn bit(self) -> u32 {
        1 << self as u8
    }
}

/// Columns that every frame has: index, position, length, receiving interface.
pub(crate) const MANDATORY: u32 = 0b1111;
/// Columns where 0 means "none", so that frames with and without them merge.
pub(crate) const TAGS: u32 = 1 << Col::Err as u8
    | 1 << Col::Trace as u8
    | 1 << Col::Feature as u8
    | 1 << Col::Offload as u8
    | 1 << Col::Lead as u8
    | 1 << Col::Hash as u8;

/// The columns of one vector.
pub(crate) struct Frame {
    pub(crate) n: usize,
    pub(crate) valid: u32,
    pub(crate) cols: [Column; COLUMNS],
}

impl Frame {
    pub(crate) fn new(rows: usize) -> Box<Self> {
        Box::new(Frame {
            n: 0,
            valid: MANDATORY,
            cols: std::array::from_fn(|_| Column::new(rows)),
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

    /// Make `col` valid, filling it with `default` where it was not.
    #[inline(always)]
    pub(crate) fn make_valid(&mut self, col: Col, default: u32) {
        if !self.has(col) {
            self.cols[col as usize].words_mut(self.n).fill(default);
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

    /// Agree with `other` on which columns are valid before rows of `other` are appended; `other`'s missing tags are
    /// reported so that the appender can write zeros.
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

/// The numbers of the set bits.
#[inline(always)]
pub(crate) fn bits(mut set: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let col = (set != 0).then(|| set.trailing_zeros() as usize)?;
        set &= set - 1;
        Some(col)
    })
}
