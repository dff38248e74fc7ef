//! Clocks of nodes, counters, drops, traces.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Clocks of every node, per worker.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct RuntimeReply {
    /// One per worker, in order.
    pub workers: Vec<WorkerRuntime>,
}

/// One worker.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct WorkerRuntime {
    /// Its name (`worker0`, `main`).
    pub name: String,
    /// Core it is pinned to.
    pub core: Option<u32>,
    /// Seconds the figures are of.
    pub seconds: f64,
    /// Packets per internal-node call, averaged.
    pub vectors_per_loop: f64,
    /// Rounds of the main loop per second.
    pub loops_per_second: f64,
    /// Packets in per second.
    pub rx_pps: f64,
    /// Packets out per second.
    pub tx_pps: f64,
    /// Packets dropped per second.
    pub drop_pps: f64,
    /// The longest round in microseconds: the longest that anything kept packets waiting.
    #[serde(default)]
    pub longest_round_us: f64,
    /// Rounds of the main loop.
    #[serde(default)]
    pub rounds: u64,
    /// Rounds that found packets.
    #[serde(default)]
    pub busy_rounds: u64,
    /// Packets in.
    #[serde(default)]
    pub rx_packets: u64,
    /// Seconds spent in rounds that found packets, since the daemon started: what the worker is really used.
    #[serde(default)]
    pub busy_s: f64,
    /// Times it slept since the daemon started.
    #[serde(default)]
    pub sleeps: u64,
    /// Nodes in order of name.
    pub nodes: Vec<NodeRuntime>,
}

/// One node on one worker.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct NodeRuntime {
    /// Its name.
    pub name: String,
    /// `active` (internal, has run), `polling`, `interrupt wait`, `any wait`, `event wait`, `done`, `disabled`, `loop` (what
    /// the worker's rounds cost beside its nodes; calls are rounds).
    pub state: String,
    /// Times it ran.
    pub calls: u64,
    /// Packets it was given.
    pub vectors: u64,
    /// Times it waited (process nodes).
    pub suspends: u64,
    /// TSC cycles spent.
    pub cycles: u64,
    /// Cycles per packet; without packets, 0.
    pub cycles_per_packet: f64,
    /// Cycles per call; without calls, 0.
    pub cycles_per_call: f64,
    /// Packets per call; without calls, 0.
    pub vectors_per_call: f64,
    /// Largest vector seen.
    pub max_vector: u32,
}

impl NodeRuntime {
    /// A row from raw counts; the ratios follow.
    pub fn new(
        name: &str,
        state: &str,
        calls: u64,
        vectors: u64,
        suspends: u64,
        cycles: u64,
    ) -> Self {
        NodeRuntime {
            name: name.to_string(),
            state: state.to_string(),
            calls,
            vectors,
            suspends,
            cycles,
            cycles_per_packet: ratio(cycles, vectors),
            cycles_per_call: ratio(cycles, calls),
            vectors_per_call: ratio(vectors, calls),
            max_vector: 0,
        }
    }
}

fn ratio(a: u64, b: u64) -> f64 {
    if b == 0 { 0.0 } else { a as f64 / b as f64 }
}

/// How bad a counter's event is.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Normal.
    Info,
    /// Worth a look.
    Warn,
    /// A packet was lost or refused.
    #[default]
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Severity::Info => "info",
            Severity::Warn => "warn",
            Severity::Error => "error",
        })
    }
}

/// Counters that are not zero.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ErrorsReply {
    /// In order of node and counter.
    pub errors: Vec<ErrorRow>,
}

/// One counter of one node, summed over workers.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ErrorRow {
    /// Events.
    pub count: u64,
    /// Node.
    pub node: String,
    /// Counter's short name.
    pub reason: String,
    /// How bad.
    pub severity: Severity,
    /// The operator's sentence.
    pub text: String,
}

/// Dropped packets.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct DropsReply {
    /// Sum of all rows.
    pub total: u64,
    /// Most first.
    pub drops: Vec<DropRow>,
}

/// Drops of one node for one reason, of packets from one interface.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct DropRow {
    /// Packets.
    pub count: u64,
    /// Node that decided.
    pub node: String,
    /// Reason's short name.
    pub reason: String,
    /// The operator's sentence.
    pub text: String,
    /// Interface they came in by; none for those that were never seen as a packet (no buffer was free), are on their way
    /// to be freed, or came by an interface that is gone.
    pub interface: Option<String>,
    /// The last one, decoded, when kept.
    pub sample: Option<String>,
}

/// Traced packets.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct TraceReply {
    /// In order of arrival.
    pub packets: Vec<TracedPacket>,
    /// Traced packets not in this answer.
    pub more: u64,
}

/// The way of one packet.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct TracedPacket {
    /// Its number, from 1.
    pub packet: u32,
    /// Worker.
    pub worker: u32,
    /// Nodes it passed.
    pub steps: Vec<TraceStep>,
}

/// One node of a packet's way.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct TraceStep {
    /// Seconds since the daemon's start.
    pub time_s: f64,
    /// Node.
    pub node: String,
    /// What it did, one or more lines.
    pub text: String,
}
