//! ip4-rewrite-mcast, ip6-rewrite-mcast: decrement TTL or hop limit and add an Ethernet header to the group's MAC address (RFC
//! 1112, 6.4; RFC 2464, 7), for one copy of a packet.
//!
//! On entry the position is at the IP header and `TX` is the egress interface; on exit at the Ethernet header.

use crate::Mcast;
use crate::trace::GroupTrace;
use std::marker::PhantomData;
use std::sync::Arc;
use volley_fib::columns::{FORWARDING, GROUP_MTU};
use volley_graph::{Col, ColumnInfo, Consumed, Cx, Isa, Node, Packet, Vector, counters, nexts};
use volley_iface::IfTable;

/// Length of an Ethernet header.
const ETHERNET: usize = 14;

nexts! {
    /// Edges of the rewrite.
    pub struct Next<F: Mcast> {
        DROP => "error-drop",
        OUTPUT => "interface-output",
        ERROR => F::ICMP_ERROR,
        FRAGMENT => F::FRAGMENT,
    }
}

counters! {
    /// What the rewrite counts.
    pub enum Count {
        /// too long for the egress interface, and must not be fragmented
        FragNeeded = "frag-needed" (Error),
        /// too long for the egress interface: cut into fragments
        NeedsFragmentation = "needs-fragmentation" (Info),
        /// too long for the egress interface
        TooBig = "packet-too-big" (Error),
        /// the buffer has no room for an Ethernet header
        NoRoom = "no-headroom" (Error),
    }
}

/// State of the rewrite.
pub struct RewriteMcast<F: Mcast> {
    table: Arc<IfTable>,
    family: PhantomData<F>,
}

impl<F: Mcast> RewriteMcast<F> {
    /// State with the workers' view of interfaces.
    pub fn new(table: Arc<IfTable>) -> Self {
        let family = PhantomData;
        RewriteMcast { table, family }
    }
}

/// The edge of a packet that exceeds the MTU. The error node finds the MTU in [`GROUP_MTU`].
fn too_long<F: Mcast>(cx: &Cx<'_, Count>, packet: &mut Packet<'_>, mtu: u32) -> Next<F> {
    if F::may_fragment(packet.bytes()) {
        cx.count(Count::NeedsFragmentation, 1);
        return Next::FRAGMENT;
    }
    if F::TELLS {
        packet.set(GROUP_MTU.col, mtu);
        packet.fail(cx, Count::TooBig);
        return Next::ERROR;
    }
    packet.fail(cx, Count::FragNeeded);
    Next::DROP
}

fn rewrite<F: Mcast>(cx: &Cx<'_, Count>, table: &IfTable, packet: &mut Packet<'_>) -> Next<F> {
    let tx = packet.get(Col::TX).unwrap_or(u32::MAX);
    let mtu = table.mtu(tx);
    if packet.view().wire_len() > mtu as usize {
        return too_long(cx, packet, mtu);
    }
    let group = F::hop(packet.bytes_mut());
    let header = packet
        .retreat(ETHERNET)
        .then(|| packet.bytes_mut().first_chunk_mut::<ETHERNET>());
    let Some(Some(header)) = header else {
        packet.fail(cx, Count::NoRoom);
        return Next::DROP;
    };
    let [_, _, mac @ ..] = table.mac(tx).to_be_bytes();
    header[..6].copy_from_slice(&group.0);
    header[6..12].copy_from_slice(&mac);
    header[12..].copy_from_slice(&F::ETHER_TYPE);
    Next::OUTPUT
}

impl<F: Mcast> Node for RewriteMcast<F> {
    const NAME: &'static str = F::REWRITE;
    type Next = Next<F>;
    type Count = Count;
    type Trace = GroupTrace;
    const COLUMNS: &'static [ColumnInfo] = &[GROUP_MTU];

    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, mut v: Vector<'_, I, Next<F>>) -> Consumed {
        v.forget(&FORWARDING);
        v.forget(&[Col::ERR, GROUP_MTU.col]);
        v.each(|packet| rewrite(cx, &self.table, packet))
    }
}
