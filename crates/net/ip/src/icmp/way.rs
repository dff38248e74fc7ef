//! From where to where an error goes, and the MTU that it tells. Rules 13.4 to 13.7 of `docs/forwarding-rules.md`.

use super::Icmp;
use crate::Ip;
use crate::family::MAX_TABLES;
use crate::node::ip_icmp_error::Count;
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
    found.kind() == DpoKind::Drop && many.contains(&found.why())
}

/// From which address to which an error about a packet goes, or why none does.
pub(crate) fn ends<F: Icmp>(
    view: &View<'_, F>,
    packet: &PacketView<'_>,
) -> Result<(F::Addr, F::Addr), Count> {
    let (source, destination) = F::ends(packet.bytes()).ok_or(Count::BadSource)?;
    let table = view.table_of(packet.rx());
    let there = view.follow(table, destination, MAX_TABLES);
    if is_many(there) {
        return Err(Count::BadDestination);
    }
    let back = view.follow(table, source, MAX_TABLES);
    match back.kind() {
        DpoKind::Adj | DpoKind::Multi | DpoKind::Glean | DpoKind::Incomplete => {}
        DpoKind::Local => return Err(Count::BadSource),
        _ if is_many(back) => return Err(Count::BadSource),
        _ => return Err(Count::NoWayBack),
    }
    // RFC 1122, 3.2.1.3 and RFC 4443, 2.2: what was sent to one of our addresses is answered from it.
    if there.kind() == DpoKind::Local {
        return Ok((destination, source));
    }
    let own = view.own(packet.rx()).iter();
    let own = own.filter(|(address, _)| F::is_routable(*address));
    let near = |(a, len): &&(F::Addr, u8)| F::first(*a, *len) == F::first(source, *len);
    let (mut first, mut best) = (None, None);
    for address in own {
        first = first.or(Some(address));
        best = best.or(Some(address).filter(near));
    }
    let (from, _) = best.or(first).ok_or(Count::NoAddress)?;
    Ok((*from, source))
}

/// The MTU that a packet did not fit.
pub(crate) fn mtu<F: Icmp>(view: &View<'_, F>, packet: &PacketView<'_>) -> u16 {
    let Some((_, destination)) = F::ends(packet.bytes()) else {
        return 0;
    };
    let found = view.follow(view.table_of(packet.rx()), destination, MAX_TABLES);
    let found = match found.kind() {
        DpoKind::Multi => view.lbs().pick_through(found, <F as Ip>::hash(packet)),
        _ => found,
    };
    match found.kind() {
        DpoKind::Adj => view.adjs().words(found.index()).mtu,
        _ => 0,
    }
}
