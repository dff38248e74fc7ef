//! interface-output: drops packets if the egress interface is down, passes packets to captures, runs the output features.

use crate::{Direction, Flag, IfTable};
use std::sync::Arc;
use volley_graph::{
    ArcId, Col, Column, Consumed, Counters, Cx, Isa, Node, PacketTrace, Vector, counters, nexts,
};

/// The feature arc of transmitted packets.
pub const OUTPUT_ARC: &str = "interface-output";

nexts! {
    /// Where interface-output sends packets.
    pub enum Next { Drop => "error-drop", Transmit => "interface-tx" }
}

counters! {
    /// What interface-output counts.
    pub enum Count {
        /// the egress interface is down, or its link is
        InterfaceDown = "interface-down" (Error),
    }
}

/// State of interface-output.
pub struct InterfaceOutput {
    table: Arc<IfTable>,
    arc: ArcId,
    verdict: Column,
}

impl InterfaceOutput {
    /// For vectors of up to `size` packets.
    pub fn new(table: Arc<IfTable>, arc: ArcId, size: usize) -> Self {
        InterfaceOutput {
            table,
            arc,
            verdict: Column::new(size),
        }
    }
}

impl Node for InterfaceOutput {
    const NAME: &'static str = "interface-output";
    type Next = Next;
    type Count = Count;
    type Trace = PacketTrace;

    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, mut v: Vector<'_, I, Next>) -> Consumed {
        v.require(Col::TX, 0);
        let down = |tx: u32| u32::from(!self.table.has(tx, Flag::Up)) * Count::InterfaceDown.code();
        if v.same(Col::TX).is_none_or(|tx| down(tx) != 0) {
            let verdicts = self.verdict.words_mut(v.len()).iter_mut();
            for (verdict, &tx) in verdicts.zip(v.column(Col::TX)) {
                *verdict = down(tx);
            }
            v.drop_out(cx, &self.verdict, |_| Next::Drop);
        }
        if let Some(tap) = self.table.tap(Direction::Tx) {
            for row in 0..v.len() {
                tap.packet_passed(
                    Direction::Tx,
                    v.column(Col::TX)[row],
                    &v.view(row),
                    cx.now_ns(),
                );
            }
        }
        v.send_arc(self.arc, Col::TX, Next::Transmit)
    }
}
