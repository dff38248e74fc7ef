//! Packets of a vector that its node lends to code that knows neither the vector's lifetime nor its types, such as an object of an
//! embedded language, and gets back before it sends them.

use crate::data::col::Col;
use crate::data::column::Words;
use crate::data::frame::{CHAINED, Frame, IDX, POS};
use crate::data::packet::{Packet, PacketView, first_segment};
use crate::node_api::context::RawCx;
use crate::node_api::edges::Nexts;
use crate::node_api::vector::{Vector, apply, locate, transpose};
use crate::queues::dispatch::Dispatch;
use std::marker::PhantomData;
use std::sync::Arc;
use volley_buf::{Pool, READABLE};
use volley_simd::{Isa, or_all, prefetch};

/// The packets of a vector without the vector: they belong to this value until [`EmptyVector::restore`] takes them back.
pub struct LentPackets {
    frame: Box<Frame>,
    pool: Arc<Pool>,
}

/// Room for the places of a vector's packets, which operations on all packets need. They panic if the vector is longer than that.
pub struct Offsets(Box<[usize]>);

impl Offsets {
    /// For vectors of up to `size` packets.
    pub fn new(size: usize) -> Offsets {
        Offsets(vec![0; size.next_multiple_of(8)].into())
    }
}

/// A vector without its packets.
#[must_use = "the packets of the vector are lost unless they are restored"]
pub struct EmptyVector<'a, I: Isa, X: Nexts> {
    dispatch: &'a mut Dispatch,
    raw: &'a RawCx<'a>,
    isa: I,
    next: PhantomData<X>,
}

impl LentPackets {
    /// The number of packets.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.frame.n
    }

    /// Whether there is no packet.
    pub fn is_empty(&self) -> bool {
        self.frame.n == 0
    }

    /// A packet, for reading.
    ///
    /// # Panics
    /// When there is no such row.
    #[inline(always)]
    pub fn view(&self, row: usize) -> PacketView<'_> {
        PacketView::new(&self.pool, &self.frame, row)
    }

    /// A packet, for writing.
    ///
    /// # Panics
    /// When there is no such row.
    #[inline(always)]
    pub fn packet(&mut self, row: usize) -> Packet<'_> {
        assert!(row < self.frame.n);
        Packet {
            pool: &self.pool,
            frame: &mut self.frame,
            row,
        }
    }

    /// The first segment of a packet from its current position, to be changed: as [`Packet::bytes_mut`], for loops over packets.
    ///
    /// # Panics
    /// When there is no such row.
    #[inline(always)]
    pub fn bytes_mut(&mut self, row: usize) -> &mut [u8] {
        let (at, n) = first_segment(&self.pool, &self.frame, row);
        // SAFETY: the frame owns the buffer and is borrowed exclusively; the segment is inside its slot.
        unsafe { std::slice::from_raw_parts_mut(at, n) }
    }

    /// A column, one word for each packet. It has stale words unless an earlier node filled it.
    #[inline(always)]
    pub fn column(&self, col: Col) -> &[u32] {
        self.frame.declared.check(col);
        self.frame.words(col.at())
    }

    /// A column in strips of 16 words: see [`crate::Column::strips`].
    #[inline(always)]
    pub fn strips(&self, col: Col) -> &[[u32; 16]] {
        self.frame.declared.check(col);
        self.frame.cols[col.at()].strips(self.frame.n)
    }

    /// Whether any packet is a chain of buffers.
    #[inline(always)]
    pub fn has_chains(&self) -> bool {
        or_all(self.frame.words(POS)) & CHAINED != 0
    }

    /// Where the packets start, as offsets into the arena, in whole groups of eight: places behind the last packet repeat it.
    #[inline(always)]
    fn locate<'o>(&self, room: &'o mut Offsets) -> &'o [[usize; 8]] {
        let all = &mut room.0[..self.frame.n.next_multiple_of(8)];
        locate(&self.frame, all);
        all.as_chunks().0
    }

    /// Load `K` 32-bit header words from byte `offset` of every packet: see [`Vector::first_words`].
    #[inline(always)]
    pub fn first_words<I: Isa, const K: usize>(
        &self,
        isa: I,
        (offset, out): (usize, &mut Words<K>),
        room: &mut Offsets,
    ) {
        let at = self.locate(room);
        self.prefetch(at);
        self.transpose(isa, at, (offset, out));
    }

    /// As [`LentPackets::first_words`] from two offsets.
    #[inline(always)]
    pub fn first_words_of_two<I: Isa, const K: usize, const L: usize>(
        &self,
        isa: I,
        first: (usize, &mut Words<K>),
        second: (usize, &mut Words<L>),
        room: &mut Offsets,
    ) {
        let at = self.locate(room);
        self.prefetch(at);
        self.transpose(isa, at, first);
        self.transpose(isa, at, second);
    }

    /// Prefetch the first cache line of every packet from its position.
    #[inline(always)]
    fn prefetch(&self, at: &[[usize; 8]]) {
        let base = self.pool.base();
        for &at in at.as_flattened() {
            prefetch(base.hint(at));
        }
    }

    /// The header words of the packets that [`LentPackets::locate`] has found in this call.
    #[inline(always)]
    fn transpose<I: Isa, const K: usize>(
        &self,
        isa: I,
        at: &[[usize; 8]],
        words: (usize, &mut Words<K>),
    ) {
        // SAFETY: the frame owns the buffers of the rows; positions are in their slots.
        unsafe { transpose(isa, self.pool.base(), at, words) };
    }

    /// Change the first `N` bytes of every packet in place: see [`Vector::apply`].
    #[inline(always)]
    pub fn apply<const N: usize>(
        &mut self,
        room: &mut Offsets,
        body: impl FnMut(usize, &mut [u8; N]),
    ) {
        const { assert!(N <= READABLE) };
        let at = &self.locate(room).as_flattened()[..self.frame.n];
        // SAFETY: each row owns its own buffer, and the frame is borrowed exclusively; N bytes from the position are in the slot.
        unsafe { apply(self.pool.base(), at, body) };
    }

    /// The first `N` bytes of one packet, for writing: for loops over packets. Bytes behind the packet's end are undefined, and writing
    /// to them has no effect on packets.
    ///
    /// # Panics
    /// When there is no such row.
    #[inline(always)]
    pub fn front<const N: usize>(&mut self, row: usize) -> &mut [u8; N] {
        const { assert!(N <= READABLE) };
        let (idx, pos) = (self.frame.words(IDX)[row], self.frame.words(POS)[row]);
        // SAFETY: the frame owns the buffer and is borrowed exclusively; N bytes from the position are in the slot.
        unsafe {
            let at = self.pool.at(idx, (pos & !CHAINED) as usize);
            &mut *at.cast::<[u8; N]>()
        }
    }
}

impl<'a, I: Isa, X: Nexts> Vector<'a, I, X> {
    /// Take the packets out of the vector, to lend them.
    #[inline(always)]
    pub fn lend(self) -> (LentPackets, EmptyVector<'a, I, X>) {
        let packets = LentPackets {
            pool: self.dispatch.bufs.pool().clone(),
            frame: self.frame,
        };
        let empty = EmptyVector {
            dispatch: self.dispatch,
            raw: self.raw,
            isa: self.isa,
            next: PhantomData,
        };
        (packets, empty)
    }
}

impl<'a, I: Isa, X: Nexts> EmptyVector<'a, I, X> {
    /// The vector with the packets that were lent.
    ///
    /// # Panics
    /// If the packets are of another engine.
    #[inline(always)]
    pub fn restore(self, packets: LentPackets) -> Vector<'a, I, X> {
        assert!(
            Arc::ptr_eq(&packets.pool, self.dispatch.bufs.pool()),
            "the packets are in buffers of another engine"
        );
        Vector {
            frame: packets.frame,
            dispatch: self.dispatch,
            raw: self.raw,
            isa: self.isa,
            next: PhantomData,
        }
    }
}
