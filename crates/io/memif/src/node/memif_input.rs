//! memif-input: receives packets from the peers' rings.

use crate::link::{ConnectionRings, RxQueue};
use crate::ring::{Arrived, Scratch};
use crossbeam_queue::ArrayQueue;
use std::sync::Arc;
use volley_graph::{
    Col, Column, Counters, Cx, Isa, NewVector, NodeId, Output, Source, WakeConditions, counters,
    nexts,
};
use volley_iface::{Direction, IfTable};

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

/// A queue that a worker may receive from.
pub struct Assigned {
    /// Index of the interface.
    pub interface: u32,
    /// The interface's connection.
    pub link: Arc<ConnectionRings>,
    /// Number of the queue.
    pub queue: usize,
}

impl Assigned {
    /// The ring, unless its peer caused a fault.
    #[inline(always)]
    fn ring(&self) -> Option<&RxQueue> {
        let queue = self.link.rx().get(self.queue);
        queue.filter(|_| !self.link.is_faulty())
    }

    /// The ring, if `worker` owns it.
    fn ring_of(&self, worker: usize) -> Option<&RxQueue> {
        self.ring().filter(|queue| queue.place.current() == worker)
    }
}

/// All queues.
pub type Queues = Vec<Assigned>;

/// Exchange of queue lists between the control thread and a worker.
pub struct Inbox {
    new: ArrayQueue<Box<Queues>>,
    gone: ArrayQueue<Box<Queues>>,
}

/// Maximum number of lists in transit.
const LISTS: usize = 64;

impl Default for Inbox {
    fn default() -> Self {
        Inbox {
            new: ArrayQueue::new(LISTS),
            gone: ArrayQueue::new(LISTS),
        }
    }
}

impl Inbox {
    /// Send a list of queues to the worker. The newest list counts.
    pub fn hand(&self, queues: Queues) {
        self.free();
        // Frees the list that was pushed out and that the worker never saw.
        drop(self.new.force_push(Box::new(queues)));
    }

    /// Free unread lists; for when the worker does not exist.
    pub fn clear(&self) {
        self.free();
        while self.new.pop().is_some() {}
    }

    /// Free lists that the worker has returned.
    pub fn free(&self) {
        while self.gone.pop().is_some() {}
    }
}

/// State of memif-input on one worker.
pub struct MemifInput {
    worker: usize,
    table: Arc<IfTable>,
    inbox: Arc<Inbox>,
    /// A box, because the list arrives and is returned as one; the control thread frees it.
    queues: Option<Box<Queues>>,
    /// Lent to the current batch.
    scratch: Option<Scratch>,
    turn: usize,
    whole: Vec<u8>,
    drop_node: NodeId,
    nodes: Column,
    reasons: Column,
}

impl MemifInput {
    /// The instance for `worker`, with vectors of up to `size` packets.
    pub fn new(
        worker: usize,
        table: Arc<IfTable>,
        inbox: Arc<Inbox>,
        drop_node: NodeId,
        size: usize,
    ) -> Self {
        MemifInput {
            worker,
            table,
            inbox,
            queues: None,
            scratch: Some(Scratch::default()),
            turn: 0,
            whole: Vec::with_capacity(crate::ring::MAX_PACKET),
            drop_node,
            nodes: Column::new(size),
            reasons: Column::new(size),
        }
    }

    /// Receive packets in several pieces or longer than a buffer.
    #[cold]
    fn write_long<I: Isa>(
        &mut self,
        cx: &Cx<'_, Count>,
        fresh: &mut NewVector<'_, I, Next>,
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
                    packet.set(Col::ERR, reasons[row]);
                }
            });
        }
        (packets, bytes)
    }

    fn assigned(&self) -> impl Iterator<Item = &Assigned> {
        self.queues.iter().flat_map(|queues| queues.iter())
    }

    /// Take the newest list of queues, if there is one.
    #[inline(always)]
    fn change(&mut self) {
        if !self.inbox.new.is_empty() {
            self.take_up();
        }
    }

    #[cold]
    fn take_up(&mut self) {
        // A list that cannot be returned now is taken later.
        while !self.inbox.gone.is_full()
            && let Some(list) = self.inbox.new.pop()
        {
            if let Some(old) = self.queues.replace(list) {
                let _ = self.inbox.gone.push(old);
            }
        }
        self.turn = 0;
    }

    /// Receive from one queue; `None` if it is empty.
    #[inline(always)]
    fn receive<I: Isa>(
        &mut self,
        cx: &Cx<'_, Count>,
        out: &mut Output<'_, I, Next>,
        from: &Assigned,
    ) -> Option<usize> {
        let queue = from.ring()?;
        if !queue.place.is_owner(self.worker, out.is_drained()) {
            return None;
        }
        let mut scratch = self.scratch.take()?;
        let taken = match queue.rx.arrived(&mut scratch, out.vector_size()) {
            Ok(arrived) if arrived.packets() == 0 => None,
            Ok(arrived) => Some(self.take_over(cx, out, from, arrived)),
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
        from: &Assigned,
        arrived: Arrived<'_>,
    ) -> usize {
        let rx = from.interface;
        let due = arrived.packets();
        let to = out.receiver(rx);
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
        self.table
            .count_queue(rx, Direction::Rx, from.queue, packets, bytes);
        self.show(cx, &fresh, rx);
        if plain {
            fresh.send_to(to);
        } else {
            fresh.send_each(&self.nodes);
        }
        due
    }

    /// Count the packets from row `n` on, which got no buffer, and the bytes of the others if they are not counted yet.
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
    fn show<I: Isa>(&self, cx: &Cx<'_, Count>, fresh: &NewVector<'_, I, Next>, rx: u32) {
        let Some(tap) = self.table.tap(Direction::Rx) else {
            return;
        };
        for row in 0..fresh.len() {
            let view = fresh.view(row);
            if !view.is_empty() {
                tap.packet_passed(Direction::Rx, rx, &view, cx.now_ns());
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
        self.change();
        // Moved out of `self` during use, without an allocation.
        let Some(queues) = self.queues.take() else {
            return 0;
        };
        let mut taken = 0;
        for step in 0..queues.len() {
            let mut at = self.turn + step;
            if at >= queues.len() {
                at -= queues.len();
            }
            if let Some(packets) = self.receive(cx, out, &queues[at]) {
                self.turn = (at + 1) % queues.len();
                taken = packets;
                break;
            }
        }
        self.queues = Some(queues);
        taken
    }

    fn can_exit(&self) -> bool {
        let mut all = self.assigned().filter_map(Assigned::ring);
        all.all(|queue| !queue.place.is_for(self.worker))
    }

    /// A queue with a fault counts as active: the peer may reconnect before the control thread sends a new list.
    fn is_vacant(&self) -> bool {
        let all = self.assigned();
        let mut queues = all.filter_map(|q| q.link.rx().get(q.queue));
        self.inbox.new.is_empty() && queues.all(|queue| !queue.place.is_for(self.worker))
    }

    fn may_sleep(&self, _now_ns: u64, idle_ns: u64) -> bool {
        let mut mine = self.assigned().filter(|q| q.ring_of(self.worker).is_some());
        volley_shm::event::can_sleep() && mine.all(|q| self.table.may_sleep(q.interface, idle_ns))
    }

    fn arm(&mut self, rest: &mut WakeConditions) -> bool {
        if !self.inbox.new.is_empty() {
            return false;
        }
        let worker = self.worker;
        let moves = |q: &RxQueue| q.place.involves(worker);
        if self.assigned().filter_map(Assigned::ring).any(moves) {
            return false;
        }
        for queue in self.assigned().filter_map(|q| q.ring_of(worker)) {
            queue.wakeup.clear();
            queue.rx.want_wakeup(true);
            if !rest.add_fd(&queue.wakeup) || queue.rx.is_waiting() {
                return false;
            }
        }
        true
    }

    fn wake(&mut self) {
        for queue in self.assigned().filter_map(|q| q.ring_of(self.worker)) {
            queue.rx.want_wakeup(false);
        }
    }
}
