//! igmp-input, mld-router-input: check IGMP and MLD messages of hosts and other routers (RFC 3376, 4 and 9; RFC 3810, 5 and
//! 10), and report them to the control thread.
//!
//! On entry the position is at the IP header of a packet that ethernet-input classified as such a message. All packets end
//! here, except those for the router itself as a listener (`mld-input`) and those that an LCP tap receives too.

use crate::members::lane::{ControlQueue, ReceivedMessage};
use crate::members::packet::{Fault, MembershipMessage, MembershipProtocol};
use crate::trace::GroupTrace;
use std::marker::PhantomData;
use std::sync::Arc;
use volley_graph::{Consumed, Cx, HoldAction, Isa, Node, Packet, Vector, counters, nexts};
use volley_iface::{Flag, IfTable};

nexts! {
    /// Edges of the group membership nodes.
    pub struct Next<F: MembershipProtocol> {
        DROP => "error-drop",
        LISTENER => F::LISTENER,
        PUNT => "linux-cp-punt",
    }
}

counters! {
    /// What these nodes count.
    pub enum Count {
        /// header or length do not fit the frame
        Malformed = "malformed" (Error),
        /// the time to live, or the hop limit, is not 1
        BadHopLimit = "bad-hop-limit" (Error),
        /// there is no router alert
        NoAlert = "no-router-alert" (Error),
        /// the source address is not valid for the message type
        BadSender = "bad-sender-address" (Error),
        /// the checksum is wrong
        BadChecksum = "bad-checksum" (Error),
        /// length, group or records are not valid by RFC 3376, 4, or RFC 3810, 5
        BadMessage = "bad-message" (Error),
        /// the destination is not valid for the message type
        BadTarget = "bad-destination" (Error),
        /// the type is not one of group membership
        UnknownType = "unknown-type" (Error),
        /// queries of other routers
        Queries = "queries" (Info),
        /// reports and leave messages of hosts, of any version
        Reports = "reports" (Info),
        /// messages that were not reported to the control thread because the queue was full
        TellFull = "tell-full" (Warn),
    }
}

/// State of these nodes.
pub struct GroupInput<F> {
    lane: Arc<ControlQueue>,
    table: Arc<IfTable>,
    family: PhantomData<F>,
}

impl<F: MembershipProtocol> GroupInput<F> {
    /// State for the worker that owns `lane`.
    pub fn new(lane: Arc<ControlQueue>, table: Arc<IfTable>) -> Self {
        let family = PhantomData;
        GroupInput {
            lane,
            table,
            family,
        }
    }

    /// Handles one packet. Never inlined: it would be compiled for each instruction set.
    #[inline(never)]
    fn decide(&self, cx: &Cx<'_, Count>, packet: &mut Packet<'_>) -> HoldAction<Next<F>, ()> {
        let rx = packet.rx();
        let count = match F::open(packet.bytes())
            .and_then(|it| F::parse_message(&it).map(|it| count(&it)))
        {
            Ok(count) => count,
            Err(fault) => {
                packet.fail(cx, refusal(fault));
                return HoldAction::Send(Next::DROP);
            }
        };
        let heard = ReceivedMessage::new(rx, F::AF, packet.bytes());
        let reported = heard.is_some_and(|heard| self.lane.0.push(heard).is_ok());
        cx.count(if reported { count } else { Count::TellFull }, 1);
        if self.table.has(rx, Flag::HasLcpTap) {
            return HoldAction::Send(Next::PUNT);
        }
        if F::AF == volley_model::Family::V6 && self.table.has(rx, Flag::GroupMember) {
            return HoldAction::Send(Next::LISTENER);
        }
        HoldAction::Done
    }
}

fn count<A>(message: &MembershipMessage<'_, A>) -> Count {
    match message {
        MembershipMessage::Query(..) => Count::Queries,
        _ => Count::Reports,
    }
}

fn refusal(fault: Fault) -> Count {
    match fault {
        Fault::Malformed => Count::Malformed,
        Fault::Hops => Count::BadHopLimit,
        Fault::Alert => Count::NoAlert,
        Fault::Sender => Count::BadSender,
        Fault::Checksum => Count::BadChecksum,
        Fault::Message => Count::BadMessage,
        Fault::Target => Count::BadTarget,
        Fault::Unknown => Count::UnknownType,
    }
}

impl<F: MembershipProtocol> Node for GroupInput<F> {
    const NAME: &'static str = F::INPUT;
    type Next = Next<F>;
    type Count = Count;
    type Trace = GroupTrace;

    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, v: Vector<'_, I, Next<F>>) -> Consumed {
        v.each_or_hold(|packet| self.decide(cx, packet), |(), _| ())
    }
}
