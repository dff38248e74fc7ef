//! Fragmentation of packets (RFC 791, 3.2; RFC 8200, 4.5).

use crate::Ip;
use crate::icmp::be16;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use volley_fib::{V4, V6};
use volley_graph::{MAX_WORKERS, PacketView};
use volley_wire::IpProto;
use volley_wire::checksum::Sum;

/// The flag "more fragments".
const MORE: u16 = 0x2000;
/// Mask of the fragment offset, in units of 8 bytes.
const OFFSET: u16 = 0x1fff;
/// Largest length of a fragment's headers.
const HEADER: usize = 60;
/// Length and protocol number of the IPv6 fragment header.
const FRAGMENT: usize = 8;
const FRAGMENT_HEADER: u8 = IpProto::FRAGMENT.0;

/// A packet that is being fragmented.
pub(crate) struct Cut {
    header: [u8; HEADER],
    /// `skip`: bytes of the packet's header. `head`: bytes of a fragment's headers. `payload`: bytes behind the packet's
    /// header. `room`: largest payload of a fragment, which need not be a multiple of 8.
    pub skip: usize,
    pub head: usize,
    pub payload: usize,
    room: usize,
    /// IPv4: flags and offset of the packet, which may itself be a fragment.
    flags: u16,
}

/// Identifications for datagrams that this router fragments: not repeated soon between two hosts, and not predictable by other
/// hosts (RFC 7739).
pub(crate) struct Ids {
    hasher: RandomState,
    next: u32,
}

impl Ids {
    /// The identifications of one worker.
    pub fn new(hasher: RandomState, worker: usize) -> Self {
        let next = worker as u32;
        Ids { hasher, next }
    }

    /// The next identification for a packet between `ends`.
    fn take(&mut self, ends: &[u8]) -> u32 {
        self.next = self.next.wrapping_add(MAX_WORKERS as u32);
        self.next.wrapping_add(self.hasher.hash_one(ends) as u32)
    }
}

/// Fragmentation in one IP version.
pub trait Cuts: Ip {
    /// Prepares to fragment a packet for a link with this MTU; none if the MTU is too small.
    #[doc(hidden)]
    #[expect(private_interfaces, reason = "the trait is sealed by its types")]
    fn cut(packet: &PacketView<'_>, mtu: usize, ids: &mut Ids) -> Option<Cut>;
    /// Corrects the headers of the fragment at offset `from` with `part` bytes.
    #[doc(hidden)]
    #[expect(private_interfaces, reason = "the trait is sealed by its types")]
    fn dress(cut: &Cut, out: &mut [u8], from: usize, part: usize);
}

impl Cut {
    /// Copies the fragment's headers from byte `from` on, as many bytes as fit; returns how many.
    pub fn write(&self, from: usize, out: &mut [u8]) -> usize {
        let from = from.min(self.head);
        let n = (self.head - from).min(out.len());
        out[..n].copy_from_slice(&self.header[from..from + n]);
        n
    }

    /// Payload bytes of the fragment at `from`: all of the rest if it fits, otherwise as many multiples of 8 as fit.
    pub fn part(&self, from: usize) -> usize {
        let rest = self.payload - from;
        if rest <= self.room {
            rest
        } else {
            self.room & !7
        }
    }

    fn new(packet: &PacketView<'_>, mtu: usize, skip: usize, more: usize) -> Option<Cut> {
        let head = skip + more;
        let mut header = [0; HEADER];
        let from = packet.bytes().get(..skip)?;
        header.get_mut(..skip)?.copy_from_slice(from);
        let room = mtu.checked_sub(head)?;
        (room >= 8).then_some(Cut {
            header,
            skip,
            head,
            payload: packet.len().checked_sub(skip)?,
            room,
            flags: 0,
        })
    }
}

/// Replaces options that are not copied into fragments (RFC 791, 3.1: the top bit of the type) by no-operation, so that all
/// fragments have headers of the same length.
fn blank(options: &mut [u8]) {
    const NOTHING: u8 = 1;
    let mut at = 0;
    while let Some(&kind) = options.get(at) {
        match (kind, options.get(at + 1).map(|len| usize::from(*len))) {
            (0, _) => return,
            (NOTHING, _) => at += 1,
            (_, Some(len)) if len >= 2 && at + len <= options.len() => {
                if kind & 0x80 == 0 {
                    options[at..at + len].fill(NOTHING);
                }
                at += len;
            }
            _ => return,
        }
    }
}

#[expect(private_interfaces, reason = "the trait is sealed by its types")]
impl Cuts for V4 {
    fn cut(packet: &PacketView<'_>, mtu: usize, _: &mut Ids) -> Option<Cut> {
        let bytes = packet.bytes();
        let head = bytes.first().map_or(0, |b| usize::from(b & 15) * 4);
        let cut = Cut::new(packet, mtu, head, 0)?;
        let flags = be16(bytes, 6);
        Some(Cut { flags, ..cut })
    }

    fn dress(cut: &Cut, out: &mut [u8], from: usize, part: usize) {
        let Some(header) = out.get_mut(..cut.head) else {
            return;
        };
        if from > 0 {
            blank(&mut header[20..]);
        }
        let offset = (cut.flags & OFFSET) + (from / 8) as u16;
        let last = from + part == cut.payload;
        let more = if last { cut.flags & MORE } else { MORE };
        let flags = cut.flags & !(MORE | OFFSET) | more | offset & OFFSET;
        header[2..4].copy_from_slice(&((cut.head + part) as u16).to_be_bytes());
        header[6..8].copy_from_slice(&flags.to_be_bytes());
        header[10..12].fill(0);
        let sum = Sum::new().bytes(header).checksum();
        header[10..12].copy_from_slice(&sum.to_be_bytes());
    }
}

#[expect(private_interfaces, reason = "the trait is sealed by its types")]
impl Cuts for V6 {
    /// Packets of the router have no per-fragment header; other packets that have one are not fragmented here.
    fn cut(packet: &PacketView<'_>, mtu: usize, ids: &mut Ids) -> Option<Cut> {
        const PER_FRAGMENT: [u8; 2] = [0, 43];
        let mut cut = Cut::new(packet, mtu, 40, FRAGMENT)?;
        let first = std::mem::replace(&mut cut.header[6], FRAGMENT_HEADER);
        if PER_FRAGMENT.contains(&first) {
            return None;
        }
        let id = ids.take(&cut.header[8..40]);
        cut.header[40..44].copy_from_slice(&[first, 0, 0, 0]);
        cut.header[44..48].copy_from_slice(&id.to_be_bytes());
        Some(cut)
    }

    fn dress(cut: &Cut, out: &mut [u8], from: usize, part: usize) {
        let Some(header) = out.get_mut(..cut.head) else {
            return;
        };
        let more = u16::from(from + part < cut.payload);
        header[4..6].copy_from_slice(&((FRAGMENT + part) as u16).to_be_bytes());
        header[42..44].copy_from_slice(&(from as u16 & !7 | more).to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_blanked_unless_they_are_copied() {
        // Record route, no operation, an option with the copied bit, end of the list.
        let mut options = [7, 4, 4, 9, 1, 0x94, 4, 0, 0, 0, 7, 3];
        blank(&mut options);
        assert_eq!(options, [1, 1, 1, 1, 1, 0x94, 4, 0, 0, 0, 7, 3]);
        for bad in [[7, 9], [7, 1], [7, 0]] {
            let mut options = bad;
            blank(&mut options);
            assert_eq!(options, bad);
        }
    }

    #[test]
    fn the_last_fragment_need_not_be_whole_eights() {
        let cut = |payload| Cut {
            header: [0; HEADER],
            skip: 20,
            head: 20,
            payload,
            room: 1260,
            flags: 0,
        };
        // As in RFC 791, 3.2: the rest goes through the length test again.
        assert_eq!([0, 1256].map(|from| cut(2513).part(from)), [1256, 1257]);
        assert_eq!([0, 1256].map(|from| cut(2516).part(from)), [1256, 1260]);
        assert_eq!(
            [0, 1256, 2512].map(|from| cut(2517).part(from)),
            [1256, 1256, 5]
        );
    }

    #[test]
    fn numbers_do_not_come_twice_whoever_gives_them() {
        let hasher = RandomState::new();
        let mut all = std::collections::BTreeSet::new();
        for worker in [0, 1, 63] {
            let mut ids = Ids::new(hasher.clone(), worker);
            (0..1000).for_each(|_| assert!(all.insert(ids.take(b"from to"))));
        }
    }
}
