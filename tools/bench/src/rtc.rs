//! bench-rtc: run to completion, the classic baseline: one packet at a time through the whole path, completely inlined,
//! with the same tables, checks, counters and rewrites as the graph. Other styles of the loop advance several packets by a step at a
//! time, and prefetch the packets of later steps.

use std::sync::Arc;
use volley_fib::dataplane::{AdjTable, Dpo, Fib4Snap, Fib6Snap, LeafView, View};
use volley_fib::{V4, V6};
use volley_graph::{
    Col, Column, Consumed, Counters, Cx, Isa, Node, PacketTrace, Vector, counters, nexts,
};
use volley_iface::{Flag, IfTable};
use volley_ip::Ip;
use volley_simd::prefetch;
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

/// State of bench-rtc. Each step of its loop has `STEP` packets, and prefetches the packets of the step `AHEAD` steps later; 0 prefetches
/// none.
pub struct Rtc<const STEP: usize, const AHEAD: usize> {
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

impl<const STEP: usize, const AHEAD: usize> Rtc<STEP, AHEAD> {
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
fn parts<F: Ip>(view: View<'_, F>) -> Parts<'_, F> {
    (view, view.leaves(), view.adjs())
}

/// What every packet needs of a family's tables.
type Parts<'a, F> = (View<'a, F>, LeafView<'a>, AdjTable<'a>);

/// What is known of a packet before its lookup.
#[derive(Clone, Copy)]
enum Checked {
    /// Dropped.
    Refused,
    /// To the peer of its interface, with this length.
    Bound(u32),
    /// Routed: destination, and length of the IP packet.
    Ip4(u32, u32),
    Ip6(u128, u32),
}

/// Where a packet goes.
#[derive(Clone, Copy)]
enum Found {
    Refused,
    Bound(u32),
    Ip4(Dpo, u32),
    Ip6(Dpo, u32),
}

/// The tables of one call.
struct Tables<'a> {
    table: &'a IfTable,
    bound: Option<Bound>,
    ip4: Parts<'a, V4>,
    ip6: Parts<'a, V6>,
}

impl Tables<'_> {
    /// The checks of one packet.
    #[inline(always)]
    fn check(&self, rx: u32, len: u32, p: &[u8; 128]) -> Checked {
        if let Some(bound) = self.bound.filter(|it| it.rx == rx) {
            return match len >= bound.shortest {
                true => Checked::Bound(len),
                false => Checked::Refused,
            };
        }
        let mac = u64::from(be32(p, 0)) << 16 | u64::from(be16(p, 4));
        match be16(p, 12) {
            _ if mac != self.table.mac(rx) => Checked::Refused,
            IP4 => {
                valid4(p, len).map_or(Checked::Refused, |total| Checked::Ip4(be32(p, 30), total))
            }
            IP6 => valid6(p, len).map_or(Checked::Refused, |total| {
                let dst = u128::from_be_bytes(std::array::from_fn(|i| p[38 + i]));
                Checked::Ip6(dst, total)
            }),
            _ => Checked::Refused,
        }
    }

    /// The lookup of one packet.
    #[inline(always)]
    fn find(&self, rx: u32, checked: Checked) -> Found {
        match checked {
            Checked::Refused => Found::Refused,
            Checked::Bound(len) => Found::Bound(len),
            Checked::Ip4(dst, total) => Found::Ip4(find::<V4>(&self.ip4, rx, dst), total),
            Checked::Ip6(dst, total) => Found::Ip6(find::<V6>(&self.ip6, rx, dst), total),
        }
    }

    /// The rewrite of one packet; returns the egress interface and the length of the frame.
    #[inline(always)]
    fn rewrite(&self, rx: u32, found: Found, p: &mut [u8; 128]) -> Option<(u32, u32)> {
        let sent = match found {
            Found::Refused => None,
            Found::Bound(len) => Some((self.table.patch_peer(rx), len)),
            Found::Ip4(dpo, total) => {
                rewrite::<V4>(&self.ip4, dpo, total, p).map(|tx| (tx, total + 14))
            }
            Found::Ip6(dpo, total) => {
                rewrite::<V6>(&self.ip6, dpo, total, p).map(|tx| (tx, total + 14))
            }
        };
        sent.filter(|(tx, _)| self.table.has(*tx, Flag::Up))
    }
}

#[inline(always)]
fn find<F: Ip>((view, leaves, _): &Parts<'_, F>, rx: u32, dst: F::Addr) -> Dpo {
    leaves.resolve(F::leaf(view.lpm(view.table_of(rx)), dst))
}

#[inline(always)]
fn rewrite<F: Ip>(
    (_, _, adjs): &Parts<'_, F>,
    dpo: Dpo,
    total: u32,
    p: &mut [u8; 128],
) -> Option<u32> {
    let words = adjs.words(dpo.index());
    if !dpo.is_adj() || total > u32::from(words.facts.mtu()) {
        return None;
    }
    F::decrement(&mut p[14..]);
    p[..8].copy_from_slice(&words.head.to_ne_bytes());
    p[6..14].copy_from_slice(&words.tail.to_ne_bytes());
    Some(words.tx_if)
}

/// Prefetch the first line of a packet.
#[inline(always)]
fn prefetch_packet<I: Isa>(v: &mut Vector<'_, I, Next>, row: usize) {
    let start: *const u8 = v.front::<1>(row).as_ptr();
    prefetch(start);
}

impl<const STEP: usize, const AHEAD: usize> Node for Rtc<STEP, AHEAD> {
    const NAME: &'static str = "bench-rtc";
    type Next = Next;
    type Count = Count;
    type Trace = PacketTrace;

    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, mut v: Vector<'_, I, Next>) -> Consumed {
        let n = v.len();
        let tables = Tables {
            table: &self.table,
            bound: self.bound,
            ip4: parts(self.fib4.read(cx.guard())),
            ip6: parts(self.fib6.read(cx.guard())),
        };
        let (tx, verdict, length) = (
            self.tx.words_mut(n),
            self.verdict.words_mut(n),
            self.length.words_mut(n),
        );
        self.lens.words_mut(n).copy_from_slice(v.column(Col::LEN));
        self.rxs.words_mut(n).copy_from_slice(v.column(Col::RX));
        let (rxs, lens) = (self.rxs.words(n), self.lens.words(n));
        let mut done = |row: usize, sent: Option<(u32, u32)>| {
            verdict[row] = match sent {
                Some(_) => 0,
                None => Count::Refused.code(),
            };
            (tx[row], length[row]) = sent.unwrap_or((0, 0));
        };
        // Rows from here on have no full step.
        let mut row = 0;
        if STEP > 1 || AHEAD > 0 {
            (0..n.min(AHEAD * STEP)).for_each(|row| prefetch_packet(&mut v, row));
            while row + STEP <= n {
                let later = row + AHEAD * STEP;
                if AHEAD > 0 && later + STEP <= n {
                    (later..later + STEP).for_each(|row| prefetch_packet(&mut v, row));
                }
                let checked: [Checked; STEP] = std::array::from_fn(|i| {
                    tables.check(rxs[row + i], lens[row + i], v.front::<128>(row + i))
                });
                let found: [Found; STEP] =
                    std::array::from_fn(|i| tables.find(rxs[row + i], checked[i]));
                for (i, found) in found.into_iter().enumerate() {
                    let (at, p) = (row + i, v.front::<128>(row + i));
                    done(at, tables.rewrite(rxs[at], found, p));
                }
                row += STEP;
            }
        }
        let rest = row;
        v.apply::<128>(|row, p| {
            if row < rest {
                return;
            }
            let checked = tables.check(rxs[row], lens[row], p);
            done(
                row,
                tables.rewrite(rxs[row], tables.find(rxs[row], checked), p),
            );
        });
        v.put(Col::TX, &mut self.tx);
        v.put(Col::LEN, &mut self.length);
        v.drop_out(cx, &self.verdict, |_| Next::Drop);
        v.send_all(Next::Output)
    }
}
