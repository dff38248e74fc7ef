//! ip4-sv-reassembly, ip6-sv-reassembly: give every fragment in transit the hash of its flow, which needs the ports of the
//! first fragment (RFC 791, 3.2; RFC 8200, 4.5; RFC 1858; RFC 3128). Section 21 of `docs/forwarding-rules.md`.
//!
//! All fragments of a datagram come to one worker. Nothing is reassembled: the first fragment is forwarded and its flow
//! recorded; later fragments follow it, or wait if they arrive before it. On exit the position is at the IP header, the
//! `flow-hash` column is filled, and packets are on the feature arc behind `ip4-sv-reassembly-feature`.

use crate::Icmp;
use crate::reassembly::flows::{Flows, Later};
use crate::reassembly::{
    Fault, Key, MOST_DATAGRAMS, MOST_FRAGMENTS, Reassemble, ReassemblySwitches, Span, Totals, Wrong,
};
use std::cell::RefCell;
use std::sync::Arc;
use volley_fib::columns::FLOW_HASH;
use volley_fib::dataplane::DataPlane;
use volley_fib::{V4, V6};
use volley_graph::{
    ArcPosition, Col, Column, ColumnInfo, Consumed, Counters, Cx, HeldPacket, HoldAction, Isa,
    Node, Output, PacketView, Stage, Trace, TraceNames, Vector, WakeConditions, counters, nexts,
};

nexts! {
    /// Edges of the nodes; packets that are not dropped continue along the arc.
    pub enum Next { Drop => "error-drop" }
}

counters! {
    /// What the virtual reassembly nodes count.
    pub enum Count {
        /// fragments whose flow was known when they came: first ones, and those behind them
        Known = "known" (Info),
        /// fragments that wait, or waited, for the first one of their datagram
        Held = "held" (Info),
        /// fragments that waited and went on behind the first one
        Released = "released" (Info),
        /// datagrams whose flow was forgotten for newer ones
        Forgotten = "forgotten" (Warn),
        /// later fragments with bytes that the first one has
        Overlap = "overlap" (Error),
        /// fragments of datagrams of which too many wait for the first one
        TooMany = "too-many-fragments" (Error),
        /// fragments that waited and gave way to newer ones
        Evicted = "evicted" (Warn),
        /// fragments that found no room to wait
        Full = "no-room" (Warn),
        /// fragments whose datagram's first one did not come in time
        Timeout = "timeout" (Error),
        /// the headers do not fit the fragment
        Malformed = "malformed" (Error),
        /// nothing is in the fragment
        Empty = "empty-fragment" (Error),
        /// more fragments follow, and the length is no multiple of 8
        BadLength = "bad-fragment-length" (Error),
        /// the datagram would be longer than 65535 bytes
        TooLong = "too-long" (Error),
        /// the first fragment has not all headers, or another one has part of them (RFC 1858, 3128, 7112)
        Tiny = "tiny-fragment" (Error),
        /// neighbour discovery in fragments (RFC 6980)
        Discovery = "fragmented-neighbour-discovery" (Error),
    }
}

impl From<Fault> for Count {
    fn from(fault: Fault) -> Count {
        match fault {
            Fault::Overlap => Count::Overlap,
            Fault::TooMany => Count::TooMany,
            Fault::Evicted => Count::Evicted,
            Fault::Timeout => Count::Timeout,
            // All others occur only in full reassembly.
            Fault::Full
            | Fault::Duplicate
            | Fault::End
            | Fault::Spoiled
            | Fault::Congestion
            | Fault::TooLong
            | Fault::NoBuffers => Count::Full,
        }
    }
}

impl From<Wrong> for Count {
    fn from(wrong: Wrong) -> Count {
        match wrong {
            Wrong::Malformed => Count::Malformed,
            Wrong::Empty => Count::Empty,
            Wrong::BadLength => Count::BadLength,
            Wrong::TooLong => Count::TooLong,
            Wrong::Tiny => Count::Tiny,
            Wrong::Discovery => Count::Discovery,
        }
    }
}

/// A hash that is never 0, because 0 means none: the top bit is set instead, which selects the same paths.
fn as_tag(hash: u32) -> u32 {
    if hash == 0 { 1 << 31 } else { hash }
}

/// State of a virtual reassembly node.
pub struct SvReassembly<F: Icmp> {
    fib: DataPlane<F>,
    switches: Arc<ReassemblySwitches>,
    flows: Flows<Key, HeldPacket>,
    /// Position on the arc from which packets continue.
    spot: ArcPosition,
    worker: usize,
    timeout_ns: u64,
    totals: Totals,
    hashes: Column,
    reasons: Column,
}

impl<F: Icmp> SvReassembly<F> {
    /// For worker `worker` and vectors of up to `size` packets, which continue behind `spot`; the FIB has the tables of
    /// interfaces.
    pub fn new(
        fib: DataPlane<F>,
        switches: Arc<ReassemblySwitches>,
        spot: ArcPosition,
        (worker, size): (usize, usize),
    ) -> Self {
        SvReassembly {
            fib,
            timeout_ns: switches.virtual_bounds().timeout_ns,
            switches,
            flows: Flows::new(MOST_DATAGRAMS, MOST_FRAGMENTS),
            spot,
            worker,
            totals: Totals::default(),
            hashes: Column::new(size),
            reasons: Column::new(size),
        }
    }

    /// Publishes the numbers of datagrams and fragments, and counts forgotten flows.
    fn tell(&mut self, cx: &Cx<'_, Count>) {
        cx.count(Count::Forgotten, self.flows.take_forgotten());
        let (known, awaited) = self.flows.datagrams();
        let now = [known, awaited, self.flows.buffers()];
        self.switches.tell_virtual(self.worker, now, self.totals);
    }

    /// Sends fragments that waited, behind their first one: at most one vector of them.
    fn release_some<I: Isa>(&mut self, cx: &Cx<'_, Count>, out: &mut Output<'_, I, Next>) -> usize {
        let hashes = self.hashes.words_mut(out.vector_size());
        let (flows, mut n) = (&mut self.flows, 0);
        let mut fresh = out.new_from_held(|| {
            let (fragment, hash) = flows.next_ready()?;
            hashes[n] = hash;
            n += 1;
            Some(fragment)
        });
        fresh.prepare(|row, packet| packet.set(FLOW_HASH.col, hashes[row]));
        cx.count(Count::Released, n as u64);
        fresh.send_after(self.spot)
    }

    /// Drops fragments whose wait ended without the first one: at most one vector of them.
    fn drop_some<I: Isa>(&mut self, cx: &Cx<'_, Count>, out: &mut Output<'_, I, Next>) -> usize {
        let reasons = self.reasons.words_mut(out.vector_size());
        let (flows, mut n, mut evicted) = (&mut self.flows, 0, 0);
        let mut fresh = out.new_from_held(|| {
            let (fragment, fault) = flows.next_drop()?;
            let count = Count::from(fault);
            reasons[n] = cx.node().reason(count.index());
            cx.count(count, 1);
            evicted += u64::from(fault == Fault::Evicted);
            n += 1;
            Some(fragment)
        });
        fresh.prepare(|row, packet| packet.set(Col::ERR, reasons[row]));
        self.totals.dropped += n as u64;
        self.switches.virt.count_evicted(self.worker, evicted);
        fresh.send(Next::Drop)
    }
}

/// Trace of a fragment: its datagram, or its fault.
#[derive(Clone, Copy)]
pub struct SvTrace {
    rx: u32,
    message: Result<(u32, Span), Wrong>,
}

impl Trace for SvTrace {
    fn note(packet: &PacketView<'_>) -> Self {
        let read = match packet.bytes().first() {
            Some(first) if first >> 4 == 6 => V6::fragment,
            _ => V4::fragment,
        };
        let message = read(packet.bytes(), packet.len());
        let message = message.map(|(key, span)| (key.id, span));
        let rx = packet.rx();
        SvTrace { rx, message }
    }

    fn text(&self, names: &dyn TraceNames) -> String {
        let rx = names.interface(self.rx);
        let (id, span) = match self.message {
            Ok(found) => found,
            Err(wrong) => {
                return format!("rx {rx} {}", Count::INFO[Count::from(wrong).index()].name);
            }
        };
        let more = if span.more { ", more follow" } else { "" };
        let (start, end) = (span.start, span.end);
        format!("rx {rx} fragment of datagram {id:#x}: bytes {start} to {end}{more}")
    }
}

impl<F: Icmp> Node for SvReassembly<F> {
    const NAME: &'static str = F::SV_REASSEMBLY;
    type Next = Next;
    type Count = Count;
    type Trace = SvTrace;
    const COLUMNS: &'static [ColumnInfo] = &[FLOW_HASH];

    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, mut v: Vector<'_, I, Next>) -> Consumed {
        v.forget(&[Col::ERR]);
        let (bounds, now_ns) = (self.switches.virtual_bounds(), cx.now_ns());
        self.timeout_ns = bounds.timeout_ns;
        let view = self.fib.read(cx.guard());
        let (flows, spot) = (RefCell::new(&mut self.flows), self.spot);
        let totals = &mut self.totals;
        let judge = |bytes: &[u8], len, (rx, buffers)| -> Result<Later, Count> {
            let (key, span) = F::fragment(bytes, len)?;
            let chained = buffers as u32 - 1;
            let span = Span { chained, ..span };
            let table = view.table_of(rx);
            let key = Key { table, ..key };
            let mut flows = flows.borrow_mut();
            if span.start > 0 {
                return Ok(flows.later(&key, span, &bounds, now_ns)?);
            }
            let hash = as_tag(F::hash_of_whole(&bytes[..len.min(bytes.len())]));
            // An atomic fragment (RFC 6946) contains its ports.
            if span.more {
                flows.first(&key, (span, hash), &bounds, now_ns)?;
            }
            Ok(Later::Known(hash))
        };
        let done = v.each_or_hold(
            |packet| match judge(
                packet.bytes(),
                packet.len(),
                (packet.rx(), packet.buffers()),
            ) {
                Ok(Later::Known(hash)) => {
                    cx.count(Count::Known, 1);
                    totals.known += 1;
                    packet.set(FLOW_HASH.col, hash);
                    HoldAction::ResumeAfter(spot)
                }
                Ok(Later::Wait(leave)) => {
                    cx.count(Count::Held, 1);
                    totals.held += 1;
                    HoldAction::Hold(leave)
                }
                Err(count) => {
                    totals.dropped += 1;
                    let refused = u64::from(count == Count::Full);
                    self.switches.virt.count_refused(self.worker, refused);
                    packet.fail(cx, count);
                    HoldAction::Send(Next::Drop)
                }
            },
            |leave, fragment| flows.borrow_mut().put(leave, fragment),
        );
        self.tell(cx);
        done
    }
}

impl<F: Icmp> Stage for SvReassembly<F> {
    fn is_holding(&self) -> bool {
        self.flows.datagrams() != (0, 0) || self.flows.is_due()
    }

    /// Fragments wait for others that may never arrive; released ones must stay before the fragments behind them.
    fn keeps_order(&self) -> bool {
        self.flows.is_due()
    }

    fn release<I: Isa>(&mut self, cx: &Cx<'_, Count>, out: &mut Output<'_, I, Next>) -> usize {
        let bounds = self.switches.virtual_bounds();
        self.timeout_ns = bounds.timeout_ns;
        self.flows.shrink(bounds.buffers);
        self.flows.expire(self.timeout_ns, cx.now_ns());
        let mut sent = 0;
        if self.flows.is_due() {
            sent = self.release_some(cx, out);
        }
        if sent == 0 && self.flows.is_due() {
            sent = self.drop_some(cx, out);
        }
        self.tell(cx);
        sent
    }

    fn may_sleep(&self, now_ns: u64) -> bool {
        let oldest = self.flows.oldest_ns();
        let is_over = oldest.is_some_and(|since| now_ns.saturating_sub(since) >= self.timeout_ns);
        !(is_over || self.flows.is_due())
    }

    fn arm(&mut self, rest: &mut WakeConditions) -> bool {
        if let Some(since) = self.flows.oldest_ns() {
            rest.wake_at(since.saturating_add(self.timeout_ns));
        }
        true
    }
}

#[cfg(test)]
mod tests;
