//! Software RSS: spreads the flows of an interface over workers, if no network card does so or all packets look like one flow.
//!
//! A hash (`hash`) of the packet's flow (`flow`), or of the flow inside its tunnel, selects an entry of a table of 128
//! (`table`), and the entry a worker. The node `worker-handoff` hands packets off through the engine's handoff rings. When the
//! table changes, an epoch of the engine keeps the order of packets. See `docs/rss.md`.
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

/// Registers `worker-handoff` and the owners of its classes.
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
