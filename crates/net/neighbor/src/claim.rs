//! What others say of addresses that are tentative (RFC 4862, 5.4.3 and 5.4.4; RFC 5227, 2.1.1),
//! and stations that have the MAC address of ours.

use crate::entry::Mac;
use crate::lane::{ControlQueues, NeighborMessage, NeighborMessageKind};
use std::net::IpAddr;
use volley_graph::{Counters, Cx};
use volley_iface::IfTable;

/// Tell the control thread that a station says it has an address, unless it is we that said so. Counted as the first of
/// `counts`, or as the second where there is no room.
pub(crate) fn tell<C: Counters>(
    (cx, counts): (&Cx<'_, C>, [C; 2]),
    (lane, table): (&ControlQueues, &IfTable),
    (rx, addr, mac): (u32, IpAddr, Mac),
) {
    let own = table.mac(rx).to_be_bytes();
    if mac[..] == own[2..] {
        return;
    }
    let what = NeighborMessageKind::Claim;
    let told = lane.tell(NeighborMessage {
        rx,
        addr,
        mac,
        what,
    });
    let [told_count, full] = counts;
    cx.count(if told { told_count } else { full }, 1);
}

/// Where a station sends with the MAC address of the interface that heard it, count that, and tell the control thread.
pub(crate) fn own_mac<C: Counters>(
    (cx, count): (&Cx<'_, C>, C),
    (lane, table): (&ControlQueues, &IfTable),
    (rx, addr): (u32, IpAddr),
    macs: [Mac; 2],
) {
    let own = table.mac(rx).to_be_bytes();
    let Some(mac) = macs.into_iter().find(|mac| mac[..] == own[2..]) else {
        return;
    };
    cx.count(count, 1);
    let what = NeighborMessageKind::OwnMac;
    // Where there is no room it was told already.
    let _ = lane.tell(NeighborMessage {
        rx,
        addr,
        mac,
        what,
    });
}
