//! ip4-glean, ip6-glean: packets whose next hop has no known MAC address. They leave the graph and wait while the control
//! thread resolves the address (RFC 1122, 2.3.2.2). If the resolution fails, they return here and are dropped through the node
//! that sends ICMP errors (RFC 1812, 5.2.7.1; RFC 4861, 7.2.2). Rule 6.6 of `docs/forwarding-rules.md`.
//!
//! On entry the position is at the IP header and the `dpo` column names an attached network or an incomplete adjacency.

use crate::lane::{ControlQueues, HeldForResolution};
use crate::table::Key;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use volley_fib::Family;
use volley_fib::columns::DPO;
use volley_fib::dataplane::{DataPlane, Dpo, DpoKind, View};
use volley_fib::{V4, V6};
use volley_graph::{
    ColumnInfo, Consumed, Cx, HoldAction, Isa, Node, Packet, PacketTrace, Vector, counters, nexts,
};
use volley_iface::{Flag, IfTable};

nexts! {
    /// Edges of the glean nodes: the only one leads to the node that drops packets and sends ICMP errors.
    pub struct Next<F: Gleans> { TELL => F::TELL }
}

counters! {
    /// What glean nodes count.
    pub enum Count {
        /// the next hop has no known MAC address
        Unresolved = "unresolved" (Error),
        /// packets that wait for their next hop's MAC address
        Held = "held" (Info),
        /// packets that were dropped as unresolved because too many wait already
        HoldFull = "hold-full" (Warn),
    }
}

/// What glean nodes need of an IP version.
pub trait Gleans: Family {
    /// Name of the node.
    const NAME: &'static str;
    /// Name of the node that drops packets and sends ICMP errors.
    const TELL: &'static str;
    /// The destination of a packet.
    fn destination(header: &[u8]) -> Option<IpAddr>;
}

impl Gleans for V4 {
    const NAME: &'static str = "ip4-glean";
    const TELL: &'static str = "ip4-icmp-error";
    fn destination(header: &[u8]) -> Option<IpAddr> {
        let bytes: [u8; 4] = header.get(16..20)?.try_into().ok()?;
        Some(Ipv4Addr::from(bytes).into())
    }
}

impl Gleans for V6 {
    const NAME: &'static str = "ip6-glean";
    const TELL: &'static str = "ip6-icmp-error";
    fn destination(header: &[u8]) -> Option<IpAddr> {
        let bytes: [u8; 16] = header.get(24..40)?.try_into().ok()?;
        Some(Ipv6Addr::from(bytes).into())
    }
}

/// State of a glean node.
pub struct Glean<F: Family> {
    fib: DataPlane<F>,
    table: Arc<IfTable>,
    lane: Arc<ControlQueues>,
}

impl<F: Family> Glean<F> {
    /// State for the worker that owns `lane`.
    pub fn new(fib: DataPlane<F>, table: Arc<IfTable>, lane: Arc<ControlQueues>) -> Self {
        Glean { fib, table, lane }
    }
}

/// The next hop of a packet, and whether a route names it.
fn next_hop<F: Gleans>(view: &View<'_, F>, packet: &Packet<'_>) -> Option<(Key, bool)> {
    let dpo = Dpo(packet.get(DPO.col)?);
    match dpo.kind() {
        DpoKind::Glean => {
            let key = (dpo.index(), F::destination(packet.bytes())?);
            Some((key, false))
        }
        DpoKind::Incomplete => {
            let adj = view.adj(dpo.index());
            let address: [u8; 16] = adj.bytes().try_into().ok()?;
            let key = (adj.tx_if, Ipv6Addr::from(address).to_canonical());
            Some((key, true))
        }
        _ => None,
    }
}

/// Returns the next hop that a packet waits for, or why the packet may not wait.
fn may_wait<F: Gleans>(
    view: &View<'_, F>,
    table: &IfTable,
    lane: &ControlQueues,
    packet: &Packet<'_>,
) -> Result<(Key, bool), Count> {
    // A packet whose resolution has failed returns without a next hop.
    let (key, is_next_hop) = next_hop(view, packet).ok_or(Count::Unresolved)?;
    let speaks = match key.1 {
        IpAddr::V4(_) => Flag::Ip4,
        IpAddr::V6(_) => Flag::Ip6,
    };
    let asks = table.has(key.0, Flag::ResolveNeighbors) && table.has(key.0, speaks);
    if !asks {
        return Err(Count::Unresolved);
    }
    if lane.has_room(packet.buffers()) {
        Ok((key, is_next_hop))
    } else {
        Err(Count::HoldFull)
    }
}

impl<F: Gleans> Node for Glean<F> {
    const NAME: &'static str = F::NAME;
    type Next = Next<F>;
    type Count = Count;
    type Trace = PacketTrace;
    const COLUMNS: &'static [ColumnInfo] = &[DPO];

    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, v: Vector<'_, I, Next<F>>) -> Consumed {
        let view = self.fib.read(cx.guard());
        let (table, lane) = (&self.table, &self.lane);
        v.each_or_hold(
            |packet| match may_wait(&view, table, lane, packet) {
                Ok(key) => {
                    cx.count(Count::Held, 1);
                    lane.leave(packet.buffers());
                    HoldAction::Hold(key)
                }
                Err(why) => {
                    if why == Count::HoldFull {
                        cx.count(why, 1);
                    }
                    packet.fail(cx, Count::Unresolved);
                    HoldAction::Send(Next::TELL)
                }
            },
            |(key, is_next_hop), packet| {
                let family = F::AF;
                // The queue has a free slot: its capacity is the number of packets that may be outside the graph.
                let _ = lane.waiting_packets.push(HeldForResolution {
                    key,
                    family,
                    is_next_hop,
                    packet,
                });
            },
        )
    }
}
