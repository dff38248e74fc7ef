//! ip4-rewrite, ip6-rewrite: one hop less and a new Ethernet header (RFC 1812, 5.3.1; RFC 1624; RFC 8200, 3). Section 7 of
//! `docs/forwarding-rules.md`.
//!
//! On entry the position is at the IP header and the `Dpo` column names a complete adjacency; on exit at the Ethernet
//! header, with `Tx` filled.

use crate::{Ip, IpTrace};
use std::marker::PhantomData;
use volley_fib::dataplane::{ADJ_ETHERNET, AdjWords, DataPlane, Dpo};
use volley_graph::{
    Col, Column, Counters, Cx, Done, Isa, Nexts, Node, Vector, all_equal, counters,
};

/// Length of an Ethernet header.
const ETHERNET: usize = 14;

/// Edges of the rewrite nodes.
pub struct Next<F>(u8, PhantomData<F>);

impl<F> Clone for Next<F> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<F> Copy for Next<F> {}

impl<F: Ip> Next<F> {
    /// To the drop node.
    pub const DROP: Self = Next(0, PhantomData);
    /// To interface-output.
    pub const OUTPUT: Self = Next(1, PhantomData);
}

impl<F: Ip> Nexts for Next<F> {
    const EDGES: &'static [&'static str] = &["error-drop", "interface-output"];
    #[inline(always)]
    fn index(self) -> usize {
        self.0 as usize
    }
}

counters! {
    /// What rewrites count.
    pub enum Count {
        /// too long for the egress interface, and must not be fragmented
        FragNeeded = "frag-needed" (Error),
        /// too long for the egress interface, and fragmentation is not there yet
        NeedsFragmentation = "needs-fragmentation" (Error),
        /// too long for the egress interface
        TooBig = "packet-too-big" (Error),
        /// the adjacency is not a complete Ethernet one
        NoAdjacency = "no-adjacency" (Error),
    }
}

/// State of a rewrite node.
pub struct Rewrite<F: Ip> {
    fib: DataPlane<F>,
    verdict: Column,
    tx: Column,
    adj: Column,
}

impl<F: Ip> Rewrite<F> {
    /// For vectors of up to `size` packets.
    pub fn new(fib: DataPlane<F>, size: usize) -> Self {
        Rewrite {
            fib,
            verdict: Column::new(size),
            tx: Column::new(size),
            adj: Column::new(size),
        }
    }
}

/// The fields of an adjacency's facts: see `AdjTable::info`.
#[inline(always)]
fn facts(info: u64) -> (u32, u32, bool) {
    (
        info as u32,
        (info >> 32 & 0xffff) as u32,
        (info >> 56) as u8 & ADJ_ETHERNET != 0,
    )
}

/// The verdict on one packet.
#[inline(always)]
fn judge(len: u32, mtu: u32, ethernet: bool) -> u32 {
    let code = if len > mtu { Count::TooBig.code() } else { 0 };
    if ethernet {
        code
    } else {
        Count::NoAdjacency.code()
    }
}

/// One hop less, and the new Ethernet header.
#[inline(always)]
fn rewrite<F: Ip>(frame: &mut [u8; 64], words: AdjWords) {
    F::decrement(&mut frame[ETHERNET..]);
    frame[..8].copy_from_slice(&words.head.to_ne_bytes());
    frame[6..14].copy_from_slice(&words.tail.to_ne_bytes());
}

/// Tell packets that do not fit apart: a super-segment does when its segments do, and whether the others may be
/// fragmented stands in the header.
#[cold]
fn too_long<F: Ip, I: Isa>(
    v: &Vector<'_, I, Next<F>>,
    verdict: &mut [u32],
    mtu: impl Fn(usize) -> u32,
) {
    for (row, code) in verdict
        .iter_mut()
        .enumerate()
        .filter(|(_, code)| **code == Count::TooBig.code())
    {
        if v.view(row).wire_len() <= mtu(row) as usize {
            *code = 0;
        } else if F::HEADER == 20 {
            let count = if F::may_fragment(v.view(row).bytes()) {
                Count::NeedsFragmentation
            } else {
                Count::FragNeeded
            };
            *code = count.code();
        }
    }
}

impl<F: Ip> Node for Rewrite<F> {
    const NAME: &'static str = F::REWRITE;
    type Next = Next<F>;
    type Count = Count;
    type Trace = IpTrace;

    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, mut v: Vector<'_, I, Next<F>>) -> Done {
        let n = v.len();
        v.require(Col::Dpo, 0);
        let Rewrite {
            fib,
            verdict,
            tx,
            adj,
        } = self;
        let view = fib.read(cx.guard());
        let adjs = view.adjs();
        let dpo = v.column(Col::Dpo);
        let one = all_equal(dpo).then(|| dpo.first().map_or(0, |&d| Dpo(d).index()));
        match one {
            Some(index) => {
                let (egress, mtu, ethernet) = facts(adjs.info(index));
                tx.words_mut(n).fill(egress);
                for (code, &len) in verdict.words_mut(n).iter_mut().zip(v.column(Col::Len)) {
                    *code = judge(len, mtu, ethernet);
                }
            }
            None => {
                let (codes, tx, lens) = (verdict.words_mut(n), tx.words_mut(n), v.column(Col::Len));
                for row in 0..n {
                    let (egress, mtu, ethernet) = facts(adjs.info(Dpo(dpo[row]).index()));
                    (tx[row], codes[row]) = (egress, judge(lens[row], mtu, ethernet));
                }
            }
        }
        if volley_graph::or_all(verdict.words(n)) != 0 {
            let mtu = |row: usize| facts(adjs.info(Dpo(v.column(Col::Dpo)[row]).index())).1;
            too_long(&v, verdict.words_mut(n), mtu);
        }
        v.put(Col::Tx, tx);
        v.drop_out(cx, verdict, |_| Next::DROP);
        v.take(Col::Dpo, adj);
        v.forget(&[Col::Dst, Col::Dst1, Col::Dst2, Col::Dst3, Col::Hash]);
        v.retreat(ETHERNET as u32);
        if let Some(index) = one {
            let words = adjs.words(index);
            v.apply::<64>(|_, frame| rewrite::<F>(frame, words));
        } else {
            let adj = adj.words(v.len());
            v.apply::<64>(|row, frame| rewrite::<F>(frame, adjs.words(Dpo(adj[row]).index())));
        }
        v.send_all(Next::OUTPUT)
    }
}
