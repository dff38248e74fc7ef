//! From where to where an error goes, and the MTU that it tells. Rules 13.4 to 13.7 of `docs/forwarding-rules.md`.

use super::message::Suppressed;
use super::protocol::Icmp;
use crate::Ip;
use volley_fib::dataplane::{Dpo, DpoKind, DropWhy, View};
use volley_graph::PacketView;

/// Whether a route's object is one that stands for more than one host.
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

/// From which address to which an error about a packet goes, or why none does.
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
    // RFC 1122, 3.2.1.3 and RFC 4443, 2.2: what was sent to one of our addresses is answered from it.
    if there.kind() == DpoKind::Local {
        return Ok((destination, source));
    }
    let own = leaves_by(view, back).and_then(|tx| own_address(view, tx, source));
    let from = own.or_else(|| own_address(view, packet.rx(), source));
    Ok((from.ok_or(Suppressed::NoAddress)?, source))
}

/// The interface by which the error will leave (RFC 1812, 4.3.2.4 wants an address of it); none where that is decided by
/// the error's own hash, in which its source takes part.
fn leaves_by<F: Icmp>(view: &View<'_, F>, back: Dpo) -> Option<u32> {
    match back.kind() {
        DpoKind::Adj | DpoKind::Incomplete => Some(view.adjs().words(back.index()).tx_if),
        DpoKind::Glean => Some(back.index()),
        _ => None,
    }
}

/// The address of ours that a packet leaves from, or that it was sent to; none where nobody knows, or where there are several
/// ways for it.
pub(crate) fn leaves_from<F: Icmp>(view: &View<'_, F>, packet: &PacketView<'_>) -> Option<F::Addr> {
    let (_, destination) = F::ends(packet.bytes())?;
    let found = one_way(view, packet, destination);
    if found.kind() == DpoKind::Local {
        return Some(destination);
    }
    own_address(view, leaves_by(view, found)?, destination)
}

/// What a packet's own way is, of several that its route may have.
fn one_way<F: Icmp>(view: &View<'_, F>, packet: &PacketView<'_>, destination: F::Addr) -> Dpo {
    let found = view.follow(view.table_of(packet.rx()), destination);
    match found.kind() {
        DpoKind::Multi => view.lbs().pick_through(found, <F as Ip>::hash(packet)),
        _ => found,
    }
}

/// The first address of an interface whose subnet the receiver is in, else the first.
fn own_address<F: Icmp>(view: &View<'_, F>, iface: u32, receiver: F::Addr) -> Option<F::Addr> {
    let all = view.own(iface).iter();
    let mut own = all.filter(|(address, _)| F::is_routable(*address));
    let near = |(a, len): &&(F::Addr, u8)| F::first(*a, *len) == F::first(receiver, *len);
    let best = own.clone().find(near).or_else(|| own.next());
    best.map(|(address, _)| *address)
}

/// The MTU that a packet did not fit.
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
