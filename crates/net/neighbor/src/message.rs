//! Checks that every message of neighbour discovery must pass: rules 15.1 to 15.5 of `docs/forwarding-rules.md`.

use std::net::Ipv6Addr;
use volley_graph::PacketView;
use volley_router_discovery::nd::HOPS;
use volley_wire::IpProto;
use volley_wire::checksum::Sum;
use volley_wire::icmp6::Icmp6;
use volley_wire::nd::NdMessage;

fn address(bytes: &[u8], at: usize) -> Option<Ipv6Addr> {
    let octets: [u8; 16] = bytes.get(at..at + 16)?.try_into().ok()?;
    Some(octets.into())
}

/// Why a message is invalid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unsound {
    /// The header or its length does not fit the frame.
    Malformed,
    /// The message type is none of the requested types.
    NotNd,
    /// The hop limit is not 255.
    BadHopLimit,
    /// The checksum is wrong.
    BadChecksum,
    /// Code, length or options are wrong.
    BadMessage,
}

/// A message that has passed the checks common to all types.
pub(crate) struct Sound<'a> {
    pub(crate) source: Ipv6Addr,
    pub(crate) to: Ipv6Addr,
    pub(crate) nd: NdMessage<'a>,
}

/// A valid neighbour solicitation or advertisement.
pub(crate) struct Found {
    pub source: Ipv6Addr,
    pub to: Ipv6Addr,
    pub target: Ipv6Addr,
    /// The flags of an advertisement; none in a solicitation.
    pub flags: Option<u8>,
    /// The sender's MAC address in the option of the message.
    pub mac: Option<[u8; 6]>,
}

/// Checks the packet against rules 15.1 to 15.5, for messages of these types.
pub(crate) fn message<'a>(bytes: &'a [u8], kinds: &[u8]) -> Result<Sound<'a>, Unsound> {
    let (Some(source), Some(to)) = (address(bytes, 8), address(bytes, 24)) else {
        return Err(Unsound::Malformed);
    };
    let length = usize::from(u16::from_be_bytes([bytes[4], bytes[5]]));
    let message = bytes.get(40..40 + length).filter(|_| bytes[0] >> 4 == 6);
    let message = message.ok_or(Unsound::Malformed)?;
    if bytes[6] != 58 || !message.first().is_some_and(|kind| kinds.contains(kind)) {
        return Err(Unsound::NotNd);
    }
    if bytes[7] != HOPS {
        return Err(Unsound::BadHopLimit);
    }
    let icmp = Icmp6::parse(message).map_err(|_| Unsound::BadMessage)?;
    if !icmp.checksum_ok(Sum::pseudo6(source, to, IpProto(58), length as u32)) {
        return Err(Unsound::BadChecksum);
    }
    let Some(Ok(nd)) = NdMessage::parse(&icmp) else {
        return Err(Unsound::BadMessage);
    };
    Ok(Sound { source, to, nd })
}

/// Source MAC address of the frame around a packet; zeros if there is no Ethernet header in front of it.
pub(crate) fn frame_source(packet: &PacketView<'_>) -> [u8; 6] {
    let mut mac = [0; 6];
    if packet.moved() >= 14 {
        let mut seen = false;
        packet.segments(14, |bytes| {
            if let Some(source) = bytes.get(6..12).filter(|_| !seen) {
                mac.copy_from_slice(source);
            }
            seen = true;
        });
    }
    mac
}
