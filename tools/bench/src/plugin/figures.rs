//! The figures of a run: of each scenario, and where the counts come from.

use crate::report::Spread;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Figures of one scenario.
#[derive(Serialize, Deserialize)]
pub struct Row {
    pub scenario: String,
    pub node: String,
    pub vector_size: usize,
    pub packets: u64,
    /// TSC cycles of the node per packet.
    pub clocks: Spread,
    /// The values of `clocks`, one for each repetition.
    #[serde(default)]
    pub clock_samples: Vec<f64>,
    /// The whole router with the node.
    pub whole: Whole,
    /// The whole router without the node, which does the same work.
    pub native: Option<Whole>,
    /// Percentage of packets that the node drops, by reason.
    pub dropped: BTreeMap<String, f64>,
    /// Counted events per packet.
    pub counts: Option<Counts>,
    pub published: Vec<Peer>,
}

/// Costs of a packet in the whole router, in TSC cycles.
#[derive(Serialize, Deserialize)]
pub struct Whole {
    /// All nodes behind the source.
    pub graph: Spread,
    /// Also the source and the worker's loop.
    pub all: Spread,
    /// Packets per second at the cost `all`, in millions.
    pub mpps: f64,
    /// Packets of a vector, on average of all nodes behind the source.
    pub vector: f64,
    /// Cycles of the core per TSC cycle.
    pub core_cycles_per_tsc: f64,
}

/// Figures that others have published for the same work.
#[derive(Serialize, Deserialize)]
pub struct Peer {
    pub source: String,
    pub clocks: Option<f64>,
    pub l1_misses: Option<f64>,
    pub mispredicted: Option<f64>,
}

/// Result of the whole command.
#[derive(Serialize)]
pub struct Report {
    pub plugin: String,
    pub isa: String,
    /// Origin of `counts`.
    pub counted_by: Option<Way>,
    pub rows: Vec<Row>,
}

/// Origin of the counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Way {
    /// Counters of the processor, read by perf.
    Hardware,
    /// Simulation.
    Callgrind,
}

impl Way {
    /// What the figures are, for the reader.
    pub fn text(self) -> &'static str {
        match self {
            Way::Hardware => {
                "hardware counters (perf): the whole router, with source and transmission"
            }
            Way::Callgrind => {
                "callgrind: the plugin's code at x86-64-v3; simulated caches, which ignore prefetches, and simulated branch prediction"
            }
        }
    }
}

/// Events per packet; none where the processor does not count them.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Counts {
    pub instructions: Option<f64>,
    pub l1_misses: Option<f64>,
    pub ll_misses: Option<f64>,
    pub branches: Option<f64>,
    pub mispredicted: Option<f64>,
}
