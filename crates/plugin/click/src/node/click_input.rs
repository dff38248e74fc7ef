//! click-input: sends the frames of an interface to the element FromDevice of a graph.

use crate::columns::{self, BROADCAST, DST, MULTICAST, NET, NOTE, OTHER, TYPE};
use std::sync::Arc;
use volley_graph::{
    Col, Column, ColumnInfo, Consumed, Cx, Isa, NoCounters, NoNext, Node, NodeId, PacketTrace,
    Rows, Vector,
};
use volley_iface::IfTable;
use volley_tables::qsbr::Snap;

/// The first node of each interface; the drop node where there is none.
#[derive(Clone, Default)]
pub struct Entrances(pub(crate) Vec<u32>);

/// State of click-input.
pub struct ClickInput {
    entrances: Snap<Entrances>,
    table: Arc<IfTable>,
    nodes: Column,
}

impl ClickInput {
    /// For vectors of up to `size` packets.
    pub(crate) fn new(entrances: Snap<Entrances>, table: Arc<IfTable>, size: usize) -> Self {
        ClickInput {
            entrances,
            table,
            nodes: Column::new(size),
        }
    }
}

/// A MAC address as the table has it.
fn number(mac: &[u8; 6]) -> u64 {
    mac.iter().fold(0, |all, byte| all << 8 | u64::from(*byte))
}

/// Note for whom each frame is.
fn note_types(rows: &mut Rows<'_>, table: &IfTable) {
    for row in 0..rows.len() {
        let view = rows.view(row);
        let dst: Option<&[u8; 6]> = view.bytes().first_chunk();
        let kind = match dst {
            Some([255, 255, 255, 255, 255, 255]) => BROADCAST,
            Some(mac) if mac[0] & 1 == 1 => MULTICAST,
            Some(mac) if number(mac) == table.mac(view.rx()) => 0,
            _ => OTHER,
        };
        rows.column_mut(NOTE.col)[row] = kind & TYPE;
    }
}

impl Node for ClickInput {
    const NAME: &'static str = "click-input";
    type Next = NoNext;
    type Count = NoCounters;
    type Trace = PacketTrace;
    const COLUMNS: &'static [ColumnInfo] = columns::ALL;

    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, NoCounters>, mut v: Vector<'_, I, NoNext>) -> Consumed {
        let entrances = self.entrances.read(cx.guard());
        let mut rows = v.rows();
        for column in [DST, NET] {
            rows.column_mut(column.col).fill(0);
        }
        note_types(&mut rows, &self.table);
        let n = v.len();
        let nowhere = u32::from(u16::MAX);
        for (node, rx) in self.nodes.words_mut(n).iter_mut().zip(v.column(Col::RX)) {
            *node = entrances.0.get(*rx as usize).copied().unwrap_or(nowhere);
        }
        v.send_to(&self.nodes)
    }
}

impl Entrances {
    /// Set the node of an interface.
    pub(crate) fn set(&mut self, interface: u32, node: NodeId) {
        let at = interface as usize;
        if self.0.len() <= at {
            self.0.resize(at + 1, u32::MAX);
        }
        self.0[at] = u32::from(node.0);
    }
}
