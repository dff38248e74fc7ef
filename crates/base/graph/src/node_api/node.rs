//! The traits that the author of a node implements.

use crate::data::col::ColumnInfo;
use crate::data::counters::Counters;
use crate::node_api::context::Cx;
use crate::node_api::edges::Nexts;
use crate::node_api::output::Output;
use crate::node_api::vector::{Consumed, Vector};
use crate::queues::trace::Trace;
use crate::queues::wakeup::WakeConditions;
use volley_simd::Isa;

/// A node through which packets pass or at which they end. The struct is its state on one worker.
pub trait Node: Send + Sized + 'static {
    /// Name in the graph, public interface. Several instances of a type (such as `pg0-tx`) are named when they are added.
    const NAME: &'static str;
    /// Edges.
    type Next: Nexts;
    /// Counters.
    type Count: Counters;
    /// The record of a traced packet at this node.
    type Trace: Trace;
    /// The columns that the node reads or passes on, besides the engine's.
    const COLUMNS: &'static [ColumnInfo] = &[];

    /// Handle one vector. Mark it `#[inline(always)]`: the framework compiles it once per instruction-set level.
    fn run<I: Isa>(&mut self, cx: &Cx<'_, Self::Count>, v: Vector<'_, I, Self::Next>) -> Consumed;
}

/// A node at which packets enter the graph. It is polled once per round.
pub trait Source: Send + Sized + 'static {
    /// Name in the graph, public interface.
    const NAME: &'static str;
    /// Edges.
    type Next: Nexts;
    /// Counters.
    type Count: Counters;

    /// The columns that the source passes on, besides the engine's.
    const COLUMNS: &'static [ColumnInfo] = &[];

    /// Make packets, at most one vector of them, and send them; returns the number of packets.
    fn poll<I: Isa>(
        &mut self,
        cx: &Cx<'_, Self::Count>,
        out: &mut Output<'_, I, Self::Next>,
    ) -> usize;

    /// Whether the source has nothing to poll: no queue, and an empty inbox. Such a source is not polled until the worker is
    /// notified ([`crate::Engine::wake`], [`crate::Engine::send`]). A thread that puts something into the inbox calls one of
    /// these *afterwards*. The worker calls this method after a poll. By default a source is polled in every round.
    fn is_vacant(&self) -> bool {
        false
    }

    /// Whether the worker may sleep. Called after a round without a packet, `idle_ns` after the last round with one. By
    /// default the source must be polled. Drivers do not read [`Clock`](crate::Clock): `now_ns` is the time.
    fn may_sleep(&self, _now_ns: u64, _idle_ns: u64) -> bool {
        false
    }

    /// Whether this source allows the worker to end: it has no queue, and the control thread holds none of the worker's
    /// resources.
    fn can_exit(&self) -> bool {
        true
    }

    /// Prepare for the sleep of the worker, which all sources have allowed: arm the interrupt, add to `rest` the conditions
    /// that end the sleep, then check again. Returns false when work is pending (packets, or an entry in an inbox). System
    /// calls are allowed.
    fn arm(&mut self, _rest: &mut WakeConditions) -> bool {
        true
    }

    /// Disarm the interrupt: the worker is awake again, or did not fall asleep. Called after every call of [`Source::arm`].
    fn wake(&mut self) {}
}
