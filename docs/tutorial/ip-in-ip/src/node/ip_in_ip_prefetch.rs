//! ip-in-ip-prefetch: stage 3, rows in place of packets, and the cache lines of later packets are fetched in advance.

use crate::common::{Count, InnerTrace, Next};
use crate::pairs::Pairs;
use crate::rows::{Rows, finish, inner, prefetch_packet, verdict};
use volley_sdk::prelude::*;
use volley_sdk::tables::Snap;

/// The number of packets between a prefetch and the use of the line.
const AHEAD: usize = 8;

/// State of stage 3.
pub struct Prefetch {
    pairs: Snap<Pairs>,
    rows: Rows,
}

impl Prefetch {
    /// For vectors of up to `size` packets.
    pub fn new(pairs: Snap<Pairs>, size: usize) -> Self {
        Prefetch {
            pairs,
            rows: Rows::new(size),
        }
    }
}

impl Node for Prefetch {
    const NAME: &'static str = "ip-in-ip-prefetch";
    type Next = Next;
    type Count = Count;
    type Trace = InnerTrace;

    // ANCHOR: run
    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, mut v: Vector<'_, I, Next>) -> Consumed {
        let (pairs, n) = (self.pairs.read(cx.guard()), v.len());
        (0..n.min(AHEAD)).for_each(|row| prefetch_packet(&mut v, row));
        for row in 0..n {
            if row + AHEAD < n {
                prefetch_packet(&mut v, row + AHEAD);
            }
            let inner = inner(&v, row);
            let pair = pairs.find(inner.destination());
            let is_ip4 = inner.is_ip4(v.column(Col::LEN)[row]);
            self.rows.pairs[row] = pair;
            self.rows.verdicts.words_mut(n)[row] = verdict(is_ip4, pair);
        }
        self.rows.sift(cx, &mut v);
        finish(cx, v, &self.rows.pairs)
    }
    // ANCHOR_END: run
}
