//! Buffers between the graph and DPDK's ports, without copies.
//!
//! Each slot of the arena has one mbuf, created once, whose data area is the slot's. The owner of the slot owns the mbuf.
//! Slots that ports may take, or returned after sending, lie in the *store*: a DPDK mempool, whose lock-free stack is
//! safe for all threads. Workers maintain its level: they add fresh buffers below the lower limit and remove buffers
//! above the upper one.
//!
//! A received packet is copied only if it does not lie in the arena, because its driver attached external memory to an
//! mbuf or shares the mbuf. Copies between a driver's queue and the mbuf depend on the driver (memif, tap and pcap copy,
//! a network card does not).

#![allow(unsafe_code)]

use crate::sys::{self, Conf, FULL, Outgoing, RawPool, RawPort, Refused, SENT, Segment};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering::Relaxed};
use volley_graph::buf::{Backing, BufIdx, Cache, DATA, HEADROOM, META, Pool, STRIDE};
use volley_graph::{Isa, NewVector, Nexts, Output, PacketView, Vector};

/// Number of the next mempool, for its name.
static NUMBER: AtomicU32 = AtomicU32::new(0);

/// Number of slots added or removed at once.
const BATCH: usize = 64;

/// Length of the longest packet that is copied.
const LONGEST: usize = 1 << 16;

/// The mbufs of an arena, and the slots that neither a port nor the graph owns.
pub(crate) struct Store {
    pool: Arc<Pool>,
    raw: *mut RawPool,
    /// Slots that the graph does not own: in the store, in queues, in drivers.
    away: AtomicI64,
    /// Level of the store below which slots are added. Above four times this level slots are removed.
    low: u32,
}

// SAFETY: the mempool behind `raw` may be used by any number of threads.
unsafe impl Send for Store {}
// SAFETY: as above.
unsafe impl Sync for Store {}

impl Store {
    /// An empty store over the arena, for vectors of up to `size` packets. The EAL must run.
    pub(crate) fn new(pool: &Arc<Pool>, size: usize) -> Result<Arc<Self>, Refused> {
        let name = format!("volley{}", NUMBER.fetch_add(1, Relaxed));
        let page = match pool.report().backing {
            Backing::Huge => 2 << 20,
            Backing::Transparent | Backing::Plain => 4096,
        };
        let slots = pool.total() as u32;
        // SAFETY: only the address is used here.
        let base = unsafe { pool.at(0, 0) };
        let bytes = (slots as usize * STRIDE).next_multiple_of(page);
        let room = (META as u32, (HEADROOM + DATA) as u32);
        // SAFETY: the arena is mapped in whole huge pages and lives as long as `pool`, which is stored beside it.
        let raw = unsafe { sys::pool(&name, (base, bytes, page), slots, room) }?;
        let low = (2 * size).min(pool.total() / 16).max(BATCH) as u32;
        Ok(Arc::new(Store {
            pool: pool.clone(),
            raw,
            away: AtomicI64::new(0),
            low,
        }))
    }

    fn raw(&self) -> *mut RawPool {
        self.raw
    }

    /// Number of slots that the graph does not own.
    pub(crate) fn away(&self) -> i64 {
        self.away.load(Relaxed)
    }

    /// Number of slots in the store.
    pub(crate) fn level(&self) -> u32 {
        // SAFETY: the pool lives.
        unsafe { sys::vd_pool_level(self.raw) }
    }

    fn put(&self, slots: &[u32]) {
        self.away.fetch_add(slots.len() as i64, Relaxed);
        // SAFETY: callers took the slots from a free list; the pool lives.
        unsafe { sys::vd_pool_put(self.raw, slots.as_ptr(), slots.len() as u32) };
    }

    fn take<'a>(&self, slots: &'a mut [u32; BATCH]) -> &'a [u32] {
        // SAFETY: the array has space for that many; the pool lives.
        let n = unsafe { sys::vd_pool_take(self.raw, slots.as_mut_ptr(), BATCH as u32) } as usize;
        self.away.fetch_sub(n as i64, Relaxed);
        &slots[..n]
    }

    /// Fill the store to at least `slots` from a free list; false if there are too few.
    pub(crate) fn fill(&self, cache: &mut Cache, slots: usize) -> bool {
        while (self.level() as usize) < slots {
            let mut fresh = [0; BATCH];
            let n = cache.alloc(&mut fresh);
            self.put(&fresh[..n]);
            if n < BATCH {
                return self.level() as usize >= slots;
            }
        }
        true
    }

    /// Move all slots of the store to a free list.
    pub(crate) fn empty(&self, cache: &mut Cache) {
        let mut slots = [0; BATCH];
        loop {
            let got = self.take(&mut slots);
            if got.is_empty() {
                return;
            }
            cache.free(got);
        }
    }

    /// Maintain the level, on a worker.
    #[inline(always)]
    pub(crate) fn keep_level<I: Isa, X: Nexts>(&self, out: &mut Output<'_, I, X>) {
        let level = self.level();
        if level < self.low {
            self.refill(out);
        } else if level > 4 * self.low {
            let (mut slots, mut back) = ([0; BATCH], [BufIdx(0); BATCH]);
            let got = self.take(&mut slots);
            // SAFETY: the store owned these slots exclusively, and the call has taken them out.
            unsafe { out.reclaim(named(got, &mut back)) };
        }
    }

    fn refill<I: Isa, X: Nexts>(&self, out: &mut Output<'_, I, X>) {
        while self.level() < 2 * self.low {
            let (mut fresh, mut slots) = ([BufIdx(0); BATCH], [0; BATCH]);
            let n = out.post_to_device(&mut fresh);
            slots.iter_mut().zip(&fresh).for_each(|(to, b)| *to = b.0);
            self.put(&slots[..n]);
            if n < BATCH {
                return;
            }
        }
    }
}

fn named<'a>(slots: &[u32], out: &'a mut [BufIdx; BATCH]) -> &'a [BufIdx] {
    let pairs = out.iter_mut().zip(slots);
    pairs.for_each(|(to, &slot)| *to = BufIdx(slot));
    &out[..slots.len()]
}

impl Drop for Store {
    fn drop(&mut self) {
        self.empty(&mut self.pool.cache());
        match self.away() {
            // SAFETY: every port that used it is closed (each holds the store), and every slot has returned.
            0 => unsafe { sys::vd_pool_free(self.raw) },
            // A driver has kept some slots: the pool's memory and the arena must stay.
            _ => std::mem::forget(self.pool.clone()),
        }
    }
}

/// A running port, shared by the control thread and the queues on workers. The last reference closes it; the control
/// thread makes sure that it holds that reference.
pub struct Port {
    // Closed before the store is dropped.
    raw: RawPort,
    store: Arc<Store>,
}

impl Port {
    /// Create the queues of a device over a store, and start it. On return `conf` has the actual values. On failure the
    /// device is removed again.
    pub(crate) fn open(raw: RawPort, store: &Arc<Store>, conf: &mut Conf) -> Result<Self, Refused> {
        let port = Port {
            raw,
            store: store.clone(),
        };
        // SAFETY: the port is dropped before the store, see above.
        unsafe {
            port.raw.map(store.raw)?;
            port.raw.configure(conf, store.raw)?;
        }
        port.raw.run()?;
        Ok(port)
    }

    /// Number of the port in libdpdk.
    pub(crate) fn number(&self) -> u16 {
        self.raw.number
    }

    /// The port for the control thread's calls.
    pub(crate) fn raw(&self) -> &RawPort {
        &self.raw
    }

    /// The store of the port's buffers.
    pub(crate) fn store(&self) -> &Store {
        &self.store
    }
}

/// A receive queue of a port, for the one worker that polls it.
pub struct RxQueue {
    port: Arc<Port>,
    queue: u16,
    segments: Box<[Segment]>,
    rows: Vec<(BufIdx, usize, usize)>,
    /// Packets of several segments: row, and range of segments.
    chains: Vec<(usize, usize, usize)>,
    parts: Vec<(BufIdx, usize, usize)>,
    copies: Copies,
}

/// Received packets that do not lie in the arena.
struct Copies {
    bytes: Vec<u8>,
    /// Row, and range of bytes.
    rows: Vec<(usize, usize, usize)>,
}

/// A segment in the arena.
fn place(segment: &Segment) -> (BufIdx, usize, usize) {
    (BufIdx(segment.slot), segment.at.into(), segment.len.into())
}

impl Copies {
    /// Copy a packet's bytes and free its segments. False if the packet is too long.
    #[cold]
    fn take<I: Isa, X: Nexts>(
        &mut self,
        store: &Store,
        out: &mut Output<'_, I, X>,
        packet: &[Segment],
        row: usize,
    ) -> bool {
        let (from, mut fits) = (self.bytes.len(), true);
        for segment in packet {
            let len = usize::from(segment.len);
            let at = self.bytes.len();
            fits &= at + len <= LONGEST;
            if !fits {
                self.bytes.truncate(from);
            } else if segment.foreign.is_null() {
                let (slot, pos) = (segment.slot, usize::from(segment.at));
                // SAFETY: the driver returned the slot, so it is owned here; drivers stay inside it.
                let bytes = unsafe {
                    let len = len.min(META + HEADROOM + DATA - pos.min(META + HEADROOM + DATA));
                    std::slice::from_raw_parts(store.pool.at(slot, pos).cast_const(), len)
                };
                self.bytes.extend_from_slice(bytes);
            } else {
                self.bytes.resize(at + len, 0);
                // SAFETY: the vector has space for `len` bytes.
                unsafe {
                    sys::vd_copy(segment.foreign, self.bytes.as_mut_ptr().add(at), len as u32)
                };
            }
            match segment.foreign.is_null() {
                // SAFETY: the driver returned the slot, and it is not among the rows.
                true => unsafe { out.reclaim(&[BufIdx(segment.slot)]) },
                // SAFETY: the driver passed the mbuf on, and it is not used after this.
                false => unsafe { sys::vd_free(segment.foreign) },
            }
        }
        if fits {
            self.rows.push((row, from, self.bytes.len()));
        }
        fits
    }
}

impl RxQueue {
    /// Queue `queue`, for vectors of up to `size` packets.
    pub(crate) fn new(port: Arc<Port>, queue: u16, size: usize) -> Self {
        RxQueue {
            port,
            queue,
            segments: vec![Segment::NONE; sys::ROOM].into(),
            rows: Vec::with_capacity(size),
            chains: Vec::with_capacity(size),
            parts: Vec::with_capacity(sys::ROOM),
            copies: Copies {
                bytes: Vec::with_capacity(LONGEST),
                rows: Vec::with_capacity(size),
            },
        }
    }

    /// Number of the queue.
    pub fn number(&self) -> usize {
        usize::from(self.queue)
    }

    /// Keep the port's store filled, whether packets arrive or not.
    #[inline(always)]
    pub(crate) fn keep_level<I: Isa, X: Nexts>(&self, out: &mut Output<'_, I, X>) {
        self.port.store().keep_level(out);
    }

    /// Receive from the driver. Returns the number of segments and the number of lost packets.
    #[inline(always)]
    fn poll(&mut self, most: usize) -> (usize, u32) {
        let mut lost = 0;
        // SAFETY: there is space for `ROOM` segments, the port runs and has the queue, and this is its only user.
        let n = unsafe {
            let (pool, port) = (self.port.store().raw(), self.port.number());
            let out = self.segments.as_mut_ptr();
            sys::vd_receive(pool, port, self.queue, out, most as u32, &raw mut lost)
        };
        (n as usize, lost)
    }

    /// Receive up to a vector of packets for interface `rx`, and the number of lost packets. `None` if no packet arrived.
    #[inline(always)]
    pub(crate) fn receive<'o, I: Isa, X: Nexts>(
        &mut self,
        out: &'o mut Output<'_, I, X>,
        rx: u32,
    ) -> Option<(NewVector<'o, I, X>, u64)> {
        let (n, mut lost) = self.poll(out.vector_size());
        if n == 0 && lost == 0 {
            return None;
        }
        self.rows.clear();
        self.chains.clear();
        self.copies.bytes.clear();
        self.copies.rows.clear();
        let (mut at, mut mine) = (0, 0);
        while at < n {
            let first = at;
            let mut whole = self.segments[at].foreign.is_null();
            mine += i64::from(whole);
            while self.segments[at].more != 0 && at + 1 < n {
                at += 1;
                let own = self.segments[at].foreign.is_null();
                (whole, mine) = (whole && own, mine + i64::from(own));
            }
            at += 1;
            if whole {
                if at > first + 1 {
                    self.chains.push((self.rows.len(), first + 1, at));
                }
                self.rows.push(place(&self.segments[first]));
            } else {
                lost += u32::from(!self.copy(out, first, at));
            }
        }
        self.port.store().away.fetch_sub(mine, Relaxed);
        // SAFETY: each slot was put into the store, and the driver returned it once, with a packet: an mbuf with another
        // user was not counted as part of the arena. Rows of copies are fresh buffers.
        let mut fresh = unsafe { out.receive_into_posted(rx, &self.rows) };
        for &(row, from, to) in &self.chains {
            self.parts.clear();
            self.parts.extend(self.segments[from..to].iter().map(place));
            // SAFETY: as above.
            unsafe { fresh.append_segments(row, &self.parts) };
        }
        for &(row, from, to) in &self.copies.rows {
            // If no buffer is free, an empty packet remains, which the graph drops as too short.
            let _ = fresh.write(row, &self.copies.bytes[from..to]);
        }
        Some((fresh, u64::from(lost)))
    }

    /// Add a row with a buffer for a packet outside the arena. False if no buffer is free.
    #[cold]
    fn copy<I: Isa, X: Nexts>(
        &mut self,
        out: &mut Output<'_, I, X>,
        first: usize,
        end: usize,
    ) -> bool {
        let (row, mut fresh) = (self.rows.len(), [BufIdx(0)]);
        let store = self.port.store();
        let fits = self
            .copies
            .take(store, out, &self.segments[first..end], row);
        if !fits {
            return false;
        }
        if out.post_to_device(&mut fresh) == 0 {
            self.copies.rows.pop();
            return false;
        }
        self.rows.push((fresh[0], META + HEADROOM, 0));
        true
    }
}

/// Reason why a packet was not sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Lost {
    /// The queue is full.
    Full,
    /// The driver does not accept such a packet.
    Refused,
}

/// A transmit queue of a port, for one worker.
pub(crate) struct TxQueue {
    port: Arc<Port>,
    queue: u16,
    packets: Vec<Outgoing>,
    segments: Vec<Segment>,
    rows: Vec<u16>,
    outcomes: Vec<u8>,
}

impl TxQueue {
    /// Queue `queue`, for vectors of up to `size` packets.
    pub(crate) fn new(port: Arc<Port>, queue: u16, size: usize) -> Self {
        TxQueue {
            port,
            queue,
            packets: Vec::with_capacity(size),
            segments: Vec::with_capacity(size * (volley_graph::MAX_SEGMENTS + 1)),
            rows: Vec::with_capacity(size),
            outcomes: vec![SENT; size],
        }
    }

    /// Number of the queue.
    pub(crate) fn number(&self) -> usize {
        usize::from(self.queue)
    }

    /// Begin a burst.
    #[inline(always)]
    pub(crate) fn begin(&mut self) {
        self.packets.clear();
        self.segments.clear();
        self.rows.clear();
    }

    /// Put a packet into the burst.
    #[inline(always)]
    pub(crate) fn push(&mut self, row: usize, view: &PacketView<'_>, mut packet: Outgoing) {
        let before = self.segments.len();
        if view.is_chain() {
            self.push_chain(view);
        } else {
            let (at, len) = (view.position() as u16, view.bytes().len() as u16);
            self.segments.push(Segment::new(view.buffer().0, at, len));
        }
        packet.segments = (self.segments.len() - before) as u16;
        self.packets.push(packet);
        self.rows.push(row as u16);
    }

    #[cold]
    fn push_chain(&mut self, view: &PacketView<'_>) {
        // SAFETY: only the address is used here.
        let base = unsafe { self.port.store().pool.at(0, 0) } as usize;
        for bytes in view.slices() {
            let offset = bytes.as_ptr() as usize - base;
            let (slot, at) = ((offset / STRIDE) as u32, (offset % STRIDE) as u16);
            self.segments
                .push(Segment::new(slot, at, bytes.len() as u16));
        }
    }

    /// Send the burst. `lost` is called for the packets that were not sent, which the graph still owns. The driver owns
    /// all others, with every slot; they must be lent ([`Vector::post_all_to_device`]).
    #[inline(always)]
    pub(crate) fn send(&mut self, mut lost: impl FnMut(usize, Lost)) {
        let (store, count) = (
            self.port.store(),
            self.packets.len().min(self.outcomes.len()),
        );
        // SAFETY: `rows`, `packets` and `outcomes` have the same number of entries; each packet's segments are in order; the
        // graph owns their slots until they are sent; the port runs and has the queue, and this is its only user.
        unsafe {
            let (pool, port) = (store.raw(), self.port.number());
            let (packets, segments) = (self.packets.as_ptr(), self.segments.as_ptr());
            let outcomes = self.outcomes.as_mut_ptr();
            sys::vd_send(
                pool,
                port,
                self.queue,
                packets,
                segments,
                outcomes,
                count as u16,
            );
        }
        let mut gone = self.segments.len();
        if self.outcomes[..count]
            .iter()
            .any(|&outcome| outcome != SENT)
        {
            for (at, &outcome) in self.outcomes[..count].iter().enumerate() {
                if outcome != SENT {
                    gone -= usize::from(self.packets[at].segments);
                    let why = if outcome == FULL {
                        Lost::Full
                    } else {
                        Lost::Refused
                    };
                    lost(usize::from(self.rows[at]), why);
                }
            }
        }
        store.away.fetch_add(gone as i64, Relaxed);
    }

    /// Remove sent buffers from the store if its level is too high.
    #[inline(always)]
    pub(crate) fn relieve<I: Isa, X: Nexts>(&self, v: &mut Vector<'_, I, X>) {
        let store = self.port.store();
        while store.level() > 4 * store.low {
            let (mut slots, mut back) = ([0; BATCH], [BufIdx(0); BATCH]);
            let got = store.take(&mut slots);
            if got.is_empty() {
                return;
            }
            // SAFETY: the store owned these slots exclusively, and the call has taken them out.
            unsafe { v.reclaim(named(got, &mut back)) };
        }
    }
}
