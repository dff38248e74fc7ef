//! The driver end of rings: the front end's own rings, in its own memory, which a back end serves.
//!
//! Every descriptor has a fixed memory slot for its packets. Memory that the back end can overwrite (descriptors, rings)
//! is never read back: addresses and chains are kept in private memory. Only used entries are read, once each, and
//! checked against the lent buffers.

/// The methods of [`crate::device::End`] for transmission, which take buffers from `self.slots` and reclaim them by `self.reclaim`.
macro_rules! transmission {
    () => {
        #[inline(always)]
        fn prepare(&mut self, memory: &Memory, packets: usize) -> Result<(), RingFault> {
            if self.slots.free.len() >= packets {
                return Ok(());
            }
            self.reclaim(memory)
        }

        #[inline(always)]
        fn ahead(&self, memory: &Memory, nth: u16, len: usize) {
            self.slots.ahead(memory, nth, len);
        }

        #[inline(always)]
        fn plain<'m>(
            &mut self,
            memory: &'m Memory,
            room: &mut Room,
            len: usize,
        ) -> Option<View<'m>> {
            self.slots.take_one(memory, room, len)
        }

        #[inline(always)]
        fn reserve(&mut self, memory: &Memory, room: &mut Room, len: usize) -> Reservation {
            room.begin();
            if self.slots.take(memory, room, len)? {
                return Ok(Reserved::Room);
            }
            self.reclaim(memory)?;
            Ok(match self.slots.take(memory, room, len)? {
                true => Reserved::Room,
                false => Reserved::Full,
            })
        }

        #[inline(always)]
        fn buffer_count(&self, _: usize) -> u16 {
            0
        }
    };
}
use transmission;

mod packed;
mod split;

pub use packed::PackedDriver;
pub use split::SplitDriver;

use crate::batch::{Batch, HEADER, LINE, Room, ask_for_room};
use crate::device::Layout;
use crate::fault::RingFault;
use crate::memory::{Memory, RegionSpec};
use crate::sys::View;
use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;

/// Bytes from one slot to the next: an odd number of cache lines.
const STRIDE: u32 = 33 * LINE as u32;
/// Offset of the header in a slot. The header ends with a cache line, and the frame begins with the next one: the header seldom changes, so
/// that its line stays in the caches of both ends, and a frame of 64 bytes is one line.
const HEADER_AT: u32 = (LINE - HEADER) as u32;
/// Capacity of a slot: one frame of common size with its header.
pub const SLOT: u32 = STRIDE - HEADER_AT;
/// Guest address of the memory's beginning.
const BASE: u64 = 0x10_0000_0000;
/// No descriptor.
const NONE: u16 = u16::MAX;

/// Direction of a ring, seen from the driver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RingDirection {
    /// Receive: the back end fills lent buffers.
    Receive,
    /// Transmit.
    Send,
}

/// State of the ring's buffers.
struct Slots {
    base: u64,
    /// Whether the back end has the buffer with this id.
    lent: Vec<bool>,
    /// Next buffer of the same packet.
    follow: Vec<u16>,
    /// Free buffers for transmission. They are used in turn: as long as the back end returns them in turn, too, the ring's entries and the
    /// descriptors keep their contents, and their cache lines stay with the back end.
    free: VecDeque<u16>,
    /// Buffers that the last `look` saw.
    seen: Vec<u16>,
}

impl Slots {
    fn new(base: u64, size: u16, way: RingDirection) -> Self {
        let n = usize::from(size);
        Slots {
            base,
            lent: vec![way == RingDirection::Receive; n],
            follow: vec![NONE; n],
            free: match way {
                RingDirection::Receive => VecDeque::new(),
                RingDirection::Send => (0..size).collect(),
            },
            seen: Vec::with_capacity(n),
        }
    }

    #[inline(always)]
    fn addr(&self, id: u16) -> u64 {
        self.base + u64::from(id) * u64::from(STRIDE) + u64::from(HEADER_AT)
    }

    /// Check and record a buffer that the back end reports as filled.
    #[inline(always)]
    fn see(&mut self, id: u32) -> Result<u16, RingFault> {
        match self.lent.get_mut(id as usize) {
            Some(lent) if *lent => *lent = false,
            Some(_) => return Err(RingFault::NotLent),
            None => return Err(RingFault::IndexRange),
        }
        self.seen.push(id as u16);
        Ok(id as u16)
    }

    /// Mark the buffers of the last `look` as lent again: they were posted again or not taken.
    fn unsee(&mut self) {
        for &id in &self.seen {
            self.lent[usize::from(id)] = true;
        }
    }

    /// Free a transmitted packet's buffers; returns their number.
    #[inline(always)]
    fn reclaim(&mut self, id: u32) -> Result<u16, RingFault> {
        match self.lent.get_mut(id as usize) {
            Some(lent) if *lent => *lent = false,
            Some(_) => return Err(RingFault::NotLent),
            None => return Err(RingFault::IndexRange),
        }
        let (mut at, mut n) = (id as u16, 0);
        while at != NONE {
            self.free.push_back(at);
            at = std::mem::replace(&mut self.follow[usize::from(at)], NONE);
            n += 1;
        }
        Ok(n)
    }

    /// Take buffers for a packet of `len` bytes; false if there are too few.
    #[inline(always)]
    fn take(&mut self, memory: &Memory, room: &mut Room, len: usize) -> Result<bool, RingFault> {
        let need = len.div_ceil(SLOT as usize).max(1);
        if self.free.len() < need {
            return Ok(false);
        }
        for nth in 0..need {
            let id = self.free[nth];
            let before = room.bytes();
            room.part(memory, self.addr(id), SLOT)?;
            room.buffer(id, if nth == 0 { need as u16 } else { 0 }, before)?;
        }
        self.free.drain(..need);
        Ok(true)
    }

    /// Take the buffer for a packet of `len` bytes that one buffer can hold.
    #[inline(always)]
    fn take_one<'m>(
        &mut self,
        memory: &'m Memory,
        room: &mut Room,
        len: usize,
    ) -> Option<View<'m>> {
        let id = *self.free.front().filter(|_| len <= SLOT as usize)?;
        let place = memory.guest(self.addr(id), SLOT).ok()?;
        let view = memory.view(place)?;
        self.free.pop_front();
        room.take(id, len as u32);
        Some(view)
    }

    /// Prefetch the `nth` of the free buffers.
    #[inline(always)]
    fn ahead(&self, memory: &Memory, nth: u16, len: usize) {
        if let Some(&id) = self.free.get(usize::from(nth)) {
            ask_for_room(memory, self.addr(id), len);
        }
    }

    /// Mark the buffers of a packet as lent.
    #[inline(always)]
    fn lend(&mut self, ids: impl Iterator<Item = u16>) {
        let mut before = NONE;
        for id in ids {
            match before {
                NONE => self.lent[usize::from(id)] = true,
                _ => self.follow[usize::from(before)] = id,
            }
            before = id;
        }
    }
}

/// A received packet that is assembled from used buffers.
struct ReceivingChain {
    mark: usize,
    len: u32,
    missing: u16,
    buffers: u16,
}

impl ReceivingChain {
    fn begin(batch: &Batch) -> Self {
        ReceivingChain {
            mark: batch.mark(),
            len: 0,
            missing: 1,
            buffers: 0,
        }
    }

    /// Add a buffer with `len` bytes; true if the packet is complete.
    #[inline(always)]
    fn add(
        &mut self,
        memory: &Memory,
        batch: &mut Batch,
        addr: u64,
        len: u32,
        layout: &Layout,
    ) -> Result<bool, RingFault> {
        if len > SLOT {
            return Err(RingFault::Length);
        }
        batch.part(memory, self.mark, addr, len)?;
        self.len += len;
        if self.buffers == 0 && layout.mergeable {
            let mut header = [0; HEADER];
            let place = memory.guest(addr, HEADER as u32)?;
            memory.view(place).map(|v| v.read(0, &mut header));
            self.missing = u16::from_le_bytes([header[10], header[11]]);
            if self.missing == 0 || self.missing > layout.size {
                return Err(RingFault::Merged);
            }
        }
        self.buffers += 1;
        self.missing -= 1;
        Ok(self.missing == 0)
    }
}

/// Location of one ring of a front end in the memory.
#[derive(Clone, Copy, Debug)]
pub struct Spot {
    /// Guest address of the descriptors.
    pub desc: u64,
    /// Guest address of the available ring.
    pub avail: u64,
    /// Guest address of the used ring.
    pub used: u64,
    /// Guest address of the first slot.
    slots: u64,
}

/// Memory of a front end with `rings` rings of `size` descriptors.
pub struct Shared {
    /// The local mapping of the memory.
    pub memory: Memory,
    /// The file to send to the back end.
    pub file: OwnedFd,
    /// Description of the region for the back end.
    pub spec: RegionSpec,
    /// The rings.
    pub spots: Vec<Spot>,
}

impl Shared {
    /// New memory, all zero.
    pub fn new(rings: usize, size: u16) -> io::Result<Shared> {
        let n = u64::from(size);
        let line = |bytes: u64| bytes.next_multiple_of(128);
        let (desc, avail, used) = (line(16 * n), line(6 + 2 * n), line(6 + 8 * n));
        let ring = desc + avail + used + line(n * u64::from(STRIDE));
        let spots = (0..rings as u64).map(|i| {
            let desc_at = BASE + i * ring;
            Spot {
                desc: desc_at,
                avail: desc_at + desc,
                used: desc_at + desc + avail,
                slots: desc_at + desc + avail + used,
            }
        });
        let len = (rings as u64 * ring).next_multiple_of(2 << 20);
        let spec = RegionSpec {
            guest: BASE,
            size: len,
            user: BASE,
            offset: 0,
        };
        let (memory, file) = Memory::of_ours(spec)?;
        Ok(Shared {
            spots: spots.collect(),
            memory,
            file,
            spec,
        })
    }
}

impl Spot {
    /// Layout of the ring in `memory`.
    pub fn layout(
        &self,
        memory: &Memory,
        size: u16,
        event_idx: bool,
        mergeable: bool,
    ) -> Option<Layout> {
        let n = u64::from(size);
        Some(Layout {
            size,
            desc: memory.user(self.desc, 16 * n)?,
            avail: memory.user(self.avail, 6 + 2 * n)?,
            used: memory.user(self.used, 6 + 8 * n)?,
            indirect: false,
            event_idx,
            mergeable,
            base: 0,
        })
    }
}
