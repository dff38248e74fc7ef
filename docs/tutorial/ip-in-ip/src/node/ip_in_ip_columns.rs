//! ip-in-ip-columns: stage 6, the loops of stage 5 over columns, which the compiler makes vector code of.

use crate::common::{Count, InnerTrace, Next};
use crate::header::{FRONT, Inner, OFFSET, OUTER, pair, write};
use crate::pairs::Pairs;
use crate::rows::{send_back, verdict};
use volley_sdk::prelude::*;
use volley_sdk::tables::Snap;

/// State of stage 6.
pub struct Columns {
    pairs: Snap<Pairs>,
    /// The headers as they arrive.
    words: Words<6>,
    destinations: Column,
    starts: Column,
    verdicts: Column,
    /// Addresses of the outer header.
    ends: [Column; 2],
    /// The first three words of the outer header.
    outer: [Column; 3],
    /// The rows of the packets that stay.
    rows: Column,
}

impl Columns {
    /// For vectors of up to `size` packets.
    pub fn new(pairs: Snap<Pairs>, size: usize) -> Self {
        let column = || Column::new(size);
        Columns {
            pairs,
            words: Words::new(size),
            destinations: column(),
            starts: column(),
            verdicts: column(),
            ends: [column(), column()],
            outer: [column(), column(), column()],
            rows: column(),
        }
    }

    /// Destination, bucket and verdict of each packet: loops without a branch and without a pointer.
    // ANCHOR: parse
    #[inline(always)]
    fn parse<I: Isa>(&mut self, pairs: &Pairs, v: &mut Vector<'_, I, Next>) {
        let n = v.len();
        v.first_words(OFFSET, &mut self.words);
        let to = self.destinations.strips_mut(n).iter_mut();
        let to = to.zip(self.starts.strips_mut(n));
        let to = to.zip(self.verdicts.strips_mut(n));
        let from = self.words.strips(n).iter().zip(v.strips(Col::LEN));
        for (((destination, start), verdicts), (words, len)) in to.zip(from) {
            for i in 0..16 {
                let inner = Inner(words.map(|word| word[i]));
                destination[i] = inner.destination();
                start[i] = pairs.start(destination[i]);
                verdicts[i] = verdict(inner.is_ip4(len[i]), 1);
            }
        }
    }
    // ANCHOR_END: parse

    /// Look all destinations up: first all prefetches, then all searches.
    // ANCHOR: look_up
    #[inline(always)]
    fn look_up(&mut self, pairs: &Pairs, n: usize) -> usize {
        for &start in self.starts.words(n) {
            prefetch(pairs.bucket(start));
        }
        let [locals, remotes] = &mut self.ends;
        let ends = locals.words_mut(n).iter_mut().zip(remotes.words_mut(n));
        let verdicts = self.verdicts.words_mut(n).iter_mut();
        let all = verdicts.zip(self.destinations.words(n)).zip(ends);
        let (rows, mut kept) = (self.rows.words_mut(n), 0);
        for (row, ((verdict_of, &destination), (local, remote))) in all.enumerate() {
            let pair = pairs.find_straight(destination);
            (*local, *remote) = ((pair >> 32) as u32, pair as u32);
            *verdict_of = verdict(*verdict_of == 0, pair);
            rows[kept] = row as u32;
            kept += usize::from(*verdict_of == 0);
        }
        kept
    }
    // ANCHOR_END: look_up

    /// The outer headers, with their checksums.
    // ANCHOR: build
    #[inline(always)]
    fn build(&mut self, n: usize) {
        let [first, second, third] = &mut self.outer;
        let to = first.strips_mut(n).iter_mut().zip(second.strips_mut(n));
        let to = to.zip(third.strips_mut(n));
        let [locals, remotes] = &self.ends;
        let ends = locals.strips(n).iter().zip(remotes.strips(n));
        let from = self.words.strips(n).iter().zip(ends);
        for (((first, second), third), (words, (local, remote))) in to.zip(from) {
            for i in 0..16 {
                let inner = Inner(words.map(|word| word[i]));
                [first[i], second[i], third[i]] = inner.outer(local[i], remote[i]);
            }
        }
    }
    // ANCHOR_END: build
}

impl Node for Columns {
    const NAME: &'static str = "ip-in-ip-columns";
    type Next = Next;
    type Count = Count;
    type Trace = InnerTrace;

    // ANCHOR: run
    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, mut v: Vector<'_, I, Next>) -> Consumed {
        let (pairs, n) = (self.pairs.read(cx.guard()), v.len());
        self.parse(pairs, &mut v);
        let kept = self.look_up(pairs, n);
        self.build(n);
        v.drop_out(cx, &self.verdicts, |_| Next::Drop);
        cx.count(Count::Encapsulated, kept as u64);
        v.retreat(OUTER as u32);
        let outer = self.outer.each_ref().map(|it| it.words(n));
        let ends = self.ends.each_ref().map(|it| it.words(n));
        let rows = self.rows.words(n);
        v.apply::<FRONT>(|at, front| {
            let row = rows[at] as usize;
            let pair = pair(ends[0][row], ends[1][row]);
            write(front, outer.map(|it| it[row]), pair);
        });
        send_back(v)
    }
    // ANCHOR_END: run
}
