//! linux-cp-punt: sends packets for the kernel to the LCP tap of the receiving interface, unchanged.
//!
//! On entry the position is behind the Ethernet header of the packet; on exit it is at that header, and `TX` is filled.

use std::sync::Arc;
use volley_graph::{
    Col, Column, Consumed, Counters, Cx, Isa, Node, PacketTrace, Vector, counters, nexts,
};
use volley_iface::IfTable;

/// Bytes of an Ethernet header.
const ETHERNET: usize = 14;

nexts! {
    /// Where linux-cp-punt sends packets.
    pub enum Next { Drop => "error-drop", Output => "interface-output" }
}

counters! {
    /// What linux-cp-punt counts.
    pub enum Count {
        /// packets that were brought to the kernel
        Punted = "punted" (Info),
        /// the receiving interface has no LCP tap any more
        NoTap = "no-tap" (Warn),
        /// the packet came without an Ethernet header, and the kernel wants one
        NoHeader = "no-ethernet-header" (Error),
    }
}

/// State of linux-cp-punt.
pub struct LinuxCpPunt {
    table: Arc<IfTable>,
    tx: Column,
    verdict: Column,
}

impl LinuxCpPunt {
    /// For vectors of up to `size` packets.
    pub fn new(table: Arc<IfTable>, size: usize) -> Self {
        LinuxCpPunt {
            table,
            tx: Column::new(size),
            verdict: Column::new(size),
        }
    }
}

impl Node for LinuxCpPunt {
    const NAME: &'static str = "linux-cp-punt";
    type Next = Next;
    type Count = Count;
    type Trace = PacketTrace;

    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, mut v: Vector<'_, I, Next>) -> Consumed {
        for (row, verdict) in self.verdict.words_mut(v.len()).iter_mut().enumerate() {
            *verdict = match self.table.lcp_tap(v.column(Col::RX)[row]) {
                None => Count::NoTap.code(),
                Some(_) if v.view(row).moved() < ETHERNET => Count::NoHeader.code(),
                Some(_) => 0,
            };
        }
        v.drop_out(cx, &self.verdict, |_| Next::Drop);
        let n = v.len();
        let pairs = self.tx.words_mut(n).iter_mut().zip(v.column(Col::RX));
        // The LCP tap may have been deleted since: no interface has this index, and the packet is dropped at the output.
        pairs.for_each(|(tx, &rx)| *tx = self.table.lcp_tap(rx).unwrap_or(u32::MAX));
        v.retreat(ETHERNET as u32);
        v.put(Col::TX, &mut self.tx);
        cx.count(Count::Punted, n as u64);
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
    fn packets_go_to_the_tap_with_the_header_they_came_with() {
        let table = IfTable::new(1);
        table.set_lcp_tap(IfIdx(1), Some(IfIdx(7)));
        let frame: Vec<u8> = (0..90).collect();
        let packets = [
            In::new(&frame).rx(1).advance(14),
            In::new(&frame).rx(2).advance(14),
            In::new(&frame).rx(1),
        ];
        let out = run(&packets, &Domain::new(), move |_| {
            LinuxCpPunt::new(table.clone(), 256)
        });
        let went = |reason: &str| out.iter().find(|o| o.reason.as_deref() == Some(reason));
        assert!(went("no-tap").is_some() && went("no-ethernet-header").is_some());
        let punted = out.iter().find(|o| o.reason.is_none()).unwrap();
        assert_eq!(punted.to, "interface-output");
        assert_eq!(punted.columns[&Col::TX], 7);
        assert_eq!(punted.bytes, frame);
    }
}
