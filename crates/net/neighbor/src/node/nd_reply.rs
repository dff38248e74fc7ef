//! nd-reply: answers a solicitation for an address of the router with an advertisement (RFC 4861, 7.2.4), in a new frame that
//! replaces the packet.
//!
//! On entry the position is at the IPv6 header of a solicitation that nd-input accepted; on exit at the Ethernet header, with
//! `TX` filled.

use crate::message::frame_source;
use crate::node::nd_input::{PROXIED, parse};
use std::sync::Arc;
use volley_graph::{
    Col, ColumnInfo, Consumed, Cx, Isa, Node, PacketView, ReplicateAction, Vector, counters, nexts,
};
use volley_iface::IfTable;
use volley_router_discovery::NdTrace;
use volley_router_discovery::nd::FRAME;
use volley_router_discovery::nd::{ALL_NODES, Message, NdMessageOut, group_mac, link_local};

nexts! {
    /// Where nd-reply sends packets.
    pub enum Next { Drop => "error-drop", Output => "interface-output" }
}

counters! {
    /// What nd-reply counts.
    pub enum Count {
        /// solicitations that were answered
        Replies = "replies" (Info),
        /// the packet is no solicitation
        NoSolicitation = "no-solicitation" (Error),
        /// no buffer is free for the answer
        NoBuffers = "no-buffers" (Warn),
    }
}

/// State of nd-reply.
pub struct NdReply {
    table: Arc<IfTable>,
}

impl NdReply {
    /// State with the MAC addresses of the interfaces.
    pub fn new(table: Arc<IfTable>) -> Self {
        NdReply { table }
    }

    /// Builds the answer to a solicitation.
    fn answer(&self, packet: &PacketView<'_>) -> Option<[u8; FRAME]> {
        let found = parse(packet.bytes()).ok()?;
        let [_, _, own @ ..] = self.table.mac(packet.rx()).to_be_bytes();
        // A solicitation from the unspecified address is answered to all nodes.
        let nobody = found.source.is_unspecified();
        let (to, to_mac) = if nobody {
            (ALL_NODES, group_mac(ALL_NODES))
        } else {
            let mac = found.mac.unwrap_or_else(|| frame_source(packet));
            (found.source, mac)
        };
        // A proxy answers with the interface's address and without the override flag (RFC 4861, 7.2.8).
        let (say, from) = match packet.get(PROXIED.col) {
            Some(1) => (NdMessageOut::Proxy, link_local(own)),
            _ => (NdMessageOut::Advertise { solicited: !nobody }, found.target),
        };
        let mut frame = [0; FRAME];
        let message = Message {
            say,
            target: found.target,
            from,
            to,
            own,
            to_mac,
        };
        message.write(&mut frame);
        Some(frame)
    }
}

impl Node for NdReply {
    const NAME: &'static str = "nd-reply";
    type Next = Next;
    type Count = Count;
    type Trace = NdTrace;
    const COLUMNS: &'static [ColumnInfo] = &[PROXIED];

    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, v: Vector<'_, I, Next>) -> Consumed {
        let output = v.edge(Next::Output);
        v.replicate(|packet, replicator| {
            packet.set(Col::TX, packet.rx());
            let parent = packet.view();
            let why = match self.answer(&parent) {
                None => Count::NoSolicitation,
                Some(frame) => {
                    let fill = |part: &mut [u8]| part.copy_from_slice(&frame[..part.len()]);
                    if replicator.build(&parent, output, FRAME, fill).is_some() {
                        cx.count(Count::Replies, 1);
                        return ReplicateAction::Replaced;
                    }
                    Count::NoBuffers
                }
            };
            packet.fail(cx, why);
            ReplicateAction::Drop(Next::Drop)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv6Addr;
    use volley_graph::Domain;
    use volley_graph::harness::{In, run};
    use volley_iface::IfIdx;

    const ME: [u8; 6] = [2, 0, 0, 0, 0, 1];
    const HOST: [u8; 6] = [2, 0, 0, 0, 0, 9];

    /// The answer to a solicitation from `source` for 2001:db8::1.
    fn answer(source: &str, keep: usize) -> (String, Vec<u8>) {
        let (from, target): (Ipv6Addr, Ipv6Addr) =
            (source.parse().unwrap(), "2001:db8::1".parse().unwrap());
        let mut frame = [0; FRAME];
        let to = volley_router_discovery::nd::solicited_node(target);
        let (say, to_mac) = (NdMessageOut::Solicit, group_mac(to));
        Message {
            say,
            target,
            from,
            to,
            own: HOST,
            to_mac,
        }
        .write(&mut frame);
        let mut bytes = frame[..14 + 40 + keep].to_vec();
        bytes[19] = keep as u8;
        // The checksum over the remaining bytes.
        bytes[56..58].fill(0);
        let pseudo =
            volley_wire::checksum::Sum::pseudo6(from, to, volley_wire::IpProto(58), keep as u32);
        let sum = pseudo.bytes(&bytes[54..]).checksum();
        bytes[56..58].copy_from_slice(&sum.to_be_bytes());
        let table = IfTable::new(1);
        table.set_mac(IfIdx(3), ME);
        let packet = In::new(&bytes).rx(3).advance(14);
        let out = run(&[packet], &Domain::new(), move |_| {
            NdReply::new(table.clone())
        });
        if out[0].to == "interface-output" {
            assert_eq!(out[0].columns.get(&Col::TX), Some(&3));
        }
        (out[0].to.clone(), out[0].bytes.clone())
    }

    #[test]
    fn the_answer_goes_to_who_asked() {
        let want = |to: &str, to_mac, solicited| {
            let mut frame = [0; FRAME];
            let target = "2001:db8::1".parse().unwrap();
            let (say, to) = (NdMessageOut::Advertise { solicited }, to.parse().unwrap());
            Message {
                say,
                target,
                from: target,
                to,
                own: ME,
                to_mac,
            }
            .write(&mut frame);
            ("interface-output".to_owned(), frame.to_vec())
        };
        assert_eq!(answer("2001:db8::9", 32), want("2001:db8::9", HOST, true));
        assert_eq!(
            answer("2001:db8::9", 24),
            want("2001:db8::9", HOST, true),
            "by the frame's source"
        );
        assert_eq!(
            answer("::", 24),
            want("ff02::1", [0x33, 0x33, 0, 0, 0, 1], false)
        );
        assert_eq!(answer("2001:db8::9", 20).0, "error-drop");
    }
}
