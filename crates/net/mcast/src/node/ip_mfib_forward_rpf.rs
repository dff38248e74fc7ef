//! ip4-mfib-forward-rpf, ip6-mfib-forward-rpf: drop packets received on an interface that their multicast route does not
//! accept: forwarding them would cause duplicates or loops (RFC 1812, 5.3.10).
//!
//! On entry the `dpo` column has the route's number.

use crate::Mcast;
use crate::table::Plane;
use crate::trace::GroupTrace;
use volley_fib::columns::DPO;
use volley_graph::{ColumnInfo, Consumed, Cx, Isa, Node, Vector, counters, nexts};
use volley_tables::Snap;

nexts! {
    /// Edges of the check.
    pub struct Next<F: Mcast> {
        DROP => "error-drop",
        REPLICATE => F::REPLICATE,
    }
}

counters! {
    /// What the check counts.
    pub enum Count {
        /// the packet was received on an interface that its multicast route does not accept
        RpfFailure = "rpf-failure" (Error),
        /// the multicast route was deleted while the packet was in flight
        Gone = "mroute-gone" (Error),
    }
}

/// State of the check.
pub struct Rpf<F: Mcast> {
    plane: Snap<Plane<F>>,
    worker: usize,
}

impl<F: Mcast> Rpf<F> {
    /// State for worker `worker`.
    pub fn new(plane: Snap<Plane<F>>, worker: usize) -> Self {
        Rpf { plane, worker }
    }
}

impl<F: Mcast> Node for Rpf<F> {
    const NAME: &'static str = F::RPF;
    type Next = Next<F>;
    type Count = Count;
    type Trace = GroupTrace;
    const COLUMNS: &'static [ColumnInfo] = &[DPO];

    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, mut v: Vector<'_, I, Next<F>>) -> Consumed {
        v.require(DPO.col, 0);
        let (plane, worker) = (self.plane.read(cx.guard()), self.worker);
        v.sift(
            |packet| {
                let id = packet.get(DPO.col).unwrap_or(0);
                let Some(entry) = plane.entry(id) else {
                    return packet.fail(cx, Count::Gone);
                };
                if entry.accept.binary_search(&packet.rx()).is_err() {
                    entry.counts.refused(worker);
                    return packet.fail(cx, Count::RpfFailure);
                }
                entry.counts.passed(worker, packet.len() as u64);
                true
            },
            Next::DROP,
        );
        v.send_all(Next::REPLICATE)
    }
}
