//! Headers in the bytes of a packet, as offsets and fields.

use std::net::Ipv4Addr;
use volley_graph::{Packet, PacketView};
use volley_wire::IpProto;
use volley_wire::checksum::{Sum, update, update32};

/// Protocol number of ICMP.
pub(crate) const ICMP: u8 = IpProto::ICMP.0;
/// Protocol number of TCP.
pub(crate) const TCP: u8 = IpProto::TCP.0;
/// Protocol number of UDP.
pub(crate) const UDP: u8 = IpProto::UDP.0;

/// A 16-bit field; 0 behind the end.
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    match bytes.get(at..at + 2) {
        Some(&[high, low]) => u16::from_be_bytes([high, low]),
        _ => 0,
    }
}

/// A 32-bit field; 0 behind the end.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from(u16_at(bytes, at)) << 16 | u32::from(u16_at(bytes, at + 2))
}

/// Write bytes; nothing behind the end.
pub(crate) fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    if let Some(place) = bytes.get_mut(at..at + value.len()) {
        place.copy_from_slice(value);
    }
}

/// The IPv4 header of a packet and what follows.
#[derive(Clone, Copy)]
pub(crate) struct Ip {
    /// Offset of the header from the position.
    pub(crate) at: usize,
    /// Length of the header.
    pub(crate) header: usize,
    /// Length of header and payload, within the packet.
    pub(crate) total: usize,
}

impl Ip {
    /// The header at the mark of the packet, whose lengths are right.
    pub(crate) fn of(packet: &PacketView<'_>) -> Option<Ip> {
        let at = crate::columns::net(packet)?;
        Ip::at(packet, at)
    }

    /// The header at an offset from the position.
    pub(crate) fn at(packet: &PacketView<'_>, at: usize) -> Option<Ip> {
        let bytes = packet.bytes().get(at..)?;
        let first = *bytes.first()?;
        let header = usize::from(first & 15) * 4;
        let total = usize::from(u16_at(bytes, 2));
        let fits = first >> 4 == 4
            && header >= 20
            && header <= bytes.len()
            && total >= header
            && at + total <= packet.len();
        fits.then_some(Ip { at, header, total })
    }

    /// The bytes of the header.
    pub(crate) fn bytes<'a>(&self, packet: &'a [u8]) -> &'a [u8] {
        packet
            .get(self.at..self.at + self.header)
            .unwrap_or_default()
    }
}

/// The protocol in an IPv4 header.
pub(crate) fn protocol(header: &[u8]) -> u8 {
    header.get(9).copied().unwrap_or(0)
}

/// The source address in an IPv4 header.
pub(crate) fn src(header: &[u8]) -> u32 {
    u32_at(header, 12)
}

/// The destination address in an IPv4 header.
pub(crate) fn dst(header: &[u8]) -> u32 {
    u32_at(header, 16)
}

/// Whether the payload begins with a transport header: the packet is no fragment but the first.
pub(crate) fn is_first(header: &[u8]) -> bool {
    u16_at(header, 6) & 0x1fff == 0
}

/// Write the checksum of an IPv4 header of `len` bytes.
pub(crate) fn fill_checksum(bytes: &mut [u8], len: usize) {
    put(bytes, 10, &[0, 0]);
    let sum = Sum::new()
        .bytes(bytes.get(..len).unwrap_or_default())
        .checksum();
    put(bytes, 10, &sum.to_be_bytes());
}

/// Change 16 bits of an IPv4 header and its checksum.
pub(crate) fn change16(bytes: &mut [u8], ip: usize, at: usize, new: u16) {
    let old = u16_at(bytes, ip + at);
    let sum = update(u16_at(bytes, ip + 10), old, new);
    put(bytes, ip + at, &new.to_be_bytes());
    put(bytes, ip + 10, &sum.to_be_bytes());
}

/// Change 32 bits of an IPv4 header and its checksum; returns the old value.
pub(crate) fn change32(bytes: &mut [u8], ip: usize, at: usize, new: u32) -> u32 {
    let old = u32_at(bytes, ip + at);
    let sum = update32(u16_at(bytes, ip + 10), old, new);
    put(bytes, ip + at, &new.to_be_bytes());
    put(bytes, ip + 10, &sum.to_be_bytes());
    old
}

/// The sum of `len` bytes of a packet from an offset, over all its segments.
pub(crate) fn sum(packet: &PacketView<'_>, mut skip: usize, mut len: usize) -> Sum {
    let mut sum = Sum::new();
    for slice in packet.slices() {
        let slice = match slice.len() <= skip {
            true => {
                skip -= slice.len();
                continue;
            }
            false => &slice[std::mem::take(&mut skip)..],
        };
        let part = &slice[..slice.len().min(len)];
        len -= part.len();
        sum = sum.bytes(part);
    }
    sum
}

/// The sum of pseudo-header and payload of the IPv4 packet `ip`.
pub(crate) fn transport_sum(packet: &PacketView<'_>, ip: &Ip) -> u16 {
    let header = ip.bytes(packet.bytes());
    let len = ip.total - ip.header;
    let pseudo = Sum::pseudo4(
        Ipv4Addr::from_bits(src(header)),
        Ipv4Addr::from_bits(dst(header)),
        IpProto(protocol(header)),
        len as u16,
    );
    let payload = sum(packet, ip.at + ip.header, len).folded();
    pseudo.word(payload).folded()
}

/// Move the position of a packet forward. Returns false, without a change, if the packet is shorter.
pub(crate) fn strip(packet: &mut Packet<'_>, bytes: usize) -> bool {
    let fits = packet.bytes().len() >= bytes;
    if fits {
        packet.advance(bytes);
    }
    fits
}
