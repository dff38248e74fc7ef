//! ip-in-ip-vector: stage 2, the code of stage 1 on whole vectors.

use super::ip_in_ip_one::one_by_one;
use crate::common::{Count, InnerTrace, Next};
use crate::pairs::Pairs;
use volley_sdk::prelude::*;
use volley_sdk::tables::Snap;

/// State of stage 2.
pub struct Whole(Snap<Pairs>);

impl Whole {
    /// With the workers' view of the table.
    pub fn new(pairs: Snap<Pairs>) -> Self {
        Whole(pairs)
    }
}

impl Node for Whole {
    const NAME: &'static str = "ip-in-ip-vector";
    type Next = Next;
    type Count = Count;
    type Trace = InnerTrace;

    // ANCHOR: run
    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Count>, v: Vector<'_, I, Next>) -> Consumed {
        one_by_one(self.0.read(cx.guard()), cx, v)
    }
    // ANCHOR_END: run
}
