//! arp-reply: turns requests for the router's addresses into replies, in place (RFC 826).
//!
//! On entry the position is at the ARP packet, 14 bytes after its Ethernet header; on exit at the Ethernet header, with `TX`
//! filled.

use crate::trace::ArpTrace;
use std::sync::Arc;
use volley_graph::{Col, Column, Consumed, Cx, Isa, Node, Vector, counters, nexts};
use volley_iface::IfTable;

/// Bytes of an Ethernet header.
const ETHERNET: usize = 14;

nexts! {
    /// Where arp-reply sends packets.
    pub enum Next { Output => "interface-output" }
}

counters! {
    /// What arp-reply counts.
    pub enum Count {
        /// requests for the router's addresses that were answered
        Replies = "replies" (Info),
    }
}

/// State of arp-reply.
pub struct ArpReply {
    table: Arc<IfTable>,
    tx: Column,
}

impl ArpReply {
    /// State for vectors of up to `size` packets.
    pub fn new(table: Arc<IfTable>, size: usize) -> Self {
        ArpReply {
            table,
            tx: Column::new(size),
        }
    }
}

/// Rewrites a request into the reply of `mac`.
fn reply(frame: &mut [u8; 64], mac: [u8; 6]) {
    let (ethernet, arp) = frame.split_at_mut(ETHERNET);
    let mut asked = [0; 10];
    asked.copy_from_slice(&arp[8..18]);
    ethernet[..6].copy_from_slice(&asked[..6]);
    ethernet[6..12].copy_from_slice(&mac);
    arp[6..8].copy_from_slice(&[0, 2]);
    arp.copy_within(24..28, 14);
    arp[8..14].copy_from_slice(&mac);
    arp[18..28].copy_from_slice(&asked);
}

impl Node for ArpReply {
    const NAME: &'static str = "arp-reply";
    type Next = Next;
    type Count = Count;
    type Trace = ArpTrace;

    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, mut v: Vector<'_, I, Next>) -> Consumed {
        let n = v.len();
        cx.count(Count::Replies, n as u64);
        self.tx.words_mut(n).copy_from_slice(v.column(Col::RX));
        v.retreat(ETHERNET as u32);
        let (table, tx) = (&self.table, self.tx.words(n));
        v.apply::<64>(|row, frame| {
            let [_, _, mac @ ..] = table.mac(tx[row]).to_be_bytes();
            reply(frame, mac);
        });
        v.put(Col::TX, &mut self.tx);
        v.send_all(Next::Output)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use volley_graph::Domain;
    use volley_graph::harness::{In, run};
    use volley_iface::IfIdx;
    use volley_wire::arp::ArpPacket;
    use volley_wire::{IntoBytes, MacAddr};

    #[test]
    fn the_reply_has_the_bytes_that_the_wire_crate_makes() {
        let (me, host) = (MacAddr::local(1), MacAddr::local(9));
        let arp = ArpPacket::request(host, [10, 0, 0, 9].into(), [10, 0, 0, 1].into());
        let mut frame = vec![0xff; 6];
        frame.extend([host.as_bytes(), &[8, 6], arp.as_bytes()].concat());
        let table = IfTable::new(1);
        table.set_mac(IfIdx(3), me.0);
        let packet = In::new(&frame).rx(3).advance(14);
        let out = run(&[packet], &Domain::new(), move |_| {
            ArpReply::new(table.clone(), 256)
        });
        let reply = arp.reply(me);
        let want = [host.as_bytes(), me.as_bytes(), &[8, 6], reply.as_bytes()].concat();
        assert_eq!(
            (out[0].to.as_str(), &out[0].bytes),
            ("interface-output", &want)
        );
        assert_eq!(out[0].columns.get(&Col::TX), Some(&3));
    }
}
