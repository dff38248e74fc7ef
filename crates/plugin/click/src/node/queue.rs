//! click-queue: holds packets until its reader takes them, as fast as the elements up to the reader allow.

use super::Port;
use crate::batches::Batches;
use crate::cells::{Cells, LENGTH, OLDEST};
use crate::columns;
use crate::element::Reason;
use crate::pace::{Front, Pace};
use std::collections::VecDeque;
use std::sync::Arc;
use volley_graph::{
    Column, ColumnInfo, Consumed, Cx, Isa, Node, NodeId, Output, PacketTrace, Stage, StageCx,
    Vector,
};
use volley_tables::qsbr::Snap;

/// Cell of a queue: the most packets that were in it.
pub(crate) const HIGHEST: usize = 1;
/// Cell of a queue: packets for which there was no room.
pub(crate) const DROPS: usize = 2;
/// Cell of a queue: the number of packets for which it has room.
pub(crate) const CAPACITY: usize = 3;

/// Times for which a queue has room at first: those of all its packets could be gigabytes for a text with many queues.
const FIRST_TIMES: usize = 4096;

/// State of a queue on one worker.
pub(crate) struct QueueNode {
    packets: Batches,
    /// Times, each with the number of packets that arrived then.
    arrivals: VecDeque<(u64, usize)>,
    paces: Snap<Vec<Pace>>,
    cells: Arc<Cells>,
    codes: Column,
    size: usize,
}

impl QueueNode {
    /// A queue for `capacity` packets, in vectors of up to `size`.
    pub(crate) fn new(
        capacity: usize,
        paces: Snap<Vec<Pace>>,
        cells: Arc<Cells>,
        size: usize,
    ) -> Self {
        QueueNode {
            packets: Batches::new(capacity, size),
            // Each packet may have its own time, but the packets of a vector have the same one.
            arrivals: VecDeque::with_capacity(capacity.min(FIRST_TIMES)),
            paces,
            cells,
            codes: Column::new(size),
            size,
        }
    }

    fn note(&mut self) {
        let now = self.packets.len() as u64;
        self.cells.set(LENGTH, now);
        let oldest = self.arrivals.front().map_or(0, |(at, _)| *at);
        self.cells.set(OLDEST, oldest);
        if now > self.cells.get(HIGHEST) {
            self.cells.set(HIGHEST, now);
        }
    }

    fn arrive(&mut self, packets: usize, now_ns: u64) {
        match self.arrivals.back_mut() {
            Some((at, count)) if *at == now_ns => *count += packets,
            _ if packets == 0 => {}
            _ => self.arrivals.push_back((now_ns, packets)),
        }
    }

    /// Forget when the first packets arrived.
    fn depart(&mut self, mut packets: usize) {
        while let Some((_, count)) = self.arrivals.front_mut() {
            if *count > packets {
                *count -= packets;
                return;
            }
            packets -= *count;
            self.arrivals.pop_front();
        }
    }
}

impl Node for QueueNode {
    const NAME: &'static str = "click-queue";
    type Next = Port;
    type Count = Reason;
    type Trace = PacketTrace;
    const COLUMNS: &'static [ColumnInfo] = columns::ALL;

    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Reason>, mut v: Vector<'_, I, Port>) -> Consumed {
        let capacity = self.cells.get(CAPACITY) as usize;
        let mut room = capacity.saturating_sub(self.packets.len());
        if v.len() > room {
            self.cells.add(DROPS, (v.len() - room) as u64);
            let keep = |packet: &mut volley_graph::Packet<'_>| match room {
                0 => packet.fail(cx, Reason::QueueFull),
                _ => {
                    room -= 1;
                    true
                }
            };
            v.sift(keep, Port(1));
        }
        let n = v.len();
        self.arrive(n, cx.now_ns());
        self.codes.words_mut(n).fill(0);
        let packets = &mut self.packets;
        let consumed = v.classify(&self.codes, |stage_cx, _, batch| {
            packets.put(stage_cx, batch);
        });
        self.note();
        consumed
    }
}

impl Stage for QueueNode {
    fn is_holding(&self) -> bool {
        self.packets.len() > 0
    }

    fn leave(&mut self, stage_cx: &mut StageCx<'_>, next: NodeId) {
        self.packets.leave(stage_cx, next);
        self.arrivals.clear();
        self.note();
    }

    fn release<I: Isa>(&mut self, cx: &Cx<'_, Reason>, out: &mut Output<'_, I, Port>) -> usize {
        let mut front = Front::new(self.packets.lengths(), self.arrivals.as_slices());
        let paces = self.paces.read(cx.guard());
        let allowed = |most: usize, pace: &Pace| most.min(pace.allows(&front, cx.now_ns()));
        let mut count = paces.iter().fold(front.lengths.len(), allowed);
        count = count.min(self.size);
        if count == 0 {
            return 0;
        }
        front.lengths = &front.lengths[..count];
        paces.iter().for_each(|pace| pace.took(&front));
        self.depart(count);
        let batch = self.packets.take(&mut out.stage_cx(), count);
        self.note();
        batch.map_or(0, |batch| out.send_batch(batch, Port(0)))
    }
}
