//! linux-input: receives from all interfaces of one kind, one queue after the other: `af-packet-input`, `tap-input`,
//! `af-xdp-input`.

use crate::status::Placed;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use volley_graph::{
    Col, Column, Counters, Cx, Isa, NewVector, NodeId, Output, Source, WakeConditions, counters,
    nexts,
};
use volley_iface::{Direction, Flag, IfTable, QueueMigration, WorkerQueue, WorkerQueues};

/// Nanoseconds between two queries of the kernel's drop counters.
const ASK_NS: u64 = 250_000_000;

nexts! {
    /// Where packets go, besides to where each interface receives.
    pub enum Next { Drop => "error-drop" }
}

counters! {
    /// What is counted of packets received from the kernel.
    pub enum Count {
        /// no packet buffer was free
        NoBuffers = "no-buffers" (Error),
        /// the receiving interface is administratively down
        AdminDown = "admin-down" (Error),
        /// the frame is longer than the ring's slots or 65,535 bytes
        TooLong = "too-long" (Error),
        /// the kernel's request for a checksum or segmentation does not fit the packet
        BadHeader = "bad-offload" (Error),
        /// the kernel had a packet and no room in the ring: packets come faster than they are taken
        KernelDrops = "kernel-drops" (Error),
    }
}

/// Result of receiving from a queue.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Packets written, in the first rows.
    pub rows: usize,
    /// Packets lost for want of buffers.
    pub no_buffers: u64,
    /// Packets lost for their length.
    pub too_long: u64,
    /// Rows with a packet whose offload request does not fit it: to be dropped.
    pub bad: u64,
}

/// A receive queue.
pub trait RxQueue: Send + 'static {
    /// Name of the node that polls the queue.
    const INPUT: &'static str;

    /// Number of packets to receive, at most `most`; 0 if the queue is empty.
    fn ready(&mut self, most: usize) -> usize;
    /// Receive into the rows of `fresh`, in order, as many packets as it has rows. Sets the entries of invalid packets in
    /// `bad`, which is 0 on entry.
    fn take<I: Isa>(&mut self, fresh: &mut NewVector<'_, I, Next>, bad: &mut [u32]) -> Taken;
    /// Receive up to `due` packets for interface `rx`. The default copies into fresh buffers; `None` if no buffer is
    /// free.
    #[inline(always)]
    fn receive<'o, I: Isa>(
        &mut self,
        out: &'o mut Output<'_, I, Next>,
        rx: u32,
        due: usize,
        bad: &mut Column,
    ) -> Option<(NewVector<'o, I, Next>, Taken)> {
        let mut fresh = out.alloc(due, rx);
        let rows = fresh.len();
        if rows == 0 {
            return None;
        }
        let bad = bad.words_mut(rows);
        bad.fill(0);
        let taken = self.take(&mut fresh, bad);
        Some((fresh, taken))
    }
    /// Called on every poll, to give empty buffers to a device.
    #[inline(always)]
    fn refill<I: Isa>(&mut self, _out: &mut Output<'_, I, Next>) {}
    /// Discard up to `most` received packets; returns the number.
    fn skip(&mut self, most: usize) -> usize;
    /// A descriptor that is readable when a packet has arrived.
    fn fd(&self) -> BorrowedFd<'_>;
    /// Number of packets that the kernel dropped since the last call.
    fn lost(&mut self) -> u64 {
        0
    }
}

/// State of the node on one worker.
pub struct Input<Q: RxQueue> {
    worker: usize,
    table: Arc<IfTable>,
    migration: Arc<QueueMigration<Placed<Q>>>,
    queues: WorkerQueues<Placed<Q>>,
    turn: usize,
    ask_ns: u64,
    drop_node: NodeId,
    bad: Column,
}

impl<Q: RxQueue> Input<Q> {
    /// The instance for `worker`, with vectors of up to `size` packets.
    pub fn new(
        worker: usize,
        table: Arc<IfTable>,
        migration: Arc<QueueMigration<Placed<Q>>>,
        drop_node: NodeId,
        size: usize,
    ) -> Self {
        Input {
            worker,
            table,
            queues: migration.new_queue_list(),
            migration,
            turn: 0,
            ask_ns: 0,
            drop_node,
            bad: Column::new(size),
        }
    }

    /// Count packets that were lost before they had a buffer.
    fn lose(&self, cx: &Cx<'_, Count>, rx: u32, counter: Count, packets: u64) {
        if packets > 0 {
            cx.count(counter, packets);
            self.table
                .count_errors(self.worker, rx, Direction::Rx, packets);
            (0..packets).for_each(|_| self.table.count_drop(self.worker, rx));
        }
    }

    fn receive<I: Isa>(
        &mut self,
        cx: &Cx<'_, Count>,
        out: &mut Output<'_, I, Next>,
        at: usize,
        due: usize,
    ) -> usize {
        let rx = self.queues[at].status.interface();
        let queue = &mut self.queues[at].queue;
        let Some((mut fresh, taken)) = queue.receive(out, rx, due, &mut self.bad) else {
            let gone = self.queues[at].queue.skip(due);
            self.lose(cx, rx, Count::NoBuffers, gone as u64);
            return gone;
        };
        if !self.table.has(rx, Flag::Up) {
            cx.count(Count::AdminDown, taken.rows as u64);
            (0..taken.rows).for_each(|_| self.table.count_drop(self.worker, rx));
            return taken.rows;
        }
        fresh.truncate(taken.rows);
        self.lose(cx, rx, Count::NoBuffers, taken.no_buffers);
        self.lose(cx, rx, Count::TooLong, taken.too_long);
        if taken.rows > 0 {
            let place = (rx, self.queues[at].number);
            self.send(cx, fresh, place, taken.bad);
        }
        taken.rows + (taken.no_buffers + taken.too_long) as usize
    }

    fn send<I: Isa>(
        &mut self,
        cx: &Cx<'_, Count>,
        mut fresh: NewVector<'_, I, Next>,
        (rx, queue): (u32, usize),
        bad: u64,
    ) {
        let packets = fresh.len() as u64;
        let bytes = (0..fresh.len())
            .map(|row| fresh.view(row).len() as u64)
            .sum();
        self.table
            .count(self.worker, rx, Direction::Rx, packets, bytes);
        self.table
            .count_queue(rx, Direction::Rx, queue, packets, bytes);
        self.show(cx, &fresh, rx);
        let target = fresh.receiver(rx);
        if bad == 0 {
            fresh.send_to(target);
            return;
        }
        cx.count(Count::BadHeader, bad);
        self.table.count_errors(self.worker, rx, Direction::Rx, bad);
        let reason = cx.node().reason(Count::BadHeader.index());
        let nodes = self.bad.words_mut(fresh.len());
        fresh.prepare(|row, packet| {
            let is_bad = nodes[row] != 0;
            nodes[row] = u32::from(if is_bad { self.drop_node } else { target }.0);
            if is_bad {
                packet.set(Col::ERR, reason);
            }
        });
        fresh.send_each(&self.bad);
    }

    fn show<I: Isa>(&self, cx: &Cx<'_, Count>, fresh: &NewVector<'_, I, Next>, rx: u32) {
        if let Some(tap) = self.table.tap(Direction::Rx) {
            for row in 0..fresh.len() {
                tap.packet_passed(Direction::Rx, rx, &fresh.view(row), cx.now_ns());
            }
        }
    }

    #[cold]
    fn ask(&mut self, cx: &Cx<'_, Count>) {
        self.ask_ns = cx.now_ns() + ASK_NS;
        for at in 0..self.queues.len() {
            let lost = self.queues[at].queue.lost();
            let rx = self.queues[at].status.interface();
            self.lose(cx, rx, Count::KernelDrops, lost);
            self.table.count_missed(self.worker, rx, lost);
        }
    }
}

impl<Q: RxQueue> Source for Input<Q> {
    const NAME: &'static str = Q::INPUT;
    type Next = Next;
    type Count = Count;

    fn can_exit(&self) -> bool {
        self.is_vacant()
    }

    fn is_vacant(&self) -> bool {
        self.queues.is_empty() && !self.migration.is_waiting(self.worker)
    }

    fn may_sleep(&self, _now_ns: u64, idle_ns: u64) -> bool {
        let mut all = self.queues.iter().map(|q| q.status.interface());
        all.all(|interface| self.table.may_sleep(interface, idle_ns))
    }

    fn arm(&mut self, rest: &mut WakeConditions) -> bool {
        // A descriptor that reports an error is always ready, and without a link it cannot receive.
        let silent = |q: &WorkerQueue<Placed<Q>>| {
            q.is_faulty() || !self.table.has(q.status.interface(), Flag::Up)
        };
        let mut queues = self.queues.iter();
        let all = queues.all(|q| silent(q) || rest.add_fd(q.queue.fd()));
        let leaves = |q: &WorkerQueue<Placed<Q>>| q.is_gone() || !q.belongs_to(self.worker);
        all && !self.migration.is_waiting(self.worker) && !self.queues.iter().any(|q| leaves(q))
    }

    fn poll<I: Isa>(&mut self, cx: &Cx<'_, Count>, out: &mut Output<'_, I, Next>) -> usize {
        let (worker, quiet) = (self.worker, out.is_drained());
        self.migration
            .exchange(worker, quiet, &mut self.queues, Placed::is_gone);
        if cx.now_ns() >= self.ask_ns {
            self.ask(cx);
        }
        for step in 0..self.queues.len() {
            let at = (self.turn + step) % self.queues.len();
            if !self.queues[at].belongs_to(worker) {
                continue;
            }
            self.queues[at].queue.refill(out);
            let due = self.queues[at].queue.ready(out.vector_size());
            if due > 0 {
                let got = self.receive(cx, out, at, due);
                if got > 0 {
                    self.turn = at + 1;
                    return got;
                }
            }
        }
        0
    }
}
