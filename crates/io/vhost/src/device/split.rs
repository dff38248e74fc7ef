//! The split ring, device end.

use super::{
    Desc, End, INDIRECT, Layout, NEXT, Notification, Reading, Reservation, Reserved, Sink, WRITE,
    desc, one, passes, table,
};
use crate::batch::{Batch, Room, ask_for_room};
use crate::fault::RingFault;
use crate::memory::Memory;
use crate::sys::View;
use std::sync::atomic::{Ordering, fence};

/// Offsets in the available and used rings.
pub(crate) const FLAGS: usize = 0;
pub(crate) const INDEX: usize = 2;
pub(crate) const RING: usize = 4;
/// `VRING_AVAIL_F_NO_INTERRUPT` and `VRING_USED_F_NO_NOTIFY`: the writer of the flag requests no notifications.
pub(crate) const QUIET: u16 = 1;

/// Requests notifications from the other side of a split ring or suppresses them, in `ring`, which this side writes. `event`
/// is the offset of the event index, where both sides use one; `next` is the index of the next buffer.
pub(crate) fn request_notification(
    ring: View<'_>,
    event: Option<usize>,
    next: u16,
    wanted: Notification,
) {
    let (flags, behind) = match wanted {
        Notification::Off => (QUIET, 1),
        Notification::On => (0, 0),
    };
    ring.store16(FLAGS, flags);
    if let Some(event) = event {
        ring.store16(event, next.wrapping_sub(behind));
    }
}

/// How many buffers before its read the cache line of a descriptor is prefetched: a line has four descriptors, the other core
/// wrote it, and cores may be far apart.
const LINES_AHEAD: u16 = 32;
/// Entries of the used ring in one cache line.
const USED_ON_LINE: u16 = 8;

/// State of the device's end.
pub struct Split {
    layout: Layout,
    /// Buffers taken so far.
    avail: u16,
    /// Buffers returned so far.
    used: u16,
    /// The driver's index when last read.
    seen: u16,
}

struct Views<'m> {
    desc: View<'m>,
    avail: View<'m>,
    used: View<'m>,
}

impl Split {
    /// A ring that continues at `layout.base`. Buffers that were in flight when the ring was stopped are read again.
    pub fn new(layout: Layout, memory: &Memory) -> Self {
        let mut ring = Split {
            avail: layout.base as u16,
            used: 0,
            seen: 0,
            layout,
        };
        let used = ring
            .views(memory)
            .map_or(ring.avail, |v| v.used.load16(INDEX));
        (ring.avail, ring.used, ring.seen) = (used, used, used);
        ring.listen(memory, Notification::Off);
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
    fn slot(&self, index: u16) -> usize {
        usize::from(index & (self.layout.size - 1))
    }

    /// Number of available buffers.
    #[inline(always)]
    fn waiting(&mut self, views: &Views<'_>) -> Result<u16, RingFault> {
        self.seen = views.avail.load16(INDEX);
        let waiting = self.seen.wrapping_sub(self.avail);
        if waiting > self.layout.size {
            return Err(RingFault::IndexJump);
        }
        Ok(waiting)
    }

    /// The head of the buffer at `index`.
    #[inline(always)]
    fn head(&self, views: &Views<'_>, index: u16) -> Result<(u16, Desc), RingFault> {
        let head = views.avail.load16(RING + 2 * self.slot(index));
        if head >= self.layout.size {
            return Err(RingFault::IndexRange);
        }
        Ok((head, desc(views.desc, usize::from(head))))
    }

    /// Prefetch the head descriptor of the buffer at `index`.
    #[inline(always)]
    fn ask_for_head(&self, views: &Views<'_>, index: u16) {
        let head = views.avail.load16(RING + 2 * self.slot(index));
        views.desc.prefetch(16 * usize::from(head));
    }

    /// Prefetch, for writing, the used entries of the next `n` buffers.
    #[inline(always)]
    fn ask_for_used(&self, views: &Views<'_>, n: usize) {
        for line in 0..=n as u16 / USED_ON_LINE {
            let index = self.used.wrapping_add(line * USED_ON_LINE);
            views.used.prefetch_write(RING + 8 * self.slot(index));
        }
    }

    /// Pass all parts of a chain to `sink`.
    #[inline(always)]
    fn chain<S: Sink>(
        &self,
        memory: &Memory,
        views: &Views<'_>,
        first: Desc,
        sink: &mut S,
    ) -> Result<(), RingFault> {
        if first.flags & (NEXT | INDIRECT) == 0 {
            return one(sink, memory, first);
        }
        self.long_chain(memory, views, first, sink)
    }

    #[inline(never)]
    fn long_chain<S: Sink>(
        &self,
        memory: &Memory,
        views: &Views<'_>,
        first: Desc,
        sink: &mut S,
    ) -> Result<(), RingFault> {
        let (mut descs, mut size) = (views.desc, usize::from(self.layout.size));
        let (mut d, mut inside) = (first, false);
        let mut left = size;
        loop {
            if d.flags & INDIRECT != 0 {
                if inside {
                    return Err(RingFault::Indirect);
                }
                (descs, size) = table(&self.layout, memory, d)?;
                (inside, left) = (true, size);
                d = desc(descs, 0);
                continue;
            }
            one(sink, memory, d)?;
            if d.flags & NEXT == 0 {
                return Ok(());
            }
            left -= 1;
            if left == 0 {
                return Err(RingFault::ChainLoop);
            }
            if usize::from(d.last) >= size {
                return Err(RingFault::IndexRange);
            }
            d = desc(descs, usize::from(d.last));
        }
    }

    fn give(&mut self, views: &Views<'_>, id: u16, len: u32) {
        let at = RING + 8 * self.slot(self.used);
        views.used.store32(at, u32::from(id));
        views.used.store32(at + 4, len);
        self.used = self.used.wrapping_add(1);
    }

    /// Publish the returned buffers; true if the driver requests a notification.
    fn publish(&self, views: &Views<'_>, old: u16) -> bool {
        views.used.store16(INDEX, self.used);
        // The driver writes its event index and then reads the ring's index; this end writes the ring's index and then
        // reads the event index.
        fence(Ordering::SeqCst);
        if self.layout.event_idx {
            let event = views.avail.load16(RING + 2 * usize::from(self.layout.size));
            passes(event, self.used, old)
        } else {
            views.avail.load16(FLAGS) & QUIET == 0
        }
    }

    fn room(
        &mut self,
        memory: &Memory,
        views: &Views<'_>,
        room: &mut Room,
        len: usize,
    ) -> Reservation {
        loop {
            if self.avail == self.seen && self.waiting(views)? == 0 {
                return Ok(Reserved::Full);
            }
            let before = room.bytes();
            let (head, first) = self.head(views, self.avail)?;
            self.chain(memory, views, first, room)?;
            room.buffer(head, 1, before)?;
            self.avail = self.avail.wrapping_add(1);
            if room.bytes() >= len {
                return Ok(Reserved::Room);
            }
            if !self.layout.mergeable {
                return Ok(Reserved::TooLong);
            }
        }
    }
}

impl End for Split {
    fn look(&mut self, memory: &Memory, batch: &mut Batch, most: usize) -> Result<(), RingFault> {
        let Some(views) = self.views(memory) else {
            return Ok(());
        };
        let n = usize::from(self.waiting(&views)?).min(most);
        for i in 0..n {
            if !batch.has_room() {
                break;
            }
            if i + usize::from(LINES_AHEAD) < n {
                self.ask_for_head(&views, self.avail.wrapping_add(i as u16 + LINES_AHEAD));
            }
            let mark = batch.mark();
            let mut reading = Reading {
                batch,
                mark,
                len: 0,
            };
            let found = self
                .head(&views, self.avail.wrapping_add(i as u16))
                .and_then(|(id, first)| {
                    self.chain(memory, &views, first, &mut reading).map(|()| id)
                });
            let len = reading.len;
            match found {
                Ok(id) => batch.packet(memory, id, 1, len, mark),
                Err(fault) => {
                    batch.undo(mark);
                    return if i == 0 { Err(fault) } else { Ok(()) };
                }
            }
        }
        Ok(())
    }

    fn done(&mut self, memory: &Memory, batch: &Batch, n: usize) -> bool {
        let Some(views) = self.views(memory) else {
            return false;
        };
        self.ask_for_used(&views, n);
        let old = self.used;
        for entry in &batch.entries()[..n] {
            self.give(&views, entry.id, 0);
        }
        self.avail = self.avail.wrapping_add(n as u16);
        self.publish(&views, old)
    }

    #[inline(always)]
    fn ahead(&self, memory: &Memory, nth: u16, len: usize) {
        // Do not prefetch beyond the available buffers: the driver's core writes there.
        let given = self.seen.wrapping_sub(self.avail);
        let Some(views) = self.views(memory).filter(|_| nth < given) else {
            return;
        };
        if nth + LINES_AHEAD < given {
            self.ask_for_head(&views, self.avail.wrapping_add(nth + LINES_AHEAD));
        }
        if let Ok((_, d)) = self.head(&views, self.avail.wrapping_add(nth)) {
            ask_for_room(memory, d.addr, len);
        }
    }

    #[inline(always)]
    fn plain<'m>(&mut self, memory: &'m Memory, room: &mut Room, len: usize) -> Option<View<'m>> {
        let views = self.views(memory)?;
        if self.avail == self.seen {
            return None;
        }
        let (head, d) = self.head(&views, self.avail).ok()?;
        let is_plain = d.flags & (NEXT | INDIRECT | WRITE) == WRITE && d.len as usize >= len;
        if !is_plain {
            return None;
        }
        let place = memory
            .guest(d.addr, d.len)
            .ok()
            .filter(|p| p.len == d.len)?;
        let view = memory.view(place)?;
        room.take(head, len as u32);
        self.avail = self.avail.wrapping_add(1);
        Some(view)
    }

    fn reserve(&mut self, memory: &Memory, room: &mut Room, len: usize) -> Reservation {
        let Some(views) = self.views(memory) else {
            return Ok(Reserved::Full);
        };
        room.begin();
        let start = self.avail;
        let found = self.room(memory, &views, room, len);
        if found != Ok(Reserved::Room) {
            self.avail = start;
            room.cancel();
        }
        found
    }

    fn flush(&mut self, memory: &Memory, room: &mut Room) -> bool {
        let Some(views) = self.views(memory).filter(|_| !room.taken.is_empty()) else {
            return false;
        };
        self.ask_for_used(&views, room.taken.len());
        let old = self.used;
        for taken in &room.taken {
            self.give(&views, taken.id, taken.len);
        }
        room.clear();
        self.publish(&views, old)
    }

    #[inline(always)]
    fn buffer_count(&self, buffers: usize) -> u16 {
        buffers as u16
    }

    fn base(&self) -> u32 {
        u32::from(self.avail)
    }

    fn waits(&self, memory: &Memory) -> bool {
        let views = self.views(memory);
        views.is_some_and(|v| v.avail.load16(INDEX) != self.avail)
    }

    fn listen(&mut self, memory: &Memory, wanted: Notification) {
        if let Some(views) = self.views(memory) {
            let event = RING + 8 * usize::from(self.layout.size);
            let event = self.layout.event_idx.then_some(event);
            request_notification(views.used, event, self.avail, wanted);
        }
    }
}
