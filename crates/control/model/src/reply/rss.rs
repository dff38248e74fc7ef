//! Answer to [`crate::Query::Rss`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use volley_object::Instance;

/// How packets go from worker to worker.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct RssReply {
    /// Interfaces whose packets are spread, or may be.
    pub interfaces: Vec<RssRow>,
    /// Nodes that run on one worker only.
    pub nodes: Vec<NodeWorkerRow>,
    /// What workers have handed to each other.
    pub handoffs: Vec<HandoffRow>,
}

/// What becomes of an interface's packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RssState {
    /// They are spread.
    Spread,
    /// They stay where they are received: nothing is too hot, or there is nobody to give them to.
    #[default]
    Waits,
    /// They stay where they are received: several queues spread them already.
    Queues,
    /// They are no longer spread, and the last ones leave other workers now.
    Leaves,
}

/// One interface.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct RssRow {
    /// Its name.
    pub interface: String,
    /// What was asked for.
    pub settings: Option<Instance>,
    /// What becomes of its packets.
    pub state: RssState,
    /// Times that entries were given to other workers because of the load.
    pub rebalanced: u64,
    /// Entries and packets by worker.
    pub workers: Vec<RssWorkerRow>,
}

/// What one worker gets of an interface.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct RssWorkerRow {
    /// The worker.
    pub worker: u32,
    /// Entries of the indirection table.
    pub entries: u32,
    /// Packets of those entries so far.
    pub packets: u64,
}

/// A node that runs on one worker only.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct NodeWorkerRow {
    /// Node.
    pub node: String,
    /// Worker.
    pub worker: u32,
}

/// What one worker has handed to another.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct HandoffRow {
    /// The worker that handed over.
    pub from: u32,
    /// The worker that took.
    pub to: u32,
    /// Vectors and parts of vectors.
    pub vectors: u64,
    /// Packets.
    pub packets: u64,
    /// Packets dropped because the other worker had too much waiting.
    pub drops: u64,
}
