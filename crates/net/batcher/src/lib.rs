//! Path batcher: collects packets of one path before the graph, so that vectors do not split.
//!
//! A parser (`headers`, `parser`) walks the headers of a packet and extracts the fields that rules name. A matcher finds the
//! rule, which has the queue; `memo` caches parser results. Queues release a batch when it is full or when a packet's time is
//! up. Workers read all of this as one published value once per vector, so rules may change while packets flow. See
//! `docs/path-batcher.md`.
#![forbid(unsafe_code)]

mod control;
mod count;
#[cfg(fuzzing)]
pub mod fuzzing;
mod header;
mod headers;
mod learn;
mod matcher;
mod memo;
mod model;
pub mod node;
mod parser;
mod queues;
mod show;
mod table;
#[cfg(test)]
mod tests;

pub use control::PathHandler;
pub use header::{HeaderField, HeaderLink, PathHeader};
pub use model::{
    BatcherSettings, InterfaceBatcher, PathBatcherClear, PathMatch, PathQueue, PathRule, PathTest,
    classes,
};
pub use node::path_batcher::PathBatcher;
pub use show::{
    PathBatcherReply, PathBatcherTotals, PathHeaderRow, PathLearnedRow, PathQueueRow, PathRuleRow,
    ShowPathBatcher,
};

use volley_graph::{GraphError, Node};
use volley_iface::{ReceiveFeature, Registry};
use volley_tables::qsbr::Publisher;

/// Sixteenths of the buffers that the batcher may hold.
const SHARE: usize = 3;

/// Registers `path-batcher` and its requests.
pub fn register(registry: &mut Registry) -> Result<(), GraphError> {
    let (publisher, cells) = {
        let mut engine = registry.engine.borrow_mut();
        let settings = engine.settings().clone();
        let publisher = Publisher::new(engine.domain(), control::first_table());
        let cells: Vec<_> = (0..settings.workers).map(|_| count::Cells::new()).collect();
        let (snap, mine) = (publisher.snap(), cells.clone());
        let share = engine.add_share(PathBatcher::NAME, SHARE)?;
        engine.add_stage(PathBatcher::NAME, move |worker| {
            PathBatcher::new(
                snap.clone(),
                (mine[worker].clone(), share.clone()),
                settings.clock.clone(),
                (worker, settings.vector_size),
            )
        })?;
        (publisher, cells)
    };
    let feature = ReceiveFeature::new(&registry.engine, PathBatcher::NAME, &[])?;
    PathHandler::new(registry, feature, publisher, cells).own(registry);
    Ok(())
}
