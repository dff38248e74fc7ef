//! dhcp6-relay: forwards messages of clients and of other relay agents to servers, and the servers' replies back (RFC 8415,
//! 19).
//!
//! On entry the position is at the IP header of a datagram to port 547 for the router; its UDP header is valid and begins at
//! the offset in the column `ip-upper-offset`.

use crate::buffer::Buffer;
use crate::message6::{Reply, from_server, is_from_server, to_servers};
use crate::packet::{ON_LINK, ROUTED, Unsent, build, header6, payload, send_to_servers};
use crate::port::{CLIENT6, SERVER6};
use crate::relays::{Relay6, Relays};
use crate::trace::DhcpTrace;
use std::net::Ipv6Addr;
use std::sync::Arc;
use volley_fib::V6;
use volley_fib::columns::{DPO, FORWARDING, UPPER_OFFSET};
use volley_fib::dataplane::{DataPlane, Dpo, DpoKind, View};
use volley_graph::{
    Col, ColumnInfo, Consumed, Cx, Isa, Node, NodeId, Packet, ReplicateAction, Replicator, Vector,
    counters, nexts,
};
use volley_iface::{Flag, IfTable};
use volley_tables::Snap;
use volley_wire::MacAddr;

nexts! {
    /// Where dhcp6-relay sends packets.
    pub enum Next {
        Drop => "error-drop", Lookup => "ip6-lookup", Glean => "ip6-glean", Punt => "linux-cp-punt"
    }
}

counters! {
    /// What dhcp6-relay counts.
    pub enum Count {
        /// the message ends inside its fixed part
        TooShort = "too-short" (Error),
        /// an option is longer than the message
        BadOption = "bad-option" (Error),
        /// the message is longer than a packet buffer
        TooLong = "too-long" (Error),
        /// a message of a client, on an interface that has no relay
        NoRelay = "no-relay" (Error),
        /// 8 relay agents have passed the message on already (RFC 8415, 19.1.2)
        HopLimit = "hop-limit-exceeded" (Error),
        /// a message that only servers send, from a client
        UnexpectedType = "unexpected-type" (Error),
        /// the interface has no IPv6 address that servers can reply to
        NoAddress = "no-address" (Error),
        /// no route of the servers' table leads to a server
        NoServer = "no-route-to-server" (Error),
        /// a Relay-reply message has no message for the client
        NoMessage = "no-relay-message" (Error),
        /// the peer address of a Relay-reply message is not that of a host
        BadPeer = "bad-peer-address" (Error),
        /// a Relay-reply message names no interface with a relay, or came by another table than that of the servers
        UnknownInterface = "unknown-interface" (Error),
        /// no packet buffer was free
        NoBuffers = "no-buffers" (Warn),
        /// Relay-forward messages, counted for each server
        Forwards = "relay-forwards" (Info),
        /// messages of Relay-reply messages that were passed on
        Replies = "replies" (Info),
    }
}

impl From<Unsent> for Count {
    fn from(unsent: Unsent) -> Self {
        match unsent {
            Unsent::NoRoute => Count::NoServer,
            Unsent::NoBuffers => Count::NoBuffers,
        }
    }
}

/// State of dhcp6-relay.
pub struct Dhcp6Relay {
    relays: Snap<Relays>,
    fib: DataPlane<V6>,
    table: Arc<IfTable>,
    /// The received message, and the message to send.
    message: Buffer,
    out: Buffer,
}

impl Dhcp6Relay {
    /// State with the published relays.
    pub fn new(relays: Snap<Relays>, fib: DataPlane<V6>, table: Arc<IfTable>) -> Self {
        Dhcp6Relay {
            relays,
            fib,
            table,
            message: Buffer::default(),
            out: Buffer::default(),
        }
    }
}

/// The addresses of an interface in the order of their configuration.
fn own<'v>(view: &View<'v, V6>, iface: u32) -> impl Iterator<Item = Ipv6Addr> + use<'v> {
    let all = view.own(iface).iter();
    all.map(|(addr, _)| Ipv6Addr::from_bits(*addr))
}

/// The first address of an interface that is reachable from other networks.
fn global(view: &View<'_, V6>, iface: u32) -> Option<Ipv6Addr> {
    own(view, iface).find(|addr| !addr.is_unicast_link_local())
}

/// The link-local address of an interface: a configured one, or the one formed from its MAC address (RFC 4291, appendix A).
fn link_local(view: &View<'_, V6>, table: &IfTable, iface: u32) -> Ipv6Addr {
    let own = own(view, iface).find(Ipv6Addr::is_unicast_link_local);
    own.unwrap_or_else(|| {
        let [_, _, mac @ ..] = table.mac(iface).to_be_bytes();
        MacAddr(mac).link_local()
    })
}

/// The relay of a reply: the one that its interface ID names, else the one with its link address.
fn relay_of<'r>(
    (relays, view): (&'r Relays, &View<'_, V6>),
    reply: &Reply<'_>,
    rx: u32,
) -> Option<&'r Relay6> {
    let table = view.table_of(rx);
    let named = |it: &Relay6| match reply.name {
        Some(name) => it.name.as_bytes() == name,
        None => own(view, it.iface).any(|addr| addr == reply.link),
    };
    let mut all = relays.six.iter();
    all.find(|it| it.table == table && named(it))
}

/// Context of the decision about one packet.
struct Decision<'d, 'c> {
    cx: &'d Cx<'c, Count>,
    relays: &'d Relays,
    view: View<'d, V6>,
    table: &'d IfTable,
    lookup: NodeId,
    glean: NodeId,
    out: &'d mut Buffer,
}

impl Decision<'_, '_> {
    /// Handles one packet: sends the resulting packets, or returns why it is dropped.
    fn decide<I: Isa>(
        &mut self,
        came: &mut Buffer,
        packet: &mut Packet<'_>,
        made: &mut Replicator<'_, I>,
    ) -> Result<(), Count> {
        let view = packet.view();
        let (at, len) = payload(&view).ok_or(Count::TooShort)?;
        let address = |at: usize| -> Option<Ipv6Addr> {
            let octets: [u8; 16] = view.bytes().get(at..at + 16)?.try_into().ok()?;
            Some(octets.into())
        };
        let peer = address(8).ok_or(Count::TooShort)?;
        let to_group = address(24).is_some_and(|to| to.is_multicast());
        came.read(&view, at, len)?;
        if is_from_server(came.bytes()) && !to_group {
            return self.reply(from_server(came.bytes())?, packet, made);
        }
        let relay = self.relays.of6(packet.rx()).ok_or(Count::NoRelay)?;
        let link = global(&self.view, relay.iface);
        let from = relay
            .source
            .map(Ipv6Addr::from_bits)
            .or(link)
            .ok_or(Count::NoAddress)?;
        let circuit = (link, relay.name.as_bytes());
        to_servers(came.bytes(), peer, circuit, self.out)?;
        self.forward(relay, from, packet, made)
    }

    /// Sends a Relay-forward message to every server.
    fn forward<I: Isa>(
        &mut self,
        relay: &Relay6,
        from: Ipv6Addr,
        packet: &mut Packet<'_>,
        made: &mut Replicator<'_, I>,
    ) -> Result<(), Count> {
        let message = self.out.bytes();
        let from = (from, SERVER6);
        let header = |to| header6(from, (Ipv6Addr::from_bits(to), SERVER6), ROUTED, message);
        let (lookup, relayed) = ((&self.view, self.lookup), (relay, message));
        let sent = send_to_servers(lookup, relayed, header, packet, made)?;
        self.cx.count(Count::Forwards, sent);
        Ok(())
    }

    /// Sends the inner message of a Relay-reply message to its peer.
    fn reply<I: Isa>(
        &mut self,
        reply: Reply<'_>,
        packet: &mut Packet<'_>,
        made: &mut Replicator<'_, I>,
    ) -> Result<(), Count> {
        let relay = relay_of((self.relays, &self.view), &reply, packet.rx());
        let relay = relay.ok_or(Count::UnknownInterface)?;
        let near = reply.peer.is_unicast_link_local();
        let from = match near {
            true => link_local(&self.view, self.table, relay.iface),
            false => {
                let own = global(&self.view, relay.iface).or(relay.source.map(Ipv6Addr::from_bits));
                own.ok_or(Count::NoAddress)?
            }
        };
        let port = if reply.is_for_agent() {
            SERVER6
        } else {
            CLIENT6
        };
        let hops = if near { ON_LINK } else { ROUTED };
        let header = header6((from, SERVER6), (reply.peer, port), hops, reply.message);
        packet.set(Col::RX, relay.iface);
        packet.set(DPO.col, Dpo::new(DpoKind::Glean, relay.iface).0);
        // No lookup finds a link-local address: the glean node sends the packet on the interface.
        let node = if near { self.glean } else { self.lookup };
        if !build(made, packet, node, &[&header, reply.message]) {
            return Err(Count::NoBuffers);
        }
        self.cx.count(Count::Replies, 1);
        Ok(())
    }
}

/// Whether the kernel receives a message that no relay accepts.
fn for_kernel(why: Count) -> bool {
    matches!(why, Count::NoRelay | Count::UnknownInterface)
}

impl Node for Dhcp6Relay {
    const NAME: &'static str = "dhcp6-relay";
    type Next = Next;
    type Count = Count;
    type Trace = DhcpTrace;
    const COLUMNS: &'static [ColumnInfo] = &[DPO, UPPER_OFFSET];

    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, mut v: Vector<'_, I, Next>) -> Consumed {
        v.forget(&FORWARDING);
        let came = &mut self.message;
        let punt = v.edge(Next::Punt);
        let mut decision = Decision {
            cx,
            relays: self.relays.read(cx.guard()),
            view: self.fib.read(cx.guard()),
            table: &self.table,
            lookup: v.edge(Next::Lookup),
            glean: v.edge(Next::Glean),
            out: &mut self.out,
        };
        v.replicate(|packet, made| {
            let why = match decision.decide(came, packet, made) {
                Ok(()) => return ReplicateAction::Replaced,
                Err(why) => why,
            };
            if for_kernel(why) && decision.table.has(packet.rx(), Flag::HasLcpTap) {
                return ReplicateAction::Send(punt);
            }
            packet.fail(cx, why);
            ReplicateAction::Drop(Next::Drop)
        })
    }
}

#[cfg(test)]
mod tests;
