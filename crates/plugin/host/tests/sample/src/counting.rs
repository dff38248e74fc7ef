//! Nodes that count packets and send them by a verb.

use volley_sdk::prelude::*;

counters! {
    /// What the nodes count.
    pub enum Passed {
        /// packets that passed
        Seen = "seen" (Info),
    }
}

/// A node that counts packets, and the verb by which it sends them.
macro_rules! counting {
    ($name:ident, $node:literal, $next:ty, |$self:ident, $v:ident| $send:expr) => {
        impl Node for $name {
            const NAME: &'static str = $node;
            type Next = $next;
            type Count = Passed;
            type Trace = PacketTrace;

            #[inline(always)]
            fn run<I: Isa>(
                &mut $self,
                cx: &Cx<'_, Passed>,
                $v: Vector<'_, I, $next>,
            ) -> Consumed {
                cx.count(Passed::Seen, $v.len() as u64);
                $send
            }
        }
    };
}

pub(crate) use counting;
