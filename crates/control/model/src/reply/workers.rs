//! Workers: where they are, what they have to do, where they paused.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Answer to [`crate::Query::Workers`].
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct WorkersReply {
    /// Workers that there may be at a time.
    pub places: u32,
    /// The largest difference of two workers' load of the last second, in points of a hundred.
    pub imbalance: f64,
    /// One per worker, in order.
    pub workers: Vec<WorkerRow>,
}

/// One worker.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct WorkerRow {
    /// Its number.
    pub worker: u32,
    /// Core it is pinned to.
    pub core: Option<u32>,
    /// The memory node of that core, from which its buffers come.
    pub numa: Option<u32>,
    /// `polling`, `sleeping`, `leaving`, or `stalled`: no round for longer than a second.
    pub state: String,
    /// Its receive queues (`tap0 queue 1`).
    pub queues: Vec<String>,
    /// Share of the last second in rounds that found packets.
    pub load_percent: f64,
    /// The same since the last clear.
    pub load_since_clear_percent: f64,
    /// Rounds since the last clear.
    pub rounds: u64,
    /// Rounds that found packets, since the last clear.
    pub busy_rounds: u64,
    /// Share of rounds that found none, since the last clear.
    pub empty_rounds_percent: f64,
    /// Packets in since the last clear.
    pub rx_packets: u64,
    /// Packets in a second, over the last second.
    pub packets_per_second: f64,
    /// Packets of a round that found some, averaged since the last clear.
    pub packets_per_round: f64,
    /// The same as a share of the vector size, at most 100.
    pub vector_fill_percent: f64,
    /// Times it slept since the daemon started.
    pub sleeps: u64,
    /// The longest round since the last clear, in microseconds.
    pub longest_round_us: f64,
    /// Times it stood still for longer than a second.
    pub stalls: u64,
    /// The node that it ran last.
    pub node: String,
    /// The calls in which it last stood still, the innermost first.
    pub stalled_in: Vec<String>,
}

/// Answer to [`crate::Query::Pauses`].
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct PausesReply {
    /// Gaps from here on are told.
    pub threshold_us: u32,
    /// One per worker, in order.
    pub workers: Vec<WorkerPauses>,
}

/// Where one worker paused.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct WorkerPauses {
    /// Its number.
    pub worker: u32,
    /// The longest gap between the ends of two rounds since the last clear, sleep aside, in microseconds.
    pub longest_us: f64,
    /// Gaps over the threshold since the last clear.
    pub over: u64,
    /// The longest of them, longest first.
    pub gaps: Vec<Pause>,
}

/// One gap.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Pause {
    /// How long, in microseconds.
    pub gap_us: f64,
    /// How many seconds ago it ended.
    pub ago_s: f64,
    /// The node that the worker ran last in it.
    pub node: String,
    /// The request that the control thread was carrying out meanwhile, if it was.
    pub during: Option<String>,
}
