//! Buffers that are posted to a device: packets that are not transmitted yet, and empty buffers for received packets.
//! Posted buffers count as held until they are reclaimed.
//!
//! Packets of one buffer can be posted; chains only with every buffer ([`Vector::post_all_to_device`]). The caller, which
//! runs the device's rings, names the buffers to reclaim, so reclaiming is unsafe: the callers are `ring.rs` and
//! `sys.rs` of drivers.

use crate::data::col::Col;
use crate::data::frame::{CHAINED, IDX, POS};
use crate::data::packet::{PacketView, segment};
use crate::node_api::edges::Nexts;
use crate::node_api::output::{NewVector, Output};
use crate::node_api::vector::{Consumed, Vector};
use volley_buf::{BufIdx, Cache, END, Meta, NO_BUFFER};
use volley_simd::Isa;

/// Free buffers to the pool.
fn free_buffers(bufs: &mut Cache, buffers: &[BufIdx]) {
    for part in buffers.chunks(64) {
        let mut idx = [0; 64];
        idx.iter_mut().zip(part).for_each(|(to, from)| *to = from.0);
        bufs.free(&idx[..part.len()]);
    }
}

/// Free the members behind `head` without any of the `left` bytes that follow the head's own bytes. Returns true when
/// no member is left and no byte is missing.
fn trim_chain(bufs: &mut Cache, head: u32, mut left: usize) -> bool {
    let whole = left == 0;
    let mut last = head;
    // SAFETY: the caller owns the head, thus the chain; a member is unlinked before it is freed.
    unsafe {
        let mut idx = bufs.pool().meta(head).next;
        while idx != NO_BUFFER {
            let next = bufs.pool().meta(idx).next;
            let n = segment(bufs.pool(), idx).len().min(left);
            left -= n;
            if n == 0 {
                bufs.pool().meta(last).next = next;
                bufs.free(&[idx]);
            } else {
                last = idx;
            }
            idx = next;
        }
    }
    whole && last == head
}

impl<I: Isa, X: Nexts> Vector<'_, I, X> {
    /// Pass packets to a device that transmits later: packets for which `post` returns true stay posted (never
    /// chains), all others are freed.
    pub fn post_to_device(mut self, mut post: impl FnMut(&PacketView<'_>) -> bool) -> Consumed {
        let n = self.frame.n;
        let mut kept = 0;
        for row in 0..n {
            let view = self.view(row);
            if post(&view) && !view.is_chain() {
                continue;
            }
            for col in [IDX, POS] {
                let words = self.frame.cols[col].words_mut(n);
                words[kept] = words[row];
            }
            kept += 1;
        }
        self.frame.n = kept;
        self.free()
    }

    /// Free the buffers of chains that have no byte of their packet: those behind its length, which was reduced, and
    /// empty ones. The segments that are left are all the buffers of the packet.
    #[inline(always)]
    pub fn trim_chains(&mut self) {
        if volley_simd::or_all(self.frame.words(POS)) & CHAINED != 0 {
            self.trim_each();
        }
    }

    #[cold]
    fn trim_each(&mut self) {
        for row in 0..self.frame.n {
            if self.frame.words(POS)[row] & CHAINED == 0 {
                continue;
            }
            let view = self.view(row);
            let (head, left) = (view.buffer().0, view.len() - view.bytes().len());
            if trim_chain(&mut self.dispatch.bufs, head, left) {
                self.frame.cols[POS].words_mut(row + 1)[row] &= !CHAINED;
            }
        }
    }

    /// Pass all packets to a device that transmits later, chains with every buffer: call [`Vector::trim_chains`]
    /// before. Each buffer is reclaimed separately ([`Vector::reclaim`]).
    pub fn post_all_to_device(mut self) -> Consumed {
        self.frame.n = 0;
        self.free()
    }

    /// Reclaim buffers that the device has released.
    ///
    /// # Safety
    /// Each buffer was posted, was not reclaimed since, and is not accessed by the device any more.
    pub unsafe fn reclaim(&mut self, buffers: &[BufIdx]) {
        free_buffers(&mut self.dispatch.bufs, buffers);
    }
}

impl<'a, I: Isa, X: Nexts> Output<'a, I, X> {
    /// Take empty buffers for a device to fill. Returns the number of buffers.
    pub fn post_to_device(&mut self, buffers: &mut [BufIdx]) -> usize {
        let mut got = 0;
        for part in buffers.chunks_mut(64) {
            let mut idx = [0; 64];
            let n = self.dispatch.bufs.alloc(&mut idx[..part.len()]);
            part.iter_mut()
                .zip(idx)
                .take(n)
                .for_each(|(to, from)| *to = BufIdx(from));
            got += n;
            if n < part.len() {
                break;
            }
        }
        got
    }

    /// Reclaim buffers that the device has released.
    ///
    /// # Safety
    /// As [`Vector::reclaim`].
    pub unsafe fn reclaim(&mut self, buffers: &[BufIdx]) {
        free_buffers(&mut self.dispatch.bufs, buffers);
    }

    /// A vector of packets that a device has received on `rx` into posted buffers, each as buffer, offset in its slot,
    /// and length. At most one vector is taken; offsets and lengths are clamped to the slot.
    ///
    /// # Safety
    /// As [`Vector::reclaim`].
    pub unsafe fn receive_into_posted(
        &mut self,
        rx: u32,
        rows: &[(BufIdx, usize, usize)],
    ) -> NewVector<'_, I, X> {
        let mut fresh = self.empty();
        let n = rows.len().min(fresh.dispatch.vector_size);
        let frame = &mut fresh.frame;
        frame.n = n;
        for (row, &(buffer, at, len)) in rows[..n].iter().enumerate() {
            let at = at.clamp(volley_buf::META, END);
            let mut set = |col: usize, word: usize| frame.cols[col].words_mut(n)[row] = word as u32;
            set(IDX, buffer.0 as usize);
            set(POS, at);
            set(Col::LEN.at(), len.min(END - at));
            set(Col::RX.at(), rx as usize);
        }
        fresh
    }

    fn empty(&mut self) -> NewVector<'_, I, X> {
        self.alloc(0, 0)
    }
}

impl<I: Isa, X: Nexts> NewVector<'_, I, X> {
    /// Append posted buffers to the one of `row`, which has no other buffer yet: each as buffer, offset in its slot,
    /// and length. Offsets and lengths are clamped to the slot.
    ///
    /// # Safety
    /// As [`Vector::reclaim`].
    pub unsafe fn append_segments(&mut self, row: usize, parts: &[(BufIdx, usize, usize)]) {
        let n = self.frame.n;
        if row >= n || parts.is_empty() {
            return;
        }
        let (head, pos) = (self.frame.words(IDX)[row], self.frame.words(POS)[row]);
        let len = &mut self.frame.cols[Col::LEN.at()].words_mut(n)[row];
        let pool = self.dispatch.bufs.pool();
        let follow = |at: usize| parts.get(at).map_or(NO_BUFFER, |&(next, ..)| next.0);
        let meta = |start: u32, end: u32, next| Meta {
            next,
            start,
            end,
            ..Meta::default()
        };
        // SAFETY: the head and the parts are owned here, each once.
        unsafe { *pool.meta(head) = meta(pos, pos + *len, follow(0)) };
        for (at, &(part, start, bytes)) in parts.iter().enumerate() {
            let start = start.clamp(volley_buf::META, END);
            let bytes = bytes.min(END - start);
            *len += bytes as u32;
            // SAFETY: as above.
            unsafe {
                *pool.meta(part.0) = meta(start as u32, (start + bytes) as u32, follow(at + 1))
            };
        }
        self.frame.cols[POS].words_mut(n)[row] = pos | CHAINED;
    }
}
