//! l2-xconnect: sends frames of an interface in L2 mode out of the one it is cross-connected to, untouched.
//!
//! On entry the position is behind the Ethernet header; on exit at it again.

use super::to_peers;
use std::sync::Arc;
use volley_graph::{Consumed, Cx, Isa, NoCounters, Node, PacketTrace, Vector, nexts};
use volley_iface::IfTable;

nexts! {
    /// Where l2-xconnect sends packets.
    pub enum Next { Output => "interface-output" }
}

/// State of l2-xconnect.
pub struct L2Xconnect {
    table: Arc<IfTable>,
}

impl L2Xconnect {
    /// Over the workers' view of interfaces.
    pub fn new(table: Arc<IfTable>) -> Self {
        L2Xconnect { table }
    }
}

impl Node for L2Xconnect {
    const NAME: &'static str = "l2-xconnect";
    type Next = Next;
    type Count = NoCounters;
    type Trace = PacketTrace;

    #[inline(always)]
    fn run<I: Isa>(&mut self, _cx: &Cx<'_, NoCounters>, mut v: Vector<'_, I, Next>) -> Consumed {
        v.retreat(14);
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
    fn the_ethernet_header_comes_back() {
        let table = IfTable::new(1);
        table.set_peer(IfIdx(3), IfIdx(4));
        let frame: Vec<u8> = (0..64).collect();
        let packet = In::new(&frame).rx(3).advance(14);
        let out = run(&[packet], &Domain::new(), move |_| {
            L2Xconnect::new(table.clone())
        });
        assert_eq!(
            (out[0].bytes.as_slice(), out[0].columns[&Col::TX]),
            (frame.as_slice(), 4)
        );
    }
}
