//! Received router advertisements (RFC 4861, 6.1.2).

use crate::entry::Mac;
use crate::message::{Sound, message};
use crate::nd_link::Link;
use crate::node::nd_input::Count;
use volley_router_discovery::ReceivedAdvert;
use volley_router_discovery::nd::ALL_NODES;
use volley_wire::MacAddr;
use volley_wire::icmp6::Icmp6Type;

/// Checks a received router advertisement (RFC 4861, 6.1.2), in the order of the end of section 15 of
/// `docs/forwarding-rules.md`.
pub(crate) fn judge(link: &Link<'_>, packet: &[u8]) -> Result<ReceivedAdvert, Count> {
    let kind = Icmp6Type::ROUTER_ADVERTISEMENT.0;
    let Sound { source, to, nd } = message(packet, &[kind])?;
    let output = ReceivedAdvert::read(source, &nd).ok_or(Count::BadMessage)?;
    if output.mac != Mac::default() && !MacAddr(output.mac).is_unicast() {
        return Err(Count::BadSenderMac);
    }
    if !source.is_unicast_link_local() {
        return Err(Count::BadSenderAddress);
    }
    if to != ALL_NODES && !link.takes(to) {
        return Err(Count::NotForUs);
    }
    if link.is_own(source) {
        return Err(match output.mac {
            mac if mac == link.own || mac == Mac::default() => Count::OwnFrame,
            _ => Count::AddressConflict,
        });
    }
    Ok(output)
}
