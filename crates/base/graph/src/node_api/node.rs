//! What a node's author writes.

use crate::data::col::ColumnInfo;
use crate::data::counters::Counters;
use crate::node_api::context::Cx;
use crate::node_api::edges::Nexts;
use crate::node_api::output::Output;
use crate::node_api::vector::{Consumed, Vector};
use crate::queues::trace::Trace;
use crate::queues::wakeup::WakeConditions;
use volley_simd::Isa;

/// A node that packets pass through or end in. The struct is its state on one worker.
pub trait Node: Send + Sized + 'static {
    /// Name in the graph, public interface. Instances of one kind (such as `pg0-tx`) are named when they are added.
    const NAME: &'static str;
    /// Edges.
    type Next: Nexts;
    /// Counters.
    type Count: Counters;
    /// What a traced packet leaves behind here.
    type Trace: Trace;
    /// The columns that the node reads or hands on, besides the engine's.
    const COLUMNS: &'static [ColumnInfo] = &[];

    /// Handle one vector. Mark it `#[inline(always)]`: the framework compiles it once per instruction-set level.
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Self::Count>, v: Vector<'_, I, Self::Next>) -> Consumed;
}

/// A node that packets begin in: it is polled once per round.
pub trait Source: Send + Sized + 'static {
    /// Name in the graph, public interface.
    const NAME: &'static str;
    /// Edges.
    type Next: Nexts;
    /// Counters.
    type Count: Counters;

    /// The columns that the source hands on, besides the engine's.
    const COLUMNS: &'static [ColumnInfo] = &[];

    /// Make packets, at most one vector of them, and send them; returns how many.
    fn poll<I: Isa>(
        &mut self,
        cx: &Cx<'_, Self::Count>,
        out: &mut Output<'_, I, Self::Next>,
    ) -> usize;

    /// Whether there is nothing to poll: no queue, and nothing in an inbox. The source is not polled then until something was
    /// handed to the worker ([`crate::Engine::wake`], [`crate::Engine::send`]); the thread that puts something into its inbox calls
    /// one of these *afterwards*. Asked after a poll. A source that says nothing here is polled in every round.
    fn is_vacant(&self) -> bool {
        false
    }

    /// Whether the worker may sleep, asked after a round without a packet, `idle_ns` after the last round with one. A
    /// source that says nothing here has to be polled. Drivers ask [`Clock`](crate::Clock) nothing: `now_ns` is the time.
    fn may_sleep(&self, _now_ns: u64, _idle_ns: u64) -> bool {
        false
    }

    /// Whether the worker may end as far as this source goes: it has no queue, and nothing of the worker is out with the
    /// control thread.
    fn can_exit(&self) -> bool {
        true
    }

    /// The worker goes to sleep, for every source lets it: arm the interrupt, say in `rest` what ends the sleep, then
    /// look once more; false when there is work after all (packets, or something in an inbox). System calls are allowed.
    fn arm(&mut self, _rest: &mut WakeConditions) -> bool {
        true
    }

    /// The worker is awake again, or did not fall asleep: disarm. Called whenever [`Source::arm`] was.
    fn wake(&mut self) {}
}
