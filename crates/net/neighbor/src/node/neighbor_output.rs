//! neighbor-output: source of frames and packets from the control thread: requests, announcements, and packets that waited for
//! resolution.

use crate::entry::Mac;
use crate::lane::{ControlQueues, End, Frame, ProbeEvent, ProbeMessage};
use crate::node::ip_glean::Gleans;
use crossbeam_queue::ArrayQueue;
use std::sync::Arc;
use volley_fib::columns::DPO;
use volley_fib::{V4, V6};
use volley_graph::{
    Col, Column, ColumnInfo, Counters, Cx, Isa, Output, Source, WakeConditions, counters, nexts,
};
use volley_model::Family;
use volley_wire::ethertype;

nexts! {
    /// Where neighbor-output sends packets.
    pub enum Next {
        Ip4 => "ip4-lookup",
        Ip6 => "ip6-lookup",
        Lost4 => <V4 as Gleans>::NAME,
        Lost6 => <V6 as Gleans>::NAME,
        Output => "interface-output",
        Drop => "error-drop",
    }
}

counters! {
    /// What neighbor-output counts.
    pub enum Count {
        /// requests and announcements to neighbours
        Sent = "sent" (Info),
        /// packets whose next hop's MAC address was found, and that are looked up again
        Resumed = "resumed" (Info),
        /// packets whose next hop did not answer
        Lost = "lost" (Info),
        /// packets that waited for their next hop's MAC address and yielded to newer ones
        Evicted = "evicted" (Warn),
        /// packets to link-local addresses with no room for an Ethernet header in front
        NoHeadroom = "no-headroom" (Error),
        /// requests and announcements for which no packet buffer was free
        NoBuffers = "no-buffers" (Warn),
    }
}

/// State of neighbor-output.
pub struct NeighborOutput {
    lane: Arc<ControlQueues>,
    codes: Column,
    tx: Column,
    reasons: Column,
    /// Ethernet headers of packets that are sent straight to an interface, by row; as many as a vector has packets.
    headers: Vec<(usize, [u8; 14])>,
}

/// The Ethernet header of a packet of an IP version.
fn header(family: Family, from: Mac, to: Mac) -> [u8; 14] {
    let kind = match family {
        Family::V4 => ethertype::IP4,
        Family::V6 => ethertype::IP6,
    };
    let mut header = [0; 14];
    header[..6].copy_from_slice(&to);
    header[6..12].copy_from_slice(&from);
    header[12..].copy_from_slice(&kind.to_be_bytes());
    header
}

impl NeighborOutput {
    /// State for vectors of up to `size` packets, on the worker that owns `lane`.
    pub fn new(lane: Arc<ControlQueues>, size: usize) -> Self {
        NeighborOutput {
            lane,
            codes: Column::new(size),
            tx: Column::new(size),
            reasons: Column::new(size),
            headers: Vec::with_capacity(size),
        }
    }

    /// Returns packets that waited to the graph.
    fn resume<I: Isa>(&mut self, cx: &Cx<'_, Count>, out: &mut Output<'_, I, Next>) -> usize {
        let (lane, codes, size) = (&self.lane, &mut self.codes, out.vector_size());
        let (mut n, mut lost, mut evicted, mut buffers) = (0, 0, 0, 0);
        let (reasons, tx_of) = (self.reasons.words_mut(size), &mut self.tx);
        let headers = &mut self.headers;
        headers.clear();
        let mut fresh = out.new_from_held(|| {
            let back = lane.resolved_packets.pop()?;
            let next = match (back.family, back.end) {
                (Family::V4, End::Resumed) => Next::Ip4,
                (Family::V6, End::Resumed) => Next::Ip6,
                (Family::V4, End::Lost) => Next::Lost4,
                (Family::V6, End::Lost) => Next::Lost6,
                (_, End::OnLink { .. }) => Next::Output,
                (_, End::Evicted) => Next::Drop,
            };
            reasons[n] = match back.end {
                End::Evicted => cx.node().reason(Count::Evicted.index()),
                End::Resumed | End::OnLink { .. } | End::Lost => 0,
            };
            if let End::OnLink { tx, from, to } = back.end {
                tx_of.words_mut(size)[n] = tx;
                headers.push((n, header(back.family, from, to)));
            }
            lost += u64::from(back.end == End::Lost);
            evicted += u64::from(back.end == End::Evicted);
            buffers += back.packet.buffers();
            codes.words_mut(size)[n] = next as u32;
            n += 1;
            Some(back.packet)
        });
        lane.come_back(n, buffers, evicted);
        cx.count(Count::Resumed, n as u64 - lost - evicted);
        cx.count(Count::Evicted, evicted);
        cx.count(Count::Lost, lost);
        if lost + evicted > 0 {
            fresh.prepare(|row, packet| {
                // A packet without a next hop does not wait again.
                packet.set(DPO.col, 0);
                packet.set(Col::ERR, reasons[row]);
            });
        }
        if !headers.is_empty() {
            let mut headers = headers.iter().peekable();
            fresh.prepare(|row, packet| {
                let Some((_, header)) = headers.next_if(|it| it.0 == row) else {
                    return;
                };
                packet.set(Col::TX, tx_of.words(size)[row]);
                if packet.retreat(header.len()) {
                    packet.bytes_mut()[..header.len()].copy_from_slice(header);
                } else {
                    packet.set(Col::ERR, cx.node().reason(Count::NoHeadroom.index()));
                    cx.count(Count::NoHeadroom, 1);
                    codes.words_mut(size)[row] = Next::Drop as u32;
                }
            });
        }
        fresh.send_by(codes)
    }
}

/// Sends frames that the control thread made.
fn send<I: Isa, const ROOM: usize>(
    (frames, reported): (&ArrayQueue<Frame<ROOM>>, &ArrayQueue<ProbeMessage>),
    tx: &mut Column,
    cx: &Cx<'_, Count>,
    out: &mut Output<'_, I, Next>,
) -> usize {
    let size = out.vector_size();
    let wanted = frames.len().min(size);
    let mut fresh = out.alloc(wanted, 0);
    cx.count(Count::NoBuffers, (wanted - fresh.len()) as u64);
    fresh.fill(|row, data| {
        let Some(frame) = frames.pop() else {
            return 0;
        };
        tx.words_mut(size)[row] = frame.tx;
        if let Some((id, number)) = frame.probe {
            let event = ProbeEvent::Sent { id, number };
            // If this message is lost, the run uses the time at which the request was due.
            let _ = reported.push(ProbeMessage {
                at: cx.now_ns(),
                event,
            });
        }
        data[..frame.len].copy_from_slice(&frame.bytes[..frame.len]);
        frame.len
    });
    for (row, &tx) in tx.words(size).iter().enumerate().take(fresh.len()) {
        fresh.set_rx(row, tx);
    }
    fresh.prepare(|row, packet| packet.set(Col::TX, tx.words(size)[row]));
    cx.count(Count::Sent, fresh.len() as u64);
    fresh.send(Next::Output)
}

impl Source for NeighborOutput {
    const NAME: &'static str = "neighbor-output";
    type Next = Next;
    type Count = Count;
    const COLUMNS: &'static [ColumnInfo] = &[DPO];

    #[inline(always)]
    fn poll<I: Isa>(&mut self, cx: &Cx<'_, Count>, out: &mut Output<'_, I, Next>) -> usize {
        if !self.lane.resolved_packets.is_empty() {
            return self.resume(cx, out);
        }
        let (lane, tx) = (&self.lane, &mut self.tx);
        if !lane.frames.is_empty() {
            return send((&lane.frames, &lane.probe_messages), tx, cx, out);
        }
        if !lane.large_frames.is_empty() {
            return send((&lane.large_frames, &lane.probe_messages), tx, cx, out);
        }
        0
    }

    /// Waiting packets of this worker return to it.
    fn can_exit(&self) -> bool {
        self.lane.away() == 0 && !self.lane.is_waiting()
    }

    fn is_vacant(&self) -> bool {
        !self.lane.is_waiting()
    }

    fn may_sleep(&self, _now_ns: u64, _idle_ns: u64) -> bool {
        true
    }

    fn arm(&mut self, _rest: &mut WakeConditions) -> bool {
        !self.lane.is_waiting()
    }
}
