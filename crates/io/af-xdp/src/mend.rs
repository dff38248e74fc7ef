//! Completes partial checksums of a kernel at the other end of a veth.
//!
//! A veth carries partial layer-4 checksums, and XDP does not report them. They are recognisable: the checksum field has
//! the sum of the pseudo header. Completing a full checksum that happens to have this value gives the same value again.

use std::net::{Ipv4Addr, Ipv6Addr};
use volley_graph::Packet;
use volley_wire::checksum::Sum;
use volley_wire::{IpProto, ethertype};

const TCP: u8 = IpProto::TCP.0;
const UDP: u8 = IpProto::UDP.0;

/// Offset of a layer-4 segment, its length, its protocol, and the sum of its pseudo header.
struct Segment {
    start: usize,
    len: usize,
    proto: u8,
    pseudo: Sum,
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    array(bytes, at).map(u16::from_be_bytes)
}

fn segment4(frame: &[u8]) -> Option<Segment> {
    let header = usize::from(frame.get(14)? & 15) * 4;
    let (total, proto) = (usize::from(word(frame, 16)?), *frame.get(23)?);
    // A fragment's checksum covers more than the fragment.
    if word(frame, 20)? & 0x3fff != 0 {
        return None;
    }
    let len = total.checked_sub(header)?;
    let (src, dst) = (array::<4>(frame, 26)?, array::<4>(frame, 30)?);
    let (src, dst) = (Ipv4Addr::from(src), Ipv4Addr::from(dst));
    Some(Segment {
        start: 14 + header,
        len,
        proto,
        pseudo: Sum::pseudo4(src, dst, IpProto(proto), len as u16),
    })
}

fn segment6(frame: &[u8]) -> Option<Segment> {
    let (len, proto) = (word(frame, 18)?, *frame.get(20)?);
    let (src, dst) = (array::<16>(frame, 22)?, array::<16>(frame, 38)?);
    let (src, dst) = (Ipv6Addr::from(src), Ipv6Addr::from(dst));
    Some(Segment {
        start: 14 + 40,
        len: usize::from(len),
        proto,
        pseudo: Sum::pseudo6(src, dst, IpProto(proto), u32::from(len)),
    })
}

/// Complete a packet's checksum if it is partial.
pub fn mend(packet: &mut Packet<'_>) {
    let _ = finish(packet);
}

fn finish(packet: &mut Packet<'_>) -> Option<()> {
    let first = packet.bytes();
    let segment = match word(first, 12)? {
        ethertype::IP4 => segment4(first)?,
        ethertype::IP6 => segment6(first)?,
        _ => return None,
    };
    let at = segment.start
        + match segment.proto {
            TCP => 16,
            UDP => 6,
            _ => return None,
        };
    let unfinished = word(first, at)? == segment.pseudo.folded();
    if !unfinished || segment.start + segment.len > packet.len() {
        return None;
    }
    let (mut skip, mut left) = (segment.start, segment.len);
    // The packet has the pseudo header's sum in the checksum field, so it is included.
    let mut sum = Sum::default();
    for part in packet.view().slices() {
        let part = part.get(skip.min(part.len())..)?;
        let n = part.len().min(left);
        sum = sum.bytes(&part[..n]);
        (skip, left) = (0, left - n);
    }
    let sum = match segment.proto {
        UDP => sum.checksum_udp(),
        _ => sum.checksum(),
    };
    let to = packet.bytes_mut().get_mut(at..at + 2)?;
    to.copy_from_slice(&sum.to_be_bytes());
    Some(())
}
