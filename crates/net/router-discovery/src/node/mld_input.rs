//! mld-input: checks received MLD messages (RFC 3810, 6.2; RFC 2710, 4) and reports them to the control thread.
//!
//! On entry the position is at the IPv6 header of a packet that nd-input classified as a query or an MLDv1 report; all packets
//! end here.

use crate::mld::MldQueue;
use crate::mld::packet::{self, QUERY, REPORT1};
use crate::trace::NdTrace;
use std::net::Ipv6Addr;
use std::sync::Arc;
use volley_graph::{Consumed, Cx, HoldAction, Isa, Node, Packet, Vector, counters, nexts};
use volley_wire::IpProto;
use volley_wire::checksum::Sum;
use volley_wire::tlv::Options;

nexts! {
    /// Where mld-input sends packets.
    pub enum Next { Drop => "error-drop" }
}

counters! {
    /// What mld-input counts.
    pub enum Count {
        /// header or length do not fit the frame
        Malformed = "malformed" (Error),
        /// the hop limit is not 1
        BadHopLimit = "bad-hop-limit" (Error),
        /// there is no router alert
        NoAlert = "no-router-alert" (Error),
        /// the sender's address is not link-local
        BadSender = "bad-sender-address" (Error),
        /// the checksum is wrong
        BadChecksum = "bad-checksum" (Error),
        /// length or group are not valid by RFC 3810, 5.1
        BadMessage = "bad-message" (Error),
        /// queries that were reported to the control thread
        Queries = "queries" (Info),
        /// reports of other listeners that were reported to the control thread
        Reports = "reports" (Info),
        /// messages that were not reported to the control thread because the queue was full
        TellFull = "tell-full" (Warn),
    }
}

/// State of mld-input.
pub struct MldInput {
    queue: Arc<MldQueue>,
}

impl MldInput {
    /// State for the worker that owns `queue`.
    pub fn new(queue: Arc<MldQueue>) -> Self {
        MldInput { queue }
    }
}

/// Offset of the message after a hop-by-hop header.
fn message_at(bytes: &[u8]) -> usize {
    48 + 8 * usize::from(bytes.get(41).copied().unwrap_or(0))
}

/// Whether a packet has the message type of a query or an MLDv1 report.
pub fn is_one(bytes: &[u8]) -> bool {
    let kind = bytes.get(message_at(bytes));
    bytes.get(6) == Some(&0)
        && bytes.get(40) == Some(&58)
        && matches!(kind, Some(&QUERY | &REPORT1))
}

fn judge(bytes: &[u8]) -> Result<packet::Heard, Count> {
    let address = |at: usize| {
        let octets: Option<[u8; 16]> = bytes.get(at..at + 16).and_then(|b| b.try_into().ok());
        octets.map(Ipv6Addr::from).ok_or(Count::Malformed)
    };
    let (from, to) = (address(8)?, address(24)?);
    let end = 40 + usize::from(u16::from_be_bytes([bytes[4], bytes[5]]));
    let at = message_at(bytes);
    let (options, message) = (bytes.get(42..at), bytes.get(at..end));
    let (Some(options), Some(message)) = (options, message) else {
        return Err(Count::Malformed);
    };
    if bytes[7] != 1 {
        return Err(Count::BadHopLimit);
    }
    // A router alert for MLD (RFC 2711).
    if !Options::ip6(options, "IPv6 option").has(5, &[0, 0]) {
        return Err(Count::NoAlert);
    }
    if !from.is_unicast_link_local() {
        return Err(Count::BadSender);
    }
    let pseudo = Sum::pseudo6(from, to, IpProto(58), message.len() as u32);
    if pseudo.bytes(message).checksum() != 0 {
        return Err(Count::BadChecksum);
    }
    packet::read(message).ok_or(Count::BadMessage)
}

impl MldInput {
    /// Handles one packet. Never inlined: it would be compiled for each instruction set.
    #[inline(never)]
    fn decide(&self, cx: &Cx<'_, Count>, packet: &mut Packet<'_>) -> HoldAction<Next, ()> {
        let rx = packet.rx();
        let output = match judge(packet.bytes()) {
            Ok(found) => found,
            Err(why) => {
                packet.fail(cx, why);
                return HoldAction::Send(Next::Drop);
            }
        };
        let reported = self.queue.push(rx, output);
        let count = match output {
            _ if !reported => Count::TellFull,
            packet::Heard::Query { .. } => Count::Queries,
            packet::Heard::Report(_) => Count::Reports,
        };
        cx.count(count, 1);
        HoldAction::Done
    }
}

impl Node for MldInput {
    const NAME: &'static str = "mld-input";
    type Next = Next;
    type Count = Count;
    type Trace = NdTrace;

    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, v: Vector<'_, I, Next>) -> Consumed {
        v.each_or_hold(|packet| self.decide(cx, packet), |(), _| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mld::packet::old_report;
    use volley_graph::harness::{In, run_once};
    use volley_graph::{Domain, Level};

    /// Result for an MLDv1 report with one byte changed.
    fn outcome(at: usize, byte: u8) -> String {
        let group = "ff02::1:ff00:1".parse().unwrap();
        let mut frame = old_report([2, 0, 0, 0, 0, 9], group, true);
        frame[14 + at] = byte;
        let packet = In::new(&frame).rx(1).advance(14);
        let queue: Arc<MldQueue> = Arc::default();
        let node = move |_: usize| MldInput::new(queue.clone());
        let out = run_once(Level::detect(), 4, &[packet], &Domain::new(), node).unwrap();
        out.first().map_or("done".to_owned(), |out| {
            out.reason.clone().unwrap_or_default()
        })
    }

    #[test]
    fn messages_are_judged() {
        for (at, byte, why) in [
            (0, 0x60, "done"),
            (4, 0xff, "malformed"),
            (41, 9, "malformed"),
            (7, 255, "bad-hop-limit"),
            (42, 1, "no-router-alert"),
            (8, 0x20, "bad-sender-address"),
            (60, 7, "bad-checksum"),
        ] {
            assert_eq!(outcome(at, byte), why, "{at}");
        }
    }
}
