//! Source, destination and MTU of an ICMP error. Rules 13.4 to 13.7 of `docs/forwarding-rules.md`.

use super::message::Suppressed;
use super::protocol::Icmp;
use crate::Ip;
use volley_fib::dataplane::{Dpo, DpoKind, DropWhy, View};
use volley_graph::PacketView;

/// Whether a route's object represents more than one host.
fn is_many(found: Dpo) -> bool {
    use DropWhy as W;
    let many = [
        W::SubnetBroadcast,
        W::Multicast,
        W::Broadcast,
        W::Unspecified,
    ];
    let dropped = found.kind() == DpoKind::Drop && many.contains(&found.why());
    dropped || found.kind() == DpoKind::Broadcast
}

/// Source and destination of an error about a packet, or the reason for suppression.
pub(crate) fn ends<F: Icmp>(
    view: &View<'_, F>,
    packet: &PacketView<'_>,
) -> Result<(F::Addr, F::Addr), Suppressed> {
    let (source, destination) = F::ends(packet.bytes()).ok_or(Suppressed::BadSource)?;
    let table = view.table_of(packet.rx());
    let there = view.follow(table, destination);
    if is_many(there) {
        return Err(Suppressed::BadDestination);
    }
    let back = view.follow(table, source);
    match back.kind() {
        DpoKind::Adj | DpoKind::Multi | DpoKind::Glean | DpoKind::Incomplete => {}
        DpoKind::Local => return Err(Suppressed::BadSource),
        _ if is_many(back) => return Err(Suppressed::BadSource),
        _ => return Err(Suppressed::NoWayBack),
    }
    // RFC 1122, 3.2.1.3 and RFC 4443, 2.2: the reply to a packet for an own address has this address as source.
    if there.kind() == DpoKind::Local {
        return Ok((destination, source));
    }
    let own = leaves_by(view, back).and_then(|tx| own_address(view, tx, source));
    let from = own.or_else(|| own_address(view, packet.rx(), source));
    Ok((from.ok_or(Suppressed::NoAddress)?, source))
}

/// The interface through which the error will leave (RFC 1812, 4.3.2.4 requires an address of it as source). None if the
/// error's own hash selects the path, because the hash includes the source.
fn leaves_by<F: Icmp>(view: &View<'_, F>, back: Dpo) -> Option<u32> {
    match back.kind() {
        DpoKind::Adj | DpoKind::Incomplete => Some(view.adjs().words(back.index()).tx_if),
        DpoKind::Glean => Some(back.index()),
        _ => None,
    }
}

/// The own address of the interface that a packet leaves through, or the own address that it was sent to; none if unknown or if
/// several paths exist.
pub(crate) fn leaves_from<F: Icmp>(view: &View<'_, F>, packet: &PacketView<'_>) -> Option<F::Addr> {
    let (_, destination) = F::ends(packet.bytes())?;
    let found = one_way(view, packet, destination);
    if found.kind() == DpoKind::Local {
        return Some(destination);
    }
    own_address(view, leaves_by(view, found)?, destination)
}

/// The object of the path that a packet takes; its route may have several.
fn one_way<F: Icmp>(view: &View<'_, F>, packet: &PacketView<'_>, destination: F::Addr) -> Dpo {
    let found = view.follow(view.table_of(packet.rx()), destination);
    match found.kind() {
        DpoKind::Multi => view.lbs().pick_through(found, <F as Ip>::hash(packet)),
        _ => found,
    }
}

/// The first address of an interface whose subnet contains the receiver, otherwise the first address.
fn own_address<F: Icmp>(view: &View<'_, F>, iface: u32, receiver: F::Addr) -> Option<F::Addr> {
    let all = view.own(iface).iter();
    let mut own = all.filter(|(address, _)| F::is_routable(*address));
    let near = |(a, len): &&(F::Addr, u8)| F::first(*a, *len) == F::first(receiver, *len);
    let best = own.clone().find(near).or_else(|| own.next());
    best.map(|(address, _)| *address)
}

/// The MTU that a packet exceeded.
pub(crate) fn mtu<F: Icmp>(view: &View<'_, F>, packet: &PacketView<'_>) -> u16 {
    let Some((_, destination)) = F::ends(packet.bytes()) else {
        return 0;
    };
    let found = one_way(view, packet, destination);
    match found.kind() {
        DpoKind::Adj => view.adjs().words(found.index()).facts.mtu(),
        _ => 0,
    }
}
