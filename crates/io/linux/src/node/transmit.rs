//! linux-transmit: transmits for one Linux interface; the node is named after it (`tap0-tx`).

use crate::status::Status;
use std::sync::Arc;
use volley_graph::{
    Col, Column, Consumed, Counters, Cx, Isa, Node, PacketTrace, Vector, counters, nexts,
};
use volley_iface::{Direction, IfIdx, IfTable, TxQueuePool};
use volley_tables::Snap;

nexts! {
    /// Where packets go that cannot be sent.
    pub enum Next { Drop => "error-drop" }
}

counters! {
    /// Why the kernel did not take a packet.
    pub enum Count {
        /// the kernel's queue was full
        NoTxSlots = "no-tx-slots" (Error),
        /// the kernel's interface is down or gone
        LinkDown = "link-down" (Error),
        /// the kernel's interface does not take frames of this length
        TooLong = "too-long" (Error),
        /// the kernel refused the packet for another reason
        Refused = "refused" (Error),
        /// another worker keeps the queue busy: there are fewer queues than workers
        QueueBusy = "queue-busy" (Error),
    }
}

impl Count {
    /// The counter for the kernel's error about one packet.
    pub fn of(error: &std::io::Error) -> Count {
        match error.raw_os_error() {
            Some(libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM | libc::EBUSY) => Count::NoTxSlots,
            Some(libc::ENETDOWN | libc::ENXIO | libc::ENODEV | libc::EIO | libc::EBADFD) => {
                Count::LinkDown
            }
            Some(libc::EMSGSIZE) => Count::TooLong,
            _ => Count::Refused,
        }
    }
}

/// A transmit queue.
pub trait TxQueue: Send + 'static {
    /// Common name of the node's instances (`tap-tx`).
    const OUTPUT: &'static str;

    /// Send the packets of `v` in order. The verdict of a packet that cannot be sent becomes the code of a [`Count`];
    /// verdicts are 0 on entry.
    fn send<I: Isa>(&mut self, v: &mut Vector<'_, I, Next>, verdicts: &mut [u32], status: &Status);

    /// Free the buffers of the sent packets, unless the device still uses them.
    #[inline(always)]
    fn finish<I: Isa>(&mut self, v: Vector<'_, I, Next>) -> Consumed {
        v.free()
    }
}

/// The transmit queues of an interface, valid while the kernel's interface behind it is the same.
pub struct TransmitQueues<Q> {
    status: Arc<Status>,
    queues: Arc<TxQueuePool<Q>>,
}

impl<Q> TransmitQueues<Q> {
    /// These queues; faults are reported to `status`.
    pub fn new(status: &Arc<Status>, queues: Arc<TxQueuePool<Q>>) -> Self {
        TransmitQueues {
            status: status.clone(),
            queues,
        }
    }
}

/// State of the node on one worker.
pub struct Transmit<Q: TxQueue> {
    worker: usize,
    interface: IfIdx,
    table: Arc<IfTable>,
    verdict: Column,
    transmit_queues: Snap<TransmitQueues<Q>>,
}

impl<Q: TxQueue> Transmit<Q> {
    /// The instance for `worker` and an interface, with vectors of up to `size` packets.
    pub fn new(
        worker: usize,
        interface: IfIdx,
        table: Arc<IfTable>,
        size: usize,
        transmit_queues: Snap<TransmitQueues<Q>>,
    ) -> Self {
        Transmit {
            worker,
            interface,
            table,
            verdict: Column::new(size),
            transmit_queues,
        }
    }
}

impl<Q: TxQueue> Node for Transmit<Q> {
    const NAME: &'static str = Q::OUTPUT;
    type Next = Next;
    type Count = Count;
    type Trace = PacketTrace;

    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, mut v: Vector<'_, I, Next>) -> Consumed {
        let (n, interface) = (v.len(), self.interface.0);
        let transmit_queues = self.transmit_queues.read(cx.guard());
        let verdicts = self.verdict.words_mut(n);
        verdicts.fill(0);
        let (rank, _) = self.table.worker_set().rank(self.worker);
        let mut turn = transmit_queues.queues.acquire(rank);
        match &mut turn {
            Some(turn) => turn.queue.send(&mut v, verdicts, &transmit_queues.status),
            None if transmit_queues.queues.is_empty() => verdicts.fill(Count::LinkDown.code()),
            None => verdicts.fill(Count::QueueBusy.code()),
        }
        v.drop_out(cx, &self.verdict, |_| Next::Drop);
        let (sent, bytes) = (v.len(), volley_graph::sum(v.column(Col::LEN)));
        let (worker, table) = (self.worker, &self.table);
        table.count(worker, interface, Direction::Tx, sent as u64, bytes);
        if sent < n {
            let lost = (n - sent) as u64;
            table.count_errors(worker, interface, Direction::Tx, lost);
        }
        let Some(mut turn) = turn else {
            return v.free();
        };
        let done = turn.queue.finish(v);
        transmit_queues.queues.release(turn);
        done
    }
}

/// Mark packets `from..` with the kernel's error.
pub fn mark(verdicts: &mut [u32], error: &std::io::Error) {
    verdicts.fill(Count::of(error).code());
}
