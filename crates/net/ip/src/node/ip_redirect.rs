//! ip4-redirect, ip6-redirect: notify a sender that the next hop of its packet is on its own link (RFC 1812, 5.2.7.2; RFC 4861,
//! 8.2). Section 19 of `docs/forwarding-rules.md`.
//!
//! A feature of the unicast arcs, behind those that drop: every packet continues along the arc. On entry and exit the position
//! is at the IP header.

use crate::family::{flow_hash, one_table};
use crate::icmp::{Class, LONGEST, Limits};
use crate::{Icmp, IcmpSwitches, IpTrace, Step};
use std::sync::Arc;
use volley_fib::Af;
use volley_fib::columns::{DESTINATION, DST, DST1, DST2, DST3, FLOW_HASH};
use volley_fib::dataplane::{AdjFacts, DataPlane, DpoKind, View};
use volley_graph::{
    Col, Column, ColumnInfo, Consumed, Cx, Isa, Node, NodeId, PacketView, ReplicateAction,
    Replicator, Vector, counters, nexts, or_all,
};
use volley_iface::IfTable;

nexts! {
    /// Where redirects go.
    pub struct Next<F: Icmp> {
        LOOKUP => F::LOOKUP,
    }
}

counters! {
    /// What the nodes count: packets that leave through the interface that received them.
    pub enum Count {
        /// senders told of a better first hop
        Sent = "sent-redirect" (Info),
        /// not told: the sender is not on one network with the next hop
        NotOnLink = "sender-not-on-link" (Info),
        /// not told: an ICMP error, a later fragment, or a source that is no single host
        Silence = "no-redirect-about-it" (Info),
        /// not told: the next hop's link-local address is not known
        NoTarget = "no-link-local-next-hop" (Info),
        /// not told: too many were told already
        RateLimited = "rate-limited" (Info),
        /// not told: no buffer is free
        NoBuffers = "no-buffers" (Warn),
    }
}

/// State of a redirect node.
pub struct Redirect<F: Icmp> {
    fib: DataPlane<F>,
    switches: Arc<IcmpSwitches>,
    table: Arc<IfTable>,
    limits: Limits,
    work: Work,
}

/// Buffers for one vector.
struct Work {
    step: Step,
    leaf: Column,
    dpo: Column,
    tx: Column,
    facts: Box<[[AdjFacts; 16]]>,
    back: Column,
}

impl<F: Icmp> Redirect<F> {
    /// Node over the FIB and the interface table of the workers, with the rate limits of errors, for vectors of up to `size`
    /// packets.
    pub(crate) fn new(
        fib: DataPlane<F>,
        switches: Arc<IcmpSwitches>,
        table: Arc<IfTable>,
        size: usize,
    ) -> Self {
        let column = || Column::new(size);
        let work = Work {
            step: Step::new(size),
            leaf: column(),
            dpo: column(),
            tx: column(),
            facts: vec![Default::default(); size.div_ceil(16)].into(),
            back: column(),
        };
        Redirect {
            fib,
            switches,
            table,
            limits: Limits::new(),
            work,
        }
    }
}

/// Types of objects that may lead back out of the receiving interface, besides complete adjacencies; one bit each.
const UNSURE: u32 = 1 << DpoKind::Incomplete as u32
    | 1 << DpoKind::Glean as u32
    | 1 << DpoKind::Multi as u32
    | 1 << DpoKind::LookupIn as u32;

/// Whether a packet may leave through the interface that received it.
#[inline(always)]
fn may_go_back(dpo: u32, tx: u32, rx: u32) -> u32 {
    let kind = dpo >> 28;
    let back = (kind == DpoKind::Adj as u32) & (tx == rx);
    u32::from(back) | UNSURE >> kind & 1
}

/// A next hop on the interface that received the packet, with its MAC address if known.
fn next_hop<F: Icmp>(
    view: &View<'_, F>,
    packet: &PacketView<'_>,
    destination: F::Addr,
) -> Option<(F::Addr, Option<[u8; 6]>)> {
    let rx = packet.rx();
    let found = view.follow(view.table_of(rx), destination);
    let found = view.lbs().pick_through(found, flow_hash::<F>(packet));
    match found.kind() {
        DpoKind::Glean => (found.index() == rx).then_some((destination, None)),
        DpoKind::Adj | DpoKind::Incomplete => {
            let adj = view.adj(found.index());
            let hop = F::mapped(adj.next_hop()?).filter(|_| adj.tx_if == rx)?;
            let mac = adj.bytes().first_chunk().filter(|_| found.is_adj());
            Some((hop, mac.copied()))
        }
        _ => None,
    }
}

/// The part of a redirect node that sends one redirect.
struct RedirectSender<'a, F: Icmp> {
    view: View<'a, F>,
    table: &'a IfTable,
    lookup: NodeId,
}

impl<F: Icmp> RedirectSender<'_, F> {
    /// Sends a redirect to the sender of a packet and returns the counter; none if no redirect is due.
    fn tell<I: Isa>(
        &self,
        packet: &PacketView<'_>,
        replicator: &mut Replicator<'_, I>,
        may: impl FnOnce(F::Addr) -> bool,
    ) -> Option<Count> {
        let (source, destination) = F::ends(packet.bytes())?;
        let (hop, mac) = next_hop(&self.view, packet, destination)?;
        if F::silence(packet).is_some() {
            return Some(Count::Silence);
        }
        let own = self.view.own(packet.rx());
        let on_link = |(a, len): &&(F::Addr, u8)| F::first(*a, *len) == F::first(source, *len);
        let mut near = own.iter().filter(on_link);
        // RFC 1812 requires sender and next hop in one network; RFC 4861 requires one link, which the next hop is on.
        let near = match F::AF {
            Af::V6 => near.next(),
            Af::V4 => near.find(|(a, len)| F::first(*a, *len) == F::first(hop, *len)),
        };
        let Some((near, _)) = near.filter(|_| hop != source) else {
            return Some(Count::NotOnLink);
        };
        if !F::is_first_hop(hop, destination) {
            return Some(Count::NoTarget);
        }
        if !may(source) {
            return Some(Count::RateLimited);
        }
        let from = F::redirects_from(own, self.table.mac(packet.rx()), *near);
        let mut message = [0; LONGEST];
        let len = F::write_redirect(&mut message, (hop, mac), (from, source), packet);
        let made = replicator.build(packet, self.lookup, len, |part| {
            part.copy_from_slice(&message[..part.len()])
        });
        Some(made.map_or(Count::NoBuffers, |_| Count::Sent))
    }
}

impl Work {
    /// Sets `back` for packets that may leave through the interface that received them.
    #[inline(always)]
    fn look_up<F: Icmp, I: Isa>(&mut self, view: &View<'_, F>, v: &Vector<'_, I, Next<F>>) {
        let n = v.len();
        let rx = v.column(Col::RX);
        if let Some(table) = one_table(view, rx) {
            let table = view.lpm(table);
            F::lookup_all(v, table, &mut self.step, self.leaf.words_mut(n));
        } else {
            for (row, &rx) in rx.iter().enumerate() {
                let table = view.lpm(view.table_of(rx));
                self.leaf.words_mut(n)[row] = F::leaf(table, F::dst(v, row));
            }
        }
        view.resolve_batch(self.leaf.words(n), self.dpo.words_mut(n));
        let dpo = self.dpo.strips(n);
        let tx = self.tx.strips_mut(n);
        view.adjs().facts_of(dpo, tx, &mut self.facts);
        let from = dpo.iter().zip(tx).zip(v.strips(Col::RX));
        for (back, ((dpo, tx), rx)) in self.back.strips_mut(n).iter_mut().zip(from) {
            for k in 0..16 {
                back[k] = may_go_back(dpo[k], tx[k], rx[k]);
            }
        }
    }
}

impl<F: Icmp> Node for Redirect<F> {
    const NAME: &'static str = F::REDIRECT;
    type Next = Next<F>;
    type Count = Count;
    type Trace = IpTrace;
    const COLUMNS: &'static [ColumnInfo] = &[DST, DST1, DST2, DST3, FLOW_HASH];

    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, mut v: Vector<'_, I, Next<F>>) -> Consumed {
        let n = v.len();
        F::require_dst(&mut v);
        let Redirect {
            fib,
            switches,
            table,
            limits,
            work,
        } = self;
        let view = fib.read(cx.guard());
        work.look_up(&view, &v);
        if or_all(work.back.words(n)) == 0 {
            return v.next_feature();
        }
        // The redirect has another destination; the columns of the packet's flow stay.
        v.forget(&DESTINATION);
        let lookup = v.edge(Next::LOOKUP);
        let teller = RedirectSender {
            view,
            table,
            lookup,
        };
        let (mut rows, now_ns) = (work.back.words(n).iter(), cx.now_ns());
        v.replicate(|packet, replicator| {
            if rows.next().is_some_and(|back| *back != 0) {
                let may = |to| limits.take(switches, Class::Redirect, F::wide(to), now_ns);
                let reported = teller.tell(&packet.view(), replicator, may);
                reported.into_iter().for_each(|count| cx.count(count, 1));
            }
            ReplicateAction::NextFeature
        })
    }
}
