//! worker-handoff: sends each packet to the worker of its flow (software RSS).
//!
//! The first feature of the receive arc, on interfaces with spreading. Packets without a flow, such as ARP, stay on the
//! receiving worker.

use crate::count::Cells;
use crate::table::Table;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use volley_graph::{
    Col, Column, Consumed, Counters, Cx, Isa, Node, Output, PacketTrace, Stage, StageCx, Vector,
    counters, handoff_code, nexts,
};
use volley_tables::qsbr::Snap;

nexts! {
    /// Edges of worker-handoff: to the next node on the receive arc of the interface, usually `ethernet-input`.
    pub enum Next { Ethernet => "ethernet-input", Drop => "error-drop" }
}

counters! {
    /// What worker-handoff counts.
    pub enum Count {
        /// packets that were handed to another worker
        Handed = "handed" (Info),
        /// packets that stayed on the worker that received them
        Stayed = "stayed" (Info),
        /// packets for another worker, which had too much waiting
        Congestion = "congestion" (Error),
    }
}

/// State of worker-handoff on one worker.
pub struct WorkerHandoff {
    table: Snap<Table>,
    cells: Arc<Cells>,
    codes: Column,
    /// Version of the table that packets were last sent by.
    version: u64,
    /// Whether no packet sent by an older table is left.
    settled: bool,
}

impl WorkerHandoff {
    pub(crate) fn new(table: Snap<Table>, cells: Arc<Cells>, size: usize) -> Self {
        WorkerHandoff {
            table,
            cells,
            codes: Column::new(size),
            version: 0,
            settled: true,
        }
    }

    /// Switches to this table. False while the order of packets could not be kept.
    #[inline(always)]
    fn adopt(&mut self, table: &Table, stage_cx: &mut StageCx<'_>) -> bool {
        self.version == table.version || self.turn(table, stage_cx)
    }

    #[cold]
    fn turn(&mut self, table: &Table, stage_cx: &mut StageCx<'_>) -> bool {
        if !stage_cx.begin_epoch() {
            return false;
        }
        (self.version, self.settled) = (table.version, false);
        true
    }

    /// Writes worker and next node of each packet into the `codes` column.
    #[inline(always)]
    fn sort<I: Isa>(&mut self, table: &Table, v: &Vector<'_, I, Next>, me: usize) {
        let codes = self.codes.words_mut(v.len());
        let mut last = None;
        for (row, &rx) in v.column(Col::RX).iter().enumerate() {
            // Packets of an interface are consecutive.
            let behind = match last {
                Some((of, node)) if of == rx => node,
                _ => v.next_on_receive(rx),
            };
            last = Some((rx, behind));
            let worker = table.spread(rx).and_then(|(spread, workers)| {
                let entry = spread.entry(v.view(row).bytes())?;
                self.cells.count(spread.place, entry);
                Some(usize::from(workers[entry]))
            });
            codes[row] = handoff_code(worker.unwrap_or(me), behind);
        }
    }
}

impl Node for WorkerHandoff {
    const NAME: &'static str = "worker-handoff";
    type Next = Next;
    type Count = Count;
    type Trace = PacketTrace;

    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, mut v: Vector<'_, I, Next>) -> Consumed {
        let table = self.table.read(cx.guard());
        let mut stage_cx = v.stage_cx();
        let me = stage_cx.worker();
        if !self.adopt(table, &mut stage_cx) {
            // A handoff ring is full of packets sent by the last table: with the new one, later packets of a flow would
            // overtake them.
            return v.fail_all(cx, Count::Congestion, Next::Drop);
        }
        v.prefetch_headers();
        self.sort(table, &v, me);
        let (done, handed) = v.handoff(&self.codes, Count::Congestion.index(), Next::Drop);
        cx.count(Count::Stayed, handed.stayed);
        cx.count(Count::Handed, handed.went);
        cx.count(Count::Congestion, handed.refused);
        done
    }
}

impl Stage for WorkerHandoff {
    /// The node holds no packets: it waits to adopt a new table, or for the end of an epoch.
    fn is_holding(&self) -> bool {
        !self.settled || self.cells.wanted.load(Relaxed) != self.version
    }

    fn release<I: Isa>(&mut self, cx: &Cx<'_, Count>, out: &mut Output<'_, I, Next>) -> usize {
        let table = self.table.read(cx.guard());
        let mut stage_cx = out.stage_cx();
        if self.adopt(table, &mut stage_cx) && stage_cx.is_epoch_over() {
            self.settled = true;
            self.cells.settled.store(self.version, Release);
        }
        0
    }
}

/// Whether a worker uses a table and no packet sent by an older one is left.
pub(crate) fn has_settled(cells: &Cells, version: u64) -> bool {
    cells.settled.load(Acquire) >= version
}
