//! Reports on nodes: lines of `show runtime`, `show errors` and `show drops`.

use crate::data::counters::CounterInfo;
use crate::data::ids::NodeId;
use crate::queues::drop_table::DropSample;

/// What a node is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NodeState {
    /// A source that is polled.
    Polling,
    /// A source of a worker that sleeps now: it is polled when something has woken the worker.
    Interrupt,
    /// Runs when packets wait for it.
    Active,
    /// The worker's own loop: see [`crate::LOOP`].
    Loop,
    /// An asynchronous task on the control thread.
    Process,
}

/// One line of `show runtime`.
#[derive(Clone, Debug)]
pub struct NodeReport {
    /// Name in the graph.
    pub name: String,
    /// What it is doing.
    pub state: NodeState,
    /// Times it ran.
    pub calls: u64,
    /// Packets that it handled.
    pub vectors: u64,
    /// Times that it waited (processes).
    pub suspends: u64,
    /// Cycles spent in it.
    pub clocks: u64,
    /// The largest vector it saw.
    pub largest: u64,
}

/// Packets that came in by one interface and were dropped for one reason.
#[derive(Clone, Debug)]
pub struct DropReport {
    /// The node that decided.
    pub node: NodeId,
    /// Its counter.
    pub counter: usize,
    /// The interface they came in by.
    pub rx: u32,
    /// How many.
    pub count: u64,
    /// The last one.
    pub sample: Option<DropSample>,
}

/// One line of `show errors`.
#[derive(Clone, Debug)]
pub struct CounterReport {
    /// The node that counts.
    pub node: String,
    /// Which counter.
    pub info: CounterInfo,
    /// Its value.
    pub count: u64,
}
