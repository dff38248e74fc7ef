//! l2-xconnect: sends frames of an interface on the interface that it is cross-connected to, unchanged.
//!
//! The node consumes packets of the receive feature arc. Unlike `l2-patch` it drops frames shorter than an Ethernet header.

use super::to_peers;
use std::sync::Arc;
use volley_graph::{
    Col, Column, Consumed, Counters, Cx, Isa, Node, PacketTrace, Vector, counters, nexts,
};
use volley_iface::IfTable;

/// Length of an Ethernet header.
const HEADER: u32 = 14;

nexts! {
    /// Where l2-xconnect sends packets.
    pub enum Next { Output => "interface-output", Drop => "error-drop" }
}

counters! {
    /// What l2-xconnect counts.
    pub enum Count {
        /// the frame is shorter than an Ethernet header
        TooShort = "too-short" (Error),
    }
}

/// State of l2-xconnect.
pub struct L2Xconnect {
    table: Arc<IfTable>,
    verdict: Column,
}

impl L2Xconnect {
    /// State with the workers' view of interfaces, for vectors of up to `size` packets.
    pub fn new(table: Arc<IfTable>, size: usize) -> Self {
        let verdict = Column::new(size);
        L2Xconnect { table, verdict }
    }
}

impl Node for L2Xconnect {
    const NAME: &'static str = "l2-xconnect";
    type Next = Next;
    type Count = Count;
    type Trace = PacketTrace;

    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, mut v: Vector<'_, I, Next>) -> Consumed {
        let short = Count::TooShort.code();
        let verdicts = self.verdict.words_mut(v.len());
        for (verdict, &len) in verdicts.iter_mut().zip(v.column(Col::LEN)) {
            *verdict = if len < HEADER { short } else { 0 };
        }
        v.drop_out(cx, &self.verdict, |_| Next::Drop);
        to_peers(&self.table, &mut v);
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
    fn frames_go_to_the_other_side_and_short_ones_are_dropped() {
        let table = IfTable::new(1);
        table.set_peer(IfIdx(3), IfIdx(4));
        let frame: Vec<u8> = (0..64).collect();
        let packets = [&frame[..], &frame[..14], &frame[..13]].map(|it| In::new(it).rx(3));
        let out = run(&packets, &Domain::new(), move |_| {
            L2Xconnect::new(table.clone(), 256)
        });
        let (dropped, sent): (Vec<_>, Vec<_>) = out.iter().partition(|it| it.reason.is_some());
        assert_eq!(sent.len(), 2);
        for (out, sent) in sent.iter().zip(&packets) {
            assert_eq!((&out.bytes, out.columns[&Col::TX]), (&sent.bytes, 4));
        }
        let reasons: Vec<_> = dropped.iter().map(|it| it.reason.as_deref()).collect();
        assert_eq!(reasons, [Some("too-short")]);
    }
}
