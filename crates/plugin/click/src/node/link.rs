//! click-link: holds packets on their way over an emulated link.

use super::Port;
use crate::batches::Batches;
use crate::columns;
use crate::element::Reason;
use crate::link::Link;
use std::collections::VecDeque;
use std::sync::Arc;
use volley_graph::{
    Col, Column, ColumnInfo, Consumed, Cx, Isa, Node, NodeId, Output, PacketTrace, Stage, StageCx,
    Vector,
};

/// State of a link on one worker.
pub(crate) struct LinkNode {
    packets: Batches,
    /// When each packet arrives at the other end.
    due: VecDeque<u64>,
    link: Arc<Link>,
    resets: u64,
    codes: Column,
}

impl LinkNode {
    /// A link, for vectors of up to `size` packets.
    pub(crate) fn new(link: Arc<Link>, size: usize) -> Self {
        LinkNode {
            packets: Batches::new(link.most(), size),
            due: VecDeque::with_capacity(link.most() + size),
            resets: link.resets(),
            link,
            codes: Column::new(size),
        }
    }
}

impl Node for LinkNode {
    const NAME: &'static str = "click-link";
    type Next = Port;
    type Count = Reason;
    type Trace = PacketTrace;
    const COLUMNS: &'static [ColumnInfo] = columns::ALL;

    #[inline(always)]
    fn run<I: Isa>(&mut self, _: &Cx<'_, Reason>, v: Vector<'_, I, Port>) -> Consumed {
        let n = v.len();
        if self.packets.len() == 0 {
            // A reset of a link without packets drops none.
            self.resets = self.link.resets();
        }
        self.due.extend(self.link.arrivals(v.column(Col::LEN)));
        self.codes.words_mut(n).fill(0);
        let packets = &mut self.packets;
        let consumed = v.classify(&self.codes, |stage_cx, _, batch| {
            packets.put(stage_cx, batch);
        });
        self.link.holds(self.packets.len());
        consumed
    }
}

impl Stage for LinkNode {
    fn is_holding(&self) -> bool {
        self.packets.len() > 0
    }

    fn leave(&mut self, stage_cx: &mut StageCx<'_>, next: NodeId) {
        self.packets.leave(stage_cx, next);
        self.due.clear();
        self.link.holds(0);
    }

    fn release<I: Isa>(&mut self, cx: &Cx<'_, Reason>, out: &mut Output<'_, I, Port>) -> usize {
        let first = self.packets.lengths().len();
        let is_reset = self.resets != self.link.resets();
        let due = self.due.iter().take(first);
        let count = match is_reset {
            true => first,
            false => due.take_while(|at| **at <= cx.now_ns()).count(),
        };
        if count == 0 {
            self.resets = self.link.resets();
            return 0;
        }
        self.due.drain(..count);
        let batch = self.packets.take(&mut out.stage_cx(), count);
        self.link.holds(self.packets.len());
        batch.map_or(0, |batch| match is_reset {
            true => out.drop_batch(cx, batch, Reason::Refused),
            false => out.send_batch(batch, Port(0)),
        })
    }
}
