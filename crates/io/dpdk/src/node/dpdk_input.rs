//! dpdk-input: receives from the ports of DPDK, one queue after the other.

use crate::place::Placed;
use std::cell::Cell;
use std::sync::Arc;
use volley_graph::{Cx, Isa, NewVector, Output, Source, WakeConditions, counters, nexts};
use volley_iface::{Direction, Flag, IfTable, QueueMigration, WorkerQueue, WorkerQueues};

/// Duration of an idle worker's sleep: ports are polled, and no event would wake the worker.
const NAP_NS: u64 = 500_000;

nexts! {
    /// Where packets go, besides to where each interface receives.
    pub enum Next { Drop => "error-drop" }
}

counters! {
    /// What is counted of packets received from ports.
    pub enum Count {
        /// the packet has more parts than are taken, or no buffer was free for a copy of it
        NotTaken = "not-taken" (Error),
        /// the port lost packets: no descriptor or no buffer was free, or they came damaged
        PortDrops = "port-drops" (Error),
    }
}

/// State of the node on one worker.
pub struct DpdkInput {
    worker: usize,
    table: Arc<IfTable>,
    migration: Arc<QueueMigration<Placed>>,
    queues: WorkerQueues<Placed>,
    turn: usize,
    /// Time of the worker's last attempt to sleep.
    drowsy_ns: Cell<u64>,
}

impl DpdkInput {
    /// The instance for `worker`.
    pub fn new(worker: usize, table: Arc<IfTable>, migration: Arc<QueueMigration<Placed>>) -> Self {
        DpdkInput {
            worker,
            table,
            queues: migration.new_queue_list(),
            migration,
            turn: 0,
            drowsy_ns: Cell::new(0),
        }
    }

    /// Count packets that were lost before they had a row.
    #[cold]
    fn lose(&self, cx: &Cx<'_, Count>, rx: u32, counter: Count, packets: u64) {
        cx.count(counter, packets);
        self.table
            .count_errors(self.worker, rx, Direction::Rx, packets);
    }

    #[inline(always)]
    fn receive<I: Isa>(
        &mut self,
        cx: &Cx<'_, Count>,
        out: &mut Output<'_, I, Next>,
        at: usize,
    ) -> usize {
        let Placed { shared, queue } = &mut **self.queues[at];
        let (rx, number) = (shared.interface(), queue.number());
        queue.keep_level(out);
        let lost = shared.take_lost();
        let received = queue.receive(out, rx);
        if lost > 0 {
            self.lose(cx, rx, Count::PortDrops, lost);
        }
        let Some((fresh, refused)) = received else {
            return 0;
        };
        if refused > 0 {
            self.lose(cx, rx, Count::NotTaken, refused);
        }
        let n = fresh.len();
        if n == 0 {
            return refused as usize;
        }
        self.send(cx, fresh, (rx, number));
        n
    }

    #[inline(always)]
    fn send<I: Isa>(
        &self,
        cx: &Cx<'_, Count>,
        fresh: NewVector<'_, I, Next>,
        (rx, queue): (u32, usize),
    ) {
        let packets = fresh.len() as u64;
        let bytes = (0..fresh.len())
            .map(|row| fresh.view(row).len() as u64)
            .sum();
        let table = &self.table;
        table.count(self.worker, rx, Direction::Rx, packets, bytes);
        table.count_queue(rx, Direction::Rx, queue, packets, bytes);
        if let Some(tap) = table.tap(Direction::Rx) {
            for row in 0..fresh.len() {
                tap.packet_passed(Direction::Rx, rx, &fresh.view(row), cx.now_ns());
            }
        }
        fresh.send_received(rx);
    }
}

impl Source for DpdkInput {
    const NAME: &'static str = "dpdk-input";
    type Next = Next;
    type Count = Count;

    fn can_exit(&self) -> bool {
        self.is_vacant()
    }

    fn is_vacant(&self) -> bool {
        self.queues.is_empty() && !self.migration.is_waiting(self.worker)
    }

    fn may_sleep(&self, now_ns: u64, idle_ns: u64) -> bool {
        self.drowsy_ns.set(now_ns);
        let mut all = self.queues.iter().map(|q| q.shared.interface());
        all.all(|interface| self.table.may_sleep(interface, idle_ns))
    }

    fn arm(&mut self, rest: &mut WakeConditions) -> bool {
        let leaves = |q: &WorkerQueue<Placed>| q.is_gone() || !q.belongs_to(self.worker);
        if self.queues.iter().any(|q| leaves(q)) || self.migration.is_waiting(self.worker) {
            return false;
        }
        let is_up = |q: &WorkerQueue<Placed>| self.table.has(q.shared.interface(), Flag::Up);
        if self.queues.iter().any(|q| is_up(q)) {
            rest.wake_at(self.drowsy_ns.get() + NAP_NS);
        }
        true
    }

    #[inline(always)]
    fn poll<I: Isa>(&mut self, cx: &Cx<'_, Count>, out: &mut Output<'_, I, Next>) -> usize {
        let (worker, quiet) = (self.worker, out.is_drained());
        self.migration
            .exchange(worker, quiet, &mut self.queues, Placed::is_gone);
        for step in 0..self.queues.len() {
            let at = (self.turn + step) % self.queues.len();
            // Packets that arrive during the sleep wait in the port's queue until it is full.
            let queue = &self.queues[at];
            if !queue.belongs_to(worker) || !self.table.has(queue.shared.interface(), Flag::Up) {
                continue;
            }
            let got = self.receive(cx, out, at);
            if got > 0 {
                self.turn = at + 1;
                return got;
            }
        }
        0
    }
}
