//! What every message of neighbour discovery has to be: rules 15.1 to 15.5 of `docs/forwarding-rules.md`.

use crate::nd::HOPS;
use crate::node::nd_input::Count;
use std::net::Ipv6Addr;
use volley_graph::PacketView;
use volley_wire::IpProto;
use volley_wire::checksum::Sum;
use volley_wire::icmp6::Icmp6;
use volley_wire::nd::NdMessage;

fn address(bytes: &[u8], at: usize) -> Option<Ipv6Addr> {
    let octets: [u8; 16] = bytes.get(at..at + 16)?.try_into().ok()?;
    Some(octets.into())
}

/// A message that is sound as far as all of them have to be.
pub(crate) struct Sound<'a> {
    pub(crate) source: Ipv6Addr,
    pub(crate) to: Ipv6Addr,
    pub(crate) nd: NdMessage<'a>,
}

/// The packet alone, for messages of these types: rules 15.1 to 15.5.
pub(crate) fn message<'a>(bytes: &'a [u8], kinds: &[u8]) -> Result<Sound<'a>, Count> {
    let (Some(source), Some(to)) = (address(bytes, 8), address(bytes, 24)) else {
        return Err(Count::Malformed);
    };
    let length = usize::from(u16::from_be_bytes([bytes[4], bytes[5]]));
    let message = bytes.get(40..40 + length).filter(|_| bytes[0] >> 4 == 6);
    let message = message.ok_or(Count::Malformed)?;
    if bytes[6] != 58 || !message.first().is_some_and(|kind| kinds.contains(kind)) {
        return Err(Count::NotNd);
    }
    if bytes[7] != HOPS {
        return Err(Count::BadHopLimit);
    }
    let icmp = Icmp6::parse(message).map_err(|_| Count::BadMessage)?;
    if !icmp.checksum_ok(Sum::pseudo6(source, to, IpProto(58), length as u32)) {
        return Err(Count::BadChecksum);
    }
    let Some(Ok(nd)) = NdMessage::parse(&icmp) else {
        return Err(Count::BadMessage);
    };
    Ok(Sound { source, to, nd })
}

/// The source MAC address of the frame around a packet; zeros where nothing is in front of it.
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
