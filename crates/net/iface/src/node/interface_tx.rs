//! interface-tx: hands packets to the transmit nodes of their interfaces.

use crate::IfTable;
use std::sync::Arc;
use volley_graph::{Col, Column, Cx, Done, Glance, Isa, NoCounters, NoNext, Node, Vector};

/// State of interface-tx.
pub struct InterfaceTx {
    table: Arc<IfTable>,
    nodes: Column,
}

impl InterfaceTx {
    /// For vectors of up to `size` packets.
    pub fn new(table: Arc<IfTable>, size: usize) -> Self {
        InterfaceTx {
            table,
            nodes: Column::new(size),
        }
    }
}

impl Node for InterfaceTx {
    const NAME: &'static str = "interface-tx";
    type Next = NoNext;
    type Count = NoCounters;
    type Trace = Glance;

    #[inline(always)]
    fn run<I: Isa>(&mut self, _cx: &Cx<'_, NoCounters>, mut v: Vector<'_, I, NoNext>) -> Done {
        v.require(Col::Tx, 0);
        let tx = v.column(Col::Tx);
        let first = tx.first().map_or(0, |&tx| tx);
        if volley_graph::all_equal(tx) {
            return v.send_all_to(self.table.tx_node(first));
        }
        for (node, &tx) in self.nodes.words_mut(v.len()).iter_mut().zip(tx) {
            *node = u32::from(self.table.tx_node(tx).0);
        }
        v.send_to(&self.nodes)
    }
}
