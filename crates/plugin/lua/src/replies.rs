//! Packets that become replies in place: ARP, ICMP echo replies and errors (RFC 826, RFC 792, RFC 1812). The position of a packet
//! is at its Ethernet header.

use crate::batch::Fault;
use crate::fields::{ETHERNET, ether_type};
use crate::ip4::is_reserved;
use std::net::Ipv4Addr;
use volley_sdk::prelude::*;
use volley_sdk::wire::arp::{ArpPacket, REQUEST};
use volley_sdk::wire::eth::EthHeader;
use volley_sdk::wire::icmp4::{Icmp4Header, Icmp4Type};
use volley_sdk::wire::ip4::Ip4Header;
use volley_sdk::wire::{EtherType, Header, IntoBytes, IpProto, MacAddr};

/// Bytes of an ICMP error behind its headers: the IP header of the packet and 8 bytes (RFC 792) at least, 576 in all (RFC 1812).
const MOST_QUOTED: usize = 576 - Ip4Header::LEN - Icmp4Header::LEN;
/// Bytes of the shortest frame, without its checksum.
const SHORTEST: usize = 60;
/// TTL of replies.
const TTL: u8 = 64;

fn put_ethernet(
    bytes: &mut [u8],
    dst: MacAddr,
    src: MacAddr,
    kind: EtherType,
) -> Result<(), Fault> {
    let header = EthHeader {
        dst,
        src,
        ether_type: kind,
    };
    put(bytes, 0, header.as_bytes())
}

/// Copy bytes into a packet.
fn put(bytes: &mut [u8], at: usize, from: &[u8]) -> Result<(), Fault> {
    let to = bytes.get_mut(at..at + from.len());
    let to = to.ok_or_else(|| "the packet is too short for the reply".to_owned())?;
    to.copy_from_slice(from);
    Ok(())
}

/// The Ethernet header of a packet.
fn ethernet(bytes: &[u8]) -> Result<EthHeader, Fault> {
    let (header, _) = EthHeader::split(bytes).map_err(|why| why.to_string())?;
    Ok(*header)
}

/// A request becomes the reply of the owner of the address.
pub(crate) fn arp_reply(packet: &mut Packet<'_>, owner: MacAddr) -> Result<(), Fault> {
    let bytes = packet.bytes_mut();
    let no_request = || "the packet is no ARP request for IPv4".to_owned();
    if ether_type(bytes) != Some(EtherType::ARP) {
        return Err(no_request());
    }
    let request = ArpPacket::parse(bytes.get(ETHERNET..).unwrap_or_default());
    let request = request.map_err(|why| why.to_string())?;
    if request.operation.get() != REQUEST {
        return Err(no_request());
    }
    let (to, reply) = (request.sender_mac, request.reply(owner));
    put_ethernet(bytes, to, owner, EtherType::ARP)?;
    put(bytes, ETHERNET, reply.as_bytes())
}

/// Any packet becomes an ARP request for an address.
pub(crate) fn arp_request(
    packet: &mut Packet<'_>,
    source: MacAddr,
    (sender, target): (Ipv4Addr, Ipv4Addr),
) -> Result<(), Fault> {
    let request = ArpPacket::request(source, sender, target);
    let missing = SHORTEST.saturating_sub(packet.len());
    if missing > 0 && !packet.retreat(missing) {
        return Err("the packet is too short for the request".to_owned());
    }
    let bytes = packet.bytes_mut();
    put_ethernet(bytes, MacAddr::BROADCAST, source, EtherType::ARP)?;
    put(bytes, ETHERNET, request.as_bytes())?;
    // What follows was another packet's: a minimum frame of zeros.
    let end = ETHERNET + ArpPacket::LEN;
    let length = bytes.len().min(SHORTEST);
    bytes[end..length].fill(0);
    packet.truncate(length);
    Ok(())
}

/// The length of the IPv4 header of a frame, and the total length of the packet.
fn ip4(bytes: &[u8]) -> Result<(usize, usize), Fault> {
    let no_packet = || "the packet is no IPv4 packet".to_owned();
    if ether_type(bytes) != Some(EtherType::IP4) {
        return Err(no_packet());
    }
    let (header, _) = Ip4Header::split(&bytes[ETHERNET..]).map_err(|why| why.to_string())?;
    let (ihl, total) = (header.header_len(), usize::from(header.total_len.get()));
    let is_whole = header.version() == 4 && ihl >= Ip4Header::LEN && total >= ihl;
    match is_whole && ETHERNET + total <= bytes.len() {
        true => Ok((ihl, total)),
        false => Err(no_packet()),
    }
}

/// An echo request becomes the reply.
pub(crate) fn echo_reply(packet: &mut Packet<'_>) -> Result<(), Fault> {
    let (ihl, total) = ip4(packet.bytes())?;
    packet.truncate(ETHERNET + total);
    let bytes = packet.bytes_mut();
    let of_old = ethernet(bytes)?;
    let no_request = || "the packet is no echo request".to_owned();
    let split = Ip4Header::split_mut(&mut bytes[ETHERNET..]);
    let (header, behind) = split.map_err(|why| why.to_string())?;
    let (options, icmp) = behind.split_at_mut(ihl - Ip4Header::LEN);
    let (icmp, body) = Icmp4Header::split_mut(icmp).map_err(|_| no_request())?;
    if header.protocol != IpProto::ICMP || icmp.kind != Icmp4Type::ECHO_REQUEST {
        return Err(no_request());
    }
    icmp.kind = Icmp4Type::ECHO_REPLY;
    icmp.fill_checksum(body);
    (header.src, header.dst) = (header.dst, header.src);
    header.ttl = TTL;
    header.fill_checksum(options);
    put_ethernet(bytes, of_old.src, of_old.dst, EtherType::IP4)
}

/// A packet becomes an ICMP error about it, from `source`: type, code and the second word of the message. Packets about which
/// none may be sent: RFC 1812, 4.3.2.7.
pub(crate) fn icmp_error(
    packet: &mut Packet<'_>,
    (kind, code, rest): (u8, u8, u32),
    source: Ipv4Addr,
) -> Result<(), Fault> {
    let bytes = packet.bytes();
    let (_, total) = ip4(bytes)?;
    let of_old = ethernet(bytes)?;
    let quoted = total.min(MOST_QUOTED);
    let (header, behind) = Ip4Header::split(&bytes[ETHERNET..]).map_err(|why| why.to_string())?;
    let is_error = |first: Option<&u8>| first.is_some_and(|kind| ![0, 8].contains(kind));
    let is_icmp_error = header.protocol == IpProto::ICMP && is_error(behind.first());
    let is_group = is_reserved(header.dst()) || of_old.dst.is_multicast();
    if is_icmp_error || header.fragment_offset() > 0 || is_group || is_reserved(header.src()) {
        return Err(
            "no ICMP error is sent about an ICMP error, a later fragment, a packet for a group, or one whose source is no host"
                .to_owned(),
        );
    }
    let to = header.src();
    let more = Ip4Header::LEN + Icmp4Header::LEN;
    if !packet.retreat(more) {
        return Err("the packet has no room for the headers of an ICMP error".to_owned());
    }
    packet.truncate(ETHERNET + more + quoted);
    let bytes = packet.bytes_mut();
    let quoted_bytes = &bytes[ETHERNET + more..];
    let mut icmp = Icmp4Header::new(Icmp4Type(kind), code, rest.to_be_bytes());
    icmp.fill_checksum(quoted_bytes);
    let length = Icmp4Header::LEN + quoted_bytes.len();
    let ip = Ip4Header::new(source, to, IpProto::ICMP, TTL, length);
    put_ethernet(bytes, of_old.src, of_old.dst, EtherType::IP4)?;
    put(bytes, ETHERNET, ip.as_bytes())?;
    put(bytes, ETHERNET + Ip4Header::LEN, icmp.as_bytes())
}
