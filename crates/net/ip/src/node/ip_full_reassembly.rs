//! ip4-full-reassembly, ip6-full-reassembly: reassemble datagrams for the router (RFC 791, 3.2; RFC 1122, 3.3.2; RFC 8200, 4.5;
//! RFC 5722). Section 17 of `docs/forwarding-rules.md`.
//!
//! All fragments of a datagram come to one worker. Fragments are stored unchanged; drops and completed datagrams are processed
//! at the end of the round. On exit a datagram is like an unfragmented one, with the Ethernet header of its first fragment.

use crate::reassembly::{
    Fault, HEADERS, Key, MOST_DATAGRAMS, MOST_FRAGMENTS, ReassemblySwitches, Span, Store, Whole,
    Wrong,
};
use crate::{Icmp, IpTrace};
use std::cell::RefCell;
use std::io::IoSliceMut;
use std::sync::Arc;
use volley_fib::Af;
use volley_fib::dataplane::DataPlane;
use volley_graph::{
    Col, Column, Consumed, Counters, Cx, HeldPacket, HoldAction, Isa, Node, Output, Stage, Vector,
    WakeConditions, counters, nexts,
};

nexts! {
    /// Edges of the reassembly nodes.
    pub struct Next<F: Icmp> {
        DROP => "error-drop",
        ERROR => F::ICMP_ERROR,
        LOCAL => F::LOCAL,
    }
}

counters! {
    /// What the reassembly nodes count.
    pub enum Count {
        /// fragments that wait, or waited, for the rest of their datagrams
        Held = "fragments" (Info),
        /// datagrams that were put together
        Reassembled = "reassembled" (Info),
        /// fragments that were there already, byte for byte where they belong
        Duplicate = "duplicate" (Info),
        /// fragments of datagrams whose fragments overlap (RFC 5722)
        Overlap = "overlap" (Error),
        /// fragments of datagrams that end in two places, or go on behind their end
        BadEnd = "bad-end" (Error),
        /// fragments that came after their datagram was given up
        Discarded = "discarded" (Error),
        /// fragments of datagrams that have more fragments than allowed
        TooMany = "too-many-fragments" (Error),
        /// fragments of datagrams that met congestion, though parts of them take no part in telling of it (RFC 3168)
        BadEcn = "bad-ecn" (Error),
        /// fragments that gave way to newer ones
        Evicted = "evicted" (Warn),
        /// fragments that found no room
        Full = "no-room" (Warn),
        /// fragments whose datagram was not whole in time
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
        /// no buffer was free for the datagram
        NoBuffers = "no-buffers" (Warn),
    }
}

impl From<Fault> for Count {
    fn from(fault: Fault) -> Count {
        match fault {
            Fault::Duplicate => Count::Duplicate,
            Fault::Overlap => Count::Overlap,
            Fault::End => Count::BadEnd,
            Fault::Spoiled => Count::Discarded,
            Fault::TooMany => Count::TooMany,
            Fault::Congestion => Count::BadEcn,
            Fault::Evicted => Count::Evicted,
            Fault::Full => Count::Full,
            Fault::Timeout => Count::Timeout,
            Fault::TooLong => Count::TooLong,
            Fault::NoBuffers => Count::NoBuffers,
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

/// The edge for a drop: the error node if an ICMP error may be due.
fn edge<F: Icmp>(count: Count) -> Next<F> {
    match count {
        Count::BadLength | Count::TooLong | Count::Tiny if F::AF == Af::V6 => Next::ERROR,
        _ => Next::DROP,
    }
}

/// State of a reassembly node.
pub struct FullReassembly<F: Icmp> {
    fib: DataPlane<F>,
    switches: Arc<ReassemblySwitches>,
    store: Store<Key, HeldPacket>,
    worker: usize,
    timeout_ns: u64,
    edges: Column,
    reasons: Column,
}

impl<F: Icmp> FullReassembly<F> {
    /// For worker `worker` and vectors of up to `size` packets; the FIB has the tables of interfaces.
    pub fn new(
        fib: DataPlane<F>,
        switches: Arc<ReassemblySwitches>,
        worker: usize,
        size: usize,
    ) -> Self {
        FullReassembly {
            fib,
            timeout_ns: switches.bounds().timeout_ns,
            switches,
            store: Store::new(MOST_DATAGRAMS, MOST_FRAGMENTS),
            worker,
            edges: Column::new(size),
            reasons: Column::new(size),
        }
    }

    fn tell(&self, now_ns: u64) {
        let full = (self.store.datagrams(), self.store.buffers());
        let oldest = self.store.oldest_ns();
        self.switches.tell(self.worker, full, oldest, now_ns);
    }

    /// Reassembles a datagram and sends it; frees its fragments.
    fn finish<I: Isa>(
        &mut self,
        whole: Whole,
        out: &mut Output<'_, I, Next<F>>,
    ) -> Result<(), Fault> {
        self.join(whole, out)?;
        let mut more = true;
        while more {
            let next = || {
                let fragment = self.store.take(whole);
                more = fragment.is_some();
                fragment
            };
            // Packets that are not sent are freed.
            drop(out.new_from_held(next));
        }
        Ok(())
    }

    fn join<I: Isa>(&self, whole: Whole, out: &mut Output<'_, I, Next<F>>) -> Result<(), Fault> {
        /// Bytes before the IP header are kept only up to this number, more than any link layer has.
        const LINK: usize = 64;
        let (payload, ecn) = self.store.facts(whole);
        let ecn = ecn.ok_or(Fault::Congestion)?;
        let mut fragments = self.store.fragments_of(whole);
        let (_, first) = fragments.next().ok_or(Fault::NoBuffers)?;
        let mut headers = [0; HEADERS];
        let len = F::headers(first.bytes_before(0), payload as usize, ecn, &mut headers);
        let headers = &headers[..len.ok_or(Fault::TooLong)?];
        let back = Some(first.offset()).filter(|n| *n <= LINK).unwrap_or(0);
        let link = &first.bytes_before(back)[..back];
        let mut fresh = out.alloc(1, first.rx());
        if fresh.is_empty() {
            return Err(Fault::NoBuffers);
        }
        let room = back + headers.len() + payload as usize;
        let filled = fresh.scatter(0, room, |buffers| {
            let mut pen = FragmentWriter { buffers, at: 0 };
            pen.write(link);
            pen.write(headers);
            for (span, fragment) in self.store.fragments_of(whole) {
                let mut skip = usize::from(span.head);
                let mut left = (span.end - span.start) as usize;
                fragment.segments(|segment| {
                    let from = skip.min(segment.len());
                    let part = left.min(segment.len() - from);
                    pen.write(&segment[from..from + part]);
                    (skip, left) = (skip - from, left - part);
                });
            }
            pen.at
        });
        filled.ok_or(Fault::NoBuffers)?;
        let trace = first.trace();
        fresh.prepare(|_, packet| {
            packet.advance(back);
            if trace != 0 {
                packet.set(Col::TRACE, trace);
            }
        });
        fresh.send(Next::LOCAL);
        Ok(())
    }

    /// Sends fragments that are to be dropped: at most one vector of them.
    fn drop_some<I: Isa>(&mut self, cx: &Cx<'_, Count>, out: &mut Output<'_, I, Next<F>>) -> usize {
        let size = out.vector_size();
        let (store, mut n, mut evicted) = (&mut self.store, 0, 0);
        let (edges, reasons) = (self.edges.words_mut(size), self.reasons.words_mut(size));
        let mut fresh = out.new_from_held(|| {
            let (fragment, fault, is_first) = store.next_drop()?;
            let count = Count::from(fault);
            // RFC 792 and RFC 8200, 4.5: a reassembly timeout is reported only if the first fragment was received.
            let tells = fault == Fault::Timeout && is_first;
            let edge = if tells { Next::<F>::ERROR } else { Next::DROP };
            edges[n] = volley_graph::Nexts::index(edge) as u32;
            reasons[n] = cx.node().reason(count.index());
            cx.count(count, 1);
            evicted += u64::from(fault == Fault::Evicted);
            n += 1;
            Some(fragment)
        });
        self.switches.full.count_evicted(self.worker, evicted);
        fresh.prepare(|row, packet| packet.set(Col::ERR, reasons[row]));
        fresh.send_by(&mut self.edges)
    }
}

/// Writes bytes into a sequence of buffers.
struct FragmentWriter<'a, 'b> {
    buffers: &'a mut [IoSliceMut<'b>],
    at: usize,
}

impl FragmentWriter<'_, '_> {
    fn write(&mut self, mut bytes: &[u8]) {
        while let Some(buffer) = self.buffers.get_mut(self.at / volley_graph::buf::DATA)
            && !bytes.is_empty()
        {
            let room = &mut buffer[self.at % volley_graph::buf::DATA..];
            let n = room.len().min(bytes.len());
            room[..n].copy_from_slice(&bytes[..n]);
            (self.at, bytes) = (self.at + n, &bytes[n..]);
        }
    }
}

impl<F: Icmp> Node for FullReassembly<F> {
    const NAME: &'static str = F::REASSEMBLY;
    type Next = Next<F>;
    type Count = Count;
    type Trace = IpTrace;

    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, mut v: Vector<'_, I, Next<F>>) -> Consumed {
        v.forget(&[Col::ERR]);
        let (bounds, now_ns) = (self.switches.bounds(), cx.now_ns());
        self.timeout_ns = bounds.timeout_ns;
        let view = self.fib.read(cx.guard());
        let store = RefCell::new(&mut self.store);
        let done = v.each_or_hold(
            |packet| {
                let found = F::fragment(packet.bytes(), packet.len());
                let may = found.map_err(Count::from).and_then(|(key, span)| {
                    let chained = packet.buffers() as u32 - 1;
                    let span = Span { chained, ..span };
                    let table = view.table_of(packet.rx());
                    let key = Key { table, ..key };
                    let leave = store.borrow_mut().offer(&key, span, &bounds, now_ns);
                    leave.map_err(Count::from)
                });
                match may {
                    Ok(leave) => {
                        cx.count(Count::Held, 1);
                        HoldAction::Hold(leave)
                    }
                    Err(count) => {
                        let refused = u64::from(count == Count::Full);
                        self.switches.full.count_refused(self.worker, refused);
                        packet.fail(cx, count);
                        HoldAction::Send(edge(count))
                    }
                }
            },
            |leave, fragment| store.borrow_mut().put(leave, fragment),
        );
        self.tell(now_ns);
        done
    }
}

impl<F: Icmp> Stage for FullReassembly<F> {
    fn is_holding(&self) -> bool {
        self.store.datagrams() > 0 || self.store.is_due()
    }

    /// Fragments wait for others that may never arrive, so they have no order to keep.
    fn keeps_order(&self) -> bool {
        self.store.is_due()
    }

    fn release<I: Isa>(&mut self, cx: &Cx<'_, Count>, out: &mut Output<'_, I, Next<F>>) -> usize {
        let bounds = self.switches.bounds();
        self.timeout_ns = bounds.timeout_ns;
        self.store.shrink(bounds.buffers);
        self.store.expire(self.timeout_ns, cx.now_ns());
        let mut sent = 0;
        while let Some(whole) = self.store.next_whole()
            && sent == 0
        {
            match self.finish(whole, out) {
                Ok(()) => sent = 1,
                Err(fault) => self.store.give_up(whole, fault),
            }
        }
        cx.count(Count::Reassembled, sent as u64);
        if sent == 0 {
            sent = self.drop_some(cx, out);
        }
        self.tell(cx.now_ns());
        sent
    }

    fn may_sleep(&self, now_ns: u64) -> bool {
        let oldest = self.store.oldest_ns();
        let is_over = oldest.is_some_and(|born| now_ns.saturating_sub(born) >= self.timeout_ns);
        !(is_over || self.store.is_due())
    }

    fn arm(&mut self, rest: &mut WakeConditions) -> bool {
        if let Some(born) = self.store.oldest_ns() {
            rest.wake_at(born.saturating_add(self.timeout_ns));
        }
        true
    }
}

#[cfg(test)]
mod tests;
