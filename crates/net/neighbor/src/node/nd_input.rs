//! nd-input: checks received neighbour discovery messages (RFC 4861, 7.1), passes solicitations for the router's addresses to
//! nd-reply, and reports new information to the control thread. The order of the checks is section 15 of
//! `docs/forwarding-rules.md`.
//!
//! On entry and on exit the position is at the IPv6 header. Packets that are no neighbour discovery, to a group that the
//! interface may be a member of, end here too.

use crate::advertised;
use crate::arping;
use crate::claim;
use crate::lane::{ControlQueues, NeighborMessage, NeighborMessageKind};
use crate::message::{Found, Sound, Unsound, frame_source, message};
use crate::nd_link::Link;
use crate::proxy::Proxies;
use crate::routers;
use crate::way::InterfaceRoutes;
use std::sync::Arc;
use volley_fib::V6;
use volley_fib::dataplane::{DataPlane, DpoKind};
use volley_graph::{
    ColumnInfo, ColumnKind, Consumed, Cx, HoldAction, Isa, Life, Node, Packet, Vector, counters,
    nexts,
};
use volley_iface::{Flag, IfTable};
use volley_router_discovery::NdTrace;
use volley_router_discovery::is_advertisement;
use volley_router_discovery::nd::solicited_node;
use volley_router_discovery::node::mld_input;
use volley_tables::Snap;
use volley_wire::MacAddr;
use volley_wire::nd::{NA_OVERRIDE, NA_SOLICITED, NdBody, NdOption};

nexts! {
    /// Where nd-input sends packets.
    pub enum Next { Drop => "error-drop", Reply => "nd-reply", Mld => "mld-input", Punt => "linux-cp-punt" }
}

counters! {
    /// What nd-input counts.
    pub enum Count {
        /// header or length do not fit the frame
        Malformed = "malformed" (Error),
        /// a multicast packet that is no neighbour discovery message for this interface
        NotNd = "not-nd" (Info),
        /// the hop limit is not 255: the packet was forwarded
        BadHopLimit = "bad-hop-limit" (Error),
        /// the checksum is wrong
        BadChecksum = "bad-checksum" (Error),
        /// code, length, target or options are not valid by RFC 4861, 7.1
        BadMessage = "bad-message" (Error),
        /// the receiving interface has no IPv6 address
        NotEnabled = "not-enabled" (Info),
        /// the MAC address in the message is zero or a group's
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
        /// destination or target are no address of the receiving interface
        NotForUs = "not-for-us" (Info),
        /// an advertisement, but neighbours of the receiving interface are not learned
        StaticOnly = "static-only" (Warn),
        /// advertisements that were reported to the control thread
        Answers = "answers" (Info),
        /// router solicitations that were reported to the control thread
        Routers = "router-solicitations" (Info),
        /// router advertisements that were reported to the control thread
        Adverts = "router-advertisements" (Info),
        /// solicitations that were reported to the control thread
        Reported = "told" (Info),
        /// solicitations for addresses that are reached through another interface, answered by proxy ND
        Proxied = "proxied" (Info),
        /// messages that were not reported to the control thread because the queue was full
        TellFull = "tell-full" (Warn),
    }
}

impl From<Unsound> for Count {
    fn from(why: Unsound) -> Count {
        match why {
            Unsound::Malformed => Count::Malformed,
            Unsound::NotNd => Count::NotNd,
            Unsound::BadHopLimit => Count::BadHopLimit,
            Unsound::BadChecksum => Count::BadChecksum,
            Unsound::BadMessage => Count::BadMessage,
        }
    }
}

/// Tells nd-reply that the answer is a proxy's.
pub(crate) const PROXIED: ColumnInfo =
    ColumnInfo::new("nd-proxied", ColumnKind::Value, 5, Life::Hop);

/// How a solicitation is answered.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Ours,
    Proxied,
}

/// State of nd-input.
pub struct NdInput {
    fib: DataPlane<V6>,
    table: Arc<IfTable>,
    proxies: Snap<Proxies>,
    lane: Arc<ControlQueues>,
}

impl NdInput {
    /// State for the worker that owns `lane`.
    pub fn new(
        fib: DataPlane<V6>,
        (table, proxies): (Arc<IfTable>, Snap<Proxies>),
        lane: Arc<ControlQueues>,
    ) -> Self {
        NdInput {
            fib,
            table,
            proxies,
            lane,
        }
    }
}

/// Checks the packet against rules 15.1 to 15.6.
pub(crate) fn parse(bytes: &[u8]) -> Result<Found, Count> {
    let Sound { source, to, nd } = message(bytes, &[135, 136])?;
    let (target, flags) = match nd.body {
        NdBody::NeighbourSolicitation { target } => (target, None),
        NdBody::NeighbourAdvertisement { target, flags } => (target, Some(flags)),
        _ => return Err(Count::BadMessage),
    };
    let mac = nd.options().find_map(|option| match (option, flags) {
        (NdOption::SourceMac(MacAddr(mac)), None) => Some(mac),
        (NdOption::TargetMac(MacAddr(mac)), Some(_)) => Some(mac),
        _ => None,
    });
    let sound = match flags {
        None if source.is_unspecified() => to == solicited_node(target) && mac.is_none(),
        None => true,
        Some(flags) => !(to.is_multicast() && flags & NA_SOLICITED != 0),
    };
    let found = Found {
        source,
        to,
        target,
        flags,
        mac,
    };
    sound.then_some(found).ok_or(Count::BadMessage)
}

/// Checks the sender against rules 15.8 and 15.9.
fn sender(found: &Found) -> Result<(), Count> {
    if found.mac.is_some_and(|mac| !MacAddr(mac).is_unicast()) {
        return Err(Count::BadSenderMac);
    }
    let Found { source, flags, .. } = found;
    let mapped = source.to_ipv4_mapped().is_some();
    let nobody = source.is_unspecified() && flags.is_some();
    if source.is_multicast() || source.is_loopback() || mapped || nobody {
        return Err(Count::BadSenderAddress);
    }
    Ok(())
}

/// Result of the checks: the drop reason or the type of answer, and the message for the control thread.
pub(crate) type Verdict = (Result<Answer, Count>, Option<NeighborMessage>);

/// Checks rules 15.7 onward; `from` is the source MAC address of the frame. A message that needs no further node has the result
/// [`Count::Answers`].
fn judge(link: &Link<'_>, table: &IfTable, found: &Found, from: [u8; 6]) -> Verdict {
    let rx = link.way.rx;
    if !table.has(rx, Flag::Ip6) {
        return (Err(Count::NotEnabled), None);
    }
    if let Err(why) = sender(found) {
        return (Err(why), None);
    }
    let proxied = link.answers_for(table, found);
    if !link.takes(found.to) && !proxied {
        return (Err(Count::NotForUs), None);
    }
    let who = match found.flags {
        None => found.source,
        Some(_) => found.target,
    };
    let heard = |what| NeighborMessage {
        rx,
        addr: who.into(),
        mac: found.mac.unwrap_or_default(),
        what,
    };
    let ours = link.is_own(who) || link.to(who).kind() == DpoKind::Local;
    if ours && found.mac.unwrap_or(from) == link.own {
        return (Err(Count::OwnFrame), None);
    }
    if ours {
        let mac = found.mac.unwrap_or(from);
        let reported = NeighborMessage {
            mac,
            ..heard(NeighborMessageKind::Conflict)
        };
        return (Err(Count::AddressConflict), Some(reported));
    }
    let seeks = who.is_unspecified();
    if !seeks && !link.leads_back(table, who) {
        return (Err(Count::SenderElsewhere), None);
    }
    let learns = table.has(rx, Flag::ResolveNeighbors);
    let Some(flags) = found.flags else {
        if !link.is_own(found.target) && !proxied {
            return (Err(Count::NotForUs), None);
        }
        let new = found
            .mac
            .is_some_and(|mac| learns && !seeks && !link.way.leads_to(link.to(who), mac));
        let answer = if proxied {
            Answer::Proxied
        } else {
            Answer::Ours
        };
        return (
            Ok(answer),
            new.then(|| heard(NeighborMessageKind::Question)),
        );
    };
    if !learns {
        return (Err(Count::StaticOnly), None);
    }
    let (solicited, overrides) = (flags & NA_SOLICITED != 0, flags & NA_OVERRIDE != 0);
    let what = NeighborMessageKind::Advertisement {
        solicited,
        overrides,
    };
    (Err(Count::Answers), Some(heard(what)))
}

impl NdInput {
    /// Handles a router advertisement, on an interface with SLAAC or one that advertises.
    fn advertised(
        &self,
        cx: &Cx<'_, Count>,
        link: &Link<'_>,
        packet: &mut Packet<'_>,
    ) -> HoldAction<Next, ()> {
        let rx = link.way.rx;
        match advertised::judge(link, packet.bytes()) {
            Ok(output) => {
                let reported = self.lane.adverts.push((rx, output)).is_ok();
                cx.count(
                    if reported {
                        Count::Adverts
                    } else {
                        Count::TellFull
                    },
                    1,
                );
            }
            Err(why) => {
                packet.fail(cx, why);
                return HoldAction::Send(Next::Drop);
            }
        }
        match self.table.has(rx, Flag::HasLcpTap) {
            true => HoldAction::Send(Next::Punt),
            false => HoldAction::Done,
        }
    }

    /// Handles one packet. Never inlined: it would be compiled for each instruction set.
    #[inline(never)]
    fn decide(&self, cx: &Cx<'_, Count>, packet: &mut Packet<'_>) -> HoldAction<Next, ()> {
        let rx = packet.rx();
        let [_, _, own @ ..] = self.table.mac(rx).to_be_bytes();
        let view = self.fib.read(cx.guard());
        let way = InterfaceRoutes { view, rx };
        let proxies = self.proxies.read(cx.guard());
        let link = Link { way, own, proxies };
        let routers =
            self.table.has(rx, Flag::RouterAdvertisements) && routers::is_one(packet.bytes());
        if self.table.has(rx, Flag::GroupMember) && mld_input::is_one(packet.bytes()) {
            return HoldAction::Send(Next::Mld);
        }
        let hears =
            self.table.has(rx, Flag::Slaac) || self.table.has(rx, Flag::RouterAdvertisements);
        if hears && is_advertisement(packet.bytes()) {
            return self.advertised(cx, &link, packet);
        }
        let found = parse(packet.bytes());
        if let Ok(found) = &found
            && self.table.has(rx, Flag::DuplicateAddressDetection)
            && (found.flags.is_some() || found.source.is_unspecified())
        {
            let mac = found.mac.unwrap_or_else(|| frame_source(&packet.view()));
            let counts = [Count::Reported, Count::TellFull];
            let claim = (rx, found.target.into(), mac);
            claim::tell((cx, counts), (&self.lane, &self.table), claim);
        }
        if let Ok(found) = &found {
            let from = frame_source(&packet.view());
            let macs = [from, found.mac.unwrap_or(from)];
            let who = (rx, found.source.into());
            let places = (&*self.lane, &*self.table);
            claim::own_mac((cx, Count::OwnMac), places, who, macs);
            arping::answer6(&self.lane, cx.now_ns(), (rx, found), macs[1]);
        }
        let (verdict, heard) = match found {
            _ if routers => routers::judge(&link, &self.table, packet.bytes()),
            Ok(found) => judge(&link, &self.table, &found, frame_source(&packet.view())),
            Err(why) => (Err(why), None),
        };
        if let Some(heard) = heard {
            let count = match (self.lane.tell(heard), heard.what) {
                (false, _) => Count::TellFull,
                (true, NeighborMessageKind::Advertisement { .. }) => Count::Answers,
                (true, NeighborMessageKind::Routers) => Count::Routers,
                (true, _) => Count::Reported,
            };
            cx.count(count, 1);
        }
        match verdict {
            Ok(answer) => {
                let proxied = u32::from(answer == Answer::Proxied);
                cx.count(Count::Proxied, proxied.into());
                packet.set(PROXIED.col, proxied);
                HoldAction::Send(Next::Reply)
            }
            // The kernel may have sent the request, so the LCP tap receives the answer too, and messages that are no neighbour
            // discovery.
            Err(Count::Answers | Count::Routers | Count::NotNd)
                if self.table.has(rx, Flag::HasLcpTap) =>
            {
                HoldAction::Send(Next::Punt)
            }
            Err(Count::Answers | Count::Routers) => HoldAction::Done,
            Err(why) => {
                packet.fail(cx, why);
                HoldAction::Send(Next::Drop)
            }
        }
    }
}

impl Node for NdInput {
    const NAME: &'static str = "nd-input";
    type Next = Next;
    type Count = Count;
    type Trace = NdTrace;
    const COLUMNS: &'static [ColumnInfo] = &[PROXIED];

    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, v: Vector<'_, I, Next>) -> Consumed {
        v.each_or_hold(|packet| self.decide(cx, packet), |(), _| ())
    }
}

#[cfg(test)]
mod tests;
