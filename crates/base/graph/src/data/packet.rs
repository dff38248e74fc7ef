//! One packet at a time: the slow path's view of a row, and the walk over a chain.

use crate::data::col::Col;
use crate::data::frame::{CHAINED, Frame, IDX, POS};
use volley_buf::{BufIdx, Cache, END, META, NO_BUFFER, POS_MAX, Pool, START};

/// A packet, for reading.
#[derive(Clone, Copy)]
pub struct PacketView<'a> {
    pub(crate) pool: &'a Pool,
    pub(crate) frame: &'a Frame,
    pub(crate) row: usize,
}

impl<'a> PacketView<'a> {
    /// A view of row `row`, whose buffer belongs to `frame`.
    #[inline(always)]
    pub(crate) fn new(pool: &'a Pool, frame: &'a Frame, row: usize) -> Self {
        PacketView { pool, frame, row }
    }

    /// The packet's first segment from its current position.
    #[inline(always)]
    pub fn bytes(&self) -> &'a [u8] {
        let (at, n) = first_segment(self.pool, self.frame, self.row);
        // SAFETY: the frame owns the buffer and is borrowed; the segment is inside its slot.
        unsafe { std::slice::from_raw_parts(at, n) }
    }

    /// Length of the whole packet from its current position.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.frame.words(Col::LEN.at())[self.row] as usize
    }

    /// Whether no byte follows the current position.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The distance from the start of a new packet to the current position: bytes of outer headers in front of it. Zero when
    /// the position is at that start or in the headroom.
    pub fn moved(&self) -> usize {
        let pos = self.frame.words(POS)[self.row];
        let start = START + self.get(Col::START).unwrap_or(0) as usize;
        ((pos & !CHAINED) as usize).saturating_sub(start)
    }

    /// The receive interface.
    #[inline]
    pub fn rx(&self) -> u32 {
        self.frame.words(Col::RX.at())[self.row]
    }

    /// A column's word; none where the column is not valid.
    pub fn get(&self, col: Col) -> Option<u32> {
        self.frame
            .has(col)
            .then(|| self.frame.words(col.at())[self.row])
    }

    /// The segments in order from the current position, for `writev`.
    pub fn slices(&self) -> Slices<'a> {
        let pos = self.frame.words(POS)[self.row];
        let chained = pos & CHAINED != 0;
        let first = self.bytes();
        // SAFETY: the owner of the head owns the whole chain.
        let next = unsafe { chained.then(|| self.pool.meta(self.frame.words(IDX)[self.row]).next) };
        Slices {
            pool: self.pool,
            first: Some(first),
            next: next.unwrap_or(NO_BUFFER),
            left: self.len() - first.len(),
        }
    }

    /// Visit the segments in order, from `back` bytes in front of the current position (limited by the headroom).
    pub fn segments(&self, back: usize, mut visit: impl FnMut(&[u8])) {
        let pos = self.frame.words(POS)[self.row];
        let at = (pos & !CHAINED) as usize;
        let back = back.min(at.saturating_sub(META));
        let (_, first) = first_segment(self.pool, self.frame, self.row);
        // SAFETY: as in `bytes`; `at - back` is at least META.
        let head = unsafe {
            let start = self.pool.at(self.frame.words(IDX)[self.row], at - back);
            std::slice::from_raw_parts(start, (back + first).min(END - (at - back)))
        };
        visit(head);
        if pos & CHAINED != 0 {
            let mut left = self.len().saturating_sub(first);
            walk(self.pool, self.frame.words(IDX)[self.row], |segment| {
                let n = segment.len().min(left);
                left -= n;
                visit(&segment[..n]);
            });
        }
    }
}

impl PacketView<'_> {
    /// The buffer of the first segment.
    pub fn buffer(&self) -> BufIdx {
        BufIdx(self.frame.words(IDX)[self.row])
    }

    /// The offset of the packet's position in the slot of that buffer.
    pub fn position(&self) -> usize {
        (self.frame.words(POS)[self.row] & !CHAINED) as usize
    }

    /// The number of buffers of the packet.
    pub fn buffers(&self) -> usize {
        let more = self.is_chain();
        let members = |row| members(self.pool, self.frame.words(IDX)[row]);
        1 + if more { members(self.row) } else { 0 }
    }

    /// Whether the packet has more than one segment.
    pub fn is_chain(&self) -> bool {
        self.frame.words(POS)[self.row] & CHAINED != 0
    }
}

impl Packet<'_> {
    /// The number of buffers of the packet.
    pub fn buffers(&self) -> usize {
        PacketView::new(self.pool, self.frame, self.row).buffers()
    }
}

/// The segments of a packet. The first may be empty, the others are not.
pub struct Slices<'a> {
    pool: &'a Pool,
    first: Option<&'a [u8]>,
    next: u32,
    left: usize,
}

impl<'a> Iterator for Slices<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if let Some(first) = self.first.take() {
            return Some(first);
        }
        while self.next != NO_BUFFER && self.left > 0 {
            // SAFETY: the view that made this value owns the chain and is borrowed; bounds are clamped to the slot.
            let segment = unsafe { segment(self.pool, self.next) };
            // SAFETY: as above.
            self.next = unsafe { self.pool.meta(self.next).next };
            let n = segment.len().min(self.left);
            self.left -= n;
            if n > 0 {
                return Some(&segment[..n]);
            }
        }
        None
    }
}

/// The bytes of a member of a chain, clamped to its slot.
///
/// # Safety
/// The caller owns `idx` for as long as the slice lives.
pub(crate) unsafe fn segment(pool: &Pool, idx: u32) -> &[u8] {
    // SAFETY: the caller's contract; start and end are clamped.
    unsafe {
        let meta = *pool.meta(idx);
        let end = (meta.end as usize).clamp(META, END);
        let start = (meta.start as usize).clamp(META, end);
        std::slice::from_raw_parts(pool.at(idx, start.min(POS_MAX)), end - start)
    }
}

/// Address and length of a row's first segment.
#[inline(always)]
pub(crate) fn first_segment(pool: &Pool, frame: &Frame, row: usize) -> (*mut u8, usize) {
    let place = (frame.words(IDX)[row], frame.words(POS)[row]);
    first_part(pool, place, frame.words(Col::LEN.at())[row] as usize)
}

/// Address and length of the first segment of a packet of `len` bytes, whose buffer the caller owns.
#[inline(always)]
pub(crate) fn first_part(pool: &Pool, (idx, pos): (u32, u32), len: usize) -> (*mut u8, usize) {
    let at = ((pos & !CHAINED) as usize).min(POS_MAX);
    // SAFETY: the caller owns `idx` and may read its metadata; `at` is at most POS_MAX.
    let (start, end) = unsafe {
        let end = if pos & CHAINED != 0 {
            (pool.meta(idx).end as usize).min(END)
        } else {
            END
        };
        (pool.at(idx, at), end)
    };
    (start, len.min(end.saturating_sub(at)))
}

/// Buffers behind the head of a chain.
pub(crate) fn members(pool: &Pool, head: u32) -> usize {
    let mut n = 0;
    walk(pool, head, |_| n += 1);
    n
}

/// Visit the segments behind the head of a chain.
pub(crate) fn walk(pool: &Pool, head: u32, mut visit: impl FnMut(&[u8])) {
    // SAFETY: the owner of the head owns the whole chain.
    unsafe {
        let mut idx = pool.meta(head).next;
        while idx != NO_BUFFER {
            visit(segment(pool, idx));
            idx = pool.meta(idx).next;
        }
    }
}

/// Free the members behind the head of a chain.
pub(crate) fn free_members(bufs: &mut Cache, head: u32) {
    // SAFETY: as in `walk`; the head has no next buffer afterwards.
    unsafe {
        let mut idx = std::mem::replace(&mut bufs.pool().meta(head).next, NO_BUFFER);
        while idx != NO_BUFFER {
            let next = bufs.pool().meta(idx).next;
            bufs.free(&[idx]);
            idx = next;
        }
    }
}

/// A packet, for writing: one row of a vector on the slow path.
pub struct Packet<'a> {
    pub(crate) pool: &'a Pool,
    pub(crate) frame: &'a mut Frame,
    pub(crate) row: usize,
}

impl Packet<'_> {
    /// The same packet, for reading.
    pub fn view(&self) -> PacketView<'_> {
        PacketView::new(self.pool, self.frame, self.row)
    }

    /// The packet's first segment from its current position.
    pub fn bytes(&self) -> &[u8] {
        self.view().bytes()
    }

    /// The packet's first segment, to be changed.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        let (at, n) = first_segment(self.pool, self.frame, self.row);
        // SAFETY: the frame owns the buffer and is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(at, n) }
    }

    /// Length of the whole packet from its current position.
    pub fn len(&self) -> usize {
        self.view().len()
    }

    /// Whether no byte follows the current position.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Shorten the packet to `len` bytes from the current position. It is never made longer.
    pub fn truncate(&mut self, len: usize) {
        let word = &mut self.frame.cols[Col::LEN.at()].words_mut(self.frame.n)[self.row];
        *word = (*word).min(len as u32);
    }

    /// The receive interface.
    pub fn rx(&self) -> u32 {
        self.view().rx()
    }

    /// A column's word; none where the column is not valid.
    pub fn get(&self, col: Col) -> Option<u32> {
        self.frame.declared.check(col);
        self.view().get(col)
    }

    /// Write a column's word; the other rows get 0 where the column was not valid.
    pub fn set(&mut self, col: Col, word: u32) {
        self.frame.declared.check(col);
        self.frame.make_valid(col, 0);
        let n = self.frame.n;
        self.frame.cols[col.at()].words_mut(n)[self.row] = word;
    }

    /// Move the current position forward by `bytes`.
    pub fn advance(&mut self, bytes: usize) {
        let (n, row) = (self.frame.n, self.row);
        let pos = &mut self.frame.cols[POS].words_mut(n)[row];
        let at = ((*pos & !CHAINED) as usize + bytes).min(POS_MAX);
        *pos = (*pos & CHAINED) | at as u32;
        let len = &mut self.frame.cols[Col::LEN.at()].words_mut(n)[row];
        *len = len.saturating_sub(bytes as u32);
    }

    /// Move the current position back by `bytes`, into the headroom. Returns false, without a change, when the headroom is too
    /// short.
    pub fn retreat(&mut self, bytes: usize) -> bool {
        let (n, row) = (self.frame.n, self.row);
        let pos = &mut self.frame.cols[POS].words_mut(n)[row];
        let Some(at) = ((*pos & !CHAINED) as usize)
            .checked_sub(bytes)
            .filter(|at| *at >= META)
        else {
            return false;
        };
        *pos = (*pos & CHAINED) | at as u32;
        let len = &mut self.frame.cols[Col::LEN.at()].words_mut(n)[row];
        *len = len.saturating_add(bytes as u32);
        true
    }
}
