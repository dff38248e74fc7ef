//! ttl-check: drops packets whose byte 8 is below 2. The plugin has it, and `examples/native_cost.rs` compiles the same file
//! into the router, to compare what both cost.

use volley_sdk::prelude::*;

nexts! { pub enum Next { Drop => "error-drop" } }

counters! {
    /// What `ttl-check` counts.
    pub enum TtlCount {
        /// packets that were examined
        Seen = "seen" (Info),
        /// packets dropped because their TTL is below 2
        LowTtl = "low-ttl" (Error),
    }
}

/// The node of the template of `volley plugin new`.
pub struct TtlCheck;

impl Node for TtlCheck {
    const NAME: &'static str = "ttl-check";
    type Next = Next;
    type Count = TtlCount;
    type Trace = PacketTrace;

    #[inline(always)]
    fn run<I: Isa>(&mut self, cx: &Cx<'_, TtlCount>, mut v: Vector<'_, I, Next>) -> Consumed {
        cx.count(TtlCount::Seen, v.len() as u64);
        let ttl = |packet: &Packet<'_>| packet.bytes().get(8).copied().unwrap_or(0);
        v.sift(
            |packet| ttl(packet) > 1 || packet.fail(cx, TtlCount::LowTtl),
            Next::Drop,
        );
        v.next_feature()
    }
}
