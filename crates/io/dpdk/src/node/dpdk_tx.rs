//! dpdk-tx: transmits on a port of DPDK. One node for each interface, named after it (`wan0-tx`).

use crate::ring::{Lost, TxQueue};
use crate::send::plan;
use crate::sys::Outgoing;
use std::sync::Arc;
use volley_graph::{
    Col, Column, Consumed, Counters, Cx, Isa, Node, PacketTrace, Vector, counters, nexts,
};
use volley_iface::{Direction, IfTable, TxQueuePool, finish_checksum};

nexts! {
    /// Where packets go that cannot be sent.
    pub enum Next { Drop => "error-drop" }
}

counters! {
    /// Why a port did not take a packet.
    pub enum Count {
        /// the port's queue is full
        NoTxSlots = "no-tx-slots" (Error),
        /// the port's driver refused the packet
        Refused = "refused" (Error),
        /// the packet lies in several buffers, and the port takes one
        TooManyBuffers = "too-many-buffers" (Error),
        /// the packet, or the first buffer it lies in, has no bytes
        Empty = "empty-packet" (Error),
        /// what is left to be done with the packet does not fit it
        BadOffload = "bad-offload" (Error),
        /// another worker keeps the queue busy: there are fewer queues than workers
        QueueBusy = "queue-busy" (Error),
    }
}

/// State of an interface's transmit node on one worker.
pub struct DpdkTx {
    worker: usize,
    table: Arc<IfTable>,
    interface: u32,
    queues: Arc<TxQueuePool<TxQueue>>,
    /// The port accepts packets of several buffers.
    chains: bool,
    verdict: Column,
}

impl DpdkTx {
    /// The instance for `worker`, with vectors of up to `size` packets.
    pub(crate) fn new(
        worker: usize,
        table: Arc<IfTable>,
        interface: u32,
        queues: Arc<TxQueuePool<TxQueue>>,
        chains: bool,
        size: usize,
    ) -> Self {
        DpdkTx {
            worker,
            table,
            interface,
            queues,
            chains,
            verdict: Column::new(size),
        }
    }

    /// Complete checksums that ports do not support in software: those of protocols other than TCP and UDP.
    #[cold]
    fn finish_odd<I: Isa>(&self, cx: &Cx<'_, Count>, v: &mut Vector<'_, I, Next>) -> u64 {
        let mut bad = 0;
        let finish = |packet: &mut volley_graph::Packet<'_>| {
            let offload = packet.offload();
            if plan(packet.bytes(), &offload).is_some() {
                return true;
            }
            let done = match (offload.checksum, offload.gso) {
                (Some(sum), None) => finish_checksum(packet, sum).is_ok(),
                _ => false,
            };
            if !done {
                bad += 1;
                return packet.fail(cx, Count::BadOffload);
            }
            let _ = packet.set_offload(&volley_graph::Offload::NONE);
            true
        };
        v.sift(finish, Next::Drop);
        bad
    }

    /// Put the rows into the queue's burst; a packet that cannot be sent gets a drop reason in `verdicts`.
    #[inline(always)]
    fn gather<I: Isa>(&self, queue: &mut TxQueue, v: &Vector<'_, I, Next>, verdicts: &mut [u32]) {
        let has_work = v.has(Col::OFFLOAD);
        queue.begin();
        for (row, verdict) in verdicts.iter_mut().enumerate() {
            let view = v.view(row);
            let packet = match has_work {
                false => Outgoing::default(),
                true => plan(view.bytes(), &view.offload()).unwrap_or_default(),
            };
            // Drivers do not return empty segments, so their buffers would be lost. Only the first segment can be empty
            // here.
            if view.bytes().is_empty() {
                *verdict = Count::Empty.code();
            } else if view.is_chain() && !self.chains {
                *verdict = Count::TooManyBuffers.code();
            } else {
                queue.push(row, &view, packet);
            }
        }
    }
}

impl Node for DpdkTx {
    const NAME: &'static str = "dpdk-tx";
    type Next = Next;
    type Count = Count;
    type Trace = PacketTrace;

    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, mut v: Vector<'_, I, Next>) -> Consumed {
        let bad = match v.has(Col::OFFLOAD) {
            true => self.finish_odd(cx, &mut v),
            false => 0,
        };
        v.trim_chains();
        let n = v.len();
        let (rank, _) = self.table.worker_set().rank(self.worker);
        let mut turn = self.queues.acquire(rank);
        let mut verdict = std::mem::take(&mut self.verdict);
        let verdicts = verdict.words_mut(n);
        verdicts.fill(0);
        match &mut turn {
            None => verdicts.fill(Count::QueueBusy.code()),
            Some(turn) => {
                let queue = &mut turn.queue;
                queue.relieve(&mut v);
                self.gather(queue, &v, verdicts);
                queue.send(|row, why| {
                    verdicts[row] = match why {
                        Lost::Full => Count::NoTxSlots.code(),
                        Lost::Refused => Count::Refused.code(),
                    };
                });
            }
        }
        v.drop_out(cx, &verdict, |_| Next::Drop);
        self.verdict = verdict;
        let (sent, bytes) = (v.len() as u64, volley_graph::sum(v.column(Col::LEN)));
        let (worker, table, interface) = (self.worker, &self.table, self.interface);
        table.count(worker, interface, Direction::Tx, sent, bytes);
        if let Some(turn) = turn {
            let number = turn.queue.number();
            table.count_queue(interface, Direction::Tx, number, sent, bytes);
            self.queues.release(turn);
        }
        let lost = n as u64 - sent + bad;
        if lost > 0 {
            table.count_errors(worker, interface, Direction::Tx, lost);
        }
        v.post_all_to_device()
    }
}
