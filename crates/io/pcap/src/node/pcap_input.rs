//! pcap-input: plays capture files as packets received on pcap interfaces.

use crate::interface::Player;
use std::sync::Arc;
use volley_graph::{
    Col, Column, Counters, Cx, Isa, NewVector, NodeId, Output, Source, WakeConditions, counters,
    nexts,
};
use volley_iface::{Direction, Flag, IfTable, QueueMigration, WorkerQueue, WorkerQueues};

nexts! {
    /// Where pcap-input sends packets, besides to where each interface receives.
    pub enum Next { Drop => "error-drop" }
}

counters! {
    /// What pcap-input counts.
    pub enum Count {
        /// no packet buffer was free
        NoBuffers = "no-buffers" (Error),
        /// the receiving interface is administratively down
        AdminDown = "admin-down" (Error),
    }
}

/// State of pcap-input on one worker.
pub struct PcapInput {
    worker: usize,
    table: Arc<IfTable>,
    migration: Arc<QueueMigration<Player>>,
    players: WorkerQueues<Player>,
    turn: usize,
    drop_node: NodeId,
    nodes: Column,
}

impl PcapInput {
    /// The instance of `worker`, for vectors of up to `size` packets.
    pub fn new(
        worker: usize,
        table: Arc<IfTable>,
        migration: Arc<QueueMigration<Player>>,
        drop_node: NodeId,
        size: usize,
    ) -> Self {
        PcapInput {
            worker,
            table,
            players: migration.new_queue_list(),
            migration,
            turn: 0,
            drop_node,
            nodes: Column::new(size),
        }
    }

    /// The next player, round robin, that has due packets, and their number (at most `most`).
    fn pick(&mut self, now_ns: u64, most: usize) -> Option<(usize, usize)> {
        for step in 0..self.players.len() {
            let at = (self.turn + step) % self.players.len();
            let player = &mut self.players[at];
            if !player.belongs_to(self.worker) {
                continue;
            }
            let up = self.table.has(player.rx, Flag::Up);
            let due = player.due(now_ns, up, most);
            if due > 0 {
                self.turn = at + 1;
                return Some((at, due));
            }
        }
        None
    }

    /// Send the vector: packets that could be written to their next node, the others to the drop node.
    fn send<I: Isa>(
        &mut self,
        cx: &Cx<'_, Count>,
        mut fresh: NewVector<'_, I, Next>,
        rx: u32,
        broken: u64,
    ) {
        let target = fresh.receiver(rx);
        if broken == 0 {
            fresh.send_to(target);
            return;
        }
        let reason = cx.node().reason(Count::NoBuffers.index());
        let nodes = self.nodes.words_mut(fresh.len());
        let drop_node = u32::from(self.drop_node.0);
        for node in nodes.iter_mut().filter(|n| **n != drop_node) {
            *node = u32::from(target.0);
        }
        fresh.prepare(|row, packet| {
            if nodes[row] == drop_node {
                packet.set(Col::ERR, reason);
            }
        });
        fresh.send_each(&self.nodes);
    }

    fn show<I: Isa>(&self, cx: &Cx<'_, Count>, fresh: &NewVector<'_, I, Next>, rx: u32) {
        if let Some(tap) = self.table.tap(Direction::Rx) {
            for row in 0..fresh.len() {
                let view = fresh.view(row);
                if !view.is_empty() {
                    tap.packet_passed(Direction::Rx, rx, &view, cx.now_ns());
                }
            }
        }
    }
}

impl Source for PcapInput {
    const NAME: &'static str = "pcap-input";
    type Next = Next;
    type Count = Count;

    fn can_exit(&self) -> bool {
        self.is_vacant()
    }

    fn is_vacant(&self) -> bool {
        self.players.is_empty() && !self.migration.is_waiting(self.worker)
    }

    fn may_sleep(&self, _now_ns: u64, idle_ns: u64) -> bool {
        let table = &self.table;
        self.players.iter().all(|p| table.may_sleep(p.rx, idle_ns))
    }

    fn arm(&mut self, rest: &mut WakeConditions) -> bool {
        let due = self.players.iter().filter_map(|p| p.next_due());
        due.for_each(|at_ns| rest.wake_at(at_ns));
        let leaves = |p: &WorkerQueue<Player>| p.is_gone() || !p.belongs_to(self.worker);
        !self.migration.is_waiting(self.worker) && !self.players.iter().any(|p| leaves(p))
    }

    fn poll<I: Isa>(&mut self, cx: &Cx<'_, Count>, out: &mut Output<'_, I, Next>) -> usize {
        let (worker, quiet) = (self.worker, out.is_drained());
        self.migration
            .exchange(worker, quiet, &mut self.players, Player::is_gone);
        let Some((at, due)) = self.pick(cx.now_ns(), out.vector_size()) else {
            return 0;
        };
        let (table, worker) = (self.table.clone(), self.worker);
        let player = &mut self.players[at];
        let rx = player.rx;
        if !table.has(rx, Flag::Up) {
            (0..due).for_each(|_| table.count_drop(worker, rx));
            (0..due).for_each(|_| _ = player.next());
            cx.count(Count::AdminDown, due as u64);
            return due;
        }
        let mut fresh = out.alloc(due, rx);
        let (mut bytes, mut broken) = (0, 0);
        for row in 0..fresh.len() {
            let packet = player.next();
            let whole = fresh.write(row, packet);
            self.nodes.words_mut(row + 1)[row] = if whole {
                bytes += packet.len() as u64;
                u32::from(u16::MAX)
            } else {
                broken += 1;
                u32::from(self.drop_node.0)
            };
        }
        let packets = fresh.len() as u64 - broken;
        let missing = due - fresh.len();
        (0..missing).for_each(|_| _ = player.next());
        (0..missing).for_each(|_| table.count_drop(worker, rx));
        let lost = missing as u64 + broken;
        if lost > 0 {
            cx.count(Count::NoBuffers, lost);
            table.count_errors(worker, rx, Direction::Rx, lost);
        }
        table.count(worker, rx, Direction::Rx, packets, bytes);
        self.show(cx, &fresh, rx);
        self.send(cx, fresh, rx, broken);
        due
    }
}
