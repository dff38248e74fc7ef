//! Verbs of the engine's nodes.

use volley_object::{DefinitionError, Verb};
use volley_pcap::{FilterText, TRACE_PACKETS};

/// Set clocks and calls of nodes back.
#[derive(Clone, Debug, PartialEq, Eq, Verb)]
#[verb(name = "runtime-clear", command = "clear runtime", for_all)]
#[verb(example = "clear runtime")]
pub struct RuntimeClear;

/// Set counters of nodes back.
#[derive(Clone, Debug, PartialEq, Eq, Verb)]
#[verb(name = "errors-clear", command = "clear errors")]
#[verb(example = "clear errors")]
pub struct ErrorsClear;

/// Forget traced packets.
#[derive(Clone, Debug, PartialEq, Eq, Verb)]
#[verb(name = "trace-clear", command = "clear trace")]
#[verb(example = "clear trace")]
pub struct TraceClear;

/// Trace the next packets of a node, all or those that match.
#[derive(Clone, Debug, PartialEq, Eq, Verb)]
#[verb(
    name = "trace-add",
    command = "trace add <node> <count> [filter <filter>]"
)]
#[verb(example = "trace add pg-input 10 filter ip4.dst == 10.0.0.0/8 and udp")]
pub struct TraceAdd {
    /// Node by which packets enter the graph.
    #[verb(needs = "node", example = "pg-input")]
    pub node: String,
    /// Number of packets.
    #[verb(range = TRACE_PACKETS)]
    pub count: u64,
    /// Only packets that match this expression.
    pub filter: Option<FilterText>,
}

/// Registers the verbs.
pub(crate) fn classes() -> Result<(), DefinitionError> {
    RuntimeClear::verb()?;
    ErrorsClear::verb()?;
    TraceClear::verb()?;
    TraceAdd::verb()?;
    Ok(())
}
