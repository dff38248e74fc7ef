//! interface-tx: sends packets to the transmit nodes of their interfaces; completes in software the offloads that these lack.

use crate::IfTable;
use crate::offload::{Fault, complete_checksum, segment};
use std::sync::Arc;
use volley_graph::{
    Col, Column, Consumed, Cx, Isa, Node, NodeId, Offload, Packet, PacketTrace, ReplicateAction,
    Replicator, Vector, counters, nexts,
};

nexts! {
    /// Where interface-tx sends packets, besides to transmit nodes.
    pub enum Next { Drop => "error-drop" }
}

counters! {
    /// What interface-tx counts.
    pub enum Count {
        /// packets whose checksum was finished in software
        Checksums = "checksums" (Info),
        /// super-segments that were cut in software
        Cut = "super-segments" (Info),
        /// packets that they were cut into
        Segments = "segments" (Info),
        /// what is left to be done does not fit the packet
        BadOffload = "bad-offload" (Error),
        /// no packet buffer was free to cut a super-segment
        NoBuffers = "no-buffers" (Error),
    }
}

/// Bit of [`Offload::needs`] for a checksum without segmentation.
const SUM: u32 = 1;

/// State of interface-tx.
pub struct InterfaceTx {
    table: Arc<IfTable>,
    nodes: Column,
}

impl InterfaceTx {
    /// For vectors of up to `size` packets.
    pub fn new(table: Arc<IfTable>, size: usize) -> Self {
        InterfaceTx {
            table,
            nodes: Column::new(size),
        }
    }

    /// Offloads that the packets require and their interfaces lack, for all packets together.
    #[inline(never)]
    fn unmet<I: Isa>(&self, v: &Vector<'_, I, Next>) -> u32 {
        let rows = v.column(Col::TX).iter().zip(v.column(Col::OFFLOAD));
        let unmet = |(&tx, &word): (&u32, &u32)| Offload::needs(word) & !self.table.caps(tx);
        rows.map(unmet).fold(0, |all, one| all | one)
    }

    /// Completes checksums in place; the vector is not changed otherwise.
    #[inline(never)]
    fn finish_all<I: Isa>(&self, cx: &Cx<'_, Count>, v: &mut Vector<'_, I, Next>) {
        let one = |packet: &mut Packet<'_>| {
            let tx = packet.get(Col::TX).unwrap_or(0);
            let needs = Offload::needs(packet.get(Col::OFFLOAD).unwrap_or(0));
            let Some(sum) = packet.offload().checksum else {
                return true;
            };
            if needs & !self.table.caps(tx) == 0 {
                return true;
            }
            if complete_checksum(packet, sum).is_err() {
                return packet.fail(cx, Count::BadOffload);
            }
            cx.count(Count::Checksums, 1);
            // An empty request is always accepted.
            let _ = packet.set_offload(&Offload::NONE);
            true
        };
        v.sift(one, Next::Drop);
    }

    /// Completes a mixed vector packet by packet, as each egress interface requires, in order.
    #[inline(never)]
    fn complete<I: Isa>(&self, cx: &Cx<'_, Count>, v: Vector<'_, I, Next>) -> Consumed {
        v.replicate(|packet, out| {
            let tx = packet.get(Col::TX).unwrap_or(0);
            let node = self.table.tx_node(tx);
            let word = packet.get(Col::OFFLOAD).unwrap_or(0);
            if Offload::needs(word) & !self.table.caps(tx) == 0 {
                return ReplicateAction::Send(node);
            }
            match in_software(cx, packet, node, out) {
                Ok(outcome) => outcome,
                Err(fault) => {
                    let why = match fault {
                        Fault::Bad => Count::BadOffload,
                        Fault::NoBuffers => Count::NoBuffers,
                    };
                    packet.fail(cx, why);
                    ReplicateAction::Drop(Next::Drop)
                }
            }
        })
    }
}

fn in_software<I: Isa>(
    cx: &Cx<'_, Count>,
    packet: &mut Packet<'_>,
    node: NodeId,
    out: &mut Replicator<'_, I>,
) -> Result<ReplicateAction<Next>, Fault> {
    let Offload { checksum, gso } = packet.offload();
    if let Some(gso) = gso {
        let segments = segment(packet, gso, checksum, node, out)?;
        if segments > 0 {
            cx.count(Count::Cut, 1);
            cx.count(Count::Segments, segments as u64);
            return Ok(ReplicateAction::Replaced);
        }
    }
    if let Some(sum) = checksum {
        complete_checksum(packet, sum)?;
        cx.count(Count::Checksums, 1);
    }
    packet.set_offload(&Offload::NONE)?;
    Ok(ReplicateAction::Send(node))
}

impl Node for InterfaceTx {
    const NAME: &'static str = "interface-tx";
    type Next = Next;
    type Count = Count;
    type Trace = PacketTrace;

    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, mut v: Vector<'_, I, Next>) -> Consumed {
        v.require(Col::TX, 0);
        if v.has(Col::OFFLOAD) {
            match self.unmet(&v) {
                0 => {}
                SUM => self.finish_all(cx, &mut v),
                _ => return self.complete(cx, v),
            }
        }
        if let Some(tx) = v.same(Col::TX) {
            return v.send_all_to(self.table.tx_node(tx));
        }
        let nodes = self.nodes.words_mut(v.len()).iter_mut();
        for (node, &tx) in nodes.zip(v.column(Col::TX)) {
            *node = u32::from(self.table.tx_node(tx).0);
        }
        v.send_to(&self.nodes)
    }
}
