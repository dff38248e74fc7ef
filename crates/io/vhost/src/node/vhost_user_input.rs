//! vhost-user-input: receives from the rings of vhost-user interfaces.
//!
//! Two other nodes run the same code: virtio-user-input and vhost-net-input.

use crate::batch::{Batch, HEADER, Tally};
use crate::device::{End, Notification};
use crate::memory::Memory;
use crate::wire::{Alarms, List, Running, VhostPort, VhostPorts};
use crate::{header, with_ring};
use arc_swap::Cache;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use volley_graph::buf::DATA;
use volley_graph::{
    Col, Column, Counters, Cx, Isa, NewVector, NodeId, Output, Source, WakeConditions, counters,
    nexts,
};
use volley_iface::{Direction, Flag, IfTable};

/// Name of the source for virtio-user interfaces.
pub const VIRTIO_NAME: &str = "virtio-user-input";

nexts! {
    /// Where vhost-user-input sends packets, besides to where each interface receives.
    pub enum Next { Drop => "error-drop" }
}

counters! {
    /// What vhost-user-input counts.
    pub enum Count {
        /// no packet buffer was free: the packets wait in the ring, but one longer than a buffer is dropped
        NoBuffers = "no-buffers" (Warn),
        /// the receiving interface is administratively down
        AdminDown = "admin-down" (Error),
        /// shorter than an Ethernet header, or its packet is longer than 65535 bytes
        BadLength = "bad-length" (Error),
        /// the requested checksum or segmentation does not fit the packet
        BadOffload = "bad-offload" (Error),
    }
}

/// State of vhost-user-input on one worker.
pub struct VhostInput {
    wires: Cache<List, Arc<VhostPorts>>,
    poller: Poller,
    /// Eventfds that wake a sleeping worker.
    alarms: Alarms,
}

/// Working memory of one poll.
struct Poller {
    worker: usize,
    table: Arc<IfTable>,
    drop_node: NodeId,
    turn: usize,
    batch: Batch,
    /// Batch entry of each row.
    rows: Column,
    /// Next node of each row, filled once a row is to be dropped.
    nodes: Column,
    size: usize,
}

impl VhostInput {
    /// The instance for `worker`, with vectors of up to `size` packets.
    pub fn new(
        worker: usize,
        table: Arc<IfTable>,
        list: List,
        drop_node: NodeId,
        size: usize,
    ) -> Self {
        VhostInput {
            wires: Cache::new(list),
            alarms: Alarms::default(),
            poller: Poller {
                worker,
                table,
                drop_node,
                turn: 0,
                batch: Batch::default(),
                rows: Column::new(size),
                nodes: Column::new(size),
                size,
            },
        }
    }
}

impl Poller {
    /// Poll one interface: the first queue with packets. Each poll begins with the next queue.
    #[inline(always)]
    fn wire<I: Isa>(
        &mut self,
        cx: &Cx<'_, Count>,
        out: &mut Output<'_, I, Next>,
        wire: &VhostPort,
    ) -> usize {
        let pairs = wire.pairs.load(Relaxed).min(wire.rx.len());
        for step in 0..pairs {
            let queue = (self.turn + step) % pairs;
            let lane = &wire.rx[queue];
            if !wire.places[queue].is_owner(self.worker, out.is_drained()) || !lane.is_live() {
                continue;
            }
            let Some(mut claim) = lane.claim() else {
                continue;
            };
            let Some(Running {
                ring, memory, call, ..
            }) = &mut *claim
            else {
                continue;
            };
            let taken = with_ring!(ring, end => {
                let (taken, tell) = self.lane(cx, out, (wire, queue), end, memory);
                if tell {
                    Running::notify(call);
                }
                taken
            });
            if taken > 0 {
                return taken;
            }
        }
        0
    }

    /// Receive one vector from a ring; returns the number of packets, and whether the other side requests a notification.
    #[inline(always)]
    fn lane<I: Isa, E: End>(
        &mut self,
        cx: &Cx<'_, Count>,
        out: &mut Output<'_, I, Next>,
        (wire, queue): (&VhostPort, usize),
        ring: &mut E,
        memory: &Memory,
    ) -> (usize, bool) {
        let lane = &wire.rx[queue];
        self.batch.clear();
        self.batch.headers = wire.offloads.load(Relaxed);
        let mut seen = ring.look(memory, &mut self.batch, out.vector_size());
        if memory.is_broken() {
            seen = Err(memory.fault());
        }
        if let Err(fault) = seen {
            wire.fail(lane, fault);
            return (0, false);
        }
        if self.batch.entries().is_empty() {
            return (0, false);
        }
        let taken = if self.table.has(wire.interface.0, Flag::Up) {
            self.take(cx, out, (wire, queue), memory)
        } else {
            self.refuse(cx, wire)
        };
        let tell = taken > 0 && ring.done(memory, &self.batch, taken);
        lane.count(taken, tell);
        (taken, tell)
    }

    /// Count the batch as dropped, since the interface is down.
    #[cold]
    fn refuse(&self, cx: &Cx<'_, Count>, wire: &VhostPort) -> usize {
        let n = self.batch.entries().len();
        (0..n).for_each(|_| self.table.count_drop(self.worker, wire.interface.0));
        cx.count(Count::AdminDown, n as u64);
        n
    }

    /// Copy the batch into buffers and send them to the next node; returns the number of processed entries.
    #[inline(always)]
    fn take<I: Isa>(
        &mut self,
        cx: &Cx<'_, Count>,
        out: &mut Output<'_, I, Next>,
        (wire, queue): (&VhostPort, usize),
        memory: &Memory,
    ) -> usize {
        let rx = wire.interface.0;
        let found = self.batch.entries().len();
        let good = self.sort();
        let mut fresh = out.alloc(good, rx);
        let n = fresh.len();
        let mut tally = Tally {
            taken: found,
            broken: 0,
        };
        if n < good {
            cx.count(Count::NoBuffers, 1);
            tally.taken = self.rows.words(good)[n] as usize;
        }
        let bad = tally.taken - n;
        if bad > 0 {
            cx.count(Count::BadLength, bad as u64);
            self.table
                .count_errors(self.worker, rx, Direction::Rx, bad as u64);
        }
        let (batch, rows) = (&self.batch, self.rows.words(n));
        let mut bytes = 0;
        fresh.fill(|row, data| {
            let at = rows[row] as usize;
            let len = batch.frame_len(at);
            if len > DATA {
                return 0;
            }
            bytes += len as u64;
            batch.copy(memory, at, HEADER, &mut data[..len])
        });
        if self.batch.longest() > DATA {
            bytes += self.long(cx, &mut fresh, memory, &mut tally);
        }
        if self.batch.headers {
            self.offloads(cx, &mut fresh, memory, &mut tally);
        }
        let sound = n as u64 - tally.broken;
        self.table
            .count(self.worker, rx, Direction::Rx, sound, bytes);
        self.table
            .count_queue(rx, Direction::Rx, queue, sound, bytes);
        self.send(cx, fresh, rx, tally.broken);
        tally.taken
    }

    /// Fill `rows` with the entries that are frames; returns their number.
    #[inline(always)]
    fn sort(&mut self) -> usize {
        let good = self.batch.frames();
        let rows = self.rows.words_mut(self.batch.entries().len());
        if good == rows.len() {
            (0..).zip(rows).for_each(|(at, row)| *row = at);
        } else {
            let frames = (0..rows.len()).filter(|&at| self.batch.frame_len(at) > 0);
            rows.iter_mut()
                .zip(frames)
                .for_each(|(row, at)| *row = at as u32);
        }
        good
    }

    /// Receive packets that do not fit one buffer.
    #[inline(never)]
    fn long<I: Isa>(
        &mut self,
        cx: &Cx<'_, Count>,
        fresh: &mut NewVector<'_, I, Next>,
        memory: &Memory,
        tally: &mut Tally,
    ) -> u64 {
        let mut bytes = 0;
        for row in 0..fresh.len() {
            let at = self.rows.words(row + 1)[row] as usize;
            let len = self.batch.frame_len(at);
            if len <= DATA {
                continue;
            }
            let batch = &self.batch;
            match fresh.scatter(row, len, |slices| batch.scatter(memory, at, slices)) {
                Some(n) => bytes += n as u64,
                None => self.broken(cx, row, Count::NoBuffers, tally),
            }
        }
        bytes
    }

    /// Read the peer's offload requests.
    #[inline(never)]
    fn offloads<I: Isa>(
        &mut self,
        cx: &Cx<'_, Count>,
        fresh: &mut NewVector<'_, I, Next>,
        memory: &Memory,
        tally: &mut Tally,
    ) {
        for row in 0..fresh.len() {
            let at = self.rows.words(row + 1)[row] as usize;
            let mut head = [0; HEADER];
            self.batch.copy(memory, at, 0, &mut head);
            if head[0] == 0 && head[1] == 0 || fresh.view(row).is_empty() {
                continue;
            }
            let asked = header::read(&head, fresh.view(row).bytes());
            let set = asked.map(|offload| fresh.set_offload(row, &offload));
            if !matches!(set, Some(Ok(()))) {
                self.broken(cx, row, Count::BadOffload, tally);
            }
        }
    }

    /// Mark a row to be dropped.
    #[cold]
    fn broken(&mut self, cx: &Cx<'_, Count>, row: usize, why: Count, tally: &mut Tally) {
        let nodes = self.nodes.words_mut(self.size);
        if tally.broken == 0 {
            nodes.fill(0);
        }
        cx.count(why, 1);
        tally.broken += 1;
        // Hold the drop reason until the vector is sent. Node 0 is the drop node, so a reason is never 0.
        nodes[row] = cx.node().reason(why.index());
    }

    #[inline(always)]
    fn send<I: Isa>(
        &mut self,
        cx: &Cx<'_, Count>,
        fresh: NewVector<'_, I, Next>,
        rx: u32,
        broken: u64,
    ) {
        if let Some(tap) = self.table.tap(Direction::Rx) {
            for row in 0..fresh.len() {
                let view = fresh.view(row);
                if !view.is_empty() {
                    tap.packet_passed(Direction::Rx, rx, &view, cx.now_ns());
                }
            }
        }
        let target = fresh.receiver(rx);
        if broken == 0 {
            fresh.send_to(target);
        } else {
            self.send_some(fresh, target, rx, broken);
        }
    }

    #[cold]
    fn send_some<I: Isa>(
        &mut self,
        mut fresh: NewVector<'_, I, Next>,
        target: NodeId,
        rx: u32,
        broken: u64,
    ) {
        self.table
            .count_errors(self.worker, rx, Direction::Rx, broken);
        let n = fresh.len();
        let (nodes, drop_node) = (self.nodes.words_mut(n), u32::from(self.drop_node.0));
        fresh.prepare(|row, packet| {
            if nodes[row] == 0 {
                nodes[row] = u32::from(target.0);
            } else {
                packet.set(Col::ERR, nodes[row]);
                nodes[row] = drop_node;
            }
        });
        fresh.send_each(&self.nodes);
    }
}

impl Source for VhostInput {
    const NAME: &'static str = "vhost-user-input";
    type Next = Next;
    type Count = Count;

    #[inline(always)]
    fn poll<I: Isa>(&mut self, cx: &Cx<'_, Count>, out: &mut Output<'_, I, Next>) -> usize {
        let (wires, poller) = (self.wires.load(), &mut self.poller);
        for step in 0..wires.len() {
            let wire = &wires[(poller.turn + step) % wires.len()];
            let taken = poller.wire(cx, out, wire);
            if taken > 0 {
                poller.turn = poller.turn.wrapping_add(step + 1);
                return taken;
            }
        }
        0
    }

    fn can_exit(&self) -> bool {
        let (wires, worker) = (self.wires.arc_swap().load(), self.poller.worker);
        let mut places = wires.iter().flat_map(|wire| wire.in_service());
        places.all(|place| !place.is_for(worker))
    }

    fn is_vacant(&self) -> bool {
        let (wires, worker) = (self.wires.arc_swap().load(), self.poller.worker);
        !wires.iter().any(|wire| wire.is_for(worker))
    }

    fn may_sleep(&self, _now_ns: u64, idle_ns: u64) -> bool {
        let (wires, table) = (self.wires.arc_swap().load(), &self.poller.table);
        let may_sleep = |wire: &Arc<VhostPort>| table.may_sleep(wire.interface.0, idle_ns);
        wires.iter().all(may_sleep)
    }

    fn arm(&mut self, rest: &mut WakeConditions) -> bool {
        let poller = &self.poller;
        let wires = self.wires.load();
        self.alarms.listen(wires, poller.worker, Notification::On) && self.alarms.arm(rest)
    }

    fn wake(&mut self) {
        let poller = &self.poller;
        let wires = self.wires.load();
        self.alarms.listen(wires, poller.worker, Notification::Off);
        self.alarms.calm();
    }
}
