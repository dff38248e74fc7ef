//! memif-input: receives what peers have put into their rings.

use crate::link::Link;
use crate::ring::{Arrived, Scratch};
use std::sync::Arc;
use volley_graph::{
    Col, Column, Counters, Cx, Fresh, Isa, NodeId, Output, Source, counters, nexts,
};
use volley_iface::{Direction, IfTable};
use volley_tables::qsbr::Snap;

nexts! {
    /// Where memif-input sends packets, besides to where each interface receives.
    pub enum Next { Drop => "error-drop" }
}

counters! {
    /// What memif-input counts.
    pub enum Count {
        /// no packet buffer was free for a packet
        NoBuffers = "no-buffers" (Error),
        /// the peer sent a packet without bytes
        Empty = "empty-packet" (Error),
        /// the peer broke the rules of shared memory: its interface goes down
        PeerFault = "peer-fault" (Error),
    }
}

/// A queue that one worker receives from.
pub struct Assigned {
    /// The interface it belongs to.
    pub interface: u32,
    /// Its connection.
    pub link: Arc<Link>,
    /// Its number.
    pub queue: usize,
}

/// All queues of one worker.
pub type Queues = Vec<Assigned>;

/// State of memif-input on one worker.
pub struct MemifInput {
    worker: usize,
    table: Arc<IfTable>,
    queues: Snap<Queues>,
    /// Lent to the batch in hand.
    scratch: Option<Scratch>,
    turn: usize,
    whole: Vec<u8>,
    drop_node: NodeId,
    nodes: Column,
    reasons: Column,
}

impl MemifInput {
    /// The instance of `worker`, for vectors of up to `size` packets.
    pub fn new(
        worker: usize,
        table: Arc<IfTable>,
        queues: Snap<Queues>,
        drop_node: NodeId,
        size: usize,
    ) -> Self {
        MemifInput {
            worker,
            table,
            queues,
            scratch: Some(Scratch::default()),
            turn: 0,
            whole: Vec::with_capacity(crate::ring::MAX_PACKET),
            drop_node,
            nodes: Column::new(size),
            reasons: Column::new(size),
        }
    }

    /// Packets in pieces, or longer than a buffer.
    #[cold]
    fn write_long<I: Isa>(
        &mut self,
        cx: &Cx<'_, Count>,
        fresh: &mut Fresh<'_, I, Next>,
        arrived: &Arrived<'_>,
        to: NodeId,
    ) -> (u64, u64) {
        let (mut packets, mut bytes) = (0, 0);
        let n = fresh.len();
        for row in 0..n {
            self.whole.clear();
            arrived.gather(row, &mut self.whole);
            let fault = if self.whole.is_empty() {
                Some(Count::Empty)
            } else if !fresh.write(row, &self.whole) {
                Some(Count::NoBuffers)
            } else {
                packets += 1;
                bytes += self.whole.len() as u64;
                None
            };
            let (node, reason) = match fault {
                None => (to, 0),
                Some(count) => {
                    cx.count(count, 1);
                    (self.drop_node, cx.node().reason(count.index()))
                }
            };
            self.nodes.words_mut(n)[row] = u32::from(node.0);
            self.reasons.words_mut(n)[row] = reason;
        }
        let reasons = self.reasons.words(n);
        if volley_graph::or_all(reasons) != 0 {
            fresh.prepare(|row, packet| {
                if reasons[row] != 0 {
                    packet.set(Col::Err, reasons[row]);
                }
            });
        }
        (packets, bytes)
    }

    /// Receive from one queue; none when nothing waits there.
    #[inline(always)]
    fn receive<I: Isa>(
        &mut self,
        cx: &Cx<'_, Count>,
        out: &mut Output<'_, I, Next>,
        from: &Assigned,
    ) -> Option<usize> {
        let queue = from.link.rx().get(from.queue)?;
        let mut scratch = self.scratch.take()?;
        let taken = match queue.rx.arrived(&mut scratch, out.vector_size()) {
            Ok(arrived) if arrived.packets() == 0 => None,
            Ok(arrived) => Some(self.take_over(cx, out, from.interface, arrived)),
            Err(fault) => {
                from.link.blame(fault);
                cx.count(Count::PeerFault, 1);
                None
            }
        };
        self.scratch = Some(scratch);
        taken
    }

    #[inline(always)]
    fn take_over<I: Isa>(
        &mut self,
        cx: &Cx<'_, Count>,
        out: &mut Output<'_, I, Next>,
        rx: u32,
        arrived: Arrived<'_>,
    ) -> usize {
        let due = arrived.packets();
        let to = self.table.rx_node(rx);
        let mut fresh = out.alloc(due, rx);
        let n = fresh.len();
        let plain = arrived.is_plain();
        let (mut packets, mut bytes) = (n as u64, arrived.bytes());
        if plain {
            fresh.fill(|row, data| arrived.copy(row, data));
        } else {
            (packets, bytes) = self.write_long(cx, &mut fresh, &arrived, to);
        }
        if n < due {
            bytes = self
                .lose(cx, rx, &arrived, n, plain.then_some(bytes))
                .unwrap_or(bytes);
        }
        arrived.release();
        let lost = (due as u64) - packets;
        if lost > 0 {
            self.table
                .count_errors(self.worker, rx, Direction::Rx, lost);
        }
        self.table
            .count(self.worker, rx, Direction::Rx, packets, bytes);
        self.show(cx, &fresh, rx);
        if plain {
            fresh.send_to(to);
        } else {
            fresh.send_each(&self.nodes);
        }
        due
    }

    /// Packets from row `n` on found no buffer; the bytes of the others, where they are not counted yet.
    #[cold]
    fn lose(
        &self,
        cx: &Cx<'_, Count>,
        rx: u32,
        arrived: &Arrived<'_>,
        n: usize,
        bytes: Option<u64>,
    ) -> Option<u64> {
        let lost = arrived.packets() - n;
        cx.count(Count::NoBuffers, lost as u64);
        (0..lost).for_each(|_| self.table.count_drop(self.worker, rx));
        let gone: u64 = (n..arrived.packets())
            .map(|row| arrived.len_of(row) as u64)
            .sum();
        bytes.map(|bytes| bytes - gone)
    }

    #[inline(always)]
    fn show<I: Isa>(&self, cx: &Cx<'_, Count>, fresh: &Fresh<'_, I, Next>, rx: u32) {
        let Some(tap) = self.table.tap(Direction::Rx) else {
            return;
        };
        for row in 0..fresh.len() {
            let view = fresh.view(row);
            if !view.is_empty() {
                tap.pass(Direction::Rx, rx, &view, cx.now_ns());
            }
        }
    }
}

impl Source for MemifInput {
    const NAME: &'static str = "memif-input";
    type Next = Next;
    type Count = Count;

    #[inline(always)]
    fn poll<I: Isa>(&mut self, cx: &Cx<'_, Count>, out: &mut Output<'_, I, Next>) -> usize {
        let queues = self.queues.read(cx.guard());
        for step in 0..queues.len() {
            let at = (self.turn + step) % queues.len();
            let from = &queues[at];
            if from.link.is_faulty() {
                continue;
            }
            if let Some(packets) = self.receive(cx, out, from) {
                self.turn = at + 1;
                return packets;
            }
        }
        0
    }
}
