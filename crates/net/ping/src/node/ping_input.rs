//! ping-input: answers to the router's own echo requests leave the graph here (RFC 1122, 3.2.2; RFC 4443, 2.4 d); answers that
//! no run waits for are dropped. Rule 12.8 of `docs/forwarding-rules.md`.
//!
//! On entry the position is at the IP header of an ICMP message for the router, whose checksum is correct.

use crate::lane::{Event, PingQueues, ProbeReply};
use crate::packet::{is_reply, read};
use std::sync::Arc;
use volley_graph::{
    Consumed, Cx, HoldAction, Isa, Node, Packet, PacketTrace, Vector, counters, nexts,
};
use volley_iface::{Flag, IfTable};

nexts! {
    /// Where ping-input sends packets.
    pub enum Next { Drop => "error-drop", Punt => "linux-cp-punt" }
}

counters! {
    /// What ping-input counts.
    pub enum Count {
        /// an answer to a request that no run waits for
        UnexpectedReply = "unexpected-reply" (Error),
        /// an ICMP error about a packet that this router did not send
        UnexpectedError = "unexpected-error" (Error),
        /// answers that a run waits for
        Answers = "answers" (Info),
        /// answers that were not reported to the control thread because the queue was full
        TellFull = "tell-full" (Warn),
    }
}

/// State of ping-input.
pub struct PingInput {
    lane: Arc<PingQueues>,
    table: Arc<IfTable>,
}

impl PingInput {
    /// State for the worker that owns `lane`.
    pub fn new(lane: Arc<PingQueues>, table: Arc<IfTable>) -> Self {
        PingInput { lane, table }
    }

    /// Handles one packet. Never inlined: it would be compiled for each instruction set.
    #[inline(never)]
    fn decide(&self, cx: &Cx<'_, Count>, packet: &mut Packet<'_>) -> HoldAction<Next, ()> {
        let answer = read(packet.bytes()).filter(|a| self.lane.expects(a.id));
        let Some(answer) = answer else {
            if self.table.has(packet.rx(), Flag::HasLcpTap) {
                // The packet may answer a process of the kernel.
                return HoldAction::Send(Next::Punt);
            }
            let why = match is_reply(packet.bytes()) {
                true => Count::UnexpectedReply,
                false => Count::UnexpectedError,
            };
            packet.fail(cx, why);
            return HoldAction::Send(Next::Drop);
        };
        let heard = ProbeReply {
            id: answer.id,
            number: answer.number,
            at: cx.now_ns(),
            event: Event::Answered {
                from: answer.from,
                kind: answer.kind,
                code: answer.code,
                hops: answer.hops,
            },
        };
        let count = match self.lane.heard.push(heard) {
            Ok(()) => Count::Answers,
            Err(_) => Count::TellFull,
        };
        cx.count(count, 1);
        HoldAction::Done
    }
}

impl Node for PingInput {
    const NAME: &'static str = "ping-input";
    type Next = Next;
    type Count = Count;
    type Trace = PacketTrace;

    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, v: Vector<'_, I, Next>) -> Consumed {
        v.each_or_hold(|packet| self.decide(cx, packet), |(), _| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use volley_graph::harness::{In, run_once};
    use volley_graph::{Domain, Level};
    use volley_iface::IfIdx;

    #[test]
    fn answers_are_taken_out_and_others_dropped() {
        let lane = Arc::new(PingQueues::default());
        lane.set_expected([0x1234].into_iter());
        let message = |kind: u8, id: [u8; 2]| {
            let mut p = vec![0x45, 0, 0, 28, 0, 0, 0, 0, 64, 1, 0, 0];
            p.extend([
                192, 0, 2, 9, 192, 0, 2, 1, kind, 0, 0, 0, id[0], id[1], 0, 5,
            ]);
            p
        };
        let packets = [
            message(0, [0x12, 0x34]),
            message(0, [0x12, 0x35]),
            message(11, [0x12, 0x34]),
        ];
        let mut packets: Vec<In> = packets.iter().map(|p| In::new(p)).collect();
        packets.push(packets[1].clone().rx(4));
        let table = IfTable::new(1);
        table.set_lcp_tap(IfIdx(4), Some(IfIdx(9)));
        let queue = lane.clone();
        let make = move |_| PingInput::new(queue.clone(), table.clone());
        let out = run_once(Level::detect(), 4, &packets, &Domain::new(), make).unwrap();
        let reasons = out.iter().filter_map(|o| o.reason.as_deref());
        let reasons: Vec<_> = reasons.collect();
        assert_eq!(reasons, ["unexpected-reply", "unexpected-error"]);
        assert!(out.iter().any(|o| o.to == "linux-cp-punt"));
        let heard = lane.heard.pop().unwrap();
        assert_eq!((heard.id, heard.number), (0x1234, 5));
        assert!(lane.heard.pop().is_none());
    }
}
