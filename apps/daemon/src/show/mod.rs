//! Queries about the daemon and the engine: replies, text, and figures on the page of metrics.

mod graph;
mod memory;
mod perfmon;
mod runtime;
mod system;
mod workers;

pub use graph::*;
pub use memory::*;
pub use perfmon::*;
pub use runtime::*;
pub use system::*;
pub use workers::*;

use crate::latency::ShowControlLatency;
use volley_object::{DefinitionError, Query};

/// Registers the queries.
pub(crate) fn classes() -> Result<(), DefinitionError> {
    ShowVersion::query()?;
    ShowProcess::query()?;
    ShowBuffers::query()?;
    ShowMemory::query()?;
    ShowRuntime::query()?;
    ShowErrors::query()?;
    ShowDrops::query()?;
    ShowTrace::query()?;
    ShowNode::query()?;
    ShowGraph::query()?;
    ShowWorkers::query()?;
    ShowPauses::query()?;
    ShowControlLatency::query()?;
    ShowPerfmon::query()?;
    ShowPerfmonBundles::query()?;
    Ok(())
}
