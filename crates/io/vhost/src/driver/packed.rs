//! The packed ring, driver end.

use super::{ReceivingChain, RingDirection, SLOT, Slots, Spot};
use crate::batch::{Batch, Room, Taken};
use crate::device::{
    AVAIL, End, Layout, NEXT, Notification, Reservation, Reserved, RingPosition, USED, WRITE,
    flags, wants,
};
use crate::fault::RingFault;
use crate::memory::Memory;
use crate::sys::View;

/// State of the driver's end.
pub struct PackedDriver {
    layout: Layout,
    slots: Slots,
    avail: RingPosition,
    used: RingPosition,
}

impl PackedDriver {
    /// A new ring; a receive ring lends all its buffers.
    pub fn new(layout: Layout, spot: &Spot, memory: &Memory, way: RingDirection) -> Self {
        let start = RingPosition { at: 0, wrap: true };
        let size = layout.size;
        let mut ring = PackedDriver {
            slots: Slots::new(spot.slots, size, way),
            layout,
            avail: start,
            used: start,
        };
        ring.listen(memory, Notification::Off);
        if let (RingDirection::Receive, Some(view)) = (way, memory.view(ring.layout.desc)) {
            (0..size).for_each(|id| ring.post(view, id));
        }
        ring
    }

    #[inline(always)]
    fn write(
        &self,
        view: View<'_>,
        turn: RingPosition,
        (id, len): (u16, u32),
        buffer: u16,
        flags: u16,
    ) {
        let both = if turn.wrap { AVAIL } else { USED };
        let at = 16 * usize::from(turn.at);
        view.store64(at, self.slots.addr(buffer));
        let word = u64::from(len) | u64::from(id) << 32 | u64::from(flags | both) << 48;
        view.store64(at + 8, word);
    }

    /// Post a buffer to be filled.
    #[inline(always)]
    fn post(&mut self, view: View<'_>, id: u16) {
        self.write(view, self.avail, (id, SLOT), id, WRITE);
        self.avail = self.avail.on(1, self.layout.size);
    }

    /// Id and length of the next used entry.
    #[inline(always)]
    fn returned(view: View<'_>, turn: RingPosition) -> Option<(u32, u32)> {
        let rest = view.load64(16 * usize::from(turn.at) + 8);
        let flags = (rest >> 48) as u16;
        let is_used = (flags & AVAIL != 0) == turn.wrap && (flags & USED != 0) == turn.wrap;
        is_used.then_some(((rest >> 32) as u32 & 0xffff, rest as u32))
    }

    fn reclaim(&mut self, memory: &Memory) -> Result<(), RingFault> {
        let Some(view) = memory.view(self.layout.desc) else {
            return Ok(());
        };
        while self.used != self.avail || self.slots.free.is_empty() {
            let Some((id, _)) = PackedDriver::returned(view, self.used) else {
                break;
            };
            let buffers = self.slots.reclaim(id)?;
            self.used = self.used.on(buffers, self.layout.size);
        }
        Ok(())
    }

    fn arrived(
        &mut self,
        memory: &Memory,
        view: View<'_>,
        batch: &mut Batch,
        most: usize,
    ) -> Result<(), RingFault> {
        let (mut packet, mut turn) = (ReceivingChain::begin(batch), self.used);
        for _ in 0..self.layout.size {
            if packet.buffers == 0 && (batch.entries().len() >= most || !batch.has_room()) {
                break;
            }
            let Some((id, len)) = PackedDriver::returned(view, turn) else {
                break;
            };
            let id = self.slots.see(id)?;
            if packet.add(memory, batch, self.slots.addr(id), len, &self.layout)? {
                batch.packet(memory, id, packet.buffers, packet.len, packet.mark);
                packet = ReceivingChain::begin(batch);
            }
            turn = turn.on(1, self.layout.size);
        }
        batch.undo(packet.mark);
        Ok(())
    }

    /// Write the descriptors of one packet, the first one last.
    #[inline(always)]
    fn send(&mut self, view: View<'_>, packet: &[Taken]) {
        let size = self.layout.size;
        for (nth, buffer) in packet.iter().enumerate().rev() {
            let turn = self.avail.on(nth as u16, size);
            let flags = if nth + 1 < packet.len() { NEXT } else { 0 };
            self.write(view, turn, (packet[0].id, buffer.len), buffer.id, flags);
        }
        self.slots.lend(packet.iter().map(|b| b.id));
        self.avail = self.avail.on(packet.len() as u16, size);
    }

    fn wants(&self, memory: &Memory, old: RingPosition) -> bool {
        let event = memory.view(self.layout.used);
        event.is_some_and(|event| wants(event, &self.layout, old, self.avail))
    }
}

impl End for PackedDriver {
    super::transmission!();

    fn look(&mut self, memory: &Memory, batch: &mut Batch, most: usize) -> Result<(), RingFault> {
        let Some(view) = memory.view(self.layout.desc) else {
            return Ok(());
        };
        self.slots.unsee();
        self.slots.seen.clear();
        match self.arrived(memory, view, batch, most) {
            Err(fault) if batch.entries().is_empty() => Err(fault),
            _ => Ok(()),
        }
    }

    fn done(&mut self, memory: &Memory, batch: &Batch, n: usize) -> bool {
        let Some(view) = memory.view(self.layout.desc).filter(|_| n > 0) else {
            return false;
        };
        let old = self.avail;
        let buffers: usize = batch.entries()[..n]
            .iter()
            .map(|e| usize::from(e.slots))
            .sum();
        for nth in 0..buffers {
            let id = self.slots.seen[nth];
            self.post(view, id);
        }
        self.used = self.used.on(buffers as u16, self.layout.size);
        self.wants(memory, old)
    }

    fn flush(&mut self, memory: &Memory, room: &mut Room) -> bool {
        let Some(view) = memory
            .view(self.layout.desc)
            .filter(|_| !room.taken.is_empty())
        else {
            return false;
        };
        let old = self.avail;
        let mut at = 0;
        while let Some(head) = room.taken.get(at) {
            let n = usize::from(head.slots.max(1)).min(room.taken.len() - at);
            self.send(view, &room.taken[at..at + n]);
            at += n;
        }
        room.clear();
        self.wants(memory, old)
    }

    fn base(&self) -> u32 {
        u32::from(self.avail.word()) | u32::from(self.used.word()) << 16
    }

    fn waits(&self, memory: &Memory) -> bool {
        let view = memory.view(self.layout.desc);
        view.is_some_and(|view| PackedDriver::returned(view, self.used).is_some())
    }

    fn listen(&mut self, memory: &Memory, wanted: Notification) {
        if let Some(event) = memory.view(self.layout.avail) {
            event.store16(2, flags(wanted));
        }
    }
}
