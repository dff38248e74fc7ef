//! The split ring, driver end.

use super::{NONE, ReceivingChain, RingDirection, SLOT, Slots, Spot};
use crate::batch::{Batch, Room};
use crate::device::{
    End, FLAGS, INDEX, Layout, NEXT, Notification, QUIET, RING, Reservation, Reserved, WRITE,
    passes, request_notification,
};
use crate::fault::RingFault;
use crate::memory::Memory;
use crate::sys::View;
use std::sync::atomic::{Ordering, fence};

/// State of the driver's end.
pub struct SplitDriver {
    layout: Layout,
    slots: Slots,
    avail: u16,
    used: u16,
    /// The entries of the available ring, and the descriptors without addresses, as they were last written: what does not change is not
    /// written again, so that its cache line stays with the back end.
    posted: Vec<u16>,
    described: Vec<u64>,
}

struct Views<'m> {
    desc: View<'m>,
    avail: View<'m>,
    used: View<'m>,
}

impl SplitDriver {
    /// A new ring; a receive ring lends all its buffers.
    pub fn new(layout: Layout, spot: &Spot, memory: &Memory, way: RingDirection) -> Self {
        let size = layout.size;
        let mut ring = SplitDriver {
            slots: Slots::new(spot.slots, size, way),
            layout,
            avail: 0,
            used: 0,
            posted: vec![NONE; usize::from(size)],
            described: vec![0; usize::from(size)],
        };
        ring.listen(memory, Notification::Off);
        if let (RingDirection::Receive, Some(views)) = (way, ring.views(memory)) {
            for id in 0..size {
                ring.describe(&views, (id, SLOT), WRITE, 0);
                ring.post(&views, id);
            }
            views.avail.store16(INDEX, ring.avail);
        }
        ring
    }

    #[inline(always)]
    fn views<'m>(&self, memory: &'m Memory) -> Option<Views<'m>> {
        Some(Views {
            desc: memory.view(self.layout.desc)?,
            avail: memory.view(self.layout.avail)?,
            used: memory.view(self.layout.used)?,
        })
    }

    #[inline(always)]
    fn place(&self, index: u16) -> usize {
        usize::from(index & (self.layout.size - 1))
    }

    #[inline(always)]
    fn post(&mut self, views: &Views<'_>, id: u16) {
        let place = self.place(self.avail);
        if std::mem::replace(&mut self.posted[place], id) != id {
            views.avail.store16(RING + 2 * place, id);
        }
        self.avail = self.avail.wrapping_add(1);
    }

    /// Write the descriptor of `len` bytes of a buffer.
    #[inline(always)]
    fn describe(&mut self, views: &Views<'_>, (id, len): (u16, u32), flags: u16, next: u16) {
        let rest = u64::from(len) | u64::from(flags) << 32 | u64::from(next) << 48;
        let slot = usize::from(id);
        if std::mem::replace(&mut self.described[slot], rest) != rest {
            views.desc.store64(16 * slot, self.slots.addr(id));
            views.desc.store64(16 * slot + 8, rest);
        }
    }

    /// Publish the posted buffers; true if the device requests a notification.
    fn publish(&self, views: &Views<'_>, old: u16) -> bool {
        views.avail.store16(INDEX, self.avail);
        fence(Ordering::SeqCst);
        if self.layout.event_idx {
            let event = views.used.load16(RING + 8 * usize::from(self.layout.size));
            passes(event, self.avail, old)
        } else {
            views.used.load16(FLAGS) & QUIET == 0
        }
    }

    /// Number of used buffers.
    #[inline(always)]
    fn waiting(&self, views: &Views<'_>) -> Result<u16, RingFault> {
        let waiting = views.used.load16(INDEX).wrapping_sub(self.used);
        // At most the posted buffers can be returned.
        if waiting > self.avail.wrapping_sub(self.used) {
            return Err(RingFault::IndexJump);
        }
        Ok(waiting)
    }

    #[inline(always)]
    fn returned(&self, views: &Views<'_>, nth: u16) -> (u32, u32) {
        let at = RING + 8 * self.place(self.used.wrapping_add(nth));
        (views.used.load32(at), views.used.load32(at + 4))
    }

    fn reclaim(&mut self, memory: &Memory) -> Result<(), RingFault> {
        let Some(views) = self.views(memory) else {
            return Ok(());
        };
        for _ in 0..self.waiting(&views)? {
            let (id, _) = self.returned(&views, 0);
            self.slots.reclaim(id)?;
            self.used = self.used.wrapping_add(1);
        }
        Ok(())
    }

    /// Read the packets of the next `n` used entries.
    fn arrived(
        &mut self,
        memory: &Memory,
        views: &Views<'_>,
        batch: &mut Batch,
        (n, most): (u16, usize),
    ) -> Result<(), RingFault> {
        let mut packet = ReceivingChain::begin(batch);
        for nth in 0..n {
            if packet.buffers == 0 && (batch.entries().len() >= most || !batch.has_room()) {
                break;
            }
            let (id, len) = self.returned(views, nth);
            let id = self.slots.see(id)?;
            if packet.add(memory, batch, self.slots.addr(id), len, &self.layout)? {
                batch.packet(memory, id, packet.buffers, packet.len, packet.mark);
                packet = ReceivingChain::begin(batch);
            }
        }
        batch.undo(packet.mark);
        Ok(())
    }
}

impl End for SplitDriver {
    super::transmission!();

    fn look(&mut self, memory: &Memory, batch: &mut Batch, most: usize) -> Result<(), RingFault> {
        let Some(views) = self.views(memory) else {
            return Ok(());
        };
        self.slots.unsee();
        self.slots.seen.clear();
        let n = self.waiting(&views)?;
        let found = self.arrived(memory, &views, batch, (n, most));
        match found {
            Err(fault) if batch.entries().is_empty() => Err(fault),
            _ => Ok(()),
        }
    }

    fn done(&mut self, memory: &Memory, batch: &Batch, n: usize) -> bool {
        let Some(views) = self.views(memory).filter(|_| n > 0) else {
            return false;
        };
        let old = self.avail;
        let buffers: usize = batch.entries()[..n]
            .iter()
            .map(|e| usize::from(e.slots))
            .sum();
        for nth in 0..buffers {
            let id = self.slots.seen[nth];
            self.post(&views, id);
        }
        self.used = self.used.wrapping_add(buffers as u16);
        self.publish(&views, old)
    }

    fn flush(&mut self, memory: &Memory, room: &mut Room) -> bool {
        let Some(views) = self.views(memory).filter(|_| !room.taken.is_empty()) else {
            return false;
        };
        let old = self.avail;
        let mut at = 0;
        while let Some(head) = room.taken.get(at).copied() {
            let packet =
                &room.taken[at..][..usize::from(head.slots.max(1)).min(room.taken.len() - at)];
            // A slot without bytes would be an empty descriptor, so the packet ends before it.
            for (nth, buffer) in packet.iter().enumerate() {
                let next = packet.get(nth + 1).map(|b| b.id);
                let flags = if next.is_some() { NEXT } else { 0 };
                let next = next.unwrap_or(0);
                self.describe(&views, (buffer.id, buffer.len), flags, next);
            }
            self.slots.lend(packet.iter().map(|b| b.id));
            at += packet.len();
            self.post(&views, head.id);
        }
        room.clear();
        self.publish(&views, old)
    }

    fn base(&self) -> u32 {
        u32::from(self.used)
    }

    fn waits(&self, memory: &Memory) -> bool {
        let views = self.views(memory);
        views.is_some_and(|v| v.used.load16(INDEX) != self.used)
    }

    fn listen(&mut self, memory: &Memory, wanted: Notification) {
        if let Some(views) = self.views(memory) {
            let event = RING + 2 * usize::from(self.layout.size);
            let event = self.layout.event_idx.then_some(event);
            request_notification(views.avail, event, self.used, wanted);
        }
    }
}
