//! The output of a source: it allocates buffers and sends packets.

use crate::data::col::Col;
use crate::data::column::Column;
use crate::data::frame::{CHAINED, Frame, IDX, POS};
use crate::data::ids::NodeId;
use crate::data::offload::{BadOffload, Offload};
use crate::data::packet::{Packet, PacketView};
use crate::data::{offload, packet};
use crate::node_api::context::RawCx;
use crate::node_api::edges::Nexts;
use crate::node_api::trace_rows;
use crate::queues::dispatch::Dispatch;
use crate::queues::trace::PacketTrace;
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, MaybeUninit};
use volley_buf::{DATA, END, Meta, NO_BUFFER, Pool, START};
use volley_simd::Isa;

/// The maximum number of packets that [`NewVector::fill_alike`] passes at a time.
pub const STRIP: usize = 16;

/// The output of a source.
pub struct Output<'a, I: Isa, X: Nexts> {
    pub(crate) dispatch: &'a mut Dispatch,
    pub(crate) raw: &'a RawCx<'a>,
    pub(crate) isa: I,
    next: PhantomData<X>,
}

impl<'a, I: Isa, X: Nexts> Output<'a, I, X> {
    /// The output for one call of a source or a stage.
    #[inline(always)]
    pub(crate) fn new(dispatch: &'a mut Dispatch, raw: &'a RawCx<'a>, isa: I) -> Self {
        Output {
            dispatch,
            raw,
            isa,
            next: PhantomData,
        }
    }

    /// The maximum number of packets of a vector.
    #[inline(always)]
    pub fn vector_size(&self) -> usize {
        self.dispatch.vector_size
    }

    /// Whether every packet that this worker received has left the worker: no stage holds one. Until then a queue is not moved
    /// to another worker, because packets of a flow would overtake each other.
    #[inline(always)]
    pub fn is_drained(&self) -> bool {
        !self.dispatch.holding && self.dispatch.handoff.is_flushed()
    }

    /// The first node of the packets that `interface` received: see [`crate::RECEIVE_ARC`].
    #[inline(always)]
    pub fn receiver(&self, interface: u32) -> NodeId {
        self.dispatch.receiver(interface)
    }

    /// A vector of up to `rows` empty packets, received on interface `rx`, each with a new buffer; fewer, down to
    /// none, when buffers are short.
    #[inline(always)]
    pub fn alloc(&mut self, rows: usize, rx: u32) -> NewVector<'_, I, X> {
        let mut frame = self.dispatch.frame();
        let rows = rows.min(self.dispatch.vector_size);
        frame.n = self.dispatch.bufs.alloc(frame.cols[IDX].words_mut(rows));
        let n = frame.n;
        frame.cols[POS].words_mut(n).fill(START as u32);
        frame.cols[Col::LEN.at()].words_mut(n).fill(0);
        frame.cols[Col::RX.at()].words_mut(n).fill(rx);
        self.fresh(frame)
    }

    #[inline(always)]
    fn fresh(&mut self, frame: Box<Frame>) -> NewVector<'_, I, X> {
        NewVector {
            frame: ManuallyDrop::new(frame),
            dispatch: self.dispatch,
            raw: self.raw,
            isa: self.isa,
            next: PhantomData,
        }
    }

    /// A vector of the next packets (at most `rows`, at most one vector) that were deferred with [`NewVector::defer`].
    #[inline(always)]
    pub fn resume(&mut self, aside: &mut DeferredPackets, rows: usize) -> NewVector<'_, I, X> {
        let mut frame = self.dispatch.frame();
        let n = rows.min(aside.len()).min(self.dispatch.vector_size);
        frame.n = n;
        frame.cols[POS].words_mut(n).fill(START as u32);
        for (col, words) in PREPARED.iter().zip(&aside.cols) {
            let ready = &words[aside.at..][..n];
            frame.cols[*col].words_mut(n).copy_from_slice(ready);
        }
        aside.at += n;
        self.fresh(frame)
    }

    /// Free the deferred packets that were not resumed.
    pub fn release(&mut self, aside: &mut DeferredPackets) {
        self.dispatch.bufs.free(&aside.cols[0][aside.at..]);
        aside.clear();
    }
}

/// The columns of deferred packets.
const PREPARED: [usize; 3] = [IDX, Col::LEN.at(), Col::RX.at()];

/// Deferred packets of a source. They count as held; free them with [`Output::release`].
#[derive(Default)]
pub struct DeferredPackets {
    /// The columns [`PREPARED`] of one packet after the other.
    cols: [Vec<u32>; PREPARED.len()],
    at: usize,
}

impl DeferredPackets {
    /// Capacity for `rows` packets, so that deferring them does not allocate.
    pub fn with_capacity(rows: usize) -> Self {
        DeferredPackets {
            cols: std::array::from_fn(|_| Vec::with_capacity(rows)),
            at: 0,
        }
    }

    /// The number of packets to be resumed.
    pub fn len(&self) -> usize {
        self.cols[0].len() - self.at
    }

    /// Whether no packet is deferred.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn clear(&mut self) {
        self.cols.iter_mut().for_each(Vec::clear);
        self.at = 0;
    }
}

/// Pass the data areas of buffers to `body`, up to [`STRIP`] at a time.
///
/// # Safety
/// The caller owns the buffers, and they are different.
#[inline(always)]
unsafe fn fill_buffers(pool: &Pool, buffers: &[u32], mut body: impl FnMut(&mut [&mut [u8; DATA]])) {
    for buffers in buffers.chunks(STRIP) {
        let mut strip = [const { MaybeUninit::<&mut [u8; DATA]>::uninit() }; STRIP];
        for (place, &idx) in strip.iter_mut().zip(buffers) {
            // SAFETY: the caller owns the buffer, its data area is the DATA bytes from START, and no other reference is to it.
            place.write(unsafe { &mut *pool.at(idx, START).cast() });
        }
        // SAFETY: the first `buffers.len()` entries are initialised, and a MaybeUninit has the layout of its value.
        body(unsafe { std::slice::from_raw_parts_mut(strip.as_mut_ptr().cast(), buffers.len()) });
    }
}

/// A vector that a source fills. If it is dropped unsent, its buffers are freed.
pub struct NewVector<'a, I: Isa, X: Nexts> {
    pub(crate) frame: ManuallyDrop<Box<Frame>>,
    pub(crate) dispatch: &'a mut Dispatch,
    pub(crate) raw: &'a RawCx<'a>,
    isa: I,
    next: PhantomData<X>,
}

impl<I: Isa, X: Nexts> NewVector<'_, I, X> {
    /// The number of packets.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.frame.n
    }

    /// Whether the vector is empty.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.frame.n == 0
    }

    /// Write every packet: `body` fills the buffer and returns the length.
    #[inline(always)]
    pub fn fill(&mut self, mut body: impl FnMut(usize, &mut [u8; DATA]) -> usize) {
        let n = self.frame.n;
        for row in 0..n {
            // SAFETY: the row's buffer is owned here, its data area is the DATA bytes from START, and rows do not
            // share buffers.
            let data = unsafe {
                &mut *self
                    .dispatch
                    .bufs
                    .pool()
                    .at(self.frame.words(IDX)[row], START)
                    .cast::<[u8; DATA]>()
            };
            let len = body(row, data).min(DATA);
            self.frame.cols[Col::LEN.at()].words_mut(n)[row] = len as u32;
        }
    }

    /// Write packets that are all `len` bytes long, up to [`STRIP`] at a time: `body` gets their buffers, in order.
    #[inline(always)]
    pub fn fill_alike(&mut self, len: usize, body: impl FnMut(&mut [&mut [u8; DATA]])) {
        let n = self.frame.n;
        // SAFETY: this vector's buffers are owned here, and rows do not share buffers.
        unsafe { fill_buffers(self.dispatch.bufs.pool(), self.frame.words(IDX), body) };
        self.frame.cols[Col::LEN.at()]
            .words_mut(n)
            .fill(len.min(DATA) as u32);
    }

    /// Write the packets of one of several senders, which are all `len` bytes long: those whose word in `senders` is `which`. `body`
    /// gets their buffers, up to [`STRIP`] at a time, in order; `buffers` is overwritten. Sets the length and the receive interface
    /// of these packets, and returns their number.
    ///
    /// # Panics
    /// If a column has fewer words than there are packets.
    #[inline(always)]
    pub fn fill_part(
        &mut self,
        (senders, which): (&Column, u32),
        (len, rx): (usize, u32),
        buffers: &mut Column,
        body: impl FnMut(&mut [&mut [u8; DATA]]),
    ) -> usize {
        let n = self.frame.n;
        let bits = self.isa.rows_equal(senders.words(n), which);
        let found = self
            .isa
            .compress(&bits, self.frame.words(IDX), buffers.all_mut());
        // SAFETY: this vector's buffers are owned here, rows do not share buffers, and `compress` takes each row once.
        unsafe { fill_buffers(self.dispatch.bufs.pool(), buffers.words(found), body) };
        let strips = senders.strips(n);
        for (col, value) in [(Col::LEN, len.min(DATA) as u32), (Col::RX, rx)] {
            // The words of the slack have no meaning, and may be written.
            let words = self.frame.cols[col.at()].strips_mut(n);
            for (words, senders) in words.iter_mut().zip(strips) {
                for (word, sender) in words.iter_mut().zip(senders) {
                    *word = if *sender == which { value } else { *word };
                }
            }
        }
        found
    }

    /// Number and bytes of the packets of one of several senders: those whose word in `senders` is `which`.
    ///
    /// # Panics
    /// If there are fewer words than packets.
    #[inline(always)]
    pub fn weigh_part(&self, senders: &[u32], which: u32) -> (u64, u64) {
        let lens = self.frame.words(Col::LEN.at());
        let (mut packets, mut bytes) = (0u32, 0u32);
        // 32 bits hold the bytes of a vector: at most 1,024 packets of at most 64 KiB.
        for (&sender, &len) in senders[..lens.len()].iter().zip(lens) {
            let is_one = u32::from(sender == which);
            packets += is_one;
            bytes = bytes.wrapping_add(len * is_one);
        }
        (u64::from(packets), u64::from(bytes))
    }

    /// The bytes of all packets.
    #[inline(always)]
    pub fn bytes(&self) -> u64 {
        volley_simd::sum(self.frame.words(Col::LEN.at()))
    }

    /// Write one packet of any length, as a chain when it is longer than one buffer. Returns false, and leaves the
    /// packet empty, when no buffer is free.
    pub fn write(&mut self, row: usize, bytes: &[u8]) -> bool {
        let head = self.frame.words(IDX)[row];
        let (first, rest) = bytes.split_at(bytes.len().min(DATA));
        // SAFETY: the row's buffer is owned here; `first` fits its data area.
        unsafe {
            std::ptr::copy_nonoverlapping(
                first.as_ptr(),
                self.dispatch.bufs.pool().at(head, START),
                first.len(),
            )
        };
        let n = self.frame.n;
        if !rest.is_empty() {
            if !self.append_buffers(head, START + first.len(), rest) {
                return false;
            }
            self.frame.cols[POS].words_mut(n)[row] |= CHAINED;
        }
        self.frame.cols[Col::LEN.at()].words_mut(n)[row] = bytes.len() as u32;
        true
    }

    /// Append buffers with the bytes `rest` to `head`, whose data end at `end`.
    fn append_buffers(&mut self, head: u32, end: usize, rest: &[u8]) -> bool {
        // SAFETY: the head and the members are owned here; every part fits its data area.
        unsafe {
            let pool = self.dispatch.bufs.own_pool();
            *pool.meta(head) = Meta {
                next: NO_BUFFER,
                start: START as u32,
                end: end as u32,
                ..Meta::default()
            };
            let mut last = head;
            for part in rest.chunks(DATA) {
                let mut idx = [0];
                if self.dispatch.bufs.alloc(&mut idx) == 0 {
                    packet::free_members(&mut self.dispatch.bufs, head);
                    return false;
                }
                std::ptr::copy_nonoverlapping(part.as_ptr(), pool.at(idx[0], START), part.len());
                *pool.meta(idx[0]) = Meta {
                    next: NO_BUFFER,
                    start: START as u32,
                    end: (START + part.len()) as u32,
                    ..Meta::default()
                };
                pool.meta(last).next = idx[0];
                last = idx[0];
            }
        }
        debug_assert!(end <= END);
        true
    }

    /// Set the receive interface of a packet.
    #[inline(always)]
    pub fn set_rx(&mut self, row: usize, rx: u32) {
        let n = self.frame.n;
        self.frame.cols[Col::RX.at()].words_mut(n)[row] = rx;
    }

    /// Set the receive interface of all packets.
    #[inline(always)]
    pub fn set_rx_all(&mut self, rx: u32) {
        let n = self.frame.n;
        self.frame.cols[Col::RX.at()].words_mut(n).fill(rx);
    }

    /// Change packets and their columns, one at a time, before they are sent.
    pub fn prepare(&mut self, mut body: impl FnMut(usize, &mut Packet<'_>)) {
        for row in 0..self.frame.n {
            body(
                row,
                &mut Packet {
                    pool: self.dispatch.bufs.pool(),
                    frame: &mut self.frame,
                    row,
                },
            );
        }
    }

    /// Keep the first `rows` packets and free the others.
    pub fn truncate(&mut self, rows: usize) {
        if rows >= self.frame.n {
            return;
        }
        let (idx, pos) = (self.frame.words(IDX), self.frame.words(POS));
        for (&idx, &pos) in idx.iter().zip(pos).skip(rows) {
            if pos & CHAINED != 0 {
                packet::free_members(&mut self.dispatch.bufs, idx);
            }
        }
        self.dispatch.bufs.free(&idx[rows..]);
        self.frame.n = rows;
    }

    /// Defer the packets, which have one buffer each, in order.
    pub fn defer(mut self, aside: &mut DeferredPackets) {
        if aside.is_empty() {
            aside.clear();
        }
        debug_assert!(
            volley_simd::or_all(self.frame.words(POS)) & CHAINED == 0,
            "chains cannot be set aside"
        );
        for (col, words) in PREPARED.iter().zip(&mut aside.cols) {
            words.extend_from_slice(self.frame.words(*col));
        }
        self.frame.n = 0;
    }

    /// Send all packets to an edge.
    #[inline(always)]
    pub fn send(self, next: X) -> usize {
        let target = self.raw.edges[next.index()];
        self.send_to(target)
    }

    /// The first node of the packets that `interface` received: see [`crate::RECEIVE_ARC`].
    #[inline(always)]
    pub fn receiver(&self, interface: u32) -> NodeId {
        self.dispatch.receiver(interface)
    }

    /// Send all packets, which `interface` received, into the arc of received packets.
    #[inline(always)]
    pub fn send_received(self, interface: u32) -> usize {
        let target = self.receiver(interface);
        self.send_to(target)
    }

    /// Send all packets to a node chosen at run time.
    #[inline(always)]
    pub fn send_to(self, target: NodeId) -> usize {
        let (frame, dispatch, _) = self.release();
        let n = frame.n;
        let target = if target.index() < dispatch.queues.len() {
            target
        } else {
            dispatch.drop_node
        };
        dispatch.push_frame(target, frame);
        n
    }

    /// Send each packet to the node that `nodes` names ([`NodeId`] as a word).
    #[inline(always)]
    pub fn send_each(self, nodes: &Column) -> usize {
        let (frame, dispatch, isa) = self.release();
        let (n, count, last) = (frame.n, dispatch.queues.len(), dispatch.drop_node);
        let node = |code| {
            if (code as usize) < count {
                NodeId(code as u16)
            } else {
                last
            }
        };
        dispatch.split(isa, frame, nodes.words(n), node);
        n
    }
}

impl<'a, I: Isa, X: Nexts> NewVector<'a, I, X> {
    /// A packet of the vector, for reading.
    pub fn view(&self, row: usize) -> PacketView<'_> {
        PacketView::new(self.dispatch.bufs.pool(), &self.frame, row)
    }

    /// Take the frame for sending, after traces were started.
    #[inline(always)]
    pub(crate) fn release(self) -> (Box<Frame>, &'a mut Dispatch, I) {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: `this` is not dropped, so the frame and the reference are moved out of it exactly once.
        let (mut frame, dispatch) = unsafe {
            (
                ManuallyDrop::take(&mut this.frame),
                &mut *std::ptr::from_mut(this.dispatch),
            )
        };
        if dispatch.tracer.armed {
            dispatch
                .tracer
                .mark(this.raw.node, dispatch.bufs.pool(), &mut frame);
            trace_rows::note_rows::<PacketTrace>(dispatch, this.raw, &frame);
        }
        (frame, dispatch, this.isa)
    }
}

impl<I: Isa, X: Nexts> NewVector<'_, I, X> {
    /// Set the offload requests of a received packet, after its bytes were written. A request that does not fit the packet is
    /// refused: the caller must then drop and count the packet.
    pub fn set_offload(&mut self, row: usize, offload: &Offload) -> Result<(), BadOffload> {
        let first = self.view(row).bytes().len();
        let pool = self.dispatch.bufs.own_pool();
        offload::set(&pool, &mut self.frame, row, offload, first)
    }
}

impl<I: Isa, X: Nexts> Drop for NewVector<'_, I, X> {
    fn drop(&mut self) {
        self.truncate(0);
        // SAFETY: only this method and `send_to` (which forgets `self`) take the frame, and this is the last use.
        let frame = unsafe { ManuallyDrop::take(&mut self.frame) };
        self.dispatch.recycle(frame);
    }
}
