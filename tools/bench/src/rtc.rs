//! bench-rtc: run to completion, the classic baseline: one packet at a time through the whole path, completely inlined,
//! with the same tables, checks, counters and rewrites as the graph.

use std::sync::Arc;
use volley_fib::dataplane::{AdjTable, Dpo, Fib4Snap, Fib6Snap, LeafView, View};
use volley_fib::{V4, V6};
use volley_graph::{
    Col, Column, Consumed, Counters, Cx, Isa, Node, PacketTrace, Vector, counters, nexts,
};
use volley_iface::{Flag, IfTable};
use volley_ip::Ip;
use volley_wire::ethertype;

const IP4: u32 = ethertype::IP4 as u32;
const IP6: u32 = ethertype::IP6 as u32;

nexts! {
    /// Where bench-rtc sends packets.
    pub enum Next { Drop => "error-drop", Output => "interface-tx" }
}

counters! {
    /// What bench-rtc counts.
    pub enum Count {
        /// anything that is not a plain packet to a complete adjacency
        Refused = "refused" (Error),
    }
}

/// An interface that is patched or cross-connected.
#[derive(Clone, Copy)]
pub struct Bound {
    /// Index of the interface.
    pub rx: u32,
    /// Minimum length of frames; shorter ones are dropped.
    pub shortest: u32,
}

/// State of bench-rtc.
pub struct Rtc {
    table: Arc<IfTable>,
    fib4: Fib4Snap,
    fib6: Fib6Snap,
    bound: Option<Bound>,
    tx: Column,
    verdict: Column,
    length: Column,
    rxs: Column,
    lens: Column,
}

impl Rtc {
    /// A node that sends frames of the interface of `bound` to its peer.
    pub fn new(
        table: Arc<IfTable>,
        fib4: Fib4Snap,
        fib6: Fib6Snap,
        bound: Option<Bound>,
        size: usize,
    ) -> Self {
        let column = || Column::new(size);
        Rtc {
            table,
            fib4,
            fib6,
            bound,
            tx: column(),
            verdict: column(),
            length: column(),
            rxs: column(),
            lens: column(),
        }
    }
}

fn be16(b: &[u8], at: usize) -> u32 {
    u32::from(u16::from_be_bytes([b[at], b[at + 1]]))
}

fn be32(b: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([b[at], b[at + 1], b[at + 2], b[at + 3]])
}

/// The IPv4 checks of ip4-input; returns the packet's length if all pass.
#[inline(always)]
fn valid4(p: &[u8; 128], len: u32) -> Option<u32> {
    let total = be16(p, 16);
    let sum: u32 = (14..34).step_by(2).map(|at| be16(p, at)).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    let (src, dst) = (be32(p, 26), be32(p, 30));
    let odd = |a: u32| a >> 24 == 0 || a >> 24 == 127 || a >> 24 >= 224 || a >> 16 == 0xa9fe;
    let good = len >= 34 && p[14] == 0x45 && total >= 20 && total + 14 <= len;
    (good && (folded & 0xffff) + (folded >> 16) == 0xffff && p[22] > 1 && !odd(src) && !odd(dst))
        .then_some(total)
}

/// The IPv6 checks of ip6-input.
#[inline(always)]
fn valid6(p: &[u8; 128], len: u32) -> Option<u32> {
    let total = 40 + be16(p, 18);
    let word = |at| {
        [
            be32(p, at),
            be32(p, at + 4),
            be32(p, at + 8),
            be32(p, at + 12),
        ]
    };
    let (src, dst) = (word(22), word(38));
    let odd = |a: [u32; 4]| {
        a[0] >> 24 == 0xff || a[0] >> 22 == 0x3fa || a[0] | a[1] | a[2] | (a[3] & !1) == 0
    };
    let mapped = src[0] | src[1] | (src[2] ^ 0xffff) == 0;
    let good = len >= 54 && p[14] >> 4 == 6 && total + 14 <= len && p[20] != 0;
    (good && p[21] > 1 && !odd(src) && !odd(dst) && !mapped).then_some(total)
}

/// A view of the parts that every packet needs, read once.
#[inline(always)]
fn parts<F: Ip>(view: View<'_, F>) -> (View<'_, F>, LeafView<'_>, AdjTable<'_>) {
    (view, view.leaves(), view.adjs())
}

/// Lookup, checks and rewrite of one packet; returns the egress interface.
#[inline(always)]
fn forward<F: Ip>(
    (view, leaves, adjs): &(View<'_, F>, LeafView<'_>, AdjTable<'_>),
    rx: u32,
    dst: F::Addr,
    total: u32,
    p: &mut [u8; 128],
) -> Option<u32> {
    let leaf = F::leaf(view.lpm(view.table_of(rx)), dst);
    let dpo: Dpo = leaves.resolve(leaf);
    let words = adjs.words(dpo.index());
    if !dpo.is_adj() || total > u32::from(words.facts.mtu()) {
        return None;
    }
    F::decrement(&mut p[14..]);
    p[..8].copy_from_slice(&words.head.to_ne_bytes());
    p[6..14].copy_from_slice(&words.tail.to_ne_bytes());
    Some(words.tx_if)
}

impl Node for Rtc {
    const NAME: &'static str = "bench-rtc";
    type Next = Next;
    type Count = Count;
    type Trace = PacketTrace;

    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, mut v: Vector<'_, I, Next>) -> Consumed {
        let n = v.len();
        let (view4, view6) = (
            parts(self.fib4.read(cx.guard())),
            parts(self.fib6.read(cx.guard())),
        );
        let (tx, verdict, length) = (
            self.tx.words_mut(n),
            self.verdict.words_mut(n),
            self.length.words_mut(n),
        );
        let (table, bound) = (&self.table, self.bound);
        self.lens.words_mut(n).copy_from_slice(v.column(Col::LEN));
        self.rxs.words_mut(n).copy_from_slice(v.column(Col::RX));
        let (rxs, lens) = (self.rxs.words(n), self.lens.words(n));
        v.apply::<128>(|row, p| {
            let (rx, len) = (rxs[row], lens[row]);
            let done = if let Some(bound) = bound.filter(|it| it.rx == rx) {
                (len >= bound.shortest).then(|| (table.patch_peer(rx), len))
            } else {
                let mac = u64::from(be32(p, 0)) << 16 | u64::from(be16(p, 4));
                match be16(p, 12) {
                    _ if mac != table.mac(rx) => None,
                    IP4 => valid4(p, len).and_then(|total| {
                        forward::<V4>(&view4, rx, be32(p, 30), total, p).map(|tx| (tx, total + 14))
                    }),
                    IP6 => valid6(p, len).and_then(|total| {
                        let dst = u128::from_be_bytes(std::array::from_fn(|i| p[38 + i]));
                        forward::<V6>(&view6, rx, dst, total, p).map(|tx| (tx, total + 14))
                    }),
                    _ => None,
                }
            };
            let up = done.filter(|(tx, _)| table.has(*tx, Flag::Up));
            verdict[row] = if up.is_some() {
                0
            } else {
                Count::Refused.code()
            };
            (tx[row], length[row]) = up.unwrap_or((0, 0));
        });
        v.put(Col::TX, &mut self.tx);
        v.put(Col::LEN, &mut self.length);
        v.drop_out(cx, &self.verdict, |_| Next::Drop);
        v.send_all(Next::Output)
    }
}
