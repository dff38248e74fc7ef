//! The rings: receive from and transmit to memory that the peer can write to at any time.
//!
//! - Every value in shared memory is read once into a local, checked, and only then used. Memory is accessed through raw
//!   pointers only, never through references, and only inside the bounds of a [`crate::region::Map`].
//! - An index is read with acquire and written with release order, once per batch.
//! - Any number of threads may call any function here without harm to memory; the packets are correct as long as one
//!   thread at a time uses a ring.
//! - A peer's error is a [`Fault`]; no packet of the batch is consumed or published then.
//!
//! The client of a connection owns the memory and posts buffers; it keeps their locations in private memory and never
//! reads them from the ring. The server uses the descriptors' values, within bounds.

use crate::fault::{Fault, Kind};
pub use crate::place::{Buffers, Memory, Place, RingError, Scratch};
use crate::place::{Descriptor, empty};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering, fence};
use volley_graph::{prefetch, prefetch_write, prefetch_write_all};

/// First word of every ring.
pub const COOKIE: u32 = 0x03E3_1F20;
/// Bytes before the descriptors.
pub const HEAD: usize = 128;
/// Bytes of a descriptor.
pub const DESCRIPTOR: usize = 16;
/// Binary logarithm of the largest ring.
pub const MAX_LOG2: u8 = 14;
/// Maximum length of a packet in bytes.
pub const MAX_PACKET: usize = 65_535;
/// Maximum number of descriptors of a packet.
pub const MAX_CHAIN: usize = 512;
/// Maximum number of descriptors of a batch.
pub(crate) const BATCH: usize = 2048;
/// Packet bytes that fit into one of Volley's buffers.
const DATA: usize = volley_graph::buf::DATA;

const FLAGS: usize = 4;
const INDEX_HEAD: usize = 6;
const INDEX_TAIL: usize = 64;
const MASK_INT: u16 = 1;
const NEXT: u16 = 1;

/// The side that allocated the shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The peer allocated it; this end is the server.
    Server,
    /// This end is the client and allocated it.
    Client,
}

/// One ring in shared memory.
struct Ring {
    memory: Arc<Memory>,
    base: *mut u8,
    log2: u8,
}

// SAFETY: the pointer is into `memory`, which the ring keeps alive; all access is atomic.
unsafe impl Send for Ring {}
// SAFETY: as above.
unsafe impl Sync for Ring {}

impl Ring {
    fn new(memory: &Arc<Memory>, region: u16, offset: u32, log2: u8) -> Result<Ring, RingError> {
        if log2 > MAX_LOG2 {
            return Err(RingError::Size(log2));
        }
        if !offset.is_multiple_of(DESCRIPTOR as u32) {
            return Err(RingError::Unaligned(offset));
        }
        let bytes = (HEAD + (DESCRIPTOR << log2)) as u32;
        let base = memory
            .locate(region, offset, bytes)
            .map_err(|fault| match fault.kind {
                Kind::Region => RingError::Region(region),
                _ => RingError::Bounds(offset),
            })?;
        let memory = memory.clone();
        Ok(Ring { memory, base, log2 })
    }

    #[inline(always)]
    fn slots(&self) -> u16 {
        1 << self.log2
    }

    #[inline(always)]
    fn half(&self, at: usize) -> &AtomicU16 {
        debug_assert!(at < HEAD && at.is_multiple_of(2));
        // SAFETY: HEAD bytes after the base lie in the mapping, which `self` keeps alive; the base is a multiple of 16.
        unsafe { AtomicU16::from_ptr(self.base.add(at).cast()) }
    }

    fn cookie(&self) -> &AtomicU32 {
        // SAFETY: as in `half`.
        unsafe { AtomicU32::from_ptr(self.base.cast()) }
    }

    #[inline(always)]
    fn words(&self, index: u16) -> &[AtomicU64; 2] {
        let slot = (index & (self.slots() - 1)) as usize;
        // SAFETY: `slot` is below the ring's size, and its descriptor lies in the mapping, 16-byte aligned. The peer
        // writes concurrently, hence the atomic access.
        unsafe { &*self.base.add(HEAD + slot * DESCRIPTOR).cast() }
    }

    #[inline(always)]
    fn read(&self, index: u16) -> Descriptor {
        let [first, second] = self.words(index);
        let (first, second) = (
            u64::from_le(first.load(Ordering::Relaxed)),
            u64::from_le(second.load(Ordering::Relaxed)),
        );
        Descriptor {
            flags: first as u16,
            region: (first >> 16) as u16,
            length: (first >> 32) as u32,
            offset: second as u32,
        }
    }

    #[inline(always)]
    fn write_first(&self, index: u16, flags: u16, region: u16, length: u32) {
        let word = u64::from(flags) | u64::from(region) << 16 | u64::from(length) << 32;
        self.words(index)[0].store(word.to_le(), Ordering::Relaxed);
    }

    #[inline(always)]
    fn write(&self, index: u16, d: Descriptor) {
        self.words(index)[1].store(u64::from(d.offset).to_le(), Ordering::Relaxed);
        self.write_first(index, d.flags, d.region, d.length);
    }

    /// Whether the other side requests a wake-up for the buffers just published.
    #[inline(always)]
    fn wants_wakeup(&self) -> bool {
        fence(Ordering::SeqCst);
        self.half(FLAGS).load(Ordering::Relaxed) & MASK_INT == 0
    }
}

/// A receive ring.
pub struct Rx {
    ring: Ring,
    side: Side,
    /// Used by the client only.
    buffers: Buffers,
    /// Descriptors before this index are consumed.
    last: AtomicU16,
    /// End of the client's posted buffers.
    posted: AtomicU16,
}

/// Received packets that are not released yet.
pub struct Arrived<'a> {
    rx: &'a Rx,
    scratch: &'a mut Scratch,
    packets: usize,
    slots: u16,
    bytes: u64,
    plain: bool,
}

impl Rx {
    /// The server's receive ring, which the peer allocated.
    pub fn server(memory: &Arc<Memory>, place: Place) -> Result<Rx, RingError> {
        let ring = peers_ring(memory, place)?;
        let last = AtomicU16::new(ring.half(INDEX_TAIL).load(Ordering::Acquire));
        Ok(Rx {
            ring,
            side: Side::Server,
            buffers: Buffers::NONE,
            last,
            posted: AtomicU16::new(0),
        })
    }

    /// The client's receive ring, new, with all its buffers ready to be posted: see [`Rx::open`].
    pub fn client(memory: &Arc<Memory>, place: Place, buffers: Buffers) -> Result<Rx, RingError> {
        let ring = our_ring(memory, place, buffers)?;
        let posted = ring.slots();
        for index in 0..posted {
            ring.write(index, empty(buffers, index));
        }
        Ok(Rx {
            ring,
            side: Side::Client,
            buffers,
            last: AtomicU16::new(0),
            posted: AtomicU16::new(posted),
        })
    }

    /// Post the client's buffers, once the server is connected. Earlier is wrong: some servers (DPDK's) reset the indices
    /// of all rings to 0 when they connect.
    pub fn open(&self) {
        let posted = self.posted.load(Ordering::Relaxed);
        self.ring.half(INDEX_HEAD).store(posted, Ordering::Release);
    }

    /// Enable or disable the peer's wake-ups for new packets.
    pub fn want_wakeup(&self, wanted: bool) {
        let flags = self.ring.half(FLAGS);
        flags.store(if wanted { 0 } else { MASK_INT }, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Number of available descriptors; a fault if the peer's index is invalid.
    #[inline(always)]
    fn waiting(&self) -> Result<u16, Fault> {
        let last = self.last.load(Ordering::Relaxed);
        let (at, most) = match self.side {
            Side::Server => (INDEX_HEAD, self.ring.slots()),
            Side::Client => {
                let posted = self.posted.load(Ordering::Relaxed);
                (INDEX_TAIL, posted.wrapping_sub(last))
            }
        };
        let index = self.ring.half(at).load(Ordering::Acquire);
        let waiting = index.wrapping_sub(last);
        if waiting > most {
            return Err(Fault::new(Kind::Index, u32::from(index)));
        }
        Ok(waiting)
    }

    /// Whether packets are available.
    pub fn is_waiting(&self) -> bool {
        self.waiting() != Ok(0)
    }

    /// Number of descriptors of the ring.
    pub fn slots(&self) -> u16 {
        self.ring.slots()
    }

    /// Up to `most` received packets, all of them complete.
    #[inline(always)]
    pub fn arrived<'a>(
        &'a self,
        scratch: &'a mut Scratch,
        most: usize,
    ) -> Result<Arrived<'a>, Fault> {
        let waiting = self.waiting()?;
        let mut arrived = Arrived {
            rx: self,
            scratch,
            packets: 0,
            slots: 0,
            bytes: 0,
            plain: true,
        };
        if waiting > 0 {
            match self.side {
                Side::Server => arrived.look::<false>(waiting, most)?,
                Side::Client => arrived.look::<true>(waiting, most)?,
            }
        }
        Ok(arrived)
    }

    /// Location and length of a descriptor's bytes, and whether whole cache lines may be read beyond its end.
    #[inline(always)]
    fn bytes_of<const CLIENT: bool>(
        &self,
        index: u16,
        d: Descriptor,
    ) -> Result<(*mut u8, bool), Fault> {
        let (region, offset) = if CLIENT {
            // The client knows the buffers' locations and does not use the peer's.
            if d.length > self.buffers.size {
                return Err(Fault::new(Kind::Bounds, d.length));
            }
            let slot = index & (self.ring.slots() - 1);
            (self.buffers.region, self.buffers.offset(slot))
        } else {
            (d.region, d.offset)
        };
        let address = self.ring.memory.locate(region, offset, d.length)?;
        let lines = (d.length as usize).next_multiple_of(64);
        let roomy = self.ring.memory.behind(region, offset) >= lines;
        Ok((address, roomy))
    }
}

impl Arrived<'_> {
    /// Read and check descriptors, and record the packets' locations.
    #[inline(always)]
    fn look<const CLIENT: bool>(&mut self, waiting: u16, most: usize) -> Result<(), Fault> {
        let rx = self.rx;
        let from = rx.last.load(Ordering::Relaxed);
        let most = most.min(BATCH - MAX_CHAIN);
        let plain = self.look_plain::<CLIENT>(from, most.min(waiting.into()));
        let (mut taken, mut at) = (plain as u16, plain as u16);
        if plain == most.min(waiting.into()) {
            self.slots = taken;
            return Ok(());
        }
        (0..)
            .zip(&mut self.scratch.start[..plain])
            .for_each(|(row, start)| *start = row);
        let (mut segment, mut first) = (plain, plain);
        let mut total = 0u64;
        while at < waiting && self.packets < most && first <= BATCH - MAX_CHAIN {
            let index = from.wrapping_add(at);
            let d = rx.ring.read(index);
            let (address, roomy) = rx.bytes_of::<CLIENT>(index, d)?;
            prefetch(address);
            self.scratch.address[segment] = address as usize;
            self.scratch.length[segment] = d.length;
            self.plain &= roomy && d.length != 0;
            total += u64::from(d.length);
            at += 1;
            segment += 1;
            if d.flags & NEXT != 0 {
                self.plain = false;
                if segment - first == MAX_CHAIN {
                    return Err(Fault::new(Kind::Chain, MAX_CHAIN as u32));
                }
                continue;
            }
            self.plain &= total <= DATA as u64;
            if total > MAX_PACKET as u64 {
                return Err(Fault::new(
                    Kind::Long,
                    u32::try_from(total).unwrap_or(u32::MAX),
                ));
            }
            self.scratch.start[self.packets] = first as u32;
            self.packets += 1;
            self.bytes += total;
            (first, taken, total) = (segment, at, 0);
        }
        if taken == 0 && waiting == rx.ring.slots() && self.packets < most {
            return Err(Fault::new(Kind::Chain, u32::from(waiting)));
        }
        self.scratch.start[self.packets] = first as u32;
        self.slots = taken;
        Ok(())
    }

    /// Read the first packets, as long as they are plain ([`Arrived::is_plain`]); returns their number, at most `most`. Checks what
    /// [`Arrived::look`] checks, which reads the first other packet again.
    #[inline(always)]
    fn look_plain<const CLIENT: bool>(&mut self, from: u16, most: usize) -> usize {
        let rx = self.rx;
        let longest = if CLIENT { rx.buffers.size } else { u32::MAX };
        let longest = longest.min(DATA as u32);
        let Ok(mut region) = rx.ring.memory.region(rx.buffers.region) else {
            return 0;
        };
        let addresses = self.scratch.address[..most].iter_mut();
        let places = addresses.zip(&mut self.scratch.length[..most]);
        let (mut found, mut bytes) = (0, 0);
        for (address, length) in places {
            let index = from.wrapping_add(found as u16);
            let d = rx.ring.read(index);
            let offset = if CLIENT {
                rx.buffers.offset(index & (rx.ring.slots() - 1))
            } else {
                if d.region != region.number {
                    let Ok(other) = rx.ring.memory.region(d.region) else {
                        break;
                    };
                    region = other;
                }
                d.offset
            };
            let lines = (d.length as usize).next_multiple_of(64);
            let is_plain = d.flags & NEXT == 0 && d.length.wrapping_sub(1) < longest;
            let (true, Ok(at)) = (is_plain, region.locate(offset, lines)) else {
                break;
            };
            prefetch(at);
            (*address, *length) = (at as usize, d.length);
            bytes += u64::from(d.length);
            found += 1;
        }
        (self.packets, self.bytes) = (found, bytes);
        found
    }

    /// Number of packets.
    #[inline(always)]
    pub fn packets(&self) -> usize {
        self.packets
    }

    /// Total length in bytes.
    #[inline(always)]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether [`Arrived::copy`] supports every packet: each has bytes, is contiguous and fits into one buffer.
    #[inline(always)]
    pub fn is_plain(&self) -> bool {
        self.plain
    }

    /// Copy plain packet `row`; returns its length. Bytes of `into` beyond its end may be overwritten.
    #[inline(always)]
    pub fn copy(&self, row: usize, into: &mut [u8; DATA]) -> usize {
        assert!(self.plain && row < self.packets);
        let from = self.scratch.address[row] as *const u8;
        let len = self.scratch.length[row] as usize;
        for at in (0..len).step_by(64) {
            // SAFETY: plain packets have whole cache lines inside the region up to their end, and are at most DATA long,
            // a multiple of 64. If the peer writes concurrently, the copy has other bytes, which nothing has checked yet.
            unsafe {
                std::ptr::copy_nonoverlapping(from.add(at), into.as_mut_ptr().add(at), 64);
            }
        }
        len
    }

    /// The pieces of packet `row`.
    fn segments(&self, row: usize) -> Range<usize> {
        assert!(row < self.packets);
        if self.plain {
            return row..row + 1;
        }
        let start = &self.scratch.start;
        start[row] as usize..start[row + 1] as usize
    }

    /// Append packet `row`, with any number of pieces, to `into`.
    pub fn gather(&self, row: usize, into: &mut Vec<u8>) {
        for segment in self.segments(row) {
            let from = self.scratch.address[segment] as *const u8;
            let len = self.scratch.length[segment] as usize;
            let at = into.len();
            into.resize(at + len, 0);
            // SAFETY: the segment was checked to lie inside its region; the vector has enough capacity.
            unsafe { std::ptr::copy_nonoverlapping(from, into.as_mut_ptr().add(at), len) };
        }
    }

    /// Length of packet `row`.
    pub fn len_of(&self, row: usize) -> usize {
        self.scratch.length[self.segments(row)]
            .iter()
            .map(|l| *l as usize)
            .sum()
    }

    /// Return the buffers of all packets to the peer, after they were copied.
    #[inline(always)]
    pub fn release(self) {
        let rx = self.rx;
        if self.slots == 0 {
            return;
        }
        let last = rx.last.load(Ordering::Relaxed).wrapping_add(self.slots);
        rx.last.store(last, Ordering::Relaxed);
        if rx.side == Side::Server {
            if !self.plain {
                self.unchain(last);
            }
            rx.ring.half(INDEX_TAIL).store(last, Ordering::Release);
            return;
        }
        let posted = rx.posted.load(Ordering::Relaxed);
        for step in 0..self.slots {
            let index = posted.wrapping_add(step);
            let d = empty(rx.buffers, index & (rx.ring.slots() - 1));
            rx.ring.write(index, d);
        }
        let posted = posted.wrapping_add(self.slots);
        rx.posted.store(posted, Ordering::Relaxed);
        rx.ring.half(INDEX_HEAD).store(posted, Ordering::Release);
    }
}

impl Arrived<'_> {
    /// Clear the chain flag of returned descriptors: some clients (DPDK's) set it and never clear it, so later packets
    /// would look like a chain.
    #[cold]
    fn unchain(&self, end: u16) {
        let ring = &self.rx.ring;
        for back in 1..=self.slots {
            let index = end.wrapping_sub(back);
            let d = ring.read(index);
            if d.flags & NEXT != 0 {
                ring.write_first(index, d.flags & !NEXT, d.region, d.length);
            }
        }
    }
}

/// A ring that the peer allocated.
fn peers_ring(memory: &Arc<Memory>, place: Place) -> Result<Ring, RingError> {
    let ring = Ring::new(memory, place.region, place.offset, place.log2)?;
    let cookie = u32::from_le(ring.cookie().load(Ordering::Relaxed));
    if cookie != COOKIE {
        return Err(RingError::Cookie(cookie));
    }
    Ok(ring)
}

/// A new, empty ring in memory of this process.
fn our_ring(memory: &Arc<Memory>, place: Place, buffers: Buffers) -> Result<Ring, RingError> {
    let ring = Ring::new(memory, place.region, place.offset, place.log2)?;
    let end = buffers.offset(ring.slots());
    memory
        .locate(buffers.region, 0, end)
        .map_err(|_| RingError::Bounds(end))?;
    ring.cookie().store(COOKIE.to_le(), Ordering::Relaxed);
    ring.half(FLAGS).store(0, Ordering::Relaxed);
    ring.half(INDEX_HEAD).store(0, Ordering::Relaxed);
    ring.half(INDEX_TAIL).store(0, Ordering::Release);
    Ok(ring)
}

/// A transmit ring.
pub struct Tx {
    ring: Ring,
    side: Side,
    /// Used by the client only.
    buffers: Buffers,
    /// Descriptors before this index are filled.
    last: AtomicU16,
}

/// A batch of packets to transmit.
pub struct Leaving<'a> {
    tx: &'a Tx,
    scratch: &'a mut Scratch,
    from: u16,
    /// Number of descriptors that may be filled.
    free: u16,
    /// Number of these that are read and checked.
    ready: u16,
    /// Number of these that are filled.
    used: u16,
}

impl Tx {
    /// The server's transmit ring, which the peer allocated.
    pub fn server(memory: &Arc<Memory>, place: Place) -> Result<Tx, RingError> {
        let ring = peers_ring(memory, place)?;
        let last = AtomicU16::new(ring.half(INDEX_TAIL).load(Ordering::Acquire));
        Ok(Tx {
            ring,
            side: Side::Server,
            buffers: Buffers::NONE,
            last,
        })
    }

    /// The client's transmit ring, new.
    pub fn client(memory: &Arc<Memory>, place: Place, buffers: Buffers) -> Result<Tx, RingError> {
        Ok(Tx {
            ring: our_ring(memory, place, buffers)?,
            side: Side::Client,
            buffers,
            last: AtomicU16::new(0),
        })
    }

    /// Number of descriptors of the ring.
    pub fn slots(&self) -> u16 {
        self.ring.slots()
    }

    /// Begin a batch of about `packets` packets.
    #[inline(always)]
    pub fn leaving<'a>(
        &'a self,
        scratch: &'a mut Scratch,
        packets: usize,
    ) -> Result<Leaving<'a>, Fault> {
        let from = self.last.load(Ordering::Relaxed);
        let slots = self.ring.slots();
        let (at, limit) = match self.side {
            Side::Server => (INDEX_HEAD, 0),
            Side::Client => (INDEX_TAIL, slots),
        };
        let index = self.ring.half(at).load(Ordering::Acquire);
        let free = limit.wrapping_add(index).wrapping_sub(from);
        if free > slots {
            return Err(Fault::new(Kind::Index, u32::from(index)));
        }
        let mut leaving = Leaving {
            tx: self,
            scratch,
            from,
            free,
            ready: 0,
            used: 0,
        };
        let ahead = packets.min(free as usize).min(BATCH);
        match self.side {
            Side::Server => leaving.prepare::<false>(ahead as u16)?,
            Side::Client => leaving.prepare::<true>(ahead as u16)?,
        }
        Ok(leaving)
    }
}

/// Result of sending a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// The packet is in the ring.
    Whole,
    /// The ring has too few free descriptors now.
    NoSlots,
    /// The packet needs more buffers than a chain may have.
    TooLong,
}

impl Leaving<'_> {
    /// Read and check the first `wanted` free descriptors.
    #[inline(always)]
    fn prepare<const CLIENT: bool>(&mut self, wanted: u16) -> Result<(), Fault> {
        let tx = self.tx;
        let mut region = tx.ring.memory.region(tx.buffers.region)?;
        while self.ready < wanted {
            let index = self.from.wrapping_add(self.ready);
            let at = self.ready as usize % BATCH;
            let (offset, room) = if CLIENT {
                let slot = index & (tx.ring.slots() - 1);
                (tx.buffers.offset(slot), tx.buffers.size)
            } else {
                let d = tx.ring.read(index);
                if d.length == 0 {
                    return Err(Fault::new(Kind::Empty, u32::from(index)));
                }
                if d.region != region.number {
                    region = tx.ring.memory.region(d.region)?;
                }
                self.scratch.start[at] = u32::from(d.region);
                (d.offset, d.length)
            };
            let address = region.locate(offset, room as usize)?;
            prefetch_write(address);
            (self.scratch.address[at], self.scratch.length[at]) = (address as usize, room);
            self.ready += 1;
        }
        Ok(())
    }

    #[cold]
    fn prepare_more(&mut self, wanted: u16) -> Result<(), Fault> {
        match self.tx.side {
            Side::Server => self.prepare::<false>(wanted),
            Side::Client => self.prepare::<true>(wanted),
        }
    }

    /// Prefetch the `nth` next buffer for a packet of `len` bytes behind its first line, which is prefetched already.
    #[inline(always)]
    pub fn ahead(&self, nth: usize, len: usize) {
        let at = usize::from(self.used) + nth;
        if len > 64 && at < usize::from(self.ready) {
            let room = self.scratch.length[at % BATCH] as usize;
            let address = self.scratch.address[at % BATCH] as *const u8;
            prefetch_write_all(address.wrapping_add(64), len.min(room).saturating_sub(64));
        }
    }

    /// Write a contiguous packet.
    #[inline(always)]
    pub fn put(&mut self, packet: &[u8]) -> Result<Sent, Fault> {
        let at = self.used as usize % BATCH;
        if self.used < self.ready && packet.len() <= self.scratch.length[at] as usize {
            // SAFETY: the buffer was checked to lie inside its region and to be long enough for the packet.
            unsafe { copy_out(packet, self.scratch.address[at] as *mut u8) };
            self.describe(self.used, packet.len(), 0);
            self.used += 1;
            return Ok(Sent::Whole);
        }
        self.put_long(packet.len(), |write| write(packet))
    }

    /// Write a packet of `len` bytes, whose pieces `walk` visits in order, as a chain if it does not fit one buffer.
    /// Writes all of it or nothing.
    #[inline(never)]
    pub fn put_long(
        &mut self,
        len: usize,
        walk: impl FnOnce(&mut dyn FnMut(&[u8])),
    ) -> Result<Sent, Fault> {
        let (mut room, mut needed) = (0usize, 0u16);
        while room < len || needed == 0 {
            let place = self.used + needed;
            if place >= self.free {
                return Ok(Sent::NoSlots);
            }
            if needed as usize == MAX_CHAIN {
                return Ok(Sent::TooLong);
            }
            if place >= self.ready {
                self.prepare_more(place + 1)?;
            }
            room += self.scratch.length[place as usize % BATCH] as usize;
            needed += 1;
        }
        let (mut left, mut place) = (len, self.used);
        let mut filled = 0usize;
        walk(&mut |mut piece: &[u8]| {
            while !piece.is_empty() && left > 0 {
                let at = place as usize % BATCH;
                let room = self.scratch.length[at] as usize - filled;
                let n = piece.len().min(room).min(left);
                let into = (self.scratch.address[at] as *mut u8).wrapping_add(filled);
                // SAFETY: `filled + n` is at most the buffer's size, and the buffer lies inside its region.
                unsafe { std::ptr::copy_nonoverlapping(piece.as_ptr(), into, n) };
                (piece, left, filled) = (&piece[n..], left - n, filled + n);
                if filled == self.scratch.length[at] as usize && left > 0 {
                    self.describe(place, filled, NEXT);
                    (place, filled) = (place + 1, 0);
                }
            }
        });
        self.describe(place, filled, 0);
        self.used = place + 1;
        Ok(Sent::Whole)
    }

    /// Write the descriptor of buffer `place`. The peer does not read it before [`Leaving::publish`].
    #[inline(always)]
    fn describe(&self, place: u16, length: usize, flags: u16) {
        let (tx, index) = (self.tx, self.from.wrapping_add(place));
        match tx.side {
            Side::Server => {
                let region = self.scratch.start[place as usize % BATCH] as u16;
                tx.ring.write_first(index, flags, region, length as u32);
            }
            Side::Client => {
                let slot = index & (tx.ring.slots() - 1);
                let (region, offset) = (tx.buffers.region, tx.buffers.offset(slot));
                let length = length as u32;
                tx.ring.write(
                    index,
                    Descriptor {
                        flags,
                        region,
                        length,
                        offset,
                    },
                );
            }
        }
    }

    /// Publish the packets to the peer. True if it requests a wake-up.
    #[inline(always)]
    pub fn publish(self) -> bool {
        if self.used == 0 {
            return false;
        }
        let tx = self.tx;
        let last = self.from.wrapping_add(self.used);
        tx.last.store(last, Ordering::Relaxed);
        let at = match tx.side {
            Side::Server => INDEX_TAIL,
            Side::Client => INDEX_HEAD,
        };
        tx.ring.half(at).store(last, Ordering::Release);
        tx.ring.wants_wakeup()
    }
}

/// Copy a packet into a buffer that is long enough for it.
///
/// # Safety
/// `into` may be written for `packet.len()` bytes.
#[inline(always)]
unsafe fn copy_out(packet: &[u8], into: *mut u8) {
    let (from, len) = (packet.as_ptr(), packet.len());
    // SAFETY: each copy stays inside both.
    unsafe {
        if len < 64 {
            return volley_shm::copy(from, into, len);
        }
        let mut at = 0;
        while at + 64 <= len {
            std::ptr::copy_nonoverlapping(from.add(at), into.add(at), 64);
            at += 64;
        }
        // The last cache line may overlap the one before, and writes the same bytes again.
        if at < len {
            std::ptr::copy_nonoverlapping(from.add(len - 64), into.add(len - 64), 64);
        }
    }
}
