//! The packed ring, device end.
//!
//! A buffer is one descriptor, or several consecutive chained ones; the last one has the id. A descriptor is available
//! when its AVAIL bit equals the driver's wrap counter and its USED bit does not; when used, both equal the device's wrap
//! counter.

use super::{
    Desc, End, INDIRECT, Layout, NEXT, Notification, Reading, Reservation, Reserved, Sink, WRITE,
    one, table,
};
use crate::batch::{Batch, Room, ask_for_room};
use crate::fault::RingFault;
use crate::memory::Memory;
use crate::sys::View;
use std::sync::atomic::{Ordering, fence};

pub(crate) const AVAIL: u16 = 1 << 7;
pub(crate) const USED: u16 = 1 << 15;
/// Event flags: notifications off, on, or at a given descriptor.
const DISABLE: u16 = 1;
const AT_DESC: u16 = 2;
/// Number of descriptors by which the prefetch runs ahead.
const LINES_AHEAD: u16 = 16;

/// A position in the ring with its wrap counter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RingPosition {
    pub(crate) at: u16,
    pub(crate) wrap: bool,
}

impl RingPosition {
    fn of(word: u16) -> RingPosition {
        RingPosition {
            at: word & 0x7fff,
            wrap: word & 0x8000 != 0,
        }
    }

    pub(crate) fn word(self) -> u16 {
        self.at | u16::from(self.wrap) << 15
    }

    #[inline(always)]
    pub(crate) fn on(self, slots: u16, size: u16) -> RingPosition {
        let at = u32::from(self.at) + u32::from(slots);
        if at >= u32::from(size) {
            RingPosition {
                at: (at - u32::from(size)) as u16,
                wrap: !self.wrap,
            }
        } else {
            RingPosition {
                at: at as u16,
                wrap: self.wrap,
            }
        }
    }
}

/// State of the device's end.
pub struct Packed {
    layout: Layout,
    avail: RingPosition,
    used: RingPosition,
}

/// Result of reading a chain.
struct Chain {
    id: u16,
    slots: u16,
}

impl Packed {
    /// A ring that continues at `layout.base`.
    pub fn new(layout: Layout, memory: &Memory) -> Self {
        let mut turn = RingPosition::of(layout.base as u16);
        // A base beyond the ring is an error of the peer; start at 0 then.
        if turn.at >= layout.size {
            turn.at = 0;
        }
        let mut ring = Packed {
            layout,
            avail: turn,
            used: turn,
        };
        ring.listen(memory, Notification::Off);
        ring
    }

    #[inline(always)]
    fn desc(ring: View<'_>, at: u16) -> Desc {
        // Read the flags first: the bytes before them are valid only if the flags say so.
        let rest = ring.load64(16 * usize::from(at) + 8);
        Desc {
            addr: ring.load64(16 * usize::from(at)),
            len: rest as u32,
            last: (rest >> 32) as u16,
            flags: (rest >> 48) as u16,
        }
    }

    #[inline(always)]
    fn is_available(d: Desc, wrap: bool) -> bool {
        (d.flags & AVAIL != 0) == wrap && (d.flags & USED != 0) != wrap
    }

    /// Pass all parts of the buffer at `turn` to `sink`; `None` if no buffer is available.
    #[inline(always)]
    fn chain<S: Sink>(
        &self,
        memory: &Memory,
        ring: View<'_>,
        turn: RingPosition,
        sink: &mut S,
    ) -> Result<Option<Chain>, RingFault> {
        let first = Packed::desc(ring, turn.at);
        if !Packed::is_available(first, turn.wrap) {
            return Ok(None);
        }
        if first.flags & (NEXT | INDIRECT) == 0 {
            one(sink, memory, first)?;
            return Ok(Some(Chain {
                id: first.last,
                slots: 1,
            }));
        }
        self.long_chain(memory, ring, turn, first, sink).map(Some)
    }

    #[inline(never)]
    fn long_chain<S: Sink>(
        &self,
        memory: &Memory,
        ring: View<'_>,
        mut turn: RingPosition,
        mut d: Desc,
        sink: &mut S,
    ) -> Result<Chain, RingFault> {
        let mut slots = 1;
        loop {
            if d.flags & INDIRECT != 0 {
                if slots > 1 {
                    return Err(RingFault::Indirect);
                }
                self.indirect(memory, d, sink)?;
            } else {
                one(sink, memory, d)?;
            }
            if d.flags & NEXT == 0 || d.flags & INDIRECT != 0 {
                return Ok(Chain { id: d.last, slots });
            }
            if slots == self.layout.size {
                return Err(RingFault::ChainLoop);
            }
            (slots, turn) = (slots + 1, turn.on(1, self.layout.size));
            d = Packed::desc(ring, turn.at);
            // The driver makes the first descriptor of a chain available last, so the others must be available.
            if !Packed::is_available(d, turn.wrap) {
                return Err(RingFault::ChainLoop);
            }
        }
    }

    /// In an indirect table of a packed ring every entry belongs to the buffer, and WRITE is the only valid flag.
    fn indirect<S: Sink>(&self, memory: &Memory, d: Desc, sink: &mut S) -> Result<(), RingFault> {
        let (table, size) = table(&self.layout, memory, d)?;
        for at in 0..size.min(usize::from(u16::MAX)) {
            let mut d = Packed::desc(table, at as u16);
            d.flags &= WRITE | INDIRECT;
            if d.flags & INDIRECT != 0 {
                return Err(RingFault::Indirect);
            }
            one(sink, memory, d)?;
        }
        Ok(())
    }

    /// Return buffers, the first one last: the driver sees all of them or none.
    fn give(
        &mut self,
        ring: View<'_>,
        buffers: impl DoubleEndedIterator<Item = (u16, u16, u32)> + Clone,
    ) -> RingPosition {
        let old = self.used;
        let size = self.layout.size;
        let all: u32 = buffers.clone().map(|(_, slots, _)| u32::from(slots)).sum();
        let mut at = self.used.on((all % u32::from(size)) as u16, size);
        at.wrap = self.used.wrap ^ ((u32::from(self.used.at) + all) / u32::from(size) % 2 == 1);
        self.used = at;
        for (id, slots, len) in buffers.rev() {
            at = back(at, slots, size);
            let both = if at.wrap { AVAIL | USED } else { 0 };
            let flags = both | if len > 0 { WRITE } else { 0 };
            let word = u64::from(len) | u64::from(id) << 32 | u64::from(flags) << 48;
            ring.store64(16 * usize::from(at.at) + 8, word);
        }
        old
    }

    fn wants(&self, memory: &Memory, old: RingPosition) -> bool {
        let event = memory.view(self.layout.avail);
        event.is_some_and(|event| wants(event, &self.layout, old, self.used))
    }

    fn room(
        &mut self,
        memory: &Memory,
        ring: View<'_>,
        room: &mut Room,
        len: usize,
    ) -> Reservation {
        loop {
            let before = room.bytes();
            let Some(chain) = self.chain(memory, ring, self.avail, room)? else {
                return Ok(Reserved::Full);
            };
            room.buffer(chain.id, chain.slots, before)?;
            self.avail = self.avail.on(chain.slots, self.layout.size);
            if room.bytes() >= len {
                return Ok(Reserved::Room);
            }
            if !self.layout.mergeable {
                return Ok(Reserved::TooLong);
            }
        }
    }
}

/// Whether the other side, which owns this event structure, requests a notification for the advance from `old` to `new`.
pub(crate) fn wants(
    event: View<'_>,
    layout: &Layout,
    old: RingPosition,
    new: RingPosition,
) -> bool {
    fence(Ordering::SeqCst);
    match event.load16(2) {
        DISABLE => false,
        AT_DESC if layout.event_idx => {
            // Compare distances from `old`: the event was passed if it is nearer than `new`.
            let distance = |to: RingPosition| {
                let lap = if to.wrap == old.wrap {
                    0
                } else {
                    u32::from(layout.size)
                };
                (u32::from(to.at) + lap).wrapping_sub(u32::from(old.at))
            };
            distance(RingPosition::of(event.load16(0))) < distance(new)
        }
        _ => true,
    }
}

/// Event flags for this notification mode.
pub(crate) fn flags(wanted: Notification) -> u16 {
    match wanted {
        Notification::Off => DISABLE,
        Notification::On => 0,
    }
}

fn back(turn: RingPosition, slots: u16, size: u16) -> RingPosition {
    match turn.at.checked_sub(slots) {
        Some(at) => RingPosition {
            at,
            wrap: turn.wrap,
        },
        None => RingPosition {
            at: (u32::from(turn.at) + u32::from(size) - u32::from(slots)) as u16,
            wrap: !turn.wrap,
        },
    }
}

impl End for Packed {
    fn look(&mut self, memory: &Memory, batch: &mut Batch, most: usize) -> Result<(), RingFault> {
        let Some(ring) = memory.view(self.layout.desc) else {
            return Ok(());
        };
        let (mut turn, mut slots) = (self.avail, 0u32);
        for i in 0..most {
            if !batch.has_room() {
                break;
            }
            // For writing, since this end also writes the descriptor's USED bit.
            let far = turn.on(LINES_AHEAD, self.layout.size);
            ring.prefetch_write(16 * usize::from(far.at));
            let mark = batch.mark();
            let mut reading = Reading {
                batch,
                mark,
                len: 0,
            };
            let found = self.chain(memory, ring, turn, &mut reading);
            let len = reading.len;
            match found {
                Ok(Some(chain))
                    if slots + u32::from(chain.slots) <= u32::from(self.layout.size) =>
                {
                    batch.packet(memory, chain.id, chain.slots, len, mark);
                    slots += u32::from(chain.slots);
                    turn = turn.on(chain.slots, self.layout.size);
                }
                Err(fault) if i == 0 => return Err(fault),
                _ => {
                    batch.undo(mark);
                    break;
                }
            }
        }
        Ok(())
    }

    fn done(&mut self, memory: &Memory, batch: &Batch, n: usize) -> bool {
        let Some(ring) = memory.view(self.layout.desc) else {
            return false;
        };
        let entries = &batch.entries()[..n];
        for entry in entries {
            self.avail = self.avail.on(entry.slots, self.layout.size);
        }
        let old = self.give(ring, entries.iter().map(|e| (e.id, e.slots, 0)));
        self.wants(memory, old)
    }

    #[inline(always)]
    fn ahead(&self, memory: &Memory, nth: u16, len: usize) {
        let Some(ring) = memory.view(self.layout.desc) else {
            return;
        };
        let far = self.avail.on(nth + LINES_AHEAD, self.layout.size);
        ring.prefetch_write(16 * usize::from(far.at));
        let at = self.avail.on(nth, self.layout.size);
        ask_for_room(memory, ring.load64(16 * usize::from(at.at)), len);
    }

    #[inline(always)]
    fn plain<'m>(&mut self, memory: &'m Memory, room: &mut Room, len: usize) -> Option<View<'m>> {
        let d = Packed::desc(memory.view(self.layout.desc)?, self.avail.at);
        let is_plain = d.flags & (NEXT | INDIRECT | WRITE) == WRITE && d.len as usize >= len;
        // If a driver never clears the AVAIL bit, this end could overtake its own buffers.
        let laps = room.slots() >= usize::from(self.layout.size);
        if !Packed::is_available(d, self.avail.wrap) || !is_plain || laps {
            return None;
        }
        let place = memory
            .guest(d.addr, d.len)
            .ok()
            .filter(|p| p.len == d.len)?;
        let view = memory.view(place)?;
        room.take(d.last, len as u32);
        self.avail = self.avail.on(1, self.layout.size);
        Some(view)
    }

    fn reserve(&mut self, memory: &Memory, room: &mut Room, len: usize) -> Reservation {
        let Some(ring) = memory.view(self.layout.desc) else {
            return Ok(Reserved::Full);
        };
        room.begin();
        let start = self.avail;
        let mut found = self.room(memory, ring, room, len);
        // If a driver never clears the AVAIL bit, this end could overtake its own buffers.
        if found == Ok(Reserved::Room) && room.slots() > usize::from(self.layout.size) {
            found = Ok(Reserved::Full);
        }
        if found != Ok(Reserved::Room) {
            self.avail = start;
            room.cancel();
        }
        found
    }

    fn flush(&mut self, memory: &Memory, room: &mut Room) -> bool {
        let Some(ring) = memory
            .view(self.layout.desc)
            .filter(|_| !room.taken.is_empty())
        else {
            return false;
        };
        let old = self.give(ring, room.taken.iter().map(|t| (t.id, t.slots, t.len)));
        room.clear();
        self.wants(memory, old)
    }

    #[inline(always)]
    fn buffer_count(&self, buffers: usize) -> u16 {
        buffers as u16
    }

    fn base(&self) -> u32 {
        u32::from(self.avail.word()) | u32::from(self.used.word()) << 16
    }

    fn waits(&self, memory: &Memory) -> bool {
        let ring = memory.view(self.layout.desc);
        ring.is_some_and(|r| Packed::is_available(Packed::desc(r, self.avail.at), self.avail.wrap))
    }

    fn listen(&mut self, memory: &Memory, wanted: Notification) {
        if let Some(event) = memory.view(self.layout.used) {
            event.store16(2, flags(wanted));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_go_round_and_back() {
        let start = RingPosition { at: 6, wrap: true };
        assert_eq!(start.on(2, 8), RingPosition { at: 0, wrap: false });
        assert_eq!(start.on(5, 8), RingPosition { at: 3, wrap: false });
        for slots in 0..8 {
            assert_eq!(back(start.on(slots, 8), slots, 8), start);
        }
        assert_eq!(RingPosition::of(start.word()), start);
    }
}
