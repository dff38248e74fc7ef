//! ip-in-ip-split: stage 5, no branch depends on what the table says.

use super::ip_in_ip_unroll::read;
use crate::common::{Count, InnerTrace, Next};
use crate::pairs::Pairs;
use crate::rows::{Rows, finish, verdict};
use volley_sdk::prelude::*;
use volley_sdk::tables::Snap;

/// State of stage 5.
pub struct Split {
    pairs: Snap<Pairs>,
    rows: Rows,
}

impl Split {
    /// For vectors of up to `size` packets.
    pub fn new(pairs: Snap<Pairs>, size: usize) -> Self {
        Split {
            pairs,
            rows: Rows::new(size),
        }
    }
}

impl Node for Split {
    const NAME: &'static str = "ip-in-ip-split";
    type Next = Next;
    type Count = Count;
    type Trace = InnerTrace;

    // ANCHOR: run
    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, mut v: Vector<'_, I, Next>) -> Consumed {
        let pairs = self.pairs.read(cx.guard());
        let rows = &mut self.rows;
        read(rows, pairs, &mut v);
        let mut kept = 0;
        let verdicts = rows.verdicts.words_mut(v.len());
        for (verdict_of, &destination) in verdicts.iter_mut().zip(&rows.destinations) {
            let pair = pairs.find_straight(destination);
            *verdict_of = verdict(*verdict_of == 0, pair);
            // Each pair is written; the next one overwrites the pair of a packet that is dropped.
            rows.pairs[kept] = pair;
            kept += usize::from(*verdict_of == 0);
        }
        v.drop_out(cx, &rows.verdicts, |_| Next::Drop);
        finish(cx, v, &rows.pairs)
    }
    // ANCHOR_END: run
}
