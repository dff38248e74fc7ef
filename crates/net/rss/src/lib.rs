//! Software RSS: flows of an interface spread over workers, where no card does it or all packets look like one flow.
//!
//! A hash (`hash`) of the packet's flow (`flow`), or of the one inside its tunnel, names an entry of a table of 128
//! (`table`), and that a worker. The node `worker-handoff` hands packets over through the engine's rings. When the table
//! changes, order is kept by a turn of the engine's. See `docs/rss.md`.
#![forbid(unsafe_code)]

mod auto;
mod control;
mod count;
mod flow;
mod hash;
mod model;
pub mod node;
mod show;
mod table;
#[cfg(test)]
mod tests;

pub use control::RssHandler;
pub use model::{NodeWorker, Rss, RssHash, RssMode, classes};
pub use node::worker_handoff::WorkerHandoff;
pub use show::{HandoffRow, NodeWorkerRow, RssReply, RssRow, RssState, RssWorkerRow, ShowRss};

use volley_graph::{GraphError, Node};
use volley_iface::{ReceiveFeature, Registry};
use volley_tables::qsbr::Publisher;

/// Bring in `worker-handoff` and its requests.
pub fn register(registry: &mut Registry) -> Result<(), GraphError> {
    let (node, publisher, cells) = {
        let mut engine = registry.engine.borrow_mut();
        let settings = engine.settings().clone();
        let publisher = Publisher::new(engine.domain(), table::Table::default());
        let cells = count::Cells::of(settings.workers);
        let (snap, mine) = (publisher.snap(), cells.clone());
        let node = engine.add_stage(WorkerHandoff::NAME, move |worker| {
            let cells = mine[worker].clone();
            WorkerHandoff::new(snap.clone(), cells, settings.vector_size)
        })?;
        (node, publisher, cells)
    };
    let feature = ReceiveFeature::new(&registry.engine, WorkerHandoff::NAME, &["path-batcher"])?;
    let handler = RssHandler::new(registry, (node, feature), publisher, cells);
    handler.own(registry);
    Ok(())
}
