//! ip4-load-balance, ip6-load-balance: select one of several paths by the flow hash. Section 9 of `docs/forwarding-rules.md`.

use crate::family::flow_hash;
use crate::node::ip_lookup::{Count, Edge, send};
use crate::{Icmp, IpTrace};
use volley_fib::columns::{DPO, FLOW_HASH};
use volley_fib::dataplane::{DataPlane, Dpo};
use volley_graph::{Column, ColumnInfo, Consumed, Cx, Isa, Node, Vector};

/// State of a load-balance node.
pub struct LoadBalance<F: Icmp> {
    fib: DataPlane<F>,
    dpo: Column,
    verdict: Column,
    next: Column,
}

impl<F: Icmp> LoadBalance<F> {
    /// For vectors of up to `size` packets.
    pub fn new(fib: DataPlane<F>, size: usize) -> Self {
        LoadBalance {
            fib,
            dpo: Column::new(size),
            verdict: Column::new(size),
            next: Column::new(size),
        }
    }
}

impl<F: Icmp> Node for LoadBalance<F> {
    const NAME: &'static str = F::LOAD_BALANCE;
    type Next = Edge<F>;
    type Count = Count;
    type Trace = IpTrace;
    const COLUMNS: &'static [ColumnInfo] = &[DPO, FLOW_HASH];

    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, mut v: Vector<'_, I, Edge<F>>) -> Consumed {
        v.require(DPO.col, 0);
        let LoadBalance {
            fib,
            dpo,
            verdict,
            next,
        } = self;
        let view = fib.read(cx.guard());
        let lbs = view.lbs();
        for row in 0..v.len() {
            let multi = Dpo(v.column(DPO.col)[row]);
            let hash = flow_hash::<F>(&v.view(row));
            dpo.words_mut(v.len())[row] = lbs.pick_through(multi, hash).0;
        }
        send(cx, v, dpo, verdict, next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Ip;
    use crate::testing::fib::{address, neighbor, with_interfaces};
    use std::sync::Arc;
    use volley_fib::{Fib, Prefix, Source, V4, Via};
    use volley_graph::Domain;
    use volley_graph::harness::{In, run};

    /// A default route with two paths, through interfaces 0 and 1.
    fn fib(domain: &Arc<Domain>) -> Fib {
        let mut fib = with_interfaces(domain, 2, 1500);
        let mut paths = Vec::new();
        for index in 0..2 {
            address(&mut fib, index, &format!("10.{index}.0.1/16"));
            let hop = format!("10.{index}.0.2");
            neighbor(&mut fib, index, &hop, [1, index as u8]);
            let addr = hop.parse().unwrap();
            paths.push(Via::NextHop { addr, iface: index }.into());
        }
        let all = Prefix::<V4>::around(0, 0);
        fib.set_route(0, all, Source::Static, &paths).unwrap();
        fib
    }

    #[test]
    fn what_is_known_of_a_flow_goes_before_the_packet() {
        let domain = Domain::new();
        let plane = fib(&domain).dataplane4();
        let mut reader = domain.register();
        let multi = plane.read(reader.guard()).follow(0, 0x1400_0001);
        let pick = |hash| {
            let view = plane.read(reader.guard());
            view.lbs().pick_through(multi, hash).0
        };
        assert_ne!(pick(2), pick(3));
        let packets = [1, 2, 3, 4, 5, 6, 7, 8].map(|n| {
            let mut p = vec![0x45, 0, 0, 28, 0, 1, 0, 5, 9, 17, 0, 0];
            p.extend([192, 168, 1, n, 20, 0, 0, 1]);
            p.extend([n; 8]);
            In::new(&p).column(DPO.col, multi.0)
        });
        // A column of zeros means no hash.
        for known in [0, 2, 3, 1 << 31] {
            let given = packets.clone().map(|it| it.column(FLOW_HASH.col, known));
            let nodes = plane.clone();
            let make = move |_| LoadBalance::<V4>::new(nodes.clone(), 256);
            for it in run(&given, &domain, make) {
                assert_eq!(it.to, V4::REWRITE);
                let want = match known {
                    0 => crate::hash4(&it.bytes, 0),
                    known => known,
                };
                assert_eq!(it.columns[&DPO.col], pick(want), "{known}");
            }
        }
        reader.quiescent();
    }
}
