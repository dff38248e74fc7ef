//! Reports on nodes: lines of `show runtime`, `show errors` and `show drops`.

use crate::data::counters::CounterInfo;
use crate::data::ids::NodeId;
use crate::queues::drop_table::DropSample;

/// The state of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NodeState {
    /// A source that is polled.
    Polling,
    /// A source of a worker that sleeps: it is polled after the worker wakes up.
    Interrupt,
    /// Runs when packets are pending.
    Active,
    /// The worker's loop: see [`crate::LOOP`].
    Loop,
    /// An asynchronous task on the control thread.
    Process,
}

/// One line of `show runtime`.
#[derive(Clone, Debug)]
pub struct NodeReport {
    /// The name in the graph.
    pub name: String,
    /// The state of the node.
    pub state: NodeState,
    /// The number of runs.
    pub calls: u64,
    /// The number of packets.
    pub vectors: u64,
    /// The number of waits (processes).
    pub suspends: u64,
    /// The cycles of all runs.
    pub clocks: u64,
    /// The largest vector.
    pub largest: u64,
}

/// Packets that were received on one interface and dropped for one reason.
#[derive(Clone, Debug)]
pub struct DropReport {
    /// The node that dropped them.
    pub node: NodeId,
    /// The counter of the reason.
    pub counter: usize,
    /// The receive interface.
    pub rx: u32,
    /// The number of packets.
    pub count: u64,
    /// The last packet.
    pub sample: Option<DropSample>,
}

/// One line of `show errors`.
#[derive(Clone, Debug)]
pub struct CounterReport {
    /// The node that counts.
    pub node: String,
    /// The counter.
    pub info: CounterInfo,
    /// The value.
    pub count: u64,
}
