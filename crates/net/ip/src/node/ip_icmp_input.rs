//! ip4-icmp-input, ip6-icmp-input: distribute ICMP messages to the router by type. Lengths and checksums have been checked.

use crate::{Icmp, IpTrace};
use std::marker::PhantomData;
use std::sync::Arc;
use volley_graph::{Consumed, Cx, Isa, Node, Vector, counters, nexts};
use volley_iface::{Flag, IfTable};

nexts! {
    /// Edges of the ICMP input nodes.
    pub struct Next<F: Icmp> in F::ICMP_EDGES => {
        DROP,
        ECHO,
        ANSWER,
        PUNT,
        /// IPv6 only.
        NEIGHBOR,
    }
}

counters! {
    /// What ICMP input counts.
    pub enum Count {
        /// a type or code that the router does not know
        UnknownType = "unknown-type" (Error),
    }
}

/// State of an ICMP input node.
pub struct IcmpInput<F> {
    table: Arc<IfTable>,
    family: PhantomData<F>,
}

impl<F> IcmpInput<F> {
    /// Node over the interface table of the workers.
    pub fn new(table: Arc<IfTable>) -> Self {
        IcmpInput {
            table,
            family: PhantomData,
        }
    }
}

impl<F: Icmp> Node for IcmpInput<F> {
    const NAME: &'static str = F::ICMP_INPUT;
    type Next = Next<F>;
    type Count = Count;
    type Trace = IpTrace;

    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, v: Vector<'_, I, Next<F>>) -> Consumed {
        v.each(|packet| {
            let count = match F::kind(packet.bytes()) {
                Some((kind, 0)) if kind == F::ECHO_REQUEST => return Next::ECHO,
                Some((kind, _)) if F::is_neighbor(kind) => return Next::NEIGHBOR,
                Some((kind, 0)) if kind == F::ECHO_REPLY => return Next::ANSWER,
                Some((kind, _)) if F::is_error(kind) => return Next::ANSWER,
                _ if self.table.has(packet.rx(), Flag::HasLcpTap) => return Next::PUNT,
                _ => Count::UnknownType,
            };
            packet.fail(cx, count);
            Next::DROP
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use volley_fib::V4;
    use volley_graph::Domain;
    use volley_graph::harness::{In, run};
    use volley_iface::IfIdx;

    #[test]
    fn messages_go_by_their_type() {
        let table = IfTable::new(1);
        table.set_lcp_tap(IfIdx(4), Some(IfIdx(9)));
        let at = |kind, code, rx| {
            let mut p = vec![0x45, 0, 0, 28];
            p.resize(20, 0);
            p.extend([kind, code, 0, 0, 0, 0, 0, 0]);
            let table = table.clone();
            let out = run(&[In::new(&p).rx(rx)], &Domain::new(), move |_| {
                IcmpInput::<V4>::new(table.clone())
            });
            out[0].reason.clone().unwrap_or(out[0].to.clone())
        };
        let went = |kind, code| at(kind, code, 0);
        assert_eq!(at(13, 0, 4), "linux-cp-punt");
        assert_eq!(at(8, 0, 4), "ip4-icmp-echo-request");
        assert_eq!(went(8, 0), "ip4-icmp-echo-request");
        assert_eq!(went(8, 1), "unknown-type");
        assert_eq!(went(0, 0), "ping-input");
        assert_eq!(went(3, 4), "ping-input");
        assert_eq!(went(13, 0), "unknown-type");
    }
}
