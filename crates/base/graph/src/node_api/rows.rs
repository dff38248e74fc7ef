//! The rows of a vector without its instruction-set level and its edges: for code that is compiled once.

use crate::data::col::Col;
use crate::data::frame::Frame;
use crate::data::packet::{Packet, PacketView};
use crate::node_api::edges::Nexts;
use crate::node_api::output::NewVector;
use crate::node_api::vector::Vector;
use volley_buf::Pool;
use volley_simd::Isa;

/// The packets of a vector, for a trait object that handles all of them in one call.
pub struct Rows<'a> {
    pool: &'a Pool,
    frame: &'a mut Frame,
}

impl Rows<'_> {
    /// The number of packets.
    pub fn len(&self) -> usize {
        self.frame.n
    }

    /// Whether there is no packet.
    pub fn is_empty(&self) -> bool {
        self.frame.n == 0
    }

    /// A packet, for reading.
    pub fn view(&self, row: usize) -> PacketView<'_> {
        PacketView::new(self.pool, self.frame, row)
    }

    /// A packet, for writing.
    ///
    /// # Panics
    /// When there is no such row.
    pub fn packet(&mut self, row: usize) -> Packet<'_> {
        assert!(row < self.frame.n);
        Packet {
            pool: self.pool,
            frame: self.frame,
            row,
        }
    }

    /// A column, for writing in place. It counts as filled from now on.
    pub fn column_mut(&mut self, col: Col) -> &mut [u32] {
        self.frame.declared.check(col);
        self.frame.make_valid(col, 0);
        self.frame.cols[col.at()].words_mut(self.frame.n)
    }
}

impl<I: Isa, X: Nexts> Vector<'_, I, X> {
    /// The packets, for code that is compiled once for all instruction sets.
    #[inline(always)]
    pub fn rows(&mut self) -> Rows<'_> {
        Rows {
            pool: self.dispatch.bufs.pool(),
            frame: &mut self.frame,
        }
    }
}

impl<I: Isa, X: Nexts> NewVector<'_, I, X> {
    /// The packets, for code that is compiled once for all instruction sets.
    #[inline(always)]
    pub fn rows(&mut self) -> Rows<'_> {
        Rows {
            pool: self.dispatch.bufs.pool(),
            frame: &mut self.frame,
        }
    }
}
