//! Packets that the relay originates: headers, and the table for the lookup of a server.

use crate::relays::Relay;
use std::net::{Ipv4Addr, Ipv6Addr};
use volley_fib::Family;
use volley_fib::columns::UPPER_OFFSET;
use volley_fib::dataplane::{DpoKind, View};
use volley_graph::{Col, Isa, NodeId, Packet, PacketView, Replicator};
use volley_iface::MAX_INTERFACE_INDEXES;
use volley_wire::checksum::Sum;
use volley_wire::ip4::Ip4Header;
use volley_wire::ip6::Ip6Header;
use volley_wire::udp::UdpHeader;
use volley_wire::{IntoBytes, IpProto};

/// TTL or hop limit of a packet that is sent straight to an interface.
pub const ON_LINK: u8 = 64;
/// TTL or hop limit of a packet that is sent to a lookup: it is decremented afterwards.
pub const ROUTED: u8 = ON_LINK + 1;

/// Bytes of a UDP header.
const UDP: usize = 8;

/// Offset and length of the message of a datagram. The UDP header is valid; its offset is in [`UPPER_OFFSET`].
pub fn payload(packet: &PacketView<'_>) -> Option<(usize, usize)> {
    let at = packet.get(UPPER_OFFSET.col)? as usize;
    let length = packet.bytes().get(at + 4..at + 6)?;
    let length = usize::from(u16::from_be_bytes([length[0], length[1]]));
    Some((at + UDP, length.checked_sub(UDP)?))
}

/// IPv4 and UDP header of a message.
pub fn header4(
    (from, from_port): (Ipv4Addr, u16),
    (to, to_port): (Ipv4Addr, u16),
    hops: u8,
    message: &[u8],
) -> [u8; 28] {
    let mut udp = UdpHeader::new(from_port, to_port, message.len());
    let pseudo = Sum::pseudo4(from, to, IpProto::UDP, udp.len.get());
    udp.fill_checksum(pseudo, message);
    let length = UDP + message.len();
    let ip = Ip4Header::new(from, to, IpProto::UDP, hops, length);
    let mut out = [0; 28];
    out[..20].copy_from_slice(ip.as_bytes());
    out[20..].copy_from_slice(udp.as_bytes());
    out
}

/// IPv6 and UDP header of a message.
pub fn header6(
    (from, from_port): (Ipv6Addr, u16),
    (to, to_port): (Ipv6Addr, u16),
    hops: u8,
    message: &[u8],
) -> [u8; 48] {
    let mut udp = UdpHeader::new(from_port, to_port, message.len());
    let length = UDP + message.len();
    let pseudo = Sum::pseudo6(from, to, IpProto::UDP, length as u32);
    udp.fill_checksum(pseudo, message);
    let ip = Ip6Header::new(from, to, IpProto::UDP, hops, length);
    let mut out = [0; 48];
    out[..40].copy_from_slice(ip.as_bytes());
    out[40..].copy_from_slice(udp.as_bytes());
    out
}

/// Builds a packet of these parts for a node, with the columns of `template`; false if no buffer is free.
pub fn build<I: Isa>(
    made: &mut Replicator<'_, I>,
    template: &Packet<'_>,
    node: NodeId,
    parts: &[&[u8]],
) -> bool {
    let len = parts.iter().map(|part| part.len()).sum();
    let Some(mut room) = made.build(&template.view(), node, len, |_| ()) else {
        return false;
    };
    for part in parts {
        let n = part.len().min(room.len());
        let (here, rest) = room.split_at_mut(n);
        here.copy_from_slice(&part[..n]);
        room = rest;
    }
    true
}

/// Why no server gets a message.
pub enum Unsent {
    /// No route leads to a server.
    NoRoute,
    /// No packet buffer was free.
    NoBuffers,
}

/// Makes a packet with `message` for each server that a route leads to; `header` returns the headers of the packet to an
/// address. The packet's receiving interface is that of the relay afterwards. Returns the number of packets.
pub fn send_to_servers<F: Family, I: Isa, const N: usize>(
    (view, lookup): (&View<'_, F>, NodeId),
    (relay, message): (&Relay<F::Addr>, &[u8]),
    header: impl Fn(F::Addr) -> [u8; N],
    packet: &mut Packet<'_>,
    made: &mut Replicator<'_, I>,
) -> Result<u64, Unsent> {
    let (mut sent, mut why) = (0, Unsent::NoRoute);
    for &server in &relay.servers {
        let Some(rx) = receiver(view, relay.table, server, relay.iface) else {
            continue;
        };
        packet.set(Col::RX, rx);
        match build(made, packet, lookup, &[&header(server), message]) {
            true => sent += 1,
            false => why = Unsent::NoBuffers,
        }
    }
    packet.set(Col::RX, relay.iface);
    if sent == 0 { Err(why) } else { Ok(sent) }
}

/// The interface that a packet of the router comes in by, as it were, so that it is looked up in a table: `near` where that is
/// bound to the table. None when no route of the table leads to another host.
fn receiver<F: Family>(view: &View<'_, F>, table: u32, to: F::Addr, near: u32) -> Option<u32> {
    let found = view.forward(table, to, 0);
    let tx = match found.kind() {
        DpoKind::Adj | DpoKind::Incomplete => view.adjs().words(found.index()).tx_if,
        DpoKind::Glean => found.index(),
        _ => return None,
    };
    let bound = |iface: &u32| view.table_of(*iface) == table;
    let first = [near, tx].into_iter().find(bound);
    first.or_else(|| (0..MAX_INTERFACE_INDEXES as u32).find(bound))
}

#[cfg(test)]
mod tests {
    use super::*;
    use volley_wire::checksum::{is_valid, is_valid4, is_valid6};

    #[test]
    fn headers_have_right_lengths_and_checksums() {
        let message = [7; 301];
        let (from, to) = ("192.0.2.1".parse().unwrap(), "192.0.2.9".parse().unwrap());
        let packet = [&header4((from, 67), (to, 68), 65, &message)[..], &message].concat();
        assert_eq!(packet[..4], [0x45, 0, 1, 73]);
        assert!(is_valid(&packet[..20]) && is_valid4(from, to, IpProto::UDP, &packet[20..]));
        assert_eq!(packet[20..26], [0, 67, 0, 68, 1, 53]);
        let (from, to) = ("2001:db8::1".parse().unwrap(), "fe80::9".parse().unwrap());
        let packet = [&header6((from, 547), (to, 546), 64, &message)[..], &message].concat();
        assert_eq!(packet[..8], [0x60, 0, 0, 0, 1, 53, 17, 64]);
        assert!(is_valid6(from, to, IpProto::UDP, &packet[40..]));
    }
}
