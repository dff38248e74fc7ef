//! ip4-replicate, ip6-replicate: replicate a packet to each egress interface of its multicast route, except the interface that
//! received it (RFC 1812, 5.3.10). The last egress interface gets the packet itself.
//!
//! On entry the `dpo` column has the route's number; on exit `TX` is filled.

use crate::Mcast;
use crate::table::Plane;
use crate::trace::GroupTrace;
use std::sync::Arc;
use volley_fib::columns::DPO;
use volley_graph::{
    ColumnInfo, Consumed, Cx, Isa, Node, NodeId, Packet, ReplicateAction, Replicator, Vector,
    counters, nexts,
};
use volley_iface::{Flag, IfTable};
use volley_tables::Snap;

nexts! {
    /// Edges of replication.
    pub struct Next<F: Mcast> {
        DROP => "error-drop",
        REWRITE => F::REWRITE,
    }
}

counters! {
    /// What replication counts.
    pub enum Count {
        /// no interface of the multicast route is up but the one the packet came by
        NoReceiver = "no-receiver" (Error),
        /// copies made, besides the packets themselves
        Copies = "copies" (Info),
        /// copies that could not be made because no packet buffer was free
        NoBuffers = "no-buffers" (Warn),
    }
}

/// State of replication.
pub struct Replicate<F: Mcast> {
    plane: Snap<Plane<F>>,
    table: Arc<IfTable>,
}

impl<F: Mcast> Replicate<F> {
    /// State with the multicast routes and the workers' view of interfaces.
    pub fn new(plane: Snap<Plane<F>>, table: Arc<IfTable>) -> Self {
        Replicate { plane, table }
    }
}

/// Sends one packet to all its egress interfaces.
fn replicate<F: Mcast, I: Isa>(
    cx: &Cx<'_, Count>,
    (plane, table): (&Plane<F>, &IfTable),
    rewrite: NodeId,
    packet: &mut Packet<'_>,
    out: &mut Replicator<'_, I>,
) -> ReplicateAction<Next<F>> {
    let (rx, id) = (packet.rx(), packet.get(DPO.col).unwrap_or(0));
    let forward = plane.entry(id).map_or(&[][..], |entry| &entry.forward);
    let open = |port: &u32| *port != rx && table.has(*port, Flag::Up);
    let ports = forward.iter().copied().filter(open);
    let Some(copies) = out.copy_to_ports(packet, rewrite, ports) else {
        packet.fail(cx, Count::NoReceiver);
        return ReplicateAction::Drop(Next::DROP);
    };
    if copies.copied > 0 {
        cx.count(Count::Copies, copies.copied);
    }
    if copies.no_buffers > 0 {
        cx.count(Count::NoBuffers, copies.no_buffers);
    }
    ReplicateAction::Send(rewrite)
}

impl<F: Mcast> Node for Replicate<F> {
    const NAME: &'static str = F::REPLICATE;
    type Next = Next<F>;
    type Count = Count;
    type Trace = GroupTrace;
    const COLUMNS: &'static [ColumnInfo] = &[DPO];

    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, mut v: Vector<'_, I, Next<F>>) -> Consumed {
        v.require(DPO.col, 0);
        let (plane, table) = (self.plane.read(cx.guard()), &self.table);
        let rewrite = v.edge(Next::REWRITE);
        v.replicate(|packet, out| replicate::<F, I>(cx, (plane, table), rewrite, packet, out))
    }
}
