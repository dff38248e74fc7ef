//! The log as `show log` has it.

use crate::log::LogRecord;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Answer to [`crate::Query::Log`].
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct LogReply {
    /// The records, oldest first.
    pub records: Vec<LogRecord>,
    /// The levels in force, such as `info,memif=debug`.
    pub levels: String,
    /// Where records go, beside the memory.
    pub destination: String,
    /// Number of the oldest record in memory; 0 = there is none.
    pub oldest: u64,
    /// Number of the newest record; 0 = there is none.
    pub newest: u64,
    /// Records left out because too many alike came at once.
    pub suppressed: u64,
    /// Records that were not written to the destination because it does not keep up.
    pub dropped: u64,
    /// Records that the destination refused.
    pub failed: u64,
    /// Why the destination refused the last record, while it does.
    pub fault: Option<String>,
}
