//! Packets of a vector that its node lends to code that knows neither the vector's lifetime nor its types, such as an object of an
//! embedded language, and gets back before it sends them.

use crate::data::col::Col;
use crate::data::frame::Frame;
use crate::data::packet::{Packet, PacketView, first_segment};
use crate::node_api::context::RawCx;
use crate::node_api::edges::Nexts;
use crate::node_api::vector::Vector;
use crate::queues::dispatch::DispatchState;
use std::marker::PhantomData;
use std::sync::Arc;
use volley_buf::Pool;
use volley_simd::Isa;

/// The packets of a vector without the vector: they belong to this value until [`EmptyVector::restore`] takes them back.
pub struct LentPackets {
    frame: Box<Frame>,
    pool: Arc<Pool>,
}

/// A vector without its packets.
#[must_use = "the packets of the vector are lost unless they are restored"]
pub struct EmptyVector<'a, I: Isa, X: Nexts> {
    dispatch: &'a mut DispatchState,
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
