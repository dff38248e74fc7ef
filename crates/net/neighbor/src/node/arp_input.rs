//! arp-input: checks received ARP packets, passes requests for the router's addresses to arp-reply, and reports new information
//! to the control thread (RFC 826; RFC 5227, 2.4). The order of the checks is section 14 of `docs/forwarding-rules.md`.
//!
//! On entry and on exit the position is after the Ethernet header.

use crate::arping;
use crate::claim;
use crate::lane::{ControlQueues, NeighborMessage, NeighborMessageKind};
use crate::proxy::Proxies;
use crate::trace::ArpTrace;
use crate::way::InterfaceRoutes;
use std::sync::Arc;
use volley_fib::V4;
use volley_fib::dataplane::{DataPlane, DpoKind};
use volley_graph::{Consumed, Cx, HoldAction, Isa, Node, Packet, Vector, counters, nexts};
use volley_iface::{Flag, IfTable};
use volley_tables::Snap;
use volley_wire::arp::{ArpPacket, REPLY, REQUEST};

/// Bytes of an ARP packet.
const LENGTH: usize = 28;

nexts! {
    /// Where arp-input sends packets.
    pub enum Next { Drop => "error-drop", Reply => "arp-reply", Punt => "linux-cp-punt" }
}

counters! {
    /// What arp-input counts.
    pub enum Count {
        /// the frame ends inside the ARP packet
        TooShort = "too-short" (Error),
        /// hardware type, protocol or address lengths are not those of IPv4 over Ethernet
        BadFormat = "bad-format" (Error),
        /// the operation is neither request nor reply
        BadOperation = "bad-operation" (Error),
        /// the receiving interface has no IPv4 address
        NotEnabled = "not-enabled" (Error),
        /// the sender's MAC address is zero or a group's
        BadSenderMac = "bad-sender-mac" (Error),
        /// the sender's address is one that no host may use
        BadSenderAddress = "bad-sender-address" (Error),
        /// a frame that this router sent was received again
        OwnFrame = "own-frame" (Warn),
        /// the sender has the MAC address of the receiving interface: two stations have the same, or the link is a loop
        OwnMac = "own-mac" (Warn),
        /// another host claims an address of this router
        AddressConflict = "address-conflict" (Error),
        /// the route to the sender does not lead out by the receiving interface
        SenderElsewhere = "sender-elsewhere" (Error),
        /// the target is no address of the receiving interface
        NotForUs = "not-for-us" (Info),
        /// a reply, but neighbours of the receiving interface are not learned
        StaticOnly = "static-only" (Warn),
        /// replies that were reported to the control thread
        Answers = "answers" (Info),
        /// requests and announcements that were reported to the control thread
        Reported = "told" (Info),
        /// requests for addresses that are reached through another interface, answered by proxy ARP
        Proxied = "proxied" (Info),
        /// messages that were not reported to the control thread because the queue was full
        TellFull = "tell-full" (Warn),
    }
}

/// State of arp-input.
pub struct ArpInput {
    fib: DataPlane<V4>,
    table: Arc<IfTable>,
    proxies: Snap<Proxies>,
    lane: Arc<ControlQueues>,
}

impl ArpInput {
    /// State for the worker that owns `lane`.
    pub fn new(
        fib: DataPlane<V4>,
        (table, proxies): (Arc<IfTable>, Snap<Proxies>),
        lane: Arc<ControlQueues>,
    ) -> Self {
        ArpInput {
            fib,
            table,
            proxies,
            lane,
        }
    }
}

/// Result of the checks of an ARP packet.
struct Verdict {
    /// Drop reason; none for a request that is answered and for an accepted reply.
    refused: Option<Count>,
    /// Message for the control thread.
    tell: Option<NeighborMessage>,
    answered: bool,
    /// Whether the request is answered as a proxy.
    proxied: bool,
}

impl From<Count> for Verdict {
    fn from(why: Count) -> Self {
        Verdict {
            refused: Some(why),
            tell: None,
            answered: false,
            proxied: false,
        }
    }
}

/// Checks the packet against rules 14.1 to 14.3.
fn parse(bytes: &[u8]) -> Result<&ArpPacket, Count> {
    if bytes.len() < LENGTH {
        return Err(Count::TooShort);
    }
    let arp = ArpPacket::parse(bytes).map_err(|_| Count::BadFormat)?;
    match arp.operation.get() {
        REQUEST | REPLY => Ok(arp),
        _ => Err(Count::BadOperation),
    }
}

/// Checks the sender against rules 14.5 and 14.6.
fn sender(arp: &ArpPacket) -> Result<(), Count> {
    if !arp.sender_mac.is_unicast() {
        return Err(Count::BadSenderMac);
    }
    let probe = arp.operation.get() == REQUEST && arp.sender_ip == [0; 4];
    match arp.sender_ip[0] {
        0 | 127 | 224.. if !probe => Err(Count::BadSenderAddress),
        _ => Ok(()),
    }
}

/// Whether the request is answered as a proxy: its target is reached through another interface.
fn asks_for_other(way: &InterfaceRoutes<'_, V4>, proxies: &Proxies, arp: &ArpPacket) -> bool {
    let (number, target) = (u32::from_be_bytes(arp.target_ip), arp.target_ip().into());
    let asks = arp.operation.get() == REQUEST && arp.sender_ip != arp.target_ip;
    asks && proxies.answers(way, number, target)
}

/// Checks rules 14.4 and 14.7 onward, for a well-formed packet.
fn judge(
    way: &InterfaceRoutes<'_, V4>,
    (table, proxies): (&IfTable, &Proxies),
    arp: &ArpPacket,
) -> Verdict {
    let InterfaceRoutes { rx, .. } = *way;
    let heard = |what| NeighborMessage {
        rx,
        addr: arp.sender_ip().into(),
        mac: arp.sender_mac.0,
        what,
    };
    if !table.has(rx, Flag::Ip4) {
        return Count::NotEnabled.into();
    }
    if let Err(why) = sender(arp) {
        return why.into();
    }
    let (probe, back) = (
        arp.sender_ip == [0; 4],
        way.to(u32::from_be_bytes(arp.sender_ip)),
    );
    if !probe && back.kind() == DpoKind::Local {
        let [_, _, own @ ..] = table.mac(rx).to_be_bytes();
        if arp.sender_mac.0 == own {
            return Count::OwnFrame.into();
        }
        return Verdict {
            tell: Some(heard(NeighborMessageKind::Conflict)),
            ..Count::AddressConflict.into()
        };
    }
    // An unnumbered interface has no network: the control thread decides which neighbours may be on the link.
    if !probe && !way.leads_back(back) && !table.has(rx, Flag::Unnumbered) {
        return Count::SenderElsewhere.into();
    }
    let learns = table.has(rx, Flag::ResolveNeighbors) && !probe;
    let target = u32::from_be_bytes(arp.target_ip);
    let proxied =
        !probe && table.has(rx, Flag::ProxyNeighbors) && asks_for_other(way, proxies, arp);
    if !way.is_own(way.to(target), target) && !proxied {
        // RFC 826: an existing entry is updated even if the packet is not for this router.
        let announced = arp.sender_ip == arp.target_ip || back.kind() == DpoKind::Adj;
        let new = learns && announced && !way.leads_to(back, arp.sender_mac.0);
        return Verdict {
            tell: new.then(|| heard(NeighborMessageKind::Announcement)),
            ..Count::NotForUs.into()
        };
    }
    if arp.operation.get() == REPLY {
        return if learns {
            Verdict {
                refused: None,
                tell: Some(heard(NeighborMessageKind::Answer)),
                answered: false,
                proxied: false,
            }
        } else {
            Count::StaticOnly.into()
        };
    }
    let new = learns && !way.leads_to(back, arp.sender_mac.0);
    Verdict {
        refused: None,
        tell: new.then(|| heard(NeighborMessageKind::Question)),
        answered: true,
        proxied,
    }
}

impl ArpInput {
    /// Handles one packet. Never inlined: it would be compiled for each instruction set.
    #[inline(never)]
    fn decide(&self, cx: &Cx<'_, Count>, packet: &mut Packet<'_>) -> HoldAction<Next, ()> {
        let way = InterfaceRoutes {
            view: self.fib.read(cx.guard()),
            rx: packet.rx(),
        };
        let parsed = parse(packet.bytes());
        if let Ok(arp) = parsed
            && self.table.has(packet.rx(), Flag::DuplicateAddressDetection)
            && arp.sender_mac.is_unicast()
        {
            let probe = arp.sender_ip == [0; 4];
            let about = if probe {
                arp.target_ip()
            } else {
                arp.sender_ip()
            };
            let counts = [Count::Reported, Count::TellFull];
            let claim = (packet.rx(), about.into(), arp.sender_mac.0);
            claim::tell((cx, counts), (&self.lane, &self.table), claim);
        }
        if let Ok(arp) = parsed {
            let mac = arp.sender_mac.0;
            let who = (packet.rx(), arp.sender_ip().into());
            let places = (&*self.lane, &*self.table);
            claim::own_mac((cx, Count::OwnMac), places, who, [mac, mac]);
            if arp.operation.get() == REPLY {
                arping::answer(&self.lane, cx.now_ns(), who, mac);
            }
        }
        let verdict = match parsed {
            Ok(arp) => judge(&way, (&self.table, self.proxies.read(cx.guard())), arp),
            Err(why) => why.into(),
        };
        if let Some(heard) = verdict.tell {
            let count = match (self.lane.tell(heard), heard.what) {
                (false, _) => Count::TellFull,
                (true, NeighborMessageKind::Answer) => Count::Answers,
                (true, _) => Count::Reported,
            };
            cx.count(count, 1);
        }
        match verdict.refused {
            Some(why) => {
                packet.fail(cx, why);
                HoldAction::Send(Next::Drop)
            }
            None if verdict.answered => {
                cx.count(Count::Proxied, verdict.proxied.into());
                packet.truncate(LENGTH);
                HoldAction::Send(Next::Reply)
            }
            // The kernel may have sent the request, so the LCP tap receives the answer too.
            None if self.table.has(packet.rx(), Flag::HasLcpTap) => HoldAction::Send(Next::Punt),
            None => HoldAction::Done,
        }
    }
}

impl Node for ArpInput {
    const NAME: &'static str = "arp-input";
    type Next = Next;
    type Count = Count;
    type Trace = ArpTrace;

    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, v: Vector<'_, I, Next>) -> Consumed {
        v.each_or_hold(|packet| self.decide(cx, packet), |(), _| ())
    }
}

#[cfg(test)]
mod tests;
