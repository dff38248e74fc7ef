//! Claims of tentative addresses by other hosts (RFC 4862, 5.4.3 and 5.4.4; RFC 5227, 2.1.1), and hosts that use the MAC
//! address of the receiving interface.

use crate::entry::Mac;
use crate::lane::{ControlQueues, NeighborMessage, NeighborMessageKind};
use std::net::IpAddr;
use volley_graph::{Counters, Cx};
use volley_iface::IfTable;

/// Reports to the control thread that a host claims an address, unless the frame was sent by the receiving interface. Counts
/// the first of `counts`, or the second if the queue is full.
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
    let reported = lane.tell(NeighborMessage {
        rx,
        addr,
        mac,
        what,
    });
    let [reported_count, full] = counts;
    cx.count(if reported { reported_count } else { full }, 1);
}

/// If a sender's MAC address is the one of the receiving interface, counts the frame and reports it to the control thread.
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
    // If the queue is full, earlier messages already report the host.
    let _ = lane.tell(NeighborMessage {
        rx,
        addr,
        mac,
        what,
    });
}
