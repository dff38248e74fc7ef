//! The device's ends of rings: what the back end does with rings that a guest's driver made.
//!
//! Contract: [`End::look`] reads each descriptor once and checks it; a fault is reported only when it comes first, so
//! that good packets before it still pass. Nothing is taken from the ring until [`End::done`] or [`End::flush`].

mod packed;
mod split;

pub use packed::Packed;
pub(crate) use packed::{AVAIL, RingPosition, USED, flags, wants};
pub use split::Split;
pub(crate) use split::{FLAGS, INDEX, QUIET, RING, request_notification};

use crate::batch::{Batch, Room};
use crate::fault::RingFault;
use crate::memory::{Memory, Place};
use crate::sys::View;

/// Descriptor flags.
pub(crate) const NEXT: u16 = 1;
pub(crate) const WRITE: u16 = 2;
const INDIRECT: u16 = 4;

/// Where a ring is and how it is meant to be used. Every place has been checked against the ring's size.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Descriptors.
    pub size: u16,
    /// The descriptor table; the ring itself when it is packed.
    pub desc: Place,
    /// The available ring; the driver's event structure when it is packed.
    pub avail: Place,
    /// The used ring; the device's event structure when it is packed.
    pub used: Place,
    /// Indirect descriptors were negotiated.
    pub indirect: bool,
    /// Event indices were negotiated.
    pub event_idx: bool,
    /// A packet may be spread over several buffers.
    pub mergeable: bool,
    /// Where to go on, as `SET_VRING_BASE` has it.
    pub base: u32,
}

/// Whether the other side is to tell us when it is done with buffers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Notification {
    /// We look by ourselves.
    Off,
    /// We sleep.
    On,
}

/// What a send of one packet came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reserved {
    /// There is room: fill it.
    Room,
    /// The peer has no free buffer.
    Full,
    /// The peer's buffers are too small and may not be merged.
    TooLong,
}

/// One end of a ring: ours. The device's ends are here, the driver's in [`crate::driver`].
pub trait End {
    /// Find up to `most` packets that wait to be received.
    fn look(&mut self, memory: &Memory, batch: &mut Batch, most: usize) -> Result<(), RingFault>;
    /// Give the first `n` packets of the batch back. True when the driver wants to be told.
    fn done(&mut self, memory: &Memory, batch: &Batch, n: usize) -> bool;
    /// Ask the cache for the `nth` buffer of those that [`End::reserve`] will find, and for what describes it. A hint: what
    /// is read here may be wrong, and is used for nothing else.
    #[inline(always)]
    fn ahead(&self, _memory: &Memory, _nth: u16) {}
    /// Take the next buffer for a packet of `len` bytes, header included, in the usual case: it is one descriptor, all of
    /// it lies together, and it is long enough. Otherwise nothing happens, and [`End::reserve`] knows more.
    #[inline(always)]
    fn plain<'m>(&mut self, _: &'m Memory, _room: &mut Room, _len: usize) -> Option<View<'m>> {
        None
    }
    /// Find room for a packet of `len` bytes, header included.
    fn reserve(
        &mut self,
        memory: &Memory,
        room: &mut Room,
        len: usize,
    ) -> Result<Reserved, RingFault>;
    /// Hand over all buffers that were filled. True when the driver wants to be told.
    fn flush(&mut self, memory: &Memory, room: &mut Room) -> bool;
    /// What the header of a packet in `buffers` buffers has as their number.
    fn buffer_count(&self, buffers: usize) -> u16;
    /// Where to go on later, as `GET_VRING_BASE` has it.
    fn base(&self) -> u32;
    /// Say whether the other side is to tell us of buffers: not while we poll.
    fn listen(&mut self, memory: &Memory, bell: Notification);
    /// Whether there is something to look at.
    fn waits(&self, memory: &Memory) -> bool;
}

/// Whether going from `old` to `new` passes the index that the other side asked to be told of.
pub(crate) fn passes(event: u16, new: u16, old: u16) -> bool {
    new.wrapping_sub(event).wrapping_sub(1) < new.wrapping_sub(old)
}

/// A descriptor as it was read.
#[derive(Clone, Copy)]
struct Desc {
    addr: u64,
    len: u32,
    flags: u16,
    last: u16,
}

/// Read descriptor `at` of a table: address, length, flags, and the last word (`next`, or `id` and `flags` swapped).
#[inline(always)]
fn desc(table: View<'_>, at: usize) -> Desc {
    let (addr, rest) = (table.load64(16 * at), table.load64(16 * at + 8));
    Desc {
        addr,
        len: rest as u32,
        flags: (rest >> 32) as u16,
        last: (rest >> 48) as u16,
    }
}

/// Check an indirect descriptor; its table and number of entries.
#[inline(always)]
fn table<'m>(layout: &Layout, memory: &'m Memory, d: Desc) -> Result<(View<'m>, usize), RingFault> {
    if !layout.indirect {
        return Err(RingFault::NotNegotiated);
    }
    if d.flags & NEXT != 0 || d.len == 0 || !d.len.is_multiple_of(16) {
        return Err(RingFault::Indirect);
    }
    let place = memory
        .guest(d.addr, d.len)
        .map_err(|_| RingFault::Indirect)?;
    let view = memory
        .view(place)
        .filter(|v| v.len() == d.len as usize && v.is_aligned(8));
    Ok((view.ok_or(RingFault::Indirect)?, d.len as usize / 16))
}

/// Something that takes the buffers of a chain one after the other.
trait Sink {
    /// Buffers of this direction are wanted: [`WRITE`] or 0.
    const WANTED: u16;
    fn take(&mut self, memory: &Memory, addr: u64, len: u32) -> Result<(), RingFault>;
}

/// A packet being read into a batch.
struct Reading<'b> {
    batch: &'b mut Batch,
    mark: usize,
    len: u32,
}

impl Sink for Reading<'_> {
    const WANTED: u16 = 0;
    #[inline(always)]
    fn take(&mut self, memory: &Memory, addr: u64, len: u32) -> Result<(), RingFault> {
        self.len = self.len.saturating_add(len);
        self.batch.part(memory, self.mark, addr, len)
    }
}

impl Sink for Room {
    const WANTED: u16 = WRITE;
    #[inline(always)]
    fn take(&mut self, memory: &Memory, addr: u64, len: u32) -> Result<(), RingFault> {
        self.part(memory, addr, len)
    }
}

#[inline(always)]
fn one<S: Sink>(sink: &mut S, memory: &Memory, d: Desc) -> Result<(), RingFault> {
    if d.flags & WRITE != S::WANTED {
        return Err(RingFault::Direction);
    }
    sink.take(memory, d.addr, d.len)
}

#[cfg(test)]
mod tests {
    use super::passes;

    #[test]
    fn events_are_passed_once() {
        assert!(passes(5, 6, 5) && !passes(5, 5, 4) && !passes(6, 6, 5));
        assert!(passes(0xffff, 2, 0xfffe) && !passes(3, 2, 0xfffe));
    }
}
