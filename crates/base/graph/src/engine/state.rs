//! The state of the engine on the control thread: nodes, workers, rings and arcs.

use crate::data::clock::Clock;
use crate::data::col::ColumnInfo;
use crate::data::counters::CounterInfo;
use crate::data::ids::NodeId;
use crate::data::offload::GsoKind;
use crate::data::shares::Shares;
use crate::data::stats::NodeStats;
use crate::data::worker_set::WorkerSet;
use crate::engine::arcs::ArcRegistry;
use crate::engine::events::EventCounts;
use crate::engine::texts::KeptTexts;
use crate::node_api::drop_node::Ignored;
use crate::node_api::stage::Role;
use crate::queues::channel::{Channel, Rounds};
use crate::queues::drop_table::{DropKey, DropTable};
use crate::queues::handoff::HandoffCounters;
use crate::queues::trace::{TraceRecord, TraceReport};
use crate::worker::body::Body;
use crate::worker::round::ChangeQueues;
use crossbeam_queue::ArrayQueue;
use std::collections::BTreeMap;
use std::collections::HashMap;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use volley_buf::Pool;
use volley_simd::Level;
use volley_tables::exchange::Epochs;
use volley_tables::qsbr::Domain;

/// Settings that are fixed when an engine is made.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The capacity of vectors in packets, 1 to 1024. It is also the maximum, until [`Engine::set_vector_size`] lowers
    /// it.
    pub vector_size: usize,
    /// The number of packet buffers in the pool.
    pub buffers: usize,
    /// The instruction-set level of node bodies.
    pub level: Level,
    /// The maximum number of workers: every node has an instance for each. [`Engine::build`] makes all workers,
    /// [`Engine::build_first`] the first ones.
    pub workers: usize,
    /// The clock of the workers.
    pub clock: Clock,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            vector_size: 256,
            buffers: 16_384,
            level: Level::detect(),
            workers: 1,
            clock: Clock::system(),
        }
    }
}

pub(crate) type NodeFactory = Box<dyn FnMut(usize) -> Box<dyn Body>>;

/// Edges to the first node lead to the second one.
pub(crate) type Redirection = (&'static str, &'static str);

/// A node of the graph, on the control thread.
pub(crate) struct NodeDefinition {
    pub(super) name: String,
    /// Where the edges lead.
    pub(super) edges: &'static [&'static str],
    /// Where the edges lead without redirections.
    pub(super) declared: &'static [&'static str],
    /// Edges that lead elsewhere: see [`Engine::redirect`]. Each one applies to what those in front of it have made.
    pub(super) redirections: Vec<Redirection>,
    pub(super) counters: &'static [CounterInfo],
    /// The columns that the node reads or passes on.
    pub(super) columns: Vec<ColumnInfo>,
    pub(super) role: Role,
    pub(super) removed: bool,
    /// The node existed when the workers were built: rings between workers may carry its id.
    pub(super) from_start: bool,
    pub(super) factory: NodeFactory,
    pub(super) stats: Vec<Arc<NodeStats>>,
    pub(super) cleared: Vec<Baseline>,
    /// The node of the router that a plugin's node has replaced.
    pub(super) built_in: Option<Box<NodeDefinition>>,
}

impl NodeDefinition {
    /// A node without counters and columns, which has no statistics yet.
    pub(super) fn new(name: &str, edges: &'static [&'static str], factory: NodeFactory) -> Self {
        NodeDefinition {
            name: name.to_owned(),
            edges,
            declared: edges,
            redirections: Vec::new(),
            counters: &[],
            columns: Vec::new(),
            role: Role::Node,
            removed: false,
            from_start: false,
            factory,
            stats: Vec::new(),
            cleared: Vec::new(),
            built_in: None,
        }
    }

    /// Let the edges lead where the redirections say.
    pub(super) fn lead(&mut self, kept: &mut KeptTexts) {
        let mut edges = self.declared.to_vec();
        for (from, to) in &self.redirections {
            let redirected = edges.iter_mut().filter(|edge| *edge == from);
            redirected.for_each(|edge| *edge = to);
        }
        self.edges = kept.list(&edges);
    }
}

/// The values at the last `clear`. Workers own the counters, so a report subtracts these values.
#[derive(Clone, Default)]
pub(crate) struct Baseline {
    pub(super) calls: u64,
    pub(super) vectors: u64,
    pub(super) clocks: u64,
    pub(super) suspends: u64,
    pub(super) counters: Vec<u64>,
}

/// The statistics of a worker's loop at the last clear.
#[derive(Clone, Default)]
pub(crate) struct LoopBase {
    pub(super) rounds: u64,
    pub(super) packets: u64,
    pub(super) clocks: u64,
}

impl LoopBase {
    pub(super) fn of(rounds: &Rounds) -> Self {
        LoopBase {
            rounds: rounds.all.load(Relaxed),
            packets: rounds.entered.load(Relaxed) + rounds.moved.load(Relaxed),
            clocks: rounds.own_cycles.load(Relaxed),
        }
    }
}

/// Ids of removed nodes, oldest first, each with the number of changes that had been sent to each worker before the removal. A
/// worker that has applied that many changes has no pending packets or changes for the node any more.
#[derive(Default)]
pub(crate) struct RetiredNodes(pub(super) VecDeque<(NodeId, Vec<u64>)>);

/// The rings between the workers.
#[derive(Default)]
pub(crate) struct HandoffMesh {
    pub(super) rings: BTreeMap<(usize, usize), Arc<HandoffCounters>>,
    pub(super) epochs: BTreeMap<usize, Arc<Epochs>>,
}

/// The placement of a node.
pub(crate) struct NodePlacement {
    pub(super) worker: Option<usize>,
    pub(super) done: Arc<AtomicU64>,
}

/// The nodes that run on one worker only, and those that are about to be restored on all workers.
#[derive(Default)]
pub(crate) struct NodePlacements(pub(super) BTreeMap<NodeId, NodePlacement>);

/// The graph on the control thread.
pub struct Engine {
    pub(super) settings: Settings,
    pub(super) defs: Vec<NodeDefinition>,
    pub(super) by_name: HashMap<String, NodeId>,
    pub(super) arcs: ArcRegistry,
    /// Columns that were registered at run time, each with its owner.
    pub(super) columns: Vec<(&'static str, ColumnInfo)>,
    pub(super) pool: Arc<Pool>,
    pub(super) domain: Arc<Domain>,
    /// The workers that exist.
    pub(super) worker_set: Arc<WorkerSet>,
    /// One channel for each worker id, whether the worker exists or not; empty before workers are built.
    pub(super) channels: Vec<Arc<Channel>>,
    /// The changes to each of these workers.
    pub(super) change_queues: Vec<Arc<ChangeQueues>>,
    pub(super) sent: Vec<u64>,
    /// Trace records from the workers, by worker id; none where there never was a worker.
    pub(super) notes: Vec<Option<Arc<ArrayQueue<TraceRecord>>>>,
    /// By worker, and the number that the worker gave the packet.
    pub(super) traces: BTreeMap<(usize, u32), TraceReport>,
    /// Drops by key, one table for each worker.
    pub(super) drop_tables: Arc<[Arc<DropTable>]>,
    /// Reasons that are information, not drops.
    pub(super) ignored: Arc<Ignored>,
    /// Frames that were reserved for stages: workers that are added later get them, too.
    pub(super) stage_frames: usize,
    /// The values of the drop tables at the last clear.
    pub(super) drop_baselines: HashMap<DropKey, u64>,
    /// The values of the workers' loops at the last clear.
    pub(super) loops_cleared: Vec<LoopBase>,
    /// Rings between workers.
    pub(super) handoff_mesh: HandoffMesh,
    pub(super) placements: NodePlacements,
    pub(super) shares: Shares,
    /// The current maximum number of packets of a vector.
    pub(super) vector_size: usize,
    pub(super) retired_nodes: RetiredNodes,
    /// The names of the classes of super-segments.
    pub(super) gso_names: [&'static str; GsoKind::CLASSES],
    /// Events of nodes.
    pub(super) events: EventCounts,
    /// Texts of nodes whose code may be unmapped.
    pub(super) kept_texts: KeptTexts,
}
