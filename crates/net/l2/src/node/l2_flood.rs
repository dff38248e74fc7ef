//! l2-flood: replicates a frame to every port of its bridge domain, except the receiving port and the ports of its
//! split-horizon group (IEEE 802.1Q, 8.6.1). The last port gets the frame itself.

use crate::plane::{Plane, SHG, SLOT};
use std::sync::Arc;
use volley_graph::{
    Consumed, Cx, Isa, Node, NodeId, Packet, PacketTrace, ReplicateAction, Replicator, Vector,
    counters, nexts,
};
use volley_iface::{Flag, IfTable};
use volley_tables::Snap;

nexts! {
    /// Where l2-flood sends packets.
    pub enum Next { Drop => "error-drop", Output => "interface-output" }
}

counters! {
    /// What l2-flood counts.
    pub enum Count {
        /// the bridge domain has no other port that is up and not of the same split-horizon group
        NoPort = "no-port" (Error),
        /// frames that were sent out of more than one port
        Flooded = "flooded" (Info),
        /// copies made
        Copies = "copies" (Info),
        /// copies that could not be made because no packet buffer was free
        NoBuffers = "no-buffers" (Warn),
    }
}

/// State of l2-flood.
pub struct L2Flood {
    plane: Snap<Plane>,
    table: Arc<IfTable>,
}

impl L2Flood {
    /// State with the workers' view of interfaces.
    pub(crate) fn new(plane: Snap<Plane>, table: Arc<IfTable>) -> Self {
        L2Flood { plane, table }
    }
}

/// Sends one packet to all its ports.
fn flood<I: Isa>(
    cx: &Cx<'_, Count>,
    (plane, table): (&Plane, &IfTable),
    output: NodeId,
    packet: &mut Packet<'_>,
    out: &mut Replicator<'_, I>,
) -> ReplicateAction<Next> {
    let rx = packet.rx();
    let from = plane.port(rx);
    let shg = from >> SHG & 0xff;
    let members = plane.domain(from).filter(|_| from & SLOT != 0);
    let members = members.map_or(&[][..], |domain| &domain.members);
    let ports = members
        .iter()
        .filter(|m| m.port.0 != rx && (shg == 0 || m.shg != shg) && table.has(m.port.0, Flag::Up));
    let Some(copies) = out.copy_to_ports(packet, output, ports.map(|m| m.port.0)) else {
        packet.fail(cx, Count::NoPort);
        return ReplicateAction::Drop(Next::Drop);
    };
    if copies.no_buffers > 0 {
        cx.count(Count::NoBuffers, copies.no_buffers);
    }
    if copies.copied > 0 {
        cx.count(Count::Flooded, 1);
        cx.count(Count::Copies, copies.copied);
    }
    ReplicateAction::Send(output)
}

impl Node for L2Flood {
    const NAME: &'static str = "l2-flood";
    type Next = Next;
    type Count = Count;
    type Trace = PacketTrace;

    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, v: Vector<'_, I, Next>) -> Consumed {
        let plane = self.plane.read(cx.guard());
        let output = v.edge(Next::Output);
        let table = &self.table;
        v.replicate(|packet, out| flood(cx, (plane, table), output, packet, out))
    }
}

#[cfg(test)]
mod tests;
