//! Where a source gets its buffers and puts its packets.

use crate::context::RawCx;
use crate::dispatch::DispatchState;
use crate::frame::{CHAINED, Col, Frame, IDX, POS};
use crate::{Column, Nexts, NodeId, Packet, PacketView};
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, MaybeUninit};
use volley_buf::{DATA, END, Meta, NO_BUFFER, START};
use volley_simd::Isa;

/// The most packets that [`NewVector::fill_alike`] hands over at a time.
pub const STRIP: usize = 16;

/// A source's way into the graph.
pub struct Output<'a, I: Isa, X: Nexts> {
    pub(crate) dispatch: &'a mut DispatchState,
    pub(crate) raw: &'a RawCx<'a>,
    pub(crate) isa: I,
    pub(crate) next: PhantomData<X>,
}

impl<'a, I: Isa, X: Nexts> Output<'a, I, X> {
    /// The most packets one vector takes.
    #[inline(always)]
    pub fn vector_size(&self) -> usize {
        self.dispatch.vector_size
    }

    /// Whether every packet that this worker took in has left it: none waits in a stage. Until then a queue that goes to
    /// another worker stays, or packets of a flow would overtake each other.
    #[inline(always)]
    pub fn is_drained(&self) -> bool {
        !self.dispatch.holding && self.dispatch.handoff.is_flushed()
    }

    /// Up to `rows` packets with fresh buffers (fewer, down to none, when buffers run short), each empty, received on
    /// interface `rx`.
    #[inline(always)]
    pub fn alloc(&mut self, rows: usize, rx: u32) -> NewVector<'_, I, X> {
        let mut frame = self.dispatch.frame();
        let rows = rows.min(self.dispatch.vector_size);
        frame.n = self.dispatch.bufs.alloc(frame.cols[IDX].words_mut(rows));
        let n = frame.n;
        frame.cols[POS].words_mut(n).fill(START as u32);
        frame.cols[Col::Len as usize].words_mut(n).fill(0);
        frame.cols[Col::Rx as usize].words_mut(n).fill(rx);
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

    /// The next packets (at most `rows`, at most one vector) that were set aside with [`NewVector::defer`].
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

    /// Free what was set aside and not resumed.
    pub fn release(&mut self, aside: &mut DeferredPackets) {
        self.dispatch.bufs.free(&aside.cols[0][aside.at..]);
        aside.clear();
    }
}

/// The columns of packets that are set aside.
const PREPARED: [usize; 3] = [IDX, Col::Len as usize, Col::Rx as usize];

/// Prepared packets that wait in a source. They count as held; give them back with [`Output::release`].
#[derive(Default)]
pub struct DeferredPackets {
    /// [`PREPARED`], one after the other.
    cols: [Vec<u32>; PREPARED.len()],
    at: usize,
}

impl DeferredPackets {
    /// Room for `rows` packets, so that setting them aside does not allocate.
    pub fn with_capacity(rows: usize) -> Self {
        DeferredPackets {
            cols: std::array::from_fn(|_| Vec::with_capacity(rows)),
            at: 0,
        }
    }

    /// Packets still to be resumed.
    pub fn len(&self) -> usize {
        self.cols[0].len() - self.at
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn clear(&mut self) {
        self.cols.iter_mut().for_each(Vec::clear);
        self.at = 0;
    }
}

/// A vector in the making, in the hands of a source. Dropped unsent, it frees its buffers.
pub struct NewVector<'a, I: Isa, X: Nexts> {
    pub(crate) frame: ManuallyDrop<Box<Frame>>,
    pub(crate) dispatch: &'a mut DispatchState,
    pub(crate) raw: &'a RawCx<'a>,
    isa: I,
    next: PhantomData<X>,
}

impl<I: Isa, X: Nexts> NewVector<'_, I, X> {
    /// How many packets there are.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.frame.n
    }

    /// Whether there is none.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.frame.n == 0
    }

    /// Write every packet: `body` fills the buffer and returns the length.
    #[inline(always)]
    pub fn fill(&mut self, mut body: impl FnMut(usize, &mut [u8; DATA]) -> usize) {
        let n = self.frame.n;
        for row in 0..n {
            // SAFETY: the row's buffer is ours, its data area is DATA bytes behind START, and rows do not share buffers.
            let data = unsafe {
                &mut *self
                    .dispatch
                    .bufs
                    .pool()
                    .at(self.frame.words(IDX)[row], START)
                    .cast::<[u8; DATA]>()
            };
            let len = body(row, data).min(DATA);
            self.frame.cols[Col::Len as usize].words_mut(n)[row] = len as u32;
        }
    }

    /// Write packets that are all `len` bytes long, a strip of up to [`STRIP`] at a time: `body` gets their buffers, in order.
    #[inline(always)]
    pub fn fill_alike(&mut self, len: usize, mut body: impl FnMut(&mut [&mut [u8; DATA]])) {
        let n = self.frame.n;
        let pool = self.dispatch.bufs.pool();
        for rows in self.frame.words(IDX).chunks(STRIP) {
            let mut strip = [const { MaybeUninit::<&mut [u8; DATA]>::uninit() }; STRIP];
            for (place, &idx) in strip.iter_mut().zip(rows) {
                // SAFETY: the row's buffer is ours, its data area is DATA bytes behind START, and rows do not share buffers.
                place.write(unsafe { &mut *pool.at(idx, START).cast() });
            }
            // SAFETY: as many are initialised, and a MaybeUninit is laid out as what it may hold.
            body(unsafe { std::slice::from_raw_parts_mut(strip.as_mut_ptr().cast(), rows.len()) });
        }
        self.frame.cols[Col::Len as usize]
            .words_mut(n)
            .fill(len.min(DATA) as u32);
    }

    /// The bytes of all packets.
    #[inline(always)]
    pub fn bytes(&self) -> u64 {
        volley_simd::sum(self.frame.words(Col::Len as usize))
    }

    /// Write one packet of any length, as a chain where one buffer does not hold it. False (and an empty packet) when
    /// buffers run out.
    pub fn write(&mut self, row: usize, bytes: &[u8]) -> bool {
        let head = self.frame.words(IDX)[row];
        let (first, rest) = bytes.split_at(bytes.len().min(DATA));
        // SAFETY: the row's buffer is ours; `first` fits its data area.
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
        self.frame.cols[Col::Len as usize].words_mut(n)[row] = bytes.len() as u32;
        true
    }

    /// Hang buffers with `rest` behind `head`, whose data end at `end`.
    fn append_buffers(&mut self, head: u32, end: usize, rest: &[u8]) -> bool {
        // SAFETY: head and members are ours; every part fits its data area.
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
                    crate::packet::free_members(&mut self.dispatch.bufs, head);
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

    /// Say by which interface a packet came in.
    #[inline(always)]
    pub fn set_rx(&mut self, row: usize, rx: u32) {
        let n = self.frame.n;
        self.frame.cols[Col::Rx as usize].words_mut(n)[row] = rx;
    }

    /// Say by which interface all packets came in.
    #[inline(always)]
    pub fn set_rx_all(&mut self, rx: u32) {
        let n = self.frame.n;
        self.frame.cols[Col::Rx as usize].words_mut(n).fill(rx);
    }

    /// Change packets and their columns one by one before they go.
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
                crate::packet::free_members(&mut self.dispatch.bufs, idx);
            }
        }
        self.dispatch.bufs.free(&idx[rows..]);
        self.frame.n = rows;
    }

    /// Set the packets (single-buffer ones) aside for later, in order.
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

    /// Send all packets by an edge.
    #[inline(always)]
    pub fn send(self, next: X) -> usize {
        let target = self.raw.edges[next.index()];
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
    /// A packet of the vector, to be looked at.
    pub fn view(&self, row: usize) -> PacketView<'_> {
        PacketView::new(self.dispatch.bufs.pool(), &self.frame, row)
    }

    /// Take the frame out for sending, with traces started.
    #[inline(always)]
    pub(crate) fn release(self) -> (Box<Frame>, &'a mut DispatchState, I) {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: `this` is never dropped, so its frame is taken and its lanes are borrowed on exactly once.
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
            crate::trace::note_rows::<crate::PacketTrace>(dispatch, this.raw, &frame);
        }
        (frame, dispatch, this.isa)
    }
}

impl<I: Isa, X: Nexts> Drop for NewVector<'_, I, X> {
    fn drop(&mut self) {
        self.truncate(0);
        // SAFETY: this is the only place but `send_to` (which forgets `self`) that takes the frame, and the last.
        let frame = unsafe { ManuallyDrop::take(&mut self.frame) };
        self.dispatch.recycle(frame);
    }
}
