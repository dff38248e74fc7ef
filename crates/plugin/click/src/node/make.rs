//! click-make: elements that make packets from packets.

use super::Port;
use crate::columns::{self, NET};
use crate::element::{Build, Emit, PacketAction, Reason};
use volley_graph::buf::START;
use volley_graph::{
    ColumnInfo, Consumed, Counters, Cx, Isa, Node, NodeId, Packet, PacketTrace, ReplicateAction,
    Replicator, Vector,
};

/// State of an element on one worker.
pub(crate) struct MakeNode {
    element: Box<dyn Build>,
    outputs: usize,
    /// The node behind each output.
    nodes: Vec<NodeId>,
}

impl MakeNode {
    /// An element with this number of outputs.
    pub(crate) fn new(element: Box<dyn Build>, outputs: usize) -> Self {
        MakeNode {
            element,
            outputs,
            nodes: Vec::with_capacity(outputs),
        }
    }
}

/// Puts new packets into the vectors of the next nodes.
struct Outputs<'a, 'b, I: Isa> {
    replicator: &'a mut Replicator<'b, I>,
    cx: &'a Cx<'a, Reason>,
    nodes: &'a [NodeId],
}

impl<I: Isa> Emit for Outputs<'_, '_, I> {
    fn build(
        &mut self,
        like: &mut Packet<'_>,
        port: usize,
        (len, net): (usize, usize),
        fill: &mut dyn FnMut(&mut [u8]),
    ) -> bool {
        let Some(&node) = self.nodes.get(port) else {
            return false;
        };
        let before = like.get(NET.col).unwrap_or(0);
        like.set(NET.col, (START + net) as u32);
        let made = self.replicator.build(&like.view(), node, len, fill);
        let is_made = made.is_some();
        like.set(NET.col, before);
        is_made
    }

    fn copy(&mut self, packet: &mut Packet<'_>, port: usize) -> bool {
        let Some(&node) = self.nodes.get(port) else {
            return false;
        };
        let before = packet.get(NET.col).unwrap_or(0);
        let moved = columns::net(&packet.view()).map_or(0, |net| START + net);
        packet.set(NET.col, moved as u32);
        let made = self.replicator.clone_packet(&packet.view(), node);
        packet.set(NET.col, before);
        made
    }

    fn lose(&mut self, reason: Reason, packets: u64) {
        self.cx.count(reason, packets);
    }
}

impl Node for MakeNode {
    const NAME: &'static str = "click-make";
    type Next = Port;
    type Count = Reason;
    type Trace = PacketTrace;
    const COLUMNS: &'static [ColumnInfo] = columns::ALL;

    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Reason>, v: Vector<'_, I, Port>) -> Consumed {
        self.nodes.clear();
        self.nodes
            .extend((0..self.outputs).map(|port| v.edge(Port(port))));
        let (element, nodes) = (&mut self.element, &self.nodes);
        v.replicate(|packet, replicator| {
            let mut outputs = Outputs {
                replicator,
                cx,
                nodes,
            };
            match element.packet(packet, &mut outputs, cx.now_ns()) {
                PacketAction::Replaced => ReplicateAction::Replaced,
                PacketAction::Go(verdict) => match verdict.resolve(nodes.len()) {
                    Ok(port) => ReplicateAction::Send(nodes[port]),
                    Err(reason) => {
                        packet.fail(cx, Reason::from_code(reason + 1));
                        ReplicateAction::Drop(Port(nodes.len()))
                    }
                },
            }
        })
    }
}
