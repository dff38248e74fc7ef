//! Local delivery: the receiver of a packet for the router, or the reason for its drop. Section 12 of
//! `docs/forwarding-rules.md`.

use crate::extensions::{Stop, upper};
use crate::icmp::be16;
use crate::node::ip_local::Count;
use std::net::{Ipv4Addr, Ipv6Addr};
use volley_fib::{Family, V4, V6};
use volley_graph::{NodeId, PacketView};
use volley_iface::IfTable;
use volley_wire::IpProto;
use volley_wire::checksum::Sum;

const ICMP: u8 = IpProto::ICMP.0;
const TCP: u8 = IpProto::TCP.0;
const UDP: u8 = IpProto::UDP.0;
const ICMP6: u8 = IpProto::ICMP6.0;

/// Local delivery of a family.
pub trait Deliver: Family {
    /// Reason to refuse a packet; none for a valid ICMP message.
    fn refusal(packet: &PacketView<'_>) -> Option<Count>;

    /// Offset of the UDP header of a packet that only [`Count::PortUnreachable`] refuses.
    fn udp_at(bytes: &[u8]) -> usize;

    /// The protocol of a packet that only [`Count::ProtocolUnreachable`] refuses, and its offset.
    fn protocol(bytes: &[u8]) -> (u8, usize);
}

/// The node of the feature that listens on the UDP port of such a packet, and the offset of the UDP header.
pub fn listener<F: Deliver>(table: &IfTable, packet: &PacketView<'_>) -> Option<(NodeId, usize)> {
    let at = F::udp_at(packet.bytes());
    let node = table.udp_listener(F::AF, be16(packet.bytes(), at + 2))?;
    Some((node, at))
}

/// The node of the feature that listens to the protocol of such a packet, and the offset of what is behind the IP headers.
pub fn protocol_listener<F: Deliver>(
    table: &IfTable,
    packet: &PacketView<'_>,
) -> Option<(NodeId, usize)> {
    let (protocol, at) = F::protocol(packet.bytes());
    let node = table.ip_listener(F::AF, protocol)?;
    Some((node, at))
}

/// Checksum over `len` bytes of a packet from byte `at` on, across all segments.
fn sum(packet: &PacketView<'_>, at: usize, len: usize, pseudo: Sum) -> Sum {
    let (mut skip, mut left, mut sum) = (at, len, pseudo);
    packet.segments(0, |segment| {
        let from = skip.min(segment.len());
        let part = left.min(segment.len() - from);
        sum = sum.bytes(&segment[from..from + part]);
        (skip, left) = (skip - from, left - part);
    });
    sum
}

/// Reason to refuse a UDP datagram. `pseudo` gets its length added; `zero` tells whether the checksum may be absent.
fn udp(
    packet: &PacketView<'_>,
    (at, len): (usize, usize),
    pseudo: impl Fn(usize) -> Sum,
    zero: bool,
) -> Count {
    let bytes = packet.bytes();
    let own = usize::from(be16(bytes, at + 4));
    if len < 8 || bytes.len() < at + 8 || own < 8 || own > len {
        return Count::BadUdpLength;
    }
    // The checksum of a packet from a local program may still be partial.
    let is_right = match be16(bytes, at + 6) {
        _ if packet.offload().checksum.is_some() => true,
        0 => zero,
        _ => sum(packet, at, own, pseudo(own)).is_valid(),
    };
    if is_right {
        Count::PortUnreachable
    } else {
        Count::BadUdpChecksum
    }
}

fn icmp(packet: &PacketView<'_>, (at, len): (usize, usize), pseudo: Sum) -> Option<Count> {
    if len < 8 || packet.bytes().len() < at + 8 {
        return Some(Count::IcmpTooShort);
    }
    let is_right = sum(packet, at, len, pseudo).is_valid();
    (!is_right).then_some(Count::BadIcmpChecksum)
}

impl Deliver for V4 {
    fn udp_at(bytes: &[u8]) -> usize {
        bytes.first().map_or(0, |b| usize::from(b & 15) * 4)
    }

    fn protocol(bytes: &[u8]) -> (u8, usize) {
        (bytes.get(9).copied().unwrap_or(0), V4::udp_at(bytes))
    }

    fn refusal(packet: &PacketView<'_>) -> Option<Count> {
        let bytes = packet.bytes();
        let at = bytes.first().map_or(0, |b| usize::from(b & 15) * 4);
        let total = usize::from(be16(bytes, 2));
        if at < 20 || bytes.len() < at || total < at || total > packet.len() {
            return Some(Count::Malformed);
        }
        if be16(bytes, 6) & 0x3fff != 0 {
            return Some(Count::Fragment);
        }
        let place = (at, total - at);
        let word =
            |at: usize| Ipv4Addr::new(bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]);
        let pseudo = |len| Sum::pseudo4(word(12), word(16), IpProto(UDP), len as u16);
        match bytes[9] {
            ICMP => icmp(packet, place, Sum::new()),
            UDP => Some(udp(packet, place, pseudo, true)),
            TCP => Some(Count::NoTcpListener),
            _ => Some(Count::ProtocolUnreachable),
        }
    }
}

impl Deliver for V6 {
    fn udp_at(bytes: &[u8]) -> usize {
        V6::protocol(bytes).1
    }

    fn protocol(bytes: &[u8]) -> (u8, usize) {
        upper(bytes).map_or((0, 0), |found| (found.proto, found.at))
    }

    fn refusal(packet: &PacketView<'_>) -> Option<Count> {
        let bytes = packet.bytes();
        let total = 40 + usize::from(be16(bytes, 4));
        if bytes.len() < 40 || total > packet.len() {
            return Some(Count::Malformed);
        }
        let found = match upper(&bytes[..bytes.len().min(total)]) {
            Ok(found) => found,
            Err(fault) => {
                return Some(match fault.stop {
                    Stop::Malformed => Count::Malformed,
                    Stop::UnknownOption => Count::UnknownOption,
                    Stop::SourceRoute => Count::SourceRoute,
                    Stop::Fragment => Count::Fragment,
                    Stop::Nothing => Count::NoPayload,
                });
            }
        };
        let place = (found.at, total - found.at);
        let address = |at: usize| {
            let mut octets = [0; 16];
            octets.copy_from_slice(&bytes[at..at + 16]);
            Ipv6Addr::from(octets)
        };
        let pseudo =
            |len: usize| Sum::pseudo6(address(8), address(24), IpProto(found.proto), len as u32);
        match found.proto {
            ICMP6 => icmp(packet, place, pseudo(place.1)),
            // RFC 8200, 8.1: the UDP checksum is mandatory over IPv6.
            UDP => Some(udp(packet, place, pseudo, false)),
            TCP => Some(Count::NoTcpListener),
            _ => Some(Count::ProtocolUnreachable),
        }
    }
}
