//! memif-tx: puts packets into the rings of a peer. One node for each interface, named after it (`memif0/0-tx`).

use crate::link::ConnectionRings;
use crate::ring::{Leaving, Scratch, Sent};
use std::sync::Arc;
use volley_graph::{
    Col, Column, Consumed, Cx, Isa, NoNext, Node, PacketTrace, PacketView, Vector, Words, counters,
};
use volley_iface::{Direction, IfTable, flow_queue};
use volley_tables::qsbr::Snap;

counters! {
    /// What memif-tx counts.
    pub enum Count {
        /// the peer's ring is full
        NoTxSlots = "no-tx-slots" (Error),
        /// no peer is connected
        NotConnected = "not-connected" (Error),
        /// the peer offers no ring to transmit into
        NoQueue = "no-queue" (Error),
        /// the packet needs more of the peer's buffers than a chain may have
        TooLong = "too-long" (Error),
        /// other workers keep the queue busy
        QueueBusy = "queue-busy" (Error),
        /// the packet has no bytes
        Empty = "empty-packet" (Error),
        /// the peer broke the rules of shared memory: its interface goes down
        PeerFault = "peer-fault" (Error),
    }
}

/// Number of packets whose buffers are prefetched ahead.
const AHEAD: usize = 4;

/// The connection that an interface transmits to.
pub type Connected = Option<Arc<ConnectionRings>>;

/// State of an interface's transmit node on one worker.
pub struct MemifTx {
    worker: usize,
    table: Arc<IfTable>,
    interface: u32,
    link: Snap<Connected>,
    scratch: Scratch,
    words: Words<3>,
    queues: Column,
}

/// Result of sending a vector.
#[derive(Default)]
struct Tally {
    packets: u64,
    bytes: u64,
    lost: u64,
}

impl MemifTx {
    /// The instance for `worker`, with vectors of up to `size` packets.
    pub fn new(
        worker: usize,
        table: Arc<IfTable>,
        interface: u32,
        link: Snap<Connected>,
        size: usize,
    ) -> Self {
        MemifTx {
            worker,
            table,
            interface,
            link,
            scratch: Scratch::default(),
            words: Words::new(size),
            queues: Column::new(size),
        }
    }

    /// Send the rows that satisfy `mine` into one queue.
    #[inline(always)]
    fn send<I: Isa>(
        &mut self,
        cx: &Cx<'_, Count>,
        v: &Vector<'_, I, NoNext>,
        link: &ConnectionRings,
        queue: usize,
        mine: impl Fn(usize) -> bool,
        tally: &mut Tally,
    ) {
        let n = v.len();
        let before = (tally.packets, tally.bytes);
        let lose = |count: Count, tally: &mut Tally| {
            let rows = (0..n).filter(|&row| mine(row)).count() as u64;
            cx.count(count, rows);
            tally.lost += rows;
        };
        let Some(turn) = link.tx()[queue].turn() else {
            return lose(Count::QueueBusy, tally);
        };
        let mut leaving = match turn.tx().leaving(&mut self.scratch, n) {
            Ok(leaving) => leaving,
            Err(fault) => {
                link.blame(fault);
                cx.count(Count::PeerFault, 1);
                return lose(Count::NotConnected, tally);
            }
        };
        let lens = v.column(Col::LEN);
        for row in (0..n).filter(|&row| mine(row)) {
            if let Some(&len) = lens.get(row + AHEAD) {
                leaving.ahead(AHEAD, len as usize);
            }
            let packet = v.view(row);
            let (len, first) = (packet.len(), packet.bytes());
            let sent = if first.len() == len && len != 0 {
                leaving.put(first)
            } else {
                put_chain(&mut leaving, &packet)
            };
            match sent {
                Ok(Sent::Whole) => {
                    tally.packets += 1;
                    tally.bytes += len as u64;
                }
                Ok(other) => {
                    tally.lost += 1;
                    cx.count(counter(other, len), 1);
                }
                Err(fault) => {
                    link.blame(fault);
                    cx.count(Count::PeerFault, 1);
                    let rest = (row + 1..n).filter(|&row| mine(row)).count() as u64;
                    cx.count(Count::NotConnected, rest);
                    tally.lost += 1 + rest;
                    break;
                }
            }
        }
        let wants_wakeup = leaving.publish();
        let (packets, bytes) = (tally.packets - before.0, tally.bytes - before.1);
        // Before the queue is released, since the counters also have one writer at a time.
        self.table
            .count_queue(self.interface, Direction::Tx, queue, packets, bytes);
        drop(turn);
        if wants_wakeup {
            link.ring_wakeup(queue);
        }
    }

    /// Spread a vector over the queues of this worker, each flow to one of them.
    #[inline(never)]
    fn send_spread<I: Isa>(
        &mut self,
        cx: &Cx<'_, Count>,
        v: &mut Vector<'_, I, NoNext>,
        link: &ConnectionRings,
        (mine, (rank, workers)): (usize, (usize, usize)),
        tally: &mut Tally,
    ) {
        let n = v.len();
        // Addresses and ports of IPv4, most of the source address of IPv6.
        v.words(26, &mut self.words);
        for (row, queue) in self.queues.words_mut(n).iter_mut().enumerate() {
            *queue = flow_queue(self.words.row(row), mine);
        }
        let queues = std::mem::take(&mut self.queues);
        for queue in 0..mine {
            let words = queues.words(n);
            if words.contains(&(queue as u32)) {
                let number = rank + queue * workers;
                self.send(cx, v, link, number, |row| words[row] == queue as u32, tally);
            }
        }
        self.queues = queues;
    }

    #[inline(always)]
    fn transmit<I: Isa>(
        &mut self,
        cx: &Cx<'_, Count>,
        v: &mut Vector<'_, I, NoNext>,
        tally: &mut Tally,
    ) {
        let n = v.len() as u64;
        let link = match self.link.read(cx.guard()) {
            Some(link) if !link.is_faulty() => link,
            _ => {
                cx.count(Count::NotConnected, n);
                tally.lost = n;
                return;
            }
        };
        let queues = link.tx().len();
        let (rank, workers) = self.table.worker_set().rank(self.worker);
        match queues.saturating_sub(rank).div_ceil(workers) {
            _ if queues == 0 => {
                cx.count(Count::NoQueue, n);
                tally.lost = n;
            }
            0 => self.send(cx, v, link, rank % queues, |_| true, tally),
            1 => self.send(cx, v, link, rank, |_| true, tally),
            mine => self.send_spread(cx, v, link, (mine, (rank, workers)), tally),
        }
    }
}

/// Counter for a packet that was not sent.
#[cold]
fn counter(sent: Sent, len: usize) -> Count {
    match sent {
        _ if len == 0 => Count::Empty,
        Sent::TooLong => Count::TooLong,
        _ => Count::NoTxSlots,
    }
}

/// Send a packet in several buffers, or one without bytes.
#[cold]
fn put_chain(
    leaving: &mut Leaving<'_>,
    packet: &PacketView<'_>,
) -> Result<Sent, crate::fault::Fault> {
    if packet.is_empty() {
        return Ok(Sent::NoSlots);
    }
    leaving.put_long(packet.len(), |write| packet.segments(0, write))
}

impl Node for MemifTx {
    const NAME: &'static str = "memif-tx";
    type Next = NoNext;
    type Count = Count;
    type Trace = PacketTrace;

    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, mut v: Vector<'_, I, NoNext>) -> Consumed {
        let mut tally = Tally::default();
        self.transmit(cx, &mut v, &mut tally);
        let interface = self.interface;
        let (packets, bytes) = (tally.packets, tally.bytes);
        self.table
            .count(self.worker, interface, Direction::Tx, packets, bytes);
        if tally.lost > 0 {
            self.table
                .count_errors(self.worker, interface, Direction::Tx, tally.lost);
        }
        v.free()
    }
}
