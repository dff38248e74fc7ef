//! l2-patch: sends packets that an interface receives on another interface, unchanged, straight from the driver.

use super::to_peers;
use std::sync::Arc;
use volley_graph::{Consumed, Cx, Isa, NoCounters, Node, PacketTrace, Vector, nexts};
use volley_iface::IfTable;

nexts! {
    /// Where l2-patch sends packets.
    pub enum Next { Output => "interface-output" }
}

/// State of l2-patch.
pub struct L2Patch {
    table: Arc<IfTable>,
}

impl L2Patch {
    /// State with the workers' view of interfaces.
    pub fn new(table: Arc<IfTable>) -> Self {
        L2Patch { table }
    }
}

impl Node for L2Patch {
    const NAME: &'static str = "l2-patch";
    type Next = Next;
    type Count = NoCounters;
    type Trace = PacketTrace;

    #[inline(always)]
    fn run<I: Isa>(&mut self, _cx: &Cx<'_, NoCounters>, mut v: Vector<'_, I, Next>) -> Consumed {
        to_peers(&self.table, &mut v);
        v.send_all(Next::Output)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use volley_graph::harness::{In, run};
    use volley_graph::{Col, Domain};
    use volley_iface::IfIdx;

    #[test]
    fn frames_go_to_the_other_side_unchanged() {
        let table = IfTable::new(1);
        table.set_peer(IfIdx(1), IfIdx(7));
        table.set_peer(IfIdx(2), IfIdx(8));
        let packets = [
            In::new(&[1, 2, 3, 4]).rx(1),
            In::new(&[9; 100]).rx(2),
            In::new(&[]).rx(1),
        ];
        let out = run(&packets, &Domain::new(), move |_| {
            L2Patch::new(table.clone())
        });
        let tx: Vec<u32> = out.iter().map(|o| o.columns[&Col::TX]).collect();
        assert_eq!(tx, [7, 8, 7]);
        assert!(out.iter().zip(&packets).all(|(o, p)| o.bytes == p.bytes));
    }
}
