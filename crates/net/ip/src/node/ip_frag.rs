//! ip4-frag, ip6-frag: fragment packets that exceed the MTU of the egress link (RFC 791, 3.2; RFC 1812, 4.2.2.7; RFC 8200,
//! 4.5). For IPv6 only packets of the router. Rule 7.2 of `docs/forwarding-rules.md`.
//!
//! On entry and exit the position is at the IP header, and the `dpo` column has the adjacency, or `TX` has the interface of a
//! multicast packet. The fragments are sent to the rewrite node, which processes each of them like any packet.

use crate::cut::{Cuts, Ids};
use crate::{Icmp, IpTrace};
use std::collections::hash_map::RandomState;
use std::sync::Arc;
use volley_fib::columns::DPO;
use volley_fib::dataplane::{DataPlane, Dpo};
use volley_graph::{
    Col, ColumnInfo, Consumed, Cx, Isa, Node, NodeId, Offload, Packet, PacketView, ReplicateAction,
    Replicator, Vector, counters, nexts,
};
use volley_iface::{IfTable, Payload, finish_checksum};
use volley_wire::checksum::Sum;

nexts! {
    /// Edges of the fragmentation nodes.
    pub struct Next<F: Icmp> {
        DROP => "error-drop",
        REWRITE => F::REWRITE,
        GROUP => F::REWRITE_MCAST,
    }
}

counters! {
    /// What the fragmentation nodes count.
    pub enum Count {
        /// packets that were cut into fragments
        Fragmented = "fragmented" (Info),
        /// fragments that they were cut into
        Fragments = "fragments" (Info),
        /// the link takes not even eight bytes behind the IP header
        MtuTooSmall = "mtu-too-small" (Error),
        /// the segments of a super-segment are too long for the link
        SuperSegment = "super-segment" (Error),
        /// the checksum that is to be finished does not fit the packet
        BadOffload = "bad-offload" (Error),
        /// no packet buffer was free for a fragment
        NoBuffers = "no-buffers" (Error),
    }
}

/// State of a fragmentation node.
pub struct Frag<F: Icmp> {
    fib: DataPlane<F>,
    table: Arc<IfTable>,
    ids: Ids,
}

impl<F: Icmp> Frag<F> {
    /// Node of worker `worker`, over the FIB and the interfaces, which have the MTUs. `hasher` is the same for all workers.
    pub fn new(
        (fib, table): (DataPlane<F>, Arc<IfTable>),
        hasher: RandomState,
        worker: usize,
    ) -> Self {
        let ids = Ids::new(hasher, worker);
        Frag { fib, table, ids }
    }
}

/// Fragments a packet for `node`; returns the number of fragments.
fn fragment<F: Cuts, I: Isa>(
    packet: &PacketView<'_>,
    mtu: usize,
    (node, ids): (NodeId, &mut Ids),
    out: &mut Replicator<'_, I>,
) -> Result<usize, Count> {
    let cut = F::cut(packet, mtu, ids).ok_or(Count::MtuTooSmall)?;
    let mut from = Payload::new(packet, cut.skip).ok_or(Count::BadOffload)?;
    let (mut made, mut at) = (0, 0);
    while at < cut.payload {
        let part = cut.part(at);
        let mut copied = 0;
        let first = out.build(packet, node, cut.head + part, |buffer| {
            let head = cut.write(copied, buffer);
            from.read(&mut buffer[head..], &mut Sum::new());
            copied += buffer.len();
        });
        F::dress(&cut, first.ok_or(Count::NoBuffers)?, at, part);
        (made, at) = (made + 1, at + part);
    }
    Ok(made)
}

/// Completes the pending offload work of the whole packet before fragmentation.
fn complete(packet: &mut Packet<'_>) -> Result<(), Count> {
    let Offload { checksum, gso } = packet.offload();
    if gso.is_some() {
        return Err(Count::SuperSegment);
    }
    if let Some(sum) = checksum {
        finish_checksum(packet, sum).map_err(|_| Count::BadOffload)?;
        packet
            .set_offload(&Offload::NONE)
            .map_err(|_| Count::BadOffload)?;
    }
    Ok(())
}

impl<F: Icmp> Node for Frag<F> {
    const NAME: &'static str = F::FRAGMENT;
    type Next = Next<F>;
    type Count = Count;
    type Trace = IpTrace;
    const COLUMNS: &'static [ColumnInfo] = &[DPO];

    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, mut v: Vector<'_, I, Next<F>>) -> Consumed {
        v.forget(&[Col::ERR]);
        v.require(DPO.col, 0);
        let Frag { fib, table, ids } = self;
        let adjs = fib.read(cx.guard()).adjs();
        let (one_host, group) = (v.edge(Next::REWRITE), v.edge(Next::GROUP));
        v.replicate(|packet, out| {
            // Replicas of a multicast packet have no adjacency but an interface.
            let (mtu, rewrite) = if F::is_for_group(packet.bytes()) {
                let tx = packet.get(Col::TX).unwrap_or(u32::MAX);
                (table.mtu(tx) as usize, group)
            } else {
                let dpo = Dpo(packet.get(DPO.col).unwrap_or(0));
                (usize::from(adjs.words(dpo.index()).facts.mtu()), one_host)
            };
            let made = complete(packet)
                .and_then(|()| fragment::<F, I>(&packet.view(), mtu, (rewrite, ids), out));
            match made {
                Ok(fragments) => {
                    cx.count(Count::Fragmented, 1);
                    cx.count(Count::Fragments, fragments as u64);
                    ReplicateAction::Replaced
                }
                Err(why) => {
                    packet.fail(cx, why);
                    ReplicateAction::Drop(Next::DROP)
                }
            }
        })
    }
}
