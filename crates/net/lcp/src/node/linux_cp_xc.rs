//! linux-cp-xc: sends packets from the kernel out of the interface of the LCP tap, unchanged, below the IP features.
//!
//! On entry and exit the position is at the Ethernet header; on exit `TX` is filled.

use std::sync::Arc;
use volley_graph::{Col, Column, Consumed, Cx, Isa, Node, PacketTrace, Vector, counters, nexts};
use volley_iface::IfTable;

nexts! {
    /// Where linux-cp-xc sends packets.
    pub enum Next { Output => "interface-output" }
}

counters! {
    /// What linux-cp-xc counts.
    pub enum Count {
        /// frames of the kernel that were sent on
        Sent = "sent" (Info),
    }
}

/// State of linux-cp-xc.
pub struct LinuxCpXc {
    table: Arc<IfTable>,
    tx: Column,
}

impl LinuxCpXc {
    /// For vectors of up to `size` packets.
    pub fn new(table: Arc<IfTable>, size: usize) -> Self {
        LinuxCpXc {
            table,
            tx: Column::new(size),
        }
    }
}

impl Node for LinuxCpXc {
    const NAME: &'static str = "linux-cp-xc";
    type Next = Next;
    type Count = Count;
    type Trace = PacketTrace;

    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, mut v: Vector<'_, I, Next>) -> Consumed {
        let n = v.len();
        let pairs = self.tx.words_mut(n).iter_mut().zip(v.column(Col::RX));
        pairs.for_each(|(tx, &rx)| *tx = self.table.patch_peer(rx));
        v.put(Col::TX, &mut self.tx);
        cx.count(Count::Sent, n as u64);
        v.send_all(Next::Output)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use volley_graph::Domain;
    use volley_graph::harness::{In, run};
    use volley_iface::IfIdx;

    #[test]
    fn frames_of_the_kernel_leave_by_the_interface_unchanged() {
        let table = IfTable::new(1);
        table.set_peer(IfIdx(4), IfIdx(1));
        table.set_peer(IfIdx(5), IfIdx(2));
        let packets = [In::new(&[7; 60]).rx(4), In::new(&[8; 1500]).rx(5)];
        let out = run(&packets, &Domain::new(), move |_| {
            LinuxCpXc::new(table.clone(), 256)
        });
        let tx: Vec<u32> = out.iter().map(|o| o.columns[&Col::TX]).collect();
        assert_eq!(tx, [1, 2]);
        assert!(out.iter().zip(&packets).all(|(o, p)| o.bytes == p.bytes));
    }
}
