//! Answer to [`crate::Query::PathBatcher`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The path batcher.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct PathBatcherReply {
    /// Interfaces whose packets wait in it.
    pub interfaces: Vec<String>,
    /// Interfaces that were switched off and whose last packets leave it now.
    pub draining: Vec<String>,
    /// Packets of a full batch, where a queue says nothing.
    pub batch: u32,
    /// The longest wait in microseconds, where a queue says nothing.
    pub timeout_us: u32,
    /// Full batches that wait for each other, where a queue says nothing.
    pub gather: u32,
    /// All queues together.
    pub totals: PathBatcherTotals,
    /// Queues by number, the default queue first.
    pub queues: Vec<PathQueueRow>,
    /// Rules by priority.
    pub rules: Vec<PathRuleRow>,
    /// Headers it was taught.
    pub headers: Vec<PathHeaderRow>,
    /// Whether it learns.
    pub learning: bool,
    /// Paths that have a queue of their own by learning.
    pub learned: Vec<PathLearnedRow>,
}

/// What passed all queues.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct PathBatcherTotals {
    /// Packets that came in.
    pub packets: u64,
    /// Packets that wait now.
    pub held: u64,
    /// Packets that were sent on early, because the rules changed or an interface was switched off.
    pub flushed: u64,
    /// Batches by number of packets: 1, 2..3, 4..7 and so on.
    pub sizes: Vec<u64>,
    /// Packets by time waited: below 1 us, 1..2 us, 2..4 us and so on.
    pub delays: Vec<u64>,
    /// Half of the packets waited at most so many microseconds (upper end of the histogram's step).
    pub delay_p50_us: f64,
    /// 99 of 100 packets waited at most so many microseconds.
    pub delay_p99_us: f64,
    /// The longest wait in microseconds.
    pub delay_max_us: f64,
}

/// A queue.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct PathQueueRow {
    /// Its number; 0 is the default queue.
    pub id: u32,
    /// Packets of a full batch; none = as the batcher says.
    pub batch: Option<u32>,
    /// The longest wait in microseconds; none = as the batcher says.
    pub timeout_us: Option<u32>,
    /// Full batches that wait for each other; none = as the batcher says.
    pub gather: Option<u32>,
    /// Batches in its turn.
    pub weight: Option<u32>,
    /// Its strict priority; none = takes turns.
    pub strict: Option<u32>,
    /// A path that was learned has it.
    pub learned: bool,
    /// Packets that came in.
    pub packets: u64,
    /// Packets that wait now.
    pub held: u64,
    /// The most that ever waited.
    pub most_held: u64,
    /// Batches that were full.
    pub full: u64,
    /// Batches whose time was up.
    pub timeouts: u64,
    /// Packets that waited longer than their limit.
    pub late: u64,
    /// Of these, packets that waited for the worker: it did not come round for half of the limit.
    pub held_up: u64,
}

/// A rule.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct PathRuleRow {
    /// Its name.
    pub name: String,
    /// Its queue.
    pub queue: u32,
    /// Its priority.
    pub priority: u32,
    /// Its tests.
    #[serde(rename = "match")]
    pub matches: Vec<String>,
    /// Packets that matched.
    pub packets: u64,
}

/// A header that the batcher was taught.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct PathHeaderRow {
    /// Its name.
    pub name: String,
    /// Bytes, those besides the variable part.
    pub length: u32,
    /// Headers it is linked with that do not exist: those links are without effect.
    pub missing: Vec<String>,
}

/// A path that was learned.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct PathLearnedRow {
    /// Its headers, and the fields it is told apart by.
    pub path: String,
    /// Its queue.
    pub queue: u32,
    /// Its share of the packets looked at, in percent, lately.
    pub percent: f64,
}
