//! Packet batches between rings and the graph: packets found in a ring, and buffers reserved in a ring.
//!
//! The ring ends fill both from what the peer wrote and check it. Both keep their memory, so nothing is allocated while
//! packets pass.

use crate::fault::RingFault;
use crate::header::Words;
use crate::memory::{Memory, Place};
use std::io::IoSliceMut;

/// Result of processing entries of a batch.
#[derive(Default)]
pub struct Tally {
    /// Entries that are processed.
    pub taken: usize,
    /// Packets among them to be dropped.
    pub broken: u64,
}

/// Maximum number of parts of a packet.
pub const MAX_CHAIN: usize = 1024;
/// Maximum number of packets in a batch.
pub const MAX_BATCH: usize = 1024;
/// The longest frame: the longest IP packet behind an Ethernet header and two VLAN tags.
pub const MAX_FRAME: usize = 65_535 + 14 + 8;
/// The shortest accepted frame: an Ethernet header.
const MIN_FRAME: usize = 14;
/// Bytes of a cache line.
pub(crate) const LINE: usize = 64;
/// Bytes of `virtio_net_hdr` with the number of buffers, the form that every peer with virtio version 1 uses.
pub const HEADER: usize = 12;

/// A received packet in a ring.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The buffer's id in the ring, which is returned to the driver.
    pub id: u16,
    /// Descriptors (packed ring) or buffers (front end) that the packet occupies.
    pub slots: u16,
    /// Bytes of the frame without the virtio header; 0 if the entry is not a frame.
    frame: u32,
    first: u32,
    parts: u32,
}

/// Received packets in a ring.
pub struct Batch {
    entries: Vec<Entry>,
    parts: Vec<Place>,
    /// Number of entries that are frames, and the length of the longest.
    frames: usize,
    longest: u32,
    /// Whether the virtio headers will be read.
    pub headers: bool,
}

impl Default for Batch {
    fn default() -> Self {
        Batch {
            entries: Vec::with_capacity(MAX_BATCH),
            parts: Vec::with_capacity(MAX_BATCH + 4 * MAX_CHAIN),
            frames: 0,
            longest: 0,
            headers: false,
        }
    }
}

impl Batch {
    /// Empty the batch.
    #[inline(always)]
    pub fn clear(&mut self) {
        self.entries.clear();
        self.parts.clear();
        (self.frames, self.longest) = (0, 0);
    }

    /// Packets in the batch.
    #[inline(always)]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Whether one more packet fits, however many parts it has.
    #[inline(always)]
    pub fn has_room(&self) -> bool {
        self.entries.len() < MAX_BATCH && self.parts.len() + MAX_CHAIN <= self.parts.capacity()
    }

    /// Number of parts so far: the start of the next packet.
    #[inline(always)]
    pub fn mark(&self) -> usize {
        self.parts.len()
    }

    /// Discard the parts after a mark.
    pub fn undo(&mut self, mark: usize) {
        self.parts.truncate(mark);
    }

    /// Add a buffer to the packet that begins at `mark`; the buffer may span regions.
    #[inline(always)]
    pub fn part(
        &mut self,
        memory: &Memory,
        mark: usize,
        addr: u64,
        len: u32,
    ) -> Result<(), RingFault> {
        pieces(memory, &mut self.parts, mark, addr, len)
    }

    /// Complete the packet that begins at `mark`, of `len` bytes including its header, and prefetches its first bytes:
    /// another core wrote them, and the whole vector is prefetched before the first packet is copied.
    #[inline(always)]
    pub fn packet(&mut self, memory: &Memory, id: u16, slots: u16, len: u32, mark: usize) {
        let frame = len.saturating_sub(HEADER as u32);
        let is_frame = (MIN_FRAME..=MAX_FRAME).contains(&(frame as usize));
        let frame = if is_frame { frame } else { 0 };
        self.frames += usize::from(is_frame);
        self.longest = self.longest.max(frame);
        self.entries.push(Entry {
            id,
            slots,
            frame,
            first: mark as u32,
            parts: (self.parts.len() - mark) as u32,
        });
        if let Some(view) = self.parts.get(mark).and_then(|first| memory.view(*first)) {
            // Without offloads the header is not read, and its cache line stays with the peer, which has just written it.
            view.prefetch(if self.headers { 0 } else { HEADER });
            view.prefetch(HEADER + LINE - 1);
        }
    }

    /// Number of entries that are frames.
    #[inline(always)]
    pub fn frames(&self) -> usize {
        self.frames
    }

    /// Length of the longest frame in bytes.
    #[inline(always)]
    pub fn longest(&self) -> usize {
        self.longest as usize
    }

    /// Length of the frame of packet `at` in bytes, without its header; 0 if the entry is not a frame.
    #[inline(always)]
    pub fn frame_len(&self, at: usize) -> usize {
        self.entries[at].frame as usize
    }

    fn parts_of(&self, at: usize) -> &[Place] {
        let entry = &self.entries[at];
        &self.parts[entry.first as usize..][..entry.parts as usize]
    }

    /// Copy packet `at` from byte `skip` into `to`; returns the number of bytes copied.
    #[inline(always)]
    pub fn copy(&self, memory: &Memory, at: usize, skip: usize, to: &mut [u8]) -> usize {
        let parts = self.parts_of(at);
        if let [only] = parts
            && let Some(view) = memory.view(*only)
        {
            return view.read(skip, to);
        }
        copy_parts(memory, parts, skip, to)
    }
}

impl Batch {
    /// Copy the frame of packet `at` into consecutive pieces of memory; returns its length.
    pub fn scatter(&self, memory: &Memory, at: usize, to: &mut [IoSliceMut<'_>]) -> usize {
        let (len, mut done) = (self.frame_len(at), 0);
        for slice in to {
            let n = slice.len().min(len - done);
            done += self.copy(memory, at, HEADER + done, &mut slice[..n]);
        }
        done
    }
}

#[inline(never)]
fn copy_parts(memory: &Memory, parts: &[Place], mut skip: usize, to: &mut [u8]) -> usize {
    let mut done = 0;
    for view in parts.iter().filter_map(|part| memory.view(*part)) {
        if skip >= view.len() {
            skip -= view.len();
            continue;
        }
        done += view.read(skip, &mut to[done..]);
        skip = 0;
    }
    done
}

/// Prefetch the buffer at guest address `addr` for a packet of `len` bytes, header included: its header for reading, its frame for
/// writing. Does nothing if the address is not in the shared memory.
#[inline(always)]
pub fn ask_for_room(memory: &Memory, addr: u64, len: usize) {
    if let Ok(place) = memory.guest(addr, len as u32)
        && let Some(view) = memory.view(place)
    {
        let is_one_line = addr as usize % LINE + HEADER < LINE;
        if !is_one_line {
            view.prefetch(0);
        }
        view.prefetch_write_all(HEADER);
    }
}

/// Append the pieces of memory that the `len` bytes at `addr` lie in.
#[inline(always)]
fn pieces(
    memory: &Memory,
    parts: &mut Vec<Place>,
    mark: usize,
    mut addr: u64,
    mut len: u32,
) -> Result<(), RingFault> {
    while len > 0 {
        if parts.len() - mark >= MAX_CHAIN {
            return Err(RingFault::ChainLong);
        }
        let place = memory.guest(addr, len)?;
        parts.push(place);
        len -= place.len;
        addr = addr.wrapping_add(u64::from(place.len));
    }
    Ok(())
}

/// A ring buffer taken for transmission.
#[derive(Clone, Copy, Debug)]
pub struct Taken {
    /// Id of the buffer in the ring.
    pub id: u16,
    /// Number of descriptors of the buffer.
    pub slots: u16,
    /// Capacity in bytes.
    pub room: u32,
    /// Bytes written.
    pub len: u32,
}

/// Buffers reserved in a ring: the parts of the current packet, and the buffers of all packets not yet published.
pub struct Room {
    parts: Vec<Place>,
    /// Buffers, in ring order.
    pub taken: Vec<Taken>,
    /// Index of the first buffer of the current packet.
    pub first: usize,
    bytes: usize,
    /// Number of descriptors of all buffers.
    slots: usize,
}

impl Default for Room {
    fn default() -> Self {
        Room {
            parts: Vec::with_capacity(2 * MAX_CHAIN),
            taken: Vec::with_capacity(2 * MAX_BATCH + MAX_CHAIN),
            first: 0,
            bytes: 0,
            slots: 0,
        }
    }
}

impl Room {
    /// Begin a packet.
    #[inline(always)]
    pub fn begin(&mut self) {
        self.parts.clear();
        self.first = self.taken.len();
        self.bytes = 0;
    }

    /// Discard the current packet.
    pub fn cancel(&mut self) {
        let slots = self.taken[self.first..]
            .iter()
            .map(|t| usize::from(t.slots));
        self.slots -= slots.sum::<usize>();
        self.taken.truncate(self.first);
        self.parts.clear();
        self.bytes = 0;
    }

    /// Number of descriptors of the buffers of all packets.
    #[inline(always)]
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// Empty the list of buffers after they are published.
    #[inline(always)]
    pub fn clear(&mut self) {
        self.taken.clear();
        self.slots = 0;
    }

    /// Whether the list of buffers is nearly full.
    #[inline(always)]
    pub fn is_full(&self) -> bool {
        self.taken.len() + MAX_CHAIN > self.taken.capacity()
    }

    /// Capacity of the current packet's buffers in bytes.
    #[inline(always)]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Add a piece of memory to the current packet.
    #[inline(always)]
    pub fn part(&mut self, memory: &Memory, addr: u64, len: u32) -> Result<(), RingFault> {
        self.bytes += len as usize;
        pieces(memory, &mut self.parts, 0, addr, len)
    }

    /// Complete a buffer of the current packet; `before` is [`Room::bytes`] at its start.
    #[inline(always)]
    pub fn buffer(&mut self, id: u16, slots: u16, before: usize) -> Result<(), RingFault> {
        if self.taken.len() - self.first >= MAX_CHAIN {
            return Err(RingFault::ChainLong);
        }
        self.slots += usize::from(slots);
        self.taken.push(Taken {
            id,
            slots,
            room: (self.bytes - before) as u32,
            len: 0,
        });
        Ok(())
    }

    /// Take a buffer of one descriptor for a complete packet of `len` bytes.
    #[inline(always)]
    pub fn take(&mut self, id: u16, len: u32) {
        self.first = self.taken.len();
        self.slots += 1;
        self.taken.push(Taken {
            id,
            slots: 1,
            room: len,
            len,
        });
    }

    /// Write the current packet: the header and `frame`. The caller has reserved enough bytes.
    #[inline(always)]
    pub fn fill(&mut self, memory: &Memory, header: Words, frame: &[u8]) {
        if let [only] = self.parts[..]
            && let Some(view) = memory.view(only)
        {
            header.store(view);
            view.write(HEADER, frame);
        } else {
            let mut cursor = Cursor::default();
            cursor.write(memory, &self.parts, &header.bytes());
            cursor.write(memory, &self.parts, frame);
        }
        self.share(HEADER + frame.len());
    }

    /// Write the current packet like `fill`, with a frame in several pieces.
    pub fn fill_parts(
        &mut self,
        memory: &Memory,
        header: Words,
        frame: impl FnOnce(&mut dyn FnMut(&[u8])),
    ) {
        let mut cursor = Cursor::default();
        let mut len = HEADER;
        cursor.write(memory, &self.parts, &header.bytes());
        frame(&mut |bytes| {
            cursor.write(memory, &self.parts, bytes);
            len += bytes.len();
        });
        self.share(len);
    }

    /// Set the number of bytes in each buffer of the packet.
    #[inline(always)]
    fn share(&mut self, mut len: usize) {
        for taken in &mut self.taken[self.first..] {
            let here = len.min(taken.room as usize);
            taken.len = here as u32;
            len -= here;
        }
    }

    /// Number of buffers of the current packet.
    #[inline(always)]
    pub fn buffers(&self) -> usize {
        self.taken.len() - self.first
    }
}

/// Position of the next byte to write.
#[derive(Default)]
struct Cursor {
    part: usize,
    at: usize,
}

impl Cursor {
    fn write(&mut self, memory: &Memory, parts: &[Place], mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let Some(view) = parts.get(self.part).and_then(|p| memory.view(*p)) else {
                return;
            };
            let n = view.write(self.at, bytes);
            bytes = &bytes[n..];
            self.at += n;
            if self.at >= view.len() {
                (self.part, self.at) = (self.part + 1, 0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_of_a_room_are_those_of_its_buffers() {
        let mut room = Room::default();
        room.begin();
        room.buffer(1, 2, 0).unwrap();
        room.take(2, 76);
        room.begin();
        room.buffer(3, 30_000, 0).unwrap();
        room.buffer(4, 40_000, 0).unwrap();
        assert_eq!((room.slots(), room.buffers()), (70_003, 2));
        room.cancel();
        assert_eq!((room.slots(), room.taken.len()), (3, 2));
        room.clear();
        assert_eq!((room.slots(), room.taken.len()), (0, 0));
    }
}
