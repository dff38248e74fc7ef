//! ip-in-ip-unroll: stage 4, four packets at a time, and the table is prefetched before it is searched.

use crate::common::{Count, InnerTrace, Next};
use crate::pairs::Pairs;
use crate::rows::{Rows, finish, inner, prefetch_packet, verdict};
use volley_sdk::prelude::*;
use volley_sdk::tables::Snap;

/// Packets of a step.
const STEP: usize = 4;
/// The number of steps between a prefetch and the use of the line.
const AHEAD: usize = 2;

/// State of stage 4.
pub struct Unroll {
    pairs: Snap<Pairs>,
    rows: Rows,
}

impl Unroll {
    /// For vectors of up to `size` packets.
    pub fn new(pairs: Snap<Pairs>, size: usize) -> Self {
        Unroll {
            pairs,
            rows: Rows::new(size),
        }
    }
}

/// Read the destinations of a vector, four at a time, and prefetch their buckets. A packet that is not IPv4 gets its verdict here.
// ANCHOR: read
#[inline(always)]
pub fn read<I: Isa>(rows: &mut Rows, pairs: &Pairs, v: &mut Vector<'_, I, Next>) {
    let n = v.len();
    (0..n.min(AHEAD * STEP)).for_each(|row| prefetch_packet(v, row));
    let mut row = 0;
    while row + STEP <= n {
        let later = row + AHEAD * STEP;
        if later + STEP <= n {
            (later..later + STEP).for_each(|row| prefetch_packet(v, row));
        }
        let four: [_; STEP] = std::array::from_fn(|i| inner(v, row + i));
        for (i, inner) in four.into_iter().enumerate() {
            let destination = inner.destination();
            prefetch(pairs.bucket(pairs.start(destination)));
            rows.destinations[row + i] = destination;
            let is_ip4 = inner.is_ip4(v.column(Col::LEN)[row + i]);
            rows.verdicts.words_mut(n)[row + i] = verdict(is_ip4, 1);
        }
        row += STEP;
    }
    for row in row..n {
        let inner = inner(v, row);
        rows.destinations[row] = inner.destination();
        let is_ip4 = inner.is_ip4(v.column(Col::LEN)[row]);
        rows.verdicts.words_mut(n)[row] = verdict(is_ip4, 1);
    }
}
// ANCHOR_END: read

impl Node for Unroll {
    const NAME: &'static str = "ip-in-ip-unroll";
    type Next = Next;
    type Count = Count;
    type Trace = InnerTrace;

    // ANCHOR: run
    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, mut v: Vector<'_, I, Next>) -> Consumed {
        let pairs = self.pairs.read(cx.guard());
        let rows = &mut self.rows;
        read(rows, pairs, &mut v);
        let verdicts = rows.verdicts.words_mut(v.len());
        for (row, verdict_of) in verdicts.iter_mut().enumerate() {
            let pair = pairs.find(rows.destinations[row]);
            rows.pairs[row] = pair;
            if *verdict_of == 0 {
                *verdict_of = verdict(true, pair);
            }
        }
        rows.sift(cx, &mut v);
        finish(cx, v, &rows.pairs)
    }
    // ANCHOR_END: run
}
