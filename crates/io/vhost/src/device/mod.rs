//! The device end of rings: how the back end processes rings that a guest's driver made.
//!
//! Contract: [`End::look`] reads each descriptor once and checks it. It reports a fault only if the faulty descriptor is
//! first, so valid packets before it still pass. Nothing is removed from the ring until [`End::done`] or [`End::flush`].

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

/// Location and options of a ring. Every place has been checked against the ring's size.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Number of descriptors.
    pub size: u16,
    /// The descriptor table (split) or the ring itself (packed).
    pub desc: Place,
    /// The available ring (split) or the driver's event structure (packed).
    pub avail: Place,
    /// The used ring (split) or the device's event structure (packed).
    pub used: Place,
    /// Indirect descriptors were negotiated.
    pub indirect: bool,
    /// Event indices were negotiated.
    pub event_idx: bool,
    /// A packet may be spread over several buffers.
    pub mergeable: bool,
    /// Start position in the encoding of `SET_VRING_BASE`.
    pub base: u32,
}

/// Whether the other side notifies this end when buffers are ready.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Notification {
    /// Suppress notifications: this end polls.
    Off,
    /// Send notifications: this end is asleep.
    On,
}

/// Result of reserving buffers for one packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reserved {
    /// Buffers are reserved.
    Room,
    /// The peer has no free buffer.
    Full,
    /// The peer's buffers are too small and may not be merged.
    TooLong,
}

/// A reservation, or why the ring is unusable.
pub type Reservation = Result<Reserved, RingFault>;

/// The local end of a ring. The device ends are in this module, the driver ends in [`crate::driver`].
pub trait End {
    /// Find up to `most` received packets.
    fn look(&mut self, memory: &Memory, batch: &mut Batch, most: usize) -> Result<(), RingFault>;
    /// Return the first `n` packets of the batch to the peer. True if the driver requests a notification.
    fn done(&mut self, memory: &Memory, batch: &Batch, n: usize) -> bool;
    /// Prepare for transmission of up to `packets` packets: a driver end reclaims transmitted buffers if it has too few.
    #[inline(always)]
    fn prepare(&mut self, _memory: &Memory, _packets: usize) -> Result<(), RingFault> {
        Ok(())
    }
    /// Prefetch the `nth` buffer of those that [`End::reserve`] will find, for a packet of `len` bytes, header included, and what
    /// describes it. A hint: what is read here may be wrong, and is used for nothing else.
    #[inline(always)]
    fn ahead(&self, _memory: &Memory, _nth: u16, _len: usize) {}
    /// Take the next buffer for a packet of `len` bytes, header included, in the usual case: it is one descriptor, all of
    /// it lies together, and it is long enough. Otherwise nothing happens, and [`End::reserve`] knows more.
    #[inline(always)]
    fn plain<'m>(&mut self, _: &'m Memory, _room: &mut Room, _len: usize) -> Option<View<'m>> {
        None
    }
    /// Find room for a packet of `len` bytes, header included.
    fn reserve(&mut self, memory: &Memory, room: &mut Room, len: usize) -> Reservation;
    /// Publish all filled buffers. True if the driver requests a notification.
    fn flush(&mut self, memory: &Memory, room: &mut Room) -> bool;
    /// The value of the header's buffer count for a packet in `buffers` buffers.
    fn buffer_count(&self, buffers: usize) -> u16;
    /// The position to resume from, as `GET_VRING_BASE` encodes it.
    fn base(&self) -> u32;
    /// Enable or suppresses notifications from the other side; they are suppressed while this end polls.
    fn listen(&mut self, memory: &Memory, wanted: Notification);
    /// Whether buffers are ready.
    fn waits(&self, memory: &Memory) -> bool;
}

/// Whether advancing from `old` to `new` passes the event index of the other side.
pub(crate) fn passes(event: u16, new: u16, old: u16) -> bool {
    new.wrapping_sub(event).wrapping_sub(1) < new.wrapping_sub(old)
}

/// A descriptor as read.
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

/// Check an indirect descriptor; returns its table and number of entries.
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

/// Receive the buffers of a chain in order.
trait Sink {
    /// Required direction of the buffers: [`WRITE`] or 0.
    const WANTED: u16;
    fn take(&mut self, memory: &Memory, addr: u64, len: u32) -> Result<(), RingFault>;
}

/// A packet that is read into a batch.
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
