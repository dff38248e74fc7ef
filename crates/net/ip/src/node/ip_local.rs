//! ip4-local, ip6-local: packets for the router. ICMP messages and UDP datagrams to the port of a feature are delivered. The
//! sender of any other packet gets an ICMP error (RFC 1122, 3.2.2.1; RFC 4443, 3.1 and 3.4). Section 12 of
//! `docs/forwarding-rules.md`.

use crate::local::{listener, protocol_listener};
use crate::{Icmp, IpTrace};
use std::marker::PhantomData;
use std::sync::Arc;
use volley_fib::columns::{FORWARDING, UPPER_OFFSET};
use volley_graph::{ColumnInfo, Consumed, Cx, Isa, NextNode, Node, Vector, counters, nexts};
use volley_iface::{Flag, IfTable};

nexts! {
    /// Edges of the local delivery nodes.
    pub struct Next<F: Icmp> {
        DROP => "error-drop",
        ERROR => F::ICMP_ERROR,
        ICMP => F::ICMP_INPUT,
        PUNT => "linux-cp-punt",
        REASSEMBLY => F::HANDOFF,
    }
}

counters! {
    /// What local delivery counts.
    pub enum Count {
        /// the headers do not fit the packet
        Malformed = "malformed" (Error),
        /// fragments for the router, which are reassembled
        Fragment = "fragment" (Info),
        /// an option for the destination is unknown and must not be ignored
        UnknownOption = "unknown-option" (Error),
        /// a routing header asks the router to send the packet on (RFC 5095)
        SourceRoute = "source-route" (Error),
        /// the ICMP message ends inside its header
        IcmpTooShort = "icmp-too-short" (Error),
        /// the ICMP checksum is wrong
        BadIcmpChecksum = "bad-icmp-checksum" (Error),
        /// the UDP length does not fit the packet
        BadUdpLength = "bad-udp-length" (Error),
        /// the UDP checksum is wrong
        BadUdpChecksum = "bad-udp-checksum" (Error),
        /// no listener has the UDP port
        PortUnreachable = "port-unreachable" (Error),
        /// no listener accepts TCP
        NoTcpListener = "no-tcp-listener" (Error),
        /// the router does not speak the protocol
        ProtocolUnreachable = "protocol-unreachable" (Error),
        /// nothing is behind the headers
        NoPayload = "no-payload" (Error),
    }
}

/// State of a local delivery node.
pub struct Local<F> {
    table: Arc<IfTable>,
    family: PhantomData<F>,
}

impl<F> Local<F> {
    /// Node over the interface table of the workers.
    pub fn new(table: Arc<IfTable>) -> Self {
        Local {
            table,
            family: PhantomData,
        }
    }
}

/// Whether the kernel may have a listener that the router lacks.
fn for_kernel(count: Count) -> bool {
    matches!(
        count,
        Count::PortUnreachable | Count::NoTcpListener | Count::ProtocolUnreachable
    )
}

/// The edge for a drop: the error node if an ICMP error may be due.
fn edge<F: Icmp>(count: Count) -> Next<F> {
    match count {
        Count::Malformed
        | Count::UnknownOption
        | Count::SourceRoute
        | Count::PortUnreachable
        | Count::ProtocolUnreachable => Next::ERROR,
        _ => Next::DROP,
    }
}

impl<F: Icmp> Node for Local<F> {
    const NAME: &'static str = F::LOCAL;
    type Next = Next<F>;
    type Count = Count;
    type Trace = IpTrace;
    const COLUMNS: &'static [ColumnInfo] = &[UPPER_OFFSET];

    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, mut v: Vector<'_, I, Next<F>>) -> Consumed {
        v.forget(&FORWARDING);
        v.each_to(|packet| {
            let Some(count) = F::refusal(&packet.view()) else {
                return NextNode::Edge(Next::ICMP);
            };
            if count == Count::Fragment {
                cx.count(count, 1);
                return NextNode::Edge(Next::REASSEMBLY);
            }
            let found = match count {
                Count::PortUnreachable => listener::<F>(&self.table, &packet.view()),
                Count::ProtocolUnreachable => protocol_listener::<F>(&self.table, &packet.view()),
                _ => None,
            };
            if let Some((node, at)) = found {
                packet.set(UPPER_OFFSET.col, at as u32);
                return NextNode::Node(node);
            }
            if for_kernel(count) && self.table.has(packet.rx(), Flag::HasLcpTap) {
                return NextNode::Edge(Next::PUNT);
            }
            packet.fail(cx, count);
            NextNode::Edge(edge(count))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::local::Deliver;
    use volley_fib::{Family, V4 as F4};
    use volley_fib::{V4, V6};
    use volley_graph::harness::{In, run};
    use volley_graph::{Counters, Domain, NodeId};
    use volley_iface::IfIdx;

    fn at<F: Icmp + Deliver>(packet: In) -> (String, Option<String>) {
        let table = IfTable::new(1);
        table.set_lcp_tap(IfIdx(4), Some(IfIdx(9)));
        let out = run(&[packet], &Domain::new(), move |_| {
            Local::<F>::new(table.clone())
        });
        (out[0].to.clone(), out[0].reason.clone())
    }

    fn went<F: Icmp + Deliver>(bytes: &[u8]) -> (String, Option<String>) {
        at::<F>(In::new(bytes))
    }

    #[test]
    fn with_a_tap_the_kernel_gets_what_nobody_here_listens_for() {
        let at = |bytes: Vec<u8>| at::<V4>(In::new(&bytes).rx(4)).0;
        for sound in [
            ip4(6, 0, &[0; 20]),
            ip4(17, 0, &[0, 7, 0, 9, 0, 8, 0, 0]),
            ip4(89, 0, &[0; 24]),
        ] {
            assert_eq!(at(sound), "linux-cp-punt");
        }
        let ping = [8, 0, 0xe1, 0xc4, 0x12, 0x34, 0, 1, 1, 2, 3, 4];
        let fragment = ip4(17, 0x2000, &[0; 8]);
        assert_eq!(at(fragment), "ip4-full-reassembly-handoff");
        assert_eq!(at(ip4(1, 0, &ping)), "ip4-icmp-input");
        assert_eq!(at(ip4(17, 0, &[0, 7, 0, 9, 0, 9, 0, 0])), "error-drop");
    }

    #[test]
    fn datagrams_go_to_the_node_that_listens_on_their_port() {
        let table = IfTable::new(1);
        table.set_lcp_tap(IfIdx(4), Some(IfIdx(9)));
        // This node is not in the bench: the packet ends in the drop node without a reason.
        let node = NodeId(999);
        table.listen_udp(F4::AF, 9, node, true).unwrap();
        let went = |table: &Arc<IfTable>, bytes: &[u8]| {
            let table = table.clone();
            let out = run(&[In::new(bytes).rx(4)], &Domain::new(), move |_| {
                Local::<F4>::new(table.clone())
            });
            let at = out[0].columns.get(&UPPER_OFFSET.col).copied();
            (out[0].to.clone(), out[0].reason.clone(), at)
        };
        let udp = |port: u8| ip4(17, 0, &[0, 7, 0, port, 0, 8, 0, 0]);
        let mut options = ip4(17, 0, &[1, 1, 1, 0, 0, 7, 0, 9, 0, 8, 0, 0]);
        options[0] = 0x46;
        let punted = ("linux-cp-punt".to_owned(), None, None);
        for (bytes, at) in [(udp(9), 20), (options, 24)] {
            let taken = ("error-drop".to_owned(), None, Some(at));
            assert_eq!(went(&table, &bytes), taken);
        }
        assert_eq!(went(&table, &udp(8)), punted);
        table.listen_udp(F4::AF, 9, node, false).unwrap();
        assert_eq!(went(&table, &udp(9)), punted);
    }

    #[test]
    fn packets_go_to_the_node_that_listens_to_their_protocol() {
        let table = IfTable::new(1);
        // This node is not in the bench: the packet ends in the drop node without a reason.
        let node = NodeId(999);
        table.listen_ip(F4::AF, 253, node, true).unwrap();
        let went = |table: &Arc<IfTable>, protocol: u8| {
            let table = table.clone();
            let packet = In::new(&ip4(protocol, 0, &[1, 2, 3, 4]));
            let out = run(&[packet], &Domain::new(), move |_| {
                Local::<F4>::new(table.clone())
            });
            let at = out[0].columns.get(&UPPER_OFFSET.col).copied();
            (out[0].to.clone(), out[0].reason.clone(), at)
        };
        // The bench has reasons only of packets in the drop node.
        let refused = ("ip4-icmp-error".to_owned(), None, None);
        assert_eq!(went(&table, 253), ("error-drop".to_owned(), None, Some(20)));
        assert_eq!(went(&table, 252), refused);
        table.listen_ip(F4::AF, 253, node, false).unwrap();
        assert_eq!(went(&table, 253), refused);
    }

    fn ip4(proto: u8, fragment: u16, body: &[u8]) -> Vec<u8> {
        let mut p = vec![0x45, 0, 0, 20 + body.len() as u8, 0, 0];
        p.extend(fragment.to_be_bytes());
        p.extend([9, proto, 0, 0, 192, 0, 2, 9, 192, 0, 2, 1]);
        p.extend(body);
        p
    }

    #[test]
    fn ip4_goes_to_icmp_or_is_refused_by_name() {
        let ping = [8, 0, 0xe1, 0xc4, 0x12, 0x34, 0, 1, 1, 2, 3, 4];
        let bad = [8, 0, 0xe1, 0xc5, 0x12, 0x34, 0, 1, 1, 2, 3, 4];
        let udp = [0, 7, 0, 9, 0, 8, 0, 0];
        let cases: [(Vec<u8>, &str, Option<Count>); 11] = [
            (ip4(1, 0, &ping), "ip4-icmp-input", None),
            (ip4(1, 0x4000, &ping), "ip4-icmp-input", None),
            (ip4(1, 0x2000, &ping), "ip4-full-reassembly-handoff", None),
            (ip4(1, 1, &ping), "ip4-full-reassembly-handoff", None),
            (ip4(1, 0, &bad), "error-drop", Some(Count::BadIcmpChecksum)),
            (
                ip4(1, 0, &ping[..7]),
                "error-drop",
                Some(Count::IcmpTooShort),
            ),
            (ip4(17, 0, &udp), "ip4-icmp-error", None),
            (
                ip4(17, 0, &udp[..7]),
                "error-drop",
                Some(Count::BadUdpLength),
            ),
            (
                ip4(17, 0, &[0, 7, 0, 9, 0, 8, 1, 1]),
                "error-drop",
                Some(Count::BadUdpChecksum),
            ),
            (
                ip4(6, 0, &[0; 20]),
                "error-drop",
                Some(Count::NoTcpListener),
            ),
            (ip4(132, 0, &[0; 20]), "ip4-icmp-error", None),
        ];
        for (bytes, to, count) in cases {
            let want = count.map(|c| Count::INFO[c.index()].name.to_owned());
            assert_eq!(went::<V4>(&bytes), (to.to_owned(), want), "{bytes:02x?}");
        }
    }

    #[test]
    fn ip6_reads_headers_first() {
        let ip6 = |first, body: &[u8]| {
            let mut p = vec![0x60, 0, 0, 0, 0, body.len() as u8, first, 9];
            p.extend([0x20; 32]);
            p.extend(body);
            p
        };
        let ping = [128, 0, 0x67, 0x7c, 0x12, 0x34, 0, 1, 1, 2, 3, 4];
        let behind = [&[58, 0, 1, 4, 0, 0, 0, 0], &ping[..]].concat();
        assert_eq!(went::<V6>(&ip6(58, &ping)).0, "ip6-icmp-input");
        assert_eq!(went::<V6>(&ip6(60, &behind)).0, "ip6-icmp-input");
        let udp = [0, 7, 0, 9, 0, 8, 0, 0];
        let reason = |first, body: &[u8]| went::<V6>(&ip6(first, body)).1.unwrap_or_default();
        assert_eq!(reason(17, &udp), "bad-udp-checksum", "none is no checksum");
        assert_eq!(reason(59, &[]), "no-payload");
        let fragment = ip6(44, &[17, 0, 0, 1, 0, 0, 0, 0]);
        assert_eq!(went::<V6>(&fragment).0, "ip6-full-reassembly-handoff");
        assert_eq!(went::<V6>(&ip6(50, &[0; 8])).0, "ip6-icmp-error");
        assert_eq!(went::<V6>(&ip6(60, &[17, 3, 1, 4])).0, "ip6-icmp-error");
    }
}
