//! Router solicitations (RFC 4861, 6.1.1), on interfaces that advertise.

use crate::lane::{NeighborMessage, NeighborMessageKind};
use crate::message::{Sound, message};
use crate::nd_link::Link;
use crate::node::nd_input::{Count, Verdict};
use volley_iface::{Flag, IfTable};
use volley_router_discovery::nd::ALL_ROUTERS;
use volley_wire::MacAddr;
use volley_wire::nd::NdOption;

/// Message type of a router solicitation.
const SOLICITATION: u8 = 133;

/// Whether a packet has this message type.
pub(crate) fn is_one(packet: &[u8]) -> bool {
    packet.get(6) == Some(&58) && packet.get(40) == Some(&SOLICITATION)
}

/// Checks a router solicitation. A valid one needs no further node and has the result [`Count::Routers`].
pub(crate) fn judge(link: &Link<'_>, table: &IfTable, packet: &[u8]) -> Verdict {
    match check(link, table, packet) {
        Ok(heard) => (Err(Count::Routers), Some(heard)),
        Err(why) => (Err(why), None),
    }
}

fn check(link: &Link<'_>, table: &IfTable, packet: &[u8]) -> Result<NeighborMessage, Count> {
    let Sound { source, to, nd } = message(packet, &[SOLICITATION])?;
    let mac = nd.options().find_map(|option| match option {
        NdOption::SourceMac(MacAddr(mac)) => Some(mac),
        _ => None,
    });
    let nobody = source.is_unspecified();
    let rx = link.way.rx;
    if nobody && mac.is_some() {
        return Err(Count::BadMessage);
    }
    if !table.has(rx, Flag::Ip6) {
        return Err(Count::NotEnabled);
    }
    if mac.is_some_and(|mac| !MacAddr(mac).is_unicast()) {
        return Err(Count::BadSenderMac);
    }
    if source.is_multicast() || source.is_loopback() || source.to_ipv4_mapped().is_some() {
        return Err(Count::BadSenderAddress);
    }
    if to != ALL_ROUTERS && !link.takes(to) {
        return Err(Count::NotForUs);
    }
    if link.is_own(source) {
        return Err(match mac {
            Some(mac) if mac == link.own => Count::OwnFrame,
            _ => Count::AddressConflict,
        });
    }
    if !nobody && !link.leads_back(table, source) {
        return Err(Count::SenderElsewhere);
    }
    // The control thread need not learn a sender that is already known with this MAC address.
    let known = mac.is_some_and(|mac| link.way.leads_to(link.to(source), mac));
    let learns = table.has(rx, Flag::ResolveNeighbors) && !known;
    Ok(NeighborMessage {
        rx,
        addr: source.into(),
        mac: mac.filter(|_| learns).unwrap_or_default(),
        what: NeighborMessageKind::Routers,
    })
}
