//! ip4-rewrite, ip6-rewrite: decrement the TTL and write a new Ethernet header (RFC 1812, 5.3.1; RFC 1624; RFC 8200, 3).
//! Section 7 of `docs/forwarding-rules.md`.
//!
//! On entry the position is at the IP header and the `dpo` column has a complete adjacency; on exit the position is at the
//! Ethernet header, and `TX` is filled.

use crate::family::is_local;
use crate::{Icmp, Ip, IpTrace};
use volley_fib::Af;
use volley_fib::columns::{DPO, FORWARDING};
use volley_fib::dataplane::{AdjFacts, AdjTable, DataPlane, Dpo, View};
use volley_graph::{
    Col, Column, ColumnInfo, Consumed, Counters, Cx, Isa, Node, Vector, all_equal, any_bit,
    counters, nexts,
};

/// Length of an Ethernet header.
const ETHERNET: usize = 14;

/// Bytes 0..8 and 6..14 of a new Ethernet header.
type Header = [u64; 2];

nexts! {
    /// Edges of the rewrite nodes.
    pub struct Next<F: Icmp> {
        /// To the drop node.
        DROP => "error-drop",
        /// To interface-output.
        OUTPUT => "interface-output",
        /// To the node that sends ICMP errors.
        ERROR => F::ICMP_ERROR,
        /// To the node that fragments.
        FRAGMENT => F::FRAGMENT,
    }
}

counters! {
    /// What rewrites count.
    pub enum Count {
        /// too long for the egress interface, and must not be fragmented
        FragNeeded = "frag-needed" (Error),
        /// too long for the egress interface: cut into fragments
        NeedsFragmentation = "needs-fragmentation" (Info),
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
    facts: Box<[[AdjFacts; 16]]>,
}

impl<F: Ip> Rewrite<F> {
    /// For vectors of up to `size` packets.
    pub fn new(fib: DataPlane<F>, size: usize) -> Self {
        Rewrite {
            fib,
            verdict: Column::new(size),
            tx: Column::new(size),
            adj: Column::new(size),
            facts: vec![Default::default(); size.div_ceil(16)].into(),
        }
    }
}

/// The verdict on one packet.
#[inline(always)]
fn judge(len: u32, facts: AdjFacts) -> u32 {
    let code = if len > u32::from(facts.mtu()) {
        Count::TooBig.code()
    } else {
        0
    };
    if facts.is_ethernet() {
        code
    } else {
        Count::NoAdjacency.code()
    }
}

/// Whether the verdict on one of `n` packets is not 0.
#[inline(always)]
fn is_any_odd(n: usize, lens: &[[u32; 16]], facts: &[[AdjFacts; 16]]) -> bool {
    for (strip, (lens, facts)) in lens.iter().zip(facts).enumerate() {
        let mut codes = [0; 16];
        for row in 0..16 {
            codes[row] = judge(lens[row], facts[row]);
        }
        if any_bit(&codes, n - 16 * strip) {
            return true;
        }
    }
    false
}

/// Decrements the TTL and writes the new Ethernet header.
#[inline(always)]
fn rewrite<F: Ip>(frame: &mut [u8; 64], [head, tail]: Header) {
    F::decrement(&mut frame[ETHERNET..]);
    frame[..8].copy_from_slice(&head.to_ne_bytes());
    frame[6..14].copy_from_slice(&tail.to_ne_bytes());
}

/// Rewrites a small vector packet by packet; false, without any change, if a packet exceeds the MTU or has no adjacency.
#[inline(always)]
fn few<F: Icmp, I: Isa>(adjs: &AdjTable<'_>, v: &mut Vector<'_, I, Next<F>>) -> bool {
    let rows = v.few();
    let (dpo, lens) = (v.few_of(DPO.col), v.few_of(Col::LEN));
    let judge = |row: usize| judge(lens[row], adjs.words(Dpo(dpo[row]).index()).facts);
    if (0..rows).fold(0, |odd, row| odd | judge(row)) != 0 {
        return false;
    }
    v.retreat(ETHERNET as u32);
    v.few_frames([DPO.col, Col::TX], |frame, [dpo, tx]| {
        let words = adjs.words(Dpo(*dpo).index());
        *tx = words.tx_if;
        rewrite::<F>(frame, [words.head, words.tail]);
        true
    });
    v.forget(&FORWARDING);
    true
}

/// Decides about packets that exceed the MTU: a super-segment passes if its segments fit; the header tells whether another
/// packet may be fragmented.
#[cold]
fn too_long<F: Icmp, I: Isa>(
    view: &View<'_, F>,
    v: &Vector<'_, I, Next<F>>,
    verdict: &mut [u32],
    mtu: impl Fn(usize) -> u32,
) {
    for (row, code) in verdict
        .iter_mut()
        .enumerate()
        .filter(|(_, code)| **code == Count::TooBig.code())
    {
        let packet = v.view(row);
        if packet.wire_len() <= mtu(row) as usize {
            *code = 0;
            continue;
        }
        let is_own = |source| is_local(view, packet.rx(), source);
        let count = match F::AF {
            _ if F::may_fragment(packet.bytes(), is_own) => Count::NeedsFragmentation,
            Af::V4 => Count::FragNeeded,
            Af::V6 => Count::TooBig,
        };
        *code = count.code();
    }
}

impl<F: Icmp> Node for Rewrite<F> {
    const NAME: &'static str = F::REWRITE;
    type Next = Next<F>;
    type Count = Count;
    type Trace = IpTrace;
    const COLUMNS: &'static [ColumnInfo] = &[DPO];

    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, mut v: Vector<'_, I, Next<F>>) -> Consumed {
        let n = v.len();
        v.require(DPO.col, 0);
        let Rewrite {
            fib,
            verdict,
            tx,
            adj,
            facts,
        } = self;
        let adjs = fib.read(cx.guard()).adjs();
        if I::FEW && few(&adjs, &mut v) {
            return v.send_all(Next::OUTPUT);
        }
        let dpo = v.column(DPO.col);
        let one = all_equal(dpo).then(|| adjs.words(dpo.first().map_or(0, |&d| Dpo(d).index())));
        let odd = match &one {
            Some(words) => {
                tx.words_mut(n).fill(words.tx_if);
                let lens = v.column(Col::LEN).iter();
                let longest = lens.fold(0, |longest, &len| longest.max(len));
                judge(longest, words.facts) != 0
            }
            None => {
                adjs.facts_of(v.strips(DPO.col), tx.strips_mut(n), facts);
                is_any_odd(n, v.strips(Col::LEN), facts)
            }
        };
        if odd {
            let lens = v.column(Col::LEN).iter().zip(v.column(DPO.col));
            for (code, (&len, &dpo)) in verdict.words_mut(n).iter_mut().zip(lens) {
                *code = judge(len, adjs.words(Dpo(dpo).index()).facts);
            }
            let facts = |row: usize| adjs.words(Dpo(v.column(DPO.col)[row]).index()).facts;
            let mtu = |row: usize| u32::from(facts(row).mtu());
            let view = fib.read(cx.guard());
            too_long(&view, &v, verdict.words_mut(n), mtu);
        }
        v.put(Col::TX, tx);
        if odd {
            v.drop_out(cx, verdict, |count| match count {
                Count::FragNeeded | Count::TooBig => Next::ERROR,
                Count::NeedsFragmentation => Next::FRAGMENT,
                _ => Next::DROP,
            });
        }
        v.take(DPO.col, adj);
        v.forget(&FORWARDING);
        v.retreat(ETHERNET as u32);
        match one {
            Some(words) => {
                v.apply::<64>(|_, frame| rewrite::<F>(frame, [words.head, words.tail]));
            }
            None => {
                v.apply_each::<64>(adj.words(v.len()), |dpo, frame| {
                    rewrite::<F>(frame, adjs.header(Dpo(dpo).index()));
                });
            }
        }
        v.send_all(Next::OUTPUT)
    }
}
