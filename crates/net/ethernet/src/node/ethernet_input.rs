//! ethernet-input: tells received frames apart by interface mode, destination address and type (IEEE 802.3; RFC 894,
//! RFC 2464). The order of the checks is section 3 of `docs/forwarding-rules.md`.
//!
//! On entry the position is at the Ethernet header; on exit 14 bytes behind it, on every edge but the drop.

use std::sync::Arc;
use volley_graph::{
    Col, Column, Counters, Cx, Done, Glance, Isa, Names, Node, PacketView, Trace, Vector, Words,
    all_equal, counters, nexts,
};
use volley_iface::{Flag, IfTable};
use volley_wire::dissect;

/// Length of an Ethernet header.
const HEADER: u32 = 14;

nexts! {
    /// Where ethernet-input sends packets.
    pub enum Next { Drop => "error-drop", Ip4 => "ip4-input", Ip6 => "ip6-input", L2 => "l2-xconnect" }
}

counters! {
    /// What ethernet-input counts.
    pub enum Count {
        /// the frame is shorter than an Ethernet header
        TooShort = "too-short" (Error),
        /// the destination MAC address is another station's
        NotMyMac = "not-my-mac" (Error),
        /// the frame is tagged and no sub-interface takes the tag
        UnknownVlan = "unknown-vlan" (Error),
        /// ARP is not spoken yet
        Arp = "arp-unsupported" (Error),
        /// the type is neither IPv4 nor IPv6
        UnknownType = "unknown-ethertype" (Error),
        /// the frame is for a group address, which is not forwarded (RFC 1812, 5.3.4)
        GroupMac = "group-mac" (Error),
    }
}

/// State of ethernet-input.
pub struct EthernetInput {
    table: Arc<IfTable>,
    header: Words<4>,
    flags: Column,
    mac_high: Column,
    mac_low: Column,
    verdict: Column,
    next: Column,
}

impl EthernetInput {
    /// For vectors of up to `size` packets.
    pub fn new(table: Arc<IfTable>, size: usize) -> Self {
        let column = || Column::new(size);
        EthernetInput {
            table,
            header: Words::new(size),
            flags: column(),
            mac_high: column(),
            mac_low: column(),
            verdict: column(),
            next: column(),
        }
    }

    /// Write each packet's interface properties into columns; returns whether any is in L3 mode.
    #[inline(always)]
    fn interfaces(&mut self, rx: &[u32]) -> bool {
        let n = rx.len();
        let (flags, high, low) = (
            self.flags.words_mut(n),
            self.mac_high.words_mut(n),
            self.mac_low.words_mut(n),
        );
        if all_equal(rx) {
            let rx = rx.first().map_or(0, |&rx| rx);
            let (f, mac) = (self.table.flags(rx), self.table.mac(rx));
            flags.fill(f);
            high.fill((mac >> 16) as u32);
            low.fill(mac as u32 & 0xffff);
            return f & Flag::L2 as u32 == 0;
        }
        let mut any_l3 = 0;
        for row in 0..n {
            let mac = self.table.mac(rx[row]);
            flags[row] = self.table.flags(rx[row]);
            high[row] = (mac >> 16) as u32;
            low[row] = mac as u32 & 0xffff;
            any_l3 |= !flags[row] & Flag::L2 as u32;
        }
        any_l3 != 0
    }
}

/// The verdict for one frame in L3 mode, and its next edge. Later lines win, so they stand in reverse order.
#[inline(always)]
fn judge(len: u32, flags: u32, mac: (u32, u32), header: [u32; 4]) -> (u32, u32) {
    let [dst_high, dst_low_src, _, type_word] = header;
    let kind = type_word >> 16;
    let group = dst_high >> 24 & 1;
    let mine = (dst_high ^ mac.0) | ((dst_low_src >> 16) ^ mac.1);
    let foreign = group == 0 && mine != 0 && flags & Flag::Promiscuous as u32 == 0;
    let tagged = kind == 0x8100 || kind == 0x88a8 || kind == 0x9100;
    let (ip4, ip6, l2) = (kind == 0x0800, kind == 0x86dd, flags & Flag::L2 as u32 != 0);
    let mut next = if ip6 {
        Next::Ip6 as u32
    } else {
        Next::Ip4 as u32
    };
    let mut verdict = if group != 0 {
        Count::GroupMac.code()
    } else {
        0
    };
    verdict = if ip4 || ip6 {
        verdict
    } else {
        Count::UnknownType.code()
    };
    verdict = if kind == 0x0806 {
        Count::Arp.code()
    } else {
        verdict
    };
    verdict = if tagged {
        Count::UnknownVlan.code()
    } else {
        verdict
    };
    verdict = if foreign {
        Count::NotMyMac.code()
    } else {
        verdict
    };
    next = if l2 { Next::L2 as u32 } else { next };
    verdict = if l2 { 0 } else { verdict };
    (
        if len < HEADER {
            Count::TooShort.code()
        } else {
            verdict
        },
        next,
    )
}

impl Node for EthernetInput {
    const NAME: &'static str = "ethernet-input";
    type Next = Next;
    type Count = Count;
    type Trace = FrameTrace;

    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, mut v: Vector<'_, I, Next>) -> Done {
        let n = v.len();
        if self.interfaces(v.column(Col::Rx)) {
            v.prefetch();
            v.words(0, &mut self.header);
            let flags = self.flags.strips(n);
            let (high, low) = (self.mac_high.strips(n), self.mac_low.strips(n));
            let [h0, h1, h2, h3] = self.header.strips(n);
            let (verdict, next) = (self.verdict.strips_mut(n), self.next.strips_mut(n));
            for (strip, lens) in v.strips(Col::Len).iter().enumerate() {
                let (flags, high, low) = (flags[strip], high[strip], low[strip]);
                let (h0, h1, h2, h3) = (h0[strip], h1[strip], h2[strip], h3[strip]);
                let (mut codes, mut edges) = ([0; 16], [0; 16]);
                for row in 0..16 {
                    let (mac, header) =
                        ((high[row], low[row]), [h0[row], h1[row], h2[row], h3[row]]);
                    (codes[row], edges[row]) = judge(lens[row], flags[row], mac, header);
                }
                (verdict[strip], next[strip]) = (codes, edges);
            }
        } else {
            // A cross-connect looks at no byte of the frame.
            self.next.words_mut(n).fill(Next::L2 as u32);
            for (verdict, &len) in self.verdict.words_mut(n).iter_mut().zip(v.column(Col::Len)) {
                *verdict = if len < HEADER {
                    Count::TooShort.code()
                } else {
                    0
                };
            }
        }
        v.put(Col::User0, &mut self.next);
        v.drop_out(cx, &self.verdict, |_| Next::Drop);
        v.take(Col::User0, &mut self.next);
        v.advance(HEADER);
        v.send_by(&self.next)
    }
}

/// A frame's headers.
#[derive(Clone, Copy)]
pub struct FrameTrace(Glance);

impl Trace for FrameTrace {
    fn note(packet: &PacketView<'_>) -> Self {
        FrameTrace(Glance::note(packet))
    }

    fn text(&self, names: &dyn Names) -> String {
        format!(
            "{} bytes, rx {}\n{}",
            self.0.len(),
            names.interface(self.0.rx()),
            dissect::one_line(self.0.bytes())
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use volley_graph::Domain;
    use volley_graph::harness::{In, Out, run};
    use volley_iface::IfIdx;

    fn table() -> Arc<IfTable> {
        let table = IfTable::new(1);
        for (index, flag) in [(0, Flag::Up), (1, Flag::L2), (2, Flag::Promiscuous)] {
            table.set(IfIdx(index), flag, true);
            table.set_mac(IfIdx(index), [2, 0, 0, 0, 0, 1]);
        }
        table
    }

    fn frame(dst: [u8; 6], kind: u16, len: usize) -> Vec<u8> {
        let mut bytes = [&dst[..], &[2, 0, 0, 0, 0, 9], &kind.to_be_bytes()].concat();
        bytes.resize(len, 0xaa);
        bytes
    }

    fn outcome(out: &Out) -> &str {
        out.reason.as_deref().unwrap_or(&out.to)
    }

    #[test]
    fn frames_are_told_apart_in_the_order_of_the_rules() {
        const ME: [u8; 6] = [2, 0, 0, 0, 0, 1];
        const OTHER: [u8; 6] = [2, 0, 0, 0, 0, 2];
        const GROUP: [u8; 6] = [0xff; 6];
        let cases = [
            (In::new(&frame(ME, 0x0800, 13)), "too-short"),
            (In::new(&[]), "too-short"),
            (In::new(&frame(ME, 0x0800, 60)), "ip4-input"),
            (In::new(&frame(ME, 0x86dd, 60)), "ip6-input"),
            (In::new(&frame(OTHER, 0x0800, 60)), "not-my-mac"),
            (In::new(&frame(OTHER, 0x0806, 60)), "not-my-mac"),
            (In::new(&frame(OTHER, 0x86dd, 60)).rx(2), "ip6-input"),
            (In::new(&frame(ME, 0x8100, 60)), "unknown-vlan"),
            (In::new(&frame(ME, 0x88a8, 60)), "unknown-vlan"),
            (In::new(&frame(GROUP, 0x9100, 60)), "unknown-vlan"),
            (In::new(&frame(GROUP, 0x0806, 60)), "arp-unsupported"),
            (In::new(&frame(ME, 0x88cc, 60)), "unknown-ethertype"),
            (In::new(&frame(GROUP, 0x0800, 60)), "group-mac"),
            (In::new(&frame(OTHER, 0x88cc, 60)).rx(1), "l2-xconnect"),
            (In::new(&frame(OTHER, 0x88cc, 12)).rx(1), "too-short"),
        ];
        for (packet, want) in &cases {
            let table = table();
            let out = run(std::slice::from_ref(packet), &Domain::new(), move |_| {
                EthernetInput::new(table.clone(), 256)
            });
            assert_eq!(outcome(&out[0]), *want, "{packet:02x?}");
            let stripped = if out[0].reason.is_some() { 0 } else { 14 };
            assert_eq!(out[0].bytes, packet.bytes[stripped..]);
        }
        let all: Vec<In> = cases.iter().map(|(p, _)| p.clone()).collect();
        let table = table();
        let mixed = run(&all, &Domain::new(), move |_| {
            EthernetInput::new(table.clone(), 256)
        });
        let mut got: Vec<&str> = mixed.iter().map(outcome).collect();
        let mut want: Vec<&str> = cases.iter().map(|c| c.1).collect();
        got.sort_unstable();
        want.sort_unstable();
        assert_eq!(got, want, "a mixed vector gives the same verdicts");
    }
}
