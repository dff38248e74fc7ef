//! ip4-sv-reassembly-feature, ip6-sv-reassembly-feature: send fragments in transit to virtual reassembly; other packets
//! continue along the arc. Section 21 of `docs/forwarding-rules.md`.
//!
//! Features of the unicast arcs, behind those that check sources and before those that use a flow: they cost nothing on an
//! interface without them. On entry and exit the position is at the IP header.

use crate::{Icmp, IpTrace};
use std::marker::PhantomData;
use volley_graph::{Column, Consumed, Cx, Isa, NoCounters, Node, Vector, Words, nexts, or_all};

nexts! {
    /// Edge for fragments; other packets continue along the arc.
    pub struct Next<F: Icmp> { HANDOFF => F::SV_HANDOFF }
}

/// State of a node that selects fragments.
pub struct SvFeature<F> {
    word: Words<1>,
    marks: Column,
    family: PhantomData<F>,
}

impl<F> SvFeature<F> {
    /// For vectors of up to `size` packets.
    pub fn new(size: usize) -> Self {
        SvFeature {
            word: Words::new(size),
            marks: Column::new(size),
            family: PhantomData,
        }
    }
}

impl<F: Icmp> Node for SvFeature<F> {
    const NAME: &'static str = F::SV_FEATURE;
    type Next = Next<F>;
    type Count = NoCounters;
    type Trace = IpTrace;

    #[inline(always)]
    fn run<I: Isa>(&mut self, _: &Cx<'_, NoCounters>, mut v: Vector<'_, I, Next<F>>) -> Consumed {
        let n = v.len();
        v.words(F::CUT_AT, &mut self.word);
        let words = self.word.strips(n).iter();
        for (marks, [words]) in self.marks.strips_mut(n).iter_mut().zip(words) {
            for (mark, word) in marks.iter_mut().zip(words) {
                *mark = u32::from(F::may_be_cut(*word));
            }
        }
        let marks = self.marks.words_mut(n);
        if or_all(marks) != 0 {
            for (row, mark) in marks.iter_mut().enumerate().filter(|(_, mark)| **mark != 0) {
                let view = v.view(row);
                let bytes = view.bytes();
                *mark = u32::from(F::is_cut(&bytes[..view.len().min(bytes.len())]));
            }
            v.divert(&self.marks, Next::HANDOFF);
        }
        v.next_feature()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use volley_fib::{V4, V6};
    use volley_graph::harness::{In, LENGTHS, run_once};
    use volley_graph::{Domain, Level};

    fn ip4(flags: u16) -> In {
        let mut p = vec![0x45, 0, 0, 28, 0x12, 0x34];
        p.extend(flags.to_be_bytes());
        p.extend([
            64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0, 1, 0, 2, 0, 8, 0, 0,
        ]);
        In::new(&p)
    }

    fn ip6(chain: &[u8]) -> In {
        let len = 8 * chain.len() as u8;
        let mut p = vec![0x60, 0, 0, 0, 0, len, chain[0], 64];
        p.extend([1; 32]);
        for (n, _) in chain.iter().enumerate() {
            let next = chain.get(n + 1).copied().unwrap_or(0);
            p.extend([next, 0, 1, 4, 0, 0, 0, 0]);
        }
        In::new(&p)
    }

    /// The packets that take the edge for fragments, at every length and level; the bench has no arc for the others.
    fn picked<F: Icmp>(packets: &[In]) -> Vec<Vec<u8>> {
        let domain = Domain::new();
        let mut all = Vec::new();
        for level in Level::available() {
            for size in LENGTHS {
                let make = |_| SvFeature::<F>::new(256);
                let out = run_once(level, size, packets, &domain, make).unwrap();
                assert!(out.iter().all(|it| it.to == F::SV_HANDOFF));
                all.push(out.into_iter().map(|it| it.bytes).collect());
            }
        }
        assert!(all.windows(2).all(|two| two[0] == two[1]));
        all.remove(0)
    }

    #[test]
    fn fragments_are_picked_out_and_other_packets_go_on() {
        let flags = [0, 0x4000, 0x2000, 0x2003, 3, 0x1fff, 0x8000, 0x4001];
        let packets = flags.map(ip4);
        let want: Vec<_> = [2, 3, 4, 5, 7].map(|n| packets[n].bytes.clone()).into();
        assert_eq!(picked::<V4>(&packets), want);
        let chains: [&[u8]; 8] = [
            &[17],
            &[44, 17],
            &[0, 17],
            &[0, 44, 17],
            &[60, 43, 44, 6],
            &[43, 6],
            &[50, 44],
            &[0, 60],
        ];
        let packets = chains.map(ip6);
        let want: Vec<_> = [1, 3, 4].map(|n| packets[n].bytes.clone()).into();
        assert_eq!(picked::<V6>(&packets), want);
    }
}
