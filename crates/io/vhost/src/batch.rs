//! What lies between a ring and the graph: packets found in a ring, and room for one packet to go into a ring.
//!
//! Both are filled by the ring ends from what the peer wrote, checked on the way; both keep their memory, so that
//! nothing is allocated while packets pass.

use crate::fault::RingFault;
use crate::header::Words;
use crate::memory::{Memory, Place};
use std::io::IoSliceMut;

/// What became of the entries of a batch.
#[derive(Default)]
pub struct Tally {
    /// Entries that are done with.
    pub taken: usize,
    /// Packets among them that are to be dropped.
    pub broken: u64,
}

/// The most parts of one packet.
pub const MAX_CHAIN: usize = 1024;
/// The most packets looked at in one go.
pub const MAX_BATCH: usize = 1024;
/// The longest frame: the longest IP packet, behind an Ethernet header and two tags.
pub const MAX_FRAME: usize = 65_535 + 14 + 8;
/// The shortest frame that is worth a buffer: an Ethernet header.
const MIN_FRAME: usize = 14;
/// Bytes of a cache line.
const LINE: usize = 64;
/// Bytes of `virtio_net_hdr` with the number of buffers, as every modern peer has it.
pub const HEADER: usize = 12;

/// A packet that waits in a ring.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The buffer's id in the ring: what is given back.
    pub id: u16,
    /// Descriptors that it takes in a packed ring, buffers that it takes for a front end.
    pub slots: u16,
    /// Bytes of its frame, without the header; 0 for one that is no frame.
    frame: u32,
    first: u32,
    parts: u32,
}

/// Packets that wait in a ring.
pub struct Batch {
    entries: Vec<Entry>,
    parts: Vec<Place>,
    /// Entries that are frames, and the longest.
    frames: usize,
    longest: u32,
    /// Whether headers will be read.
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
    /// Forget everything.
    #[inline(always)]
    pub fn clear(&mut self) {
        self.entries.clear();
        self.parts.clear();
        (self.frames, self.longest) = (0, 0);
    }

    /// Packets in it.
    #[inline(always)]
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Whether there is room for one more packet, however many parts it has.
    #[inline(always)]
    pub fn has_room(&self) -> bool {
        self.entries.len() < MAX_BATCH && self.parts.len() + MAX_CHAIN <= self.parts.capacity()
    }

    /// Parts so far: where the next packet begins.
    #[inline(always)]
    pub fn mark(&self) -> usize {
        self.parts.len()
    }

    /// Forget the parts behind a mark.
    pub fn undo(&mut self, mark: usize) {
        self.parts.truncate(mark);
    }

    /// Add a buffer of the packet that begins at `mark`, wherever its pieces lie.
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

    /// Close the packet that begins at `mark`, of `len` bytes with its header, and ask for its beginning: it comes from another
    /// core, and by the time that it is copied the whole vector has been asked for.
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
            // Where headers say nothing, their line stays with the peer, which has just written it.
            view.prefetch(if self.headers { 0 } else { HEADER });
            view.prefetch(HEADER + LINE - 1);
        }
    }

    /// Entries that are frames.
    #[inline(always)]
    pub fn frames(&self) -> usize {
        self.frames
    }

    /// Bytes of the longest frame.
    #[inline(always)]
    pub fn longest(&self) -> usize {
        self.longest as usize
    }

    /// Bytes of the frame of packet `at`, without its header; 0 for one that is no frame.
    #[inline(always)]
    pub fn frame_len(&self, at: usize) -> usize {
        self.entries[at].frame as usize
    }

    fn parts_of(&self, at: usize) -> &[Place] {
        let entry = &self.entries[at];
        &self.parts[entry.first as usize..][..entry.parts as usize]
    }

    /// Copy the packet `at` from byte `skip` on into `to`; returns how many bytes there were.
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
    /// Copy the frame of packet `at` into several pieces of memory, one after the other; returns its length.
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

/// Ask for the beginning of the buffer at guest address `addr`: its header to look at, its frame to write; nothing when it lies
/// nowhere.
#[inline(always)]
pub fn ask_for_room(memory: &Memory, addr: u64) {
    if let Ok(place) = memory.guest(addr, 1)
        && let Some(view) = memory.view(place)
    {
        let is_one_line = addr as usize % LINE + HEADER < LINE;
        if !is_one_line {
            view.prefetch(0);
        }
        view.prefetch_write(HEADER);
        view.prefetch_write(HEADER + LINE - 1);
    }
}

/// Append where `len` bytes at `addr` lie, piece by piece.
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

/// A buffer taken from a ring to be filled.
#[derive(Clone, Copy, Debug)]
pub struct Taken {
    /// Its id in the ring.
    pub id: u16,
    /// Descriptors that it takes.
    pub slots: u16,
    /// Bytes that it holds.
    pub room: u32,
    /// Bytes that were written.
    pub len: u32,
}

/// Room for packets in a ring: the parts of the packet in hand, and the buffers of all packets not yet handed over.
pub struct Room {
    parts: Vec<Place>,
    /// Buffers, in ring order.
    pub taken: Vec<Taken>,
    /// Where the buffers of the packet in hand begin.
    pub first: usize,
    bytes: usize,
    /// Descriptors of all buffers.
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
    /// Begin with a packet.
    #[inline(always)]
    pub fn begin(&mut self) {
        self.parts.clear();
        self.first = self.taken.len();
        self.bytes = 0;
    }

    /// Forget the packet in hand.
    pub fn cancel(&mut self) {
        let slots = self.taken[self.first..]
            .iter()
            .map(|t| usize::from(t.slots));
        self.slots -= slots.sum::<usize>();
        self.taken.truncate(self.first);
        self.parts.clear();
        self.bytes = 0;
    }

    /// Descriptors that the buffers of all packets take.
    #[inline(always)]
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// Forget all buffers: they were handed over.
    #[inline(always)]
    pub fn clear(&mut self) {
        self.taken.clear();
        self.slots = 0;
    }

    /// Whether many more packets would not find room in the list of buffers.
    #[inline(always)]
    pub fn is_full(&self) -> bool {
        self.taken.len() + MAX_CHAIN > self.taken.capacity()
    }

    /// Bytes of room for the packet in hand.
    #[inline(always)]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Add a piece of memory to the packet in hand.
    #[inline(always)]
    pub fn part(&mut self, memory: &Memory, addr: u64, len: u32) -> Result<(), RingFault> {
        self.bytes += len as usize;
        pieces(memory, &mut self.parts, 0, addr, len)
    }

    /// Close a buffer of the packet in hand; `before` is [`Room::bytes`] when it began.
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

    /// Take a buffer of one descriptor for a packet of `len` bytes of its own.
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

    /// Write the packet in hand: the header and what `segments` gives, `len` bytes in all, for which there is room.
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

    /// The same for a frame in several pieces.
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

    /// Say how much of the packet is in each of its buffers.
    #[inline(always)]
    fn share(&mut self, mut len: usize) {
        for taken in &mut self.taken[self.first..] {
            let here = len.min(taken.room as usize);
            taken.len = here as u32;
            len -= here;
        }
    }

    /// Buffers of the packet in hand.
    #[inline(always)]
    pub fn buffers(&self) -> usize {
        self.taken.len() - self.first
    }
}

/// Where the next byte goes.
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
