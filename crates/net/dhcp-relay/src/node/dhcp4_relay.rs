//! dhcp4-relay: forwards requests of clients to servers, and replies of servers to clients (RFC 1542, 4.1; RFC 2131; RFC 3046).
//!
//! On entry the position is at the IP header of a datagram to port 67 for the router; its UDP header is valid and begins at the
//! offset in the column `ip-upper-offset`.

use crate::buffer::Buffer;
use crate::message4::{Circuit, Client, Message, parse};
use crate::packet::{ON_LINK, ROUTED, Unsent, build, header4, payload, send_to_servers};
use crate::port::{CLIENT4, SERVER4};
use crate::relays::{Relay4, Relays};
use crate::trace::DhcpTrace;
use std::net::Ipv4Addr;
use std::sync::Arc;
use volley_fib::V4;
use volley_fib::columns::{FORWARDING, UPPER_OFFSET};
use volley_fib::dataplane::{DataPlane, DpoKind, View};
use volley_graph::{
    Col, ColumnInfo, Consumed, Cx, Isa, Node, NodeId, Packet, ReplicateAction, Replicator, Vector,
    counters, nexts,
};
use volley_iface::{Flag, IfTable};
use volley_tables::Snap;
use volley_wire::eth::EthHeader;
use volley_wire::{EtherType, IntoBytes, MacAddr};

nexts! {
    /// Where dhcp4-relay sends packets.
    pub enum Next {
        Drop => "error-drop", Lookup => "ip4-lookup", Output => "interface-output", Punt => "linux-cp-punt"
    }
}

counters! {
    /// What dhcp4-relay counts.
    pub enum Count {
        /// the message ends inside its fixed part
        TooShort = "too-short" (Error),
        /// the message has no magic cookie, or is neither a request nor a reply
        Malformed = "malformed" (Error),
        /// an option is longer than the message
        BadOption = "bad-option" (Error),
        /// the message is longer than a packet buffer
        TooLong = "too-long" (Error),
        /// a request of an interface that has no relay
        NoRelay = "no-relay" (Error),
        /// 16 relay agents have passed the request on already (RFC 1542, 4.1.1)
        HopLimit = "hop-limit-exceeded" (Error),
        /// a client's request has option 82, and the interface drops such requests (RFC 3046, 2.1.1)
        UntrustedOption = "untrusted-option-82" (Error),
        /// a request names an address of this router as its gateway, which this router did not write
        OwnGateway = "own-gateway" (Error),
        /// the interface has no IPv4 address that servers can reply to
        NoAddress = "no-address" (Error),
        /// no route of the servers' table leads to a server
        NoServer = "no-route-to-server" (Error),
        /// a reply names a gateway that is the address of no relay, or came by another table than that of the servers
        UnknownGateway = "unknown-gateway" (Error),
        /// no packet buffer was free
        NoBuffers = "no-buffers" (Warn),
        /// requests without option 82, because they would become longer than 1500 bytes (RFC 3046, 2.1)
        WithoutOption = "option-82-left-out" (Warn),
        /// requests that were passed on, counted for each server
        Requests = "requests" (Info),
        /// replies that were passed on
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

/// State of dhcp4-relay.
pub struct Dhcp4Relay {
    relays: Snap<Relays>,
    fib: DataPlane<V4>,
    table: Arc<IfTable>,
    /// The received message, and the message to send.
    message: Buffer,
    out: Buffer,
}

impl Dhcp4Relay {
    /// State with the published relays.
    pub fn new(relays: Snap<Relays>, fib: DataPlane<V4>, table: Arc<IfTable>) -> Self {
        Dhcp4Relay {
            relays,
            fib,
            table,
            message: Buffer::default(),
            out: Buffer::default(),
        }
    }
}

/// The address that servers reply to, and that of the clients' network if it differs.
fn gateway(view: &View<'_, V4>, relay: &Relay4) -> Option<(Ipv4Addr, Option<Ipv4Addr>)> {
    let own = own_address(view, relay.common.iface);
    match relay.common.source.map(Ipv4Addr::from_bits) {
        Some(source) => Some((source, own.filter(|own| *own != source))),
        None => Some((own?, None)),
    }
}

fn own_address(view: &View<'_, V4>, iface: u32) -> Option<Ipv4Addr> {
    let own = view.own(iface).first()?;
    Some(Ipv4Addr::from_bits(own.0))
}

/// The relay of a reply: the one that the option names, else the first one with the gateway.
fn relay_of<'r>(
    (relays, view): (&'r Relays, &View<'_, V4>),
    message: &Message<'_>,
    rx: u32,
) -> Option<&'r Relay4> {
    let (to, table) = (message.gateway(), view.table_of(rx));
    let is_gateway = |it: &Relay4| gateway(view, it).is_some_and(|(addr, _)| addr == to);
    let fits = |it: &&Relay4| it.common.table == table && is_gateway(it);
    let circuit = message.circuit();
    let named = |it: &&Relay4| Some(it.common.name.as_bytes()) == circuit && fits(it);
    let found = relays.four.iter().find(named);
    found.or_else(|| relays.four.iter().find(fits))
}

/// Context of the decision about one packet.
struct Decision<'d, 'c> {
    cx: &'d Cx<'c, Count>,
    relays: &'d Relays,
    view: View<'d, V4>,
    table: &'d IfTable,
    lookup: NodeId,
    output: NodeId,
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
        came.read(&view, at, len)?;
        let message = parse(came.bytes())?;
        if message.is_reply() {
            let relay = relay_of((self.relays, &self.view), &message, packet.rx());
            let relay = relay.ok_or(Count::UnknownGateway)?;
            let client = message.to_client(relay.common.name.as_bytes(), self.out)?;
            self.reply(relay, client, packet, made)
        } else {
            let relay = self.relays.of4(packet.rx()).ok_or(Count::NoRelay)?;
            let ours = self.change(relay, &message)?;
            self.request(relay, ours, packet, made)
        }
    }

    /// Writes the request for servers into `out`; returns its source address.
    fn change(&mut self, relay: &Relay4, message: &Message<'_>) -> Result<Ipv4Addr, Count> {
        let view = self.view;
        let (ours, link) = gateway(&view, relay).ok_or(Count::NoAddress)?;
        let [_, _, mac @ ..] = self.table.mac(relay.common.iface).to_be_bytes();
        let remote = relay.remote_id.as_ref();
        let circuit = Circuit {
            name: relay.common.name.as_bytes(),
            remote: remote.map_or(&mac[..], |it| it.as_bytes()),
            link,
        };
        let table = view.table_of(relay.common.iface);
        let local = |addr: Ipv4Addr| view.follow(table, addr.to_bits()).kind() == DpoKind::Local;
        let is_own = |addr| addr == ours || local(addr);
        let policy = (relay.option_82, circuit);
        let left_out = message.to_servers(ours, is_own, policy, self.out)?;
        self.cx.count(Count::WithoutOption, u64::from(left_out));
        Ok(ours)
    }

    /// Sends a request to every server.
    fn request<I: Isa>(
        &mut self,
        relay: &Relay4,
        ours: Ipv4Addr,
        packet: &mut Packet<'_>,
        made: &mut Replicator<'_, I>,
    ) -> Result<(), Count> {
        let message = self.out.bytes();
        let from = (ours, SERVER4);
        let header = |to| header4(from, (Ipv4Addr::from_bits(to), SERVER4), ROUTED, message);
        let (lookup, relayed) = ((&self.view, self.lookup), (&relay.common, message));
        let sent = send_to_servers(lookup, relayed, header, packet, made)?;
        self.cx.count(Count::Requests, sent);
        Ok(())
    }

    /// Sends a reply to its client.
    fn reply<I: Isa>(
        &mut self,
        relay: &Relay4,
        client: Client,
        packet: &mut Packet<'_>,
        made: &mut Replicator<'_, I>,
    ) -> Result<(), Count> {
        let ours = gateway(&self.view, relay).map(|(addr, _)| addr);
        let from = own_address(&self.view, relay.common.iface).or(ours);
        let from = (from.ok_or(Count::NoAddress)?, SERVER4);
        let header = header4(from, (client.addr, CLIENT4), ON_LINK, self.out.bytes());
        let [_, _, mac @ ..] = self.table.mac(relay.common.iface).to_be_bytes();
        let link = EthHeader {
            dst: MacAddr(client.mac),
            src: MacAddr(mac),
            ether_type: EtherType::IP4,
        };
        packet.set(Col::TX, relay.common.iface);
        let parts = [link.as_bytes(), &header, self.out.bytes()];
        if !build(made, packet, self.output, &parts) {
            return Err(Count::NoBuffers);
        }
        self.cx.count(Count::Replies, 1);
        Ok(())
    }
}

/// Whether the kernel receives a message that no relay accepts.
fn for_kernel(why: Count) -> bool {
    matches!(why, Count::NoRelay | Count::UnknownGateway)
}

impl Node for Dhcp4Relay {
    const NAME: &'static str = "dhcp4-relay";
    type Next = Next;
    type Count = Count;
    type Trace = DhcpTrace;
    const COLUMNS: &'static [ColumnInfo] = &[UPPER_OFFSET];

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
            output: v.edge(Next::Output),
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
