//! click-make: elements that make packets from packets.

use super::Port;
use crate::columns::{self, DST, NET};
use crate::element::{Build, Emit, PacketAction, Reason};
use crate::fast::{ETHERNET, Fast, Scratch, is_at_first_input, prepend};
use volley_graph::buf::START;
use volley_graph::{
    ColumnInfo, Consumed, Counters, Cx, Isa, Node, NodeId, Packet, PacketTrace, ReplicateAction,
    Replicator, Vector,
};

/// State of an element on one worker.
pub(crate) struct MakeNode {
    element: Box<dyn Build>,
    fast: Fast,
    scratch: Scratch,
    /// Ethernet headers of the packets of a vector.
    headers: Vec<[u8; ETHERNET]>,
    outputs: usize,
    /// The node behind each output.
    nodes: Vec<NodeId>,
}

impl MakeNode {
    /// An element with this number of outputs, for vectors of up to `size` packets.
    pub(crate) fn new(element: Box<dyn Build>, outputs: usize, size: usize) -> Self {
        let fast = element.fast();
        MakeNode {
            element,
            scratch: Scratch::new(&fast, size),
            headers: match fast {
                Fast::Resolve => vec![[0; ETHERNET]; size],
                _ => Vec::new(),
            },
            fast,
            outputs,
            nodes: Vec::with_capacity(outputs),
        }
    }

    /// Puts the header of the next hop in front of all packets, if all next hops are known.
    #[inline(always)]
    fn resolve<I: Isa>(&mut self, v: &mut Vector<'_, I, Port>, now_ns: u64) -> bool {
        if !is_at_first_input(v) {
            return false;
        }
        v.require(DST.col, 0);
        if let Some(next_hop) = v.same(DST.col) {
            let header = self.element.header(next_hop, now_ns);
            return header.is_some_and(|header| prepend(v, |_| &header));
        }
        let (mut last, mut header) = (0, None);
        for (to, &next_hop) in self.headers.iter_mut().zip(v.column(DST.col)) {
            if next_hop != last {
                (last, header) = (next_hop, self.element.header(next_hop, now_ns));
            }
            match header {
                Some(header) => *to = header,
                None => return false,
            }
        }
        prepend(v, |row| &self.headers[row])
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
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Reason>, mut v: Vector<'_, I, Port>) -> Consumed {
        if !I::FEW && self.outputs > 0 {
            let port = match self.fast {
                Fast::Resolve => self.resolve(&mut v, cx.now_ns()).then_some(0),
                _ => self.fast.run(&mut v, &mut self.scratch),
            };
            if port == Some(0) {
                return v.send_all(Port(0));
            }
        }
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
