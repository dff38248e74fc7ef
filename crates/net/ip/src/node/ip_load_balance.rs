//! ip4-load-balance, ip6-load-balance: pick one of several paths by the flow hash. Section 9 of
//! `docs/forwarding-rules.md`.

use crate::node::ip_lookup::{Count, Edge, send};
use crate::{Icmp, Ip, IpTrace};
use volley_fib::dataplane::{DataPlane, Dpo};
use volley_graph::{Col, Column, Cx, Done, Isa, Node, Vector};

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

    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, mut v: Vector<'_, I, Edge<F>>) -> Done {
        v.require(Col::Dpo, 0);
        let LoadBalance {
            fib,
            dpo,
            verdict,
            next,
        } = self;
        let view = fib.read(cx.guard());
        let lbs = view.lbs();
        for row in 0..v.len() {
            let multi = Dpo(v.column(Col::Dpo)[row]);
            let hash = <F as Ip>::hash(&v.view(row));
            dpo.words_mut(v.len())[row] = lbs.pick_through(multi, hash).0;
        }
        send(cx, v, dpo, verdict, next)
    }
}
