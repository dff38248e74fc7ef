//! ip4-rx-urpf-strict, ip4-rx-urpf-loose, ip6-rx-urpf-strict, ip6-rx-urpf-loose: reverse-path check of sources (RFC 2827, RFC
//! 3704, RFC 8704). Section 18 of `docs/forwarding-rules.md`.
//!
//! Features of the unicast arcs: they cost nothing on an interface without them. On entry and exit the position is at the IP
//! header.

use crate::family::one_table;
use crate::{Ip, IpTrace, Step};
use std::marker::PhantomData;
use volley_fib::dataplane::{AdjFacts, DataPlane, Dpo, DpoKind, View};
use volley_graph::{
    Col, Column, Consumed, Counters, Cx, Isa, Node, Vector, Words, all_equal, counters, nexts,
    or_all,
};

nexts! {
    /// Edges of the nodes; packets that pass continue along the arc.
    pub enum Next { Drop => "error-drop" }
}

counters! {
    /// What the nodes count.
    pub enum Count {
        /// no route leads back to the source, or one that goes nowhere
        NoRoute = "urpf-no-route" (Error),
        /// no route to the source leads out of the receiving interface
        OtherInterface = "urpf-other-interface" (Error),
    }
}

/// Mode of a node.
pub trait Mode: Send + 'static {
    /// Whether the reverse path must leave through the receiving interface.
    const STRICT: bool;
}

/// The reverse path must leave through the receiving interface.
pub struct Strict;
/// Any route to the source suffices.
pub struct Loose;

impl Mode for Strict {
    const STRICT: bool = true;
}
impl Mode for Loose {
    const STRICT: bool = false;
}

/// State of a node that checks sources.
pub struct Urpf<F: Ip, M> {
    fib: DataPlane<F>,
    work: Work<M>,
}

/// Buffers for one vector.
struct Work<M> {
    step: Step,
    /// The source; for IPv4 followed by the destination.
    header: Words<4>,
    leaf: Column,
    dpo: Column,
    tx: Column,
    facts: Box<[[AdjFacts; 16]]>,
    verdict: Column,
    mode: PhantomData<M>,
}

impl<F: Ip, M: Mode> Urpf<F, M> {
    /// For vectors of up to `size` packets.
    pub fn new(fib: DataPlane<F>, size: usize) -> Self {
        let column = || Column::new(size);
        let work = Work {
            step: Step::new(size),
            header: Words::new(size),
            leaf: column(),
            dpo: column(),
            tx: column(),
            facts: vec![Default::default(); size.div_ceil(16)].into(),
            verdict: column(),
            mode: PhantomData,
        };
        Urpf { fib, work }
    }
}

impl<M: Mode> Work<M> {
    /// Looks up the routes to all sources.
    #[inline(always)]
    fn look_up<F: Ip, I: Isa>(&mut self, view: &View<'_, F>, isa: I, rx: &[u32]) {
        let n = rx.len();
        if let Some(table) = one_table(view, rx) {
            let table = view.lpm(table);
            let leaf = self.leaf.words_mut(n);
            F::lookup_sources(isa, table, &self.header, &mut self.step, leaf);
        } else {
            for (row, &rx) in rx.iter().enumerate() {
                let source = F::source(self.header.row(row));
                let table = view.lpm(view.table_of(rx));
                self.leaf.words_mut(n)[row] = F::leaf(table, source);
            }
        }
        view.resolve_batch(self.leaf.words(n), self.dpo.words_mut(n));
    }

    /// Sets `verdict` nonzero for packets that need an exact check.
    #[inline(always)]
    fn glance<F: Ip>(&mut self, view: &View<'_, F>, rx: &[[u32; 16]], n: usize) {
        if !M::STRICT {
            let dpo = self.dpo.words(n).iter();
            for (odd, &dpo) in self.verdict.words_mut(n).iter_mut().zip(dpo) {
                *odd = u32::from(FORWARDS >> (dpo >> 28) & 1 == 0);
            }
            return;
        }
        let adjs = view.adjs();
        if !all_equal(self.dpo.words(n)) {
            for &word in self.dpo.words(n) {
                adjs.prefetch(Dpo(word).index());
            }
        }
        let dpo = self.dpo.strips(n);
        adjs.facts_of(dpo, self.tx.strips_mut(n), &mut self.facts);
        let from = dpo.iter().zip(self.tx.strips(n)).zip(rx);
        for (odd, ((dpo, tx), rx)) in self.verdict.strips_mut(n).iter_mut().zip(from) {
            for k in 0..16 {
                odd[k] = (dpo[k] >> 28 ^ DpoKind::Adj as u32) | (tx[k] ^ rx[k]);
            }
        }
    }

    /// Exact verdicts on the packets that need one.
    #[cold]
    fn judge_all<F: Ip>(&mut self, view: &View<'_, F>, rx: &[u32]) {
        // Packets of one route often come in a row, and a group of paths may be long: the last result is kept.
        let mut known = None;
        for (row, &rx) in rx.iter().enumerate() {
            let odd = &mut self.verdict.words_mut(row + 1)[row];
            if *odd == 0 {
                continue;
            }
            let words = self.header.row(row);
            if F::has_no_way_back(words) {
                *odd = 0;
                continue;
            }
            let mut dpo = Dpo(self.dpo.words(row + 1)[row]);
            if dpo.kind() == DpoKind::LookupIn {
                dpo = view.follow(view.table_of(rx), F::source(words));
            }
            let found = match known {
                Some((this, by, found)) if (this, by) == (dpo, rx) => found,
                _ => judge::<F>(view, M::STRICT.then_some(rx), dpo),
            };
            known = Some((dpo, rx, found));
            *odd = found.map_or(0, Counters::code);
        }
    }
}

/// Types of objects that lead to another host, one bit each.
const FORWARDS: u32 = 1 << DpoKind::Adj as u32
    | 1 << DpoKind::Incomplete as u32
    | 1 << DpoKind::Glean as u32
    | 1 << DpoKind::Multi as u32;

/// The fault of a source with the route `dpo`, if any; `by` is the interface that the route must leave through, or none for
/// any.
fn judge<F: Ip>(view: &View<'_, F>, by: Option<u32>, dpo: Dpo) -> Option<Count> {
    if FORWARDS >> dpo.kind() as u32 & 1 == 0 {
        return Some(Count::NoRoute);
    }
    let by = by?;
    (!leads_by(view, by, dpo, LEVELS)).then_some(Count::OtherInterface)
}

/// Largest depth of nested groups of paths (recursive routes over recursive routes).
const LEVELS: usize = 4;

/// Whether any path of an object leaves through an interface.
fn leads_by<F: Ip>(view: &View<'_, F>, by: u32, dpo: Dpo, levels: usize) -> bool {
    match dpo.kind() {
        DpoKind::Adj | DpoKind::Incomplete => view.adjs().words(dpo.index()).tx_if == by,
        DpoKind::Glean => dpo.index() == by,
        DpoKind::Multi if levels > 0 => {
            let lbs = view.lbs();
            let mut last = dpo;
            // Buckets of one path are adjacent.
            (0..lbs.buckets(dpo) as u32).any(|bucket| {
                let next = lbs.pick(dpo, bucket);
                std::mem::replace(&mut last, next) != next && leads_by(view, by, next, levels - 1)
            })
        }
        _ => false,
    }
}

impl<F: Ip, M: Mode> Node for Urpf<F, M> {
    const NAME: &'static str = if M::STRICT {
        F::URPF_STRICT
    } else {
        F::URPF_LOOSE
    };
    type Next = Next;
    type Count = Count;
    type Trace = IpTrace;

    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, mut v: Vector<'_, I, Next>) -> Consumed {
        let n = v.len();
        let Urpf { fib, work } = self;
        let view = fib.read(cx.guard());
        v.words(F::SOURCE_AT, &mut work.header);
        work.look_up(&view, v.isa(), v.column(Col::RX));
        work.glance(&view, v.strips(Col::RX), n);
        if or_all(work.verdict.words(n)) != 0 {
            work.judge_all(&view, v.column(Col::RX));
            v.drop_out(cx, &work.verdict, |_| Next::Drop);
        }
        v.next_feature()
    }
}

#[cfg(test)]
mod tests;
