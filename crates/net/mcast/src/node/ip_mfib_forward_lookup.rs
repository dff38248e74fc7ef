//! ip4-mfib-forward-lookup, ip6-mfib-forward-lookup: find the multicast route of a packet: (S,G), else (*,G), else the longest
//! prefix that covers the group (RFC 1812, 5.3.10).
//!
//! On entry the position is at the IP header of a packet to a group that may be forwarded; on exit too, the length is the
//! packet's own, and the `dpo` column has the route's number.

use crate::Mcast;
use crate::table::Plane;
use crate::trace::GroupTrace;
use std::sync::Arc;
use volley_fib::columns::{DPO, GROUP_MTU};
use volley_fib::dataplane::DataPlane;
use volley_graph::{Col, ColumnInfo, Consumed, Cx, Isa, Node, Vector, counters, nexts};
use volley_iface::{Flag, IfTable};
use volley_tables::Snap;

nexts! {
    /// Edges of the lookup nodes.
    pub struct Next<F: Mcast> {
        DROP => "error-drop",
        RPF => F::RPF,
        PUNT => "linux-cp-punt",
    }
}

counters! {
    /// What the lookup nodes count.
    pub enum Count {
        /// no multicast route covers source and group
        NoMroute = "no-mroute" (Error),
        /// the time to live, or the hop limit, is used up: no ICMP error is sent (RFC 1812, 4.3.2.7; RFC 4443, 2.4)
        TtlExpired = "ttl-expired" (Error),
        /// packets of no multicast route, handed to the kernel by the LCP tap of the interface
        ForKernel = "for-kernel" (Info),
    }
}

/// State of a lookup node.
pub struct Lookup<F: Mcast> {
    fib: DataPlane<F>,
    plane: Snap<Plane<F>>,
    table: Arc<IfTable>,
}

impl<F: Mcast> Lookup<F> {
    /// State with the multicast routes, and the FIB for the table of an interface.
    pub fn new(fib: DataPlane<F>, plane: Snap<Plane<F>>, table: Arc<IfTable>) -> Self {
        Lookup { fib, plane, table }
    }
}

impl<F: Mcast> Node for Lookup<F> {
    const NAME: &'static str = F::LOOKUP;
    type Next = Next<F>;
    type Count = Count;
    type Trace = GroupTrace;
    const COLUMNS: &'static [ColumnInfo] = &[GROUP_MTU, DPO];

    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, mut v: Vector<'_, I, Next<F>>) -> Consumed {
        v.forget(&[Col::ERR, GROUP_MTU.col]);
        let (view, plane) = (self.fib.read(cx.guard()), self.plane.read(cx.guard()));
        v.each(|packet| {
            let found = F::ends(packet.bytes()).and_then(|(source, group)| {
                let table = view.table_of(packet.rx());
                plane.find(table, source, group)
            });
            if let Some(id) = found {
                if F::hops(packet.bytes()) <= 1 {
                    packet.fail(cx, Count::TtlExpired);
                    return Next::DROP;
                }
                packet.truncate(F::length(packet.bytes()));
                packet.set(DPO.col, id);
                return Next::RPF;
            }
            if self.table.has(packet.rx(), Flag::HasLcpTap) {
                cx.count(Count::ForKernel, 1);
                return Next::PUNT;
            }
            packet.fail(cx, Count::NoMroute);
            Next::DROP
        })
    }
}
