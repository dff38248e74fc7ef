//! ping-output: sends the router's own echo requests to the lookup nodes.

use crate::lane::{Event, PingQueues, ProbeReply};
use std::sync::Arc;
use volley_graph::{Column, Cx, Isa, Output, Source, WakeConditions, counters, nexts};

nexts! {
    /// Where ping-output sends packets.
    pub enum Next { Ip4 => "ip4-lookup", Ip6 => "ip6-lookup" }
}

counters! {
    /// What ping-output counts.
    pub enum Count {
        /// echo requests sent
        Sent = "sent" (Info),
        /// echo requests for which no packet buffer was free
        NoBuffers = "no-buffers" (Warn),
    }
}

/// State of ping-output.
pub struct PingOutput {
    lane: Arc<PingQueues>,
    codes: Column,
    rx: Column,
}

impl PingOutput {
    /// State for vectors of up to `size` packets, on the worker that owns `lane`.
    pub fn new(lane: Arc<PingQueues>, size: usize) -> Self {
        PingOutput {
            lane,
            codes: Column::new(size),
            rx: Column::new(size),
        }
    }

    fn send<I: Isa>(&mut self, cx: &Cx<'_, Count>, out: &mut Output<'_, I, Next>) -> usize {
        let (lane, codes, rx, size) =
            (&self.lane, &mut self.codes, &mut self.rx, out.vector_size());
        let wanted = lane.requests.len().min(size);
        let mut fresh = out.alloc(wanted, 0);
        cx.count(Count::NoBuffers, (wanted - fresh.len()) as u64);
        fresh.fill(|row, data| {
            let Some(request) = lane.requests.pop() else {
                return 0;
            };
            let next = match request.bytes[0] >> 4 {
                4 => Next::Ip4,
                _ => Next::Ip6,
            };
            codes.words_mut(size)[row] = next as u32;
            rx.words_mut(size)[row] = request.rx;
            data[..request.len].copy_from_slice(&request.bytes[..request.len]);
            // If this message is lost, the run uses the time at which the request was due.
            let _ = lane.heard.push(ProbeReply {
                id: request.id,
                number: request.number,
                at: cx.now_ns(),
                event: Event::Sent,
            });
            request.len
        });
        for (row, &rx) in rx.words(size).iter().enumerate().take(fresh.len()) {
            fresh.set_rx(row, rx);
        }
        cx.count(Count::Sent, fresh.len() as u64);
        fresh.send_by(codes)
    }
}

impl Source for PingOutput {
    const NAME: &'static str = "ping-output";
    type Next = Next;
    type Count = Count;

    #[inline(always)]
    fn poll<I: Isa>(&mut self, cx: &Cx<'_, Count>, out: &mut Output<'_, I, Next>) -> usize {
        if self.lane.requests.is_empty() {
            return 0;
        }
        self.send(cx, out)
    }

    fn can_exit(&self) -> bool {
        self.is_vacant()
    }

    fn is_vacant(&self) -> bool {
        self.lane.requests.is_empty()
    }

    fn may_sleep(&self, _now_ns: u64, _idle_ns: u64) -> bool {
        true
    }

    fn arm(&mut self, _rest: &mut WakeConditions) -> bool {
        self.lane.requests.is_empty()
    }
}
