//! Reception of long packets into chains of buffers, into which a driver reads directly.

use crate::data::col::Col;
use crate::data::frame::{CHAINED, IDX, POS};
use crate::node_api::edges::Nexts;
use crate::node_api::output::NewVector;
use std::io::IoSliceMut;
use volley_buf::{DATA, Meta, NO_BUFFER, START};
use volley_simd::Isa;

/// The maximum number of buffers of a packet: 65,535 bytes and the headers in front of them.
pub const MAX_SEGMENTS: usize = 33;

impl<I: Isa, X: Nexts> NewVector<'_, I, X> {
    /// Receive one packet of up to `room` bytes (at most [`MAX_SEGMENTS`] buffers): `body` gets the buffers in order, for
    /// `readv`, and returns the number of bytes that it wrote. Buffers that stay empty are freed. When no buffers are free,
    /// `body` is not called, the packet is empty and the result is none.
    pub fn scatter(
        &mut self,
        row: usize,
        room: usize,
        body: impl FnOnce(&mut [IoSliceMut<'_>]) -> usize,
    ) -> Option<usize> {
        let mut idx = [0u32; MAX_SEGMENTS];
        let n = room.div_ceil(DATA).clamp(1, MAX_SEGMENTS);
        idx[0] = self.frame.words(IDX)[row];
        let got = self.dispatch.bufs.alloc(&mut idx[1..n]);
        if got < n - 1 {
            self.dispatch.bufs.free(&idx[1..=got]);
            return None;
        }
        let pool = self.dispatch.bufs.own_pool();
        let mut slices: [IoSliceMut<'_>; MAX_SEGMENTS] =
            std::array::from_fn(|_| IoSliceMut::new(&mut []));
        for (slice, &idx) in slices.iter_mut().zip(&idx[..n]) {
            // SAFETY: the head is the row's, the others were just allocated; no two are the same, and each has DATA
            // bytes behind START.
            *slice = IoSliceMut::new(unsafe {
                std::slice::from_raw_parts_mut(pool.at(idx, START), DATA)
            });
        }
        let len = body(&mut slices[..n]).min(n * DATA);
        let used = len.div_ceil(DATA).max(1);
        self.dispatch.bufs.free(&idx[used..n]);
        self.link(row, &idx[..used], len);
        Some(len)
    }

    /// Make a chain of the buffers `idx`, filled with `len` bytes in order, the packet of `row`.
    fn link(&mut self, row: usize, idx: &[u32], len: usize) {
        let n = self.frame.n;
        if idx.len() > 1 {
            let pool = self.dispatch.bufs.pool();
            for (at, &this) in idx.iter().enumerate() {
                // SAFETY: all of them belong to this packet.
                unsafe {
                    *pool.meta(this) = Meta {
                        next: idx.get(at + 1).copied().unwrap_or(NO_BUFFER),
                        end: (START + (len - at * DATA).min(DATA)) as u32,
                        ..Meta::default()
                    }
                };
            }
            self.frame.cols[POS].words_mut(n)[row] |= CHAINED;
        }
        self.frame.cols[Col::LEN.at()].words_mut(n)[row] = len as u32;
    }
}
