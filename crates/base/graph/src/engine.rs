//! The engine: the control thread's side of the graph. It knows the nodes and their edges, and makes every change.
//!
//! Nodes can be added, arcs changed and traces started before and while workers run. A change is prepared here, and
//! each worker applies it between two vectors; [`Engine::settled`] reports when all workers use it.

pub(crate) mod arcs;
pub(crate) mod handoff;
mod links;
pub(crate) mod node_order;
mod numbers;
pub(crate) mod placement;
pub(crate) mod reports;
mod shares;
mod stages;

use crate::changes::{AddNode, SetArcs, SetTrace, SetVectorSize};
use crate::data::clock::Clock;
use crate::data::column::Column;
use crate::data::counters::{CounterInfo, Counters};
use crate::data::error::GraphError;
use crate::data::frame::Frame;
use crate::data::ids::{MAX_NODES, NodeId};
use crate::data::shares::Shares;
use crate::data::stats::NodeStats;
use crate::data::worker_set::{MAX_WORKERS, WorkerSet};
use crate::engine::arcs::{ArcRegistry, ArcReport, Feature};
use crate::engine::handoff::HandoffMesh;
use crate::engine::placement::NodePlacements;
use crate::node_api::drop_node::{DropHook, DropNode, Ignored};
use crate::node_api::edges::Nexts;
use crate::node_api::node::{Node, Source};
use crate::node_api::stage::Role;
use crate::queues::arcs::ArcId;
use crate::queues::channel::Channel;
use crate::queues::dispatch::{DispatchState, PendingFrames};
use crate::queues::drop_table::{DropKey, DropTable};
use crate::queues::handoff::HandoffRings;
use crate::queues::holders::Holders;
use crate::queues::pending_nodes::PendingNodes;
use crate::queues::trace::{TraceFilter, TraceNames, TraceRecord, TraceReport, Tracer};
use crate::worker::agenda::Agenda;
use crate::worker::body::{Body, NodeBody, SourceBody};
use crate::worker::round::{Change, ChangeQueues, Slot, Worker};
use crossbeam_queue::ArrayQueue;
use numbers::RetiredNodes;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use volley_buf::Pool;
use volley_simd::Level;
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
    /// [`Engine::build_first`] some.
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

struct NodeDefinition {
    name: String,
    edges: &'static [&'static str],
    counters: &'static [CounterInfo],
    role: Role,
    removed: bool,
    /// The node existed when the workers were built: rings between workers may carry its id.
    from_start: bool,
    factory: NodeFactory,
    stats: Vec<Arc<NodeStats>>,
    cleared: Vec<Baseline>,
}

/// The values at the last `clear`. Workers own the counters, so a report subtracts these values.
#[derive(Clone, Default)]
struct Baseline {
    calls: u64,
    vectors: u64,
    clocks: u64,
    suspends: u64,
    counters: Vec<u64>,
}

/// The graph, as the control thread knows it.
pub struct Engine {
    settings: Settings,
    defs: Vec<NodeDefinition>,
    by_name: HashMap<String, NodeId>,
    arcs: ArcRegistry,
    pool: Arc<Pool>,
    domain: Arc<Domain>,
    /// The workers that exist.
    worker_set: Arc<WorkerSet>,
    /// One channel for each worker id, whether the worker exists or not; empty before workers are built.
    channels: Vec<Arc<Channel>>,
    /// The changes to each of these workers.
    change_queues: Vec<Arc<ChangeQueues>>,
    sent: Vec<u64>,
    /// Trace records from the workers, by worker id; none where there never was a worker.
    notes: Vec<Option<Arc<ArrayQueue<TraceRecord>>>>,
    /// By worker, and the number that the worker gave the packet.
    traces: BTreeMap<(usize, u32), TraceReport>,
    /// Drops by key, one table for each worker.
    drop_tables: Arc<[Arc<DropTable>]>,
    /// Reasons that are information, not drops.
    ignored: Arc<Ignored>,
    /// Frames that were reserved for stages: workers that are added later get them, too.
    pub(crate) stage_frames: usize,
    /// The values of the drop tables at the last clear.
    drop_baselines: HashMap<DropKey, u64>,
    /// The values of the workers' loops at the last clear.
    loops_cleared: Vec<reports::LoopBase>,
    /// Rings between workers.
    pub(crate) handoff_mesh: HandoffMesh,
    pub(crate) placements: NodePlacements,
    pub(crate) shares: Shares,
    /// The current maximum number of packets of a vector.
    vector_size: usize,
    retired_nodes: RetiredNodes,
}

/// Node and counter names for the text of traces, with interface names from the caller.
pub struct EngineNames<'a> {
    /// The graph.
    pub engine: &'a Engine,
    /// The names of interfaces, by index.
    pub interface: &'a dyn Fn(u32) -> String,
}

impl TraceNames for EngineNames<'_> {
    fn node(&self, node: NodeId) -> String {
        self.engine.name(node).to_owned()
    }
    fn counter(&self, node: NodeId, counter: usize) -> (String, String) {
        let info = self.engine.counter_info(node, counter);
        info.map_or_else(Default::default, |i| (i.name.to_owned(), i.text.to_owned()))
    }
    fn interface(&self, index: u32) -> String {
        (self.interface)(index)
    }
}

impl Engine {
    /// An engine with the drop node only.
    pub fn new(
        settings: Settings,
        pool: Arc<Pool>,
        domain: Arc<Domain>,
    ) -> Result<Self, GraphError> {
        if !(1..=1024).contains(&settings.vector_size) {
            return Err(GraphError::VectorSize(settings.vector_size));
        }
        if !(1..=MAX_WORKERS).contains(&settings.workers) {
            return Err(GraphError::Workers(settings.workers));
        }
        let books = (0..settings.workers).map(|_| Arc::default());
        let drop_tables: Arc<[Arc<DropTable>]> = books.collect();
        let (kept, ignored) = (drop_tables.clone(), Ignored::new());
        let kinds = ignored.clone();
        let places = settings.workers;
        let mut engine = Engine {
            vector_size: settings.vector_size,
            settings,
            worker_set: Arc::default(),
            defs: Vec::new(),
            by_name: HashMap::new(),
            arcs: ArcRegistry::default(),
            pool,
            domain,
            channels: Vec::new(),
            change_queues: Vec::new(),
            sent: Vec::new(),
            notes: vec![None; places],
            traces: BTreeMap::new(),
            drop_tables,
            ignored,
            stage_frames: 0,
            drop_baselines: HashMap::new(),
            loops_cleared: vec![reports::LoopBase::default(); places],
            handoff_mesh: HandoffMesh::default(),
            placements: NodePlacements::default(),
            shares: Shares::default(),
            retired_nodes: RetiredNodes::default(),
        };
        engine.add(DropNode::NAME, move |w| {
            DropNode::new(w, None, kept[w].clone(), kinds.clone())
        })?;
        Ok(engine)
    }

    /// The settings that the engine was made with.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The current maximum number of packets of a vector.
    pub fn vector_size(&self) -> usize {
        self.vector_size
    }

    /// Set the maximum number of packets of a vector: at least 1, and at most the capacity
    /// ([`Settings::vector_size`]).
    pub fn set_vector_size(&mut self, packets: usize) -> Result<(), GraphError> {
        let room = self.settings.vector_size;
        if !(1..=room).contains(&packets) {
            return Err(GraphError::VectorRoom { packets, room });
        }
        self.room_for_changes()?;
        for worker in self.worker_set.iter() {
            self.send(worker, Box::new(SetVectorSize(packets)))?;
        }
        self.vector_size = packets;
        Ok(())
    }

    /// The workers that exist.
    pub fn worker_set(&self) -> &Arc<WorkerSet> {
        &self.worker_set
    }

    /// The pool of packet buffers.
    pub fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// The domain whose quiescent points published tables wait for.
    pub fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }

    /// Add a node. `make` creates the instance of each worker.
    pub fn add<N: Node>(
        &mut self,
        name: &str,
        mut make: impl FnMut(usize) -> N + 'static,
    ) -> Result<NodeId, GraphError> {
        let maker: NodeFactory = Box::new(move |w| Box::new(NodeBody(make(w))));
        self.define(name, N::Next::EDGES, N::Count::INFO, Role::Node, maker)
    }

    /// Add a source. `make` creates the instance of each worker.
    pub fn add_source<S: Source>(
        &mut self,
        name: &str,
        mut make: impl FnMut(usize) -> S + 'static,
    ) -> Result<NodeId, GraphError> {
        let maker: NodeFactory = Box::new(move |w| Box::new(SourceBody(make(w))));
        self.define(name, S::Next::EDGES, S::Count::INFO, Role::Source, maker)
    }

    pub(crate) fn define(
        &mut self,
        name: &str,
        edges: &'static [&'static str],
        counters: &'static [CounterInfo],
        role: Role,
        factory: NodeFactory,
    ) -> Result<NodeId, GraphError> {
        if self.by_name.contains_key(name) {
            return Err(GraphError::NodeExists(name.to_owned()));
        }
        let workers = self.settings.workers;
        let stats = || Arc::new(NodeStats::new(counters.len()));
        let (id, before) = self.enter(NodeDefinition {
            name: name.to_owned(),
            edges,
            counters,
            role,
            removed: false,
            from_start: false,
            factory,
            stats: (0..workers).map(|_| stats()).collect(),
            cleared: vec![Baseline::default(); workers],
        })?;
        self.by_name.insert(name.to_owned(), id);
        self.ignored.learn(id, counters);
        if !self.channels.is_empty()
            && let Err(error) = self.send_node(id)
        {
            self.by_name.remove(name);
            self.withdraw(id, before);
            return Err(error);
        }
        Ok(id)
    }

    /// Add a node that was made at run time to every worker.
    fn send_node(&mut self, id: NodeId) -> Result<(), GraphError> {
        self.targets(id)?;
        self.room_for_changes()?;
        for worker in self.worker_set.iter() {
            let pending = PendingNodes::new(self.order()?);
            let slot = self.slot(id, worker)?;
            let role = self.defs[id.index()].role;
            let spare = (0..2)
                .map(|_| Frame::new(self.settings.vector_size))
                .collect();
            self.send(
                worker,
                Box::new(AddNode {
                    id,
                    slot: Some(slot),
                    role,
                    pending,
                    spare,
                    filter: None,
                }),
            )?;
        }
        Ok(())
    }

    /// Remove a node: packets that still reach it are dropped. Its name becomes free at once, its id when every worker
    /// has removed it. An error while another node has an edge to it.
    pub fn remove(&mut self, name: &str) -> Result<(), GraphError> {
        let id = self.node(name)?;
        self.check_no_edge_to(name)?;
        self.room_for_changes()?;
        self.by_name.remove(name);
        let def = &mut self.defs[id.index()];
        (def.removed, def.edges, def.role) = (true, &[], Role::Node);
        let (books, ignored) = (self.drop_tables.clone(), self.ignored.clone());
        def.factory = Box::new(move |w| {
            let node = DropNode::new(w, None, books[w].clone(), ignored.clone());
            Box::new(NodeBody(node))
        });
        if !self.channels.is_empty() {
            self.send_node(id)?;
        }
        self.leave(id);
        Ok(())
    }

    /// Rename a node. An error while another node has an edge to it.
    pub fn rename(&mut self, name: &str, to: &str) -> Result<(), GraphError> {
        let id = self.node(name)?;
        if self.by_name.contains_key(to) {
            return Err(GraphError::NodeExists(to.to_owned()));
        }
        self.check_no_edge_to(name)?;
        self.by_name.remove(name);
        self.by_name.insert(to.to_owned(), id);
        self.defs[id.index()].name = to.to_owned();
        Ok(())
    }

    fn check_no_edge_to(&self, name: &str) -> Result<(), GraphError> {
        let mut nodes = self.defs.iter().filter(|d| !d.removed);
        let user = nodes.find(|d| d.edges.contains(&name));
        user.map_or(Ok(()), |user| {
            Err(GraphError::EdgeToNowhere {
                node: user.name.clone(),
                target: name.to_owned(),
            })
        })
    }

    /// Call `tap` for every dropped packet. Call it before the workers are built.
    pub fn set_drop_hook(&mut self, tap: Arc<dyn DropHook>) {
        let (books, ignored) = (self.drop_tables.clone(), self.ignored.clone());
        if let Some(def) = self
            .by_name
            .get(DropNode::NAME)
            .and_then(|id| self.defs.get_mut(id.index()))
        {
            def.factory = Box::new(move |w| {
                let node = DropNode::new(w, Some(tap.clone()), books[w].clone(), ignored.clone());
                Box::new(NodeBody(node))
            });
        }
    }

    /// The id of the node with name `name`.
    pub fn node(&self, name: &str) -> Result<NodeId, GraphError> {
        self.by_name
            .get(name)
            .copied()
            .ok_or_else(|| GraphError::NoNode(name.to_owned()))
    }

    /// The name of a node; empty for an id without a node.
    pub fn name(&self, node: NodeId) -> &str {
        self.defs.get(node.index()).map_or("", |d| &d.name)
    }

    /// A counter's description.
    pub fn counter_info(&self, node: NodeId, counter: usize) -> Option<&'static CounterInfo> {
        self.defs.get(node.index())?.counters.get(counter)
    }

    /// The names of all nodes, each with the names of the nodes that it has edges to.
    pub fn edges(&self) -> impl Iterator<Item = (&str, &'static [&'static str])> {
        self.defs
            .iter()
            .filter(|d| !d.removed)
            .map(|d| (d.name.as_str(), d.edges))
    }

    /// Declare a feature arc from node `start` to node `end`.
    pub fn arc(&mut self, name: &'static str, start: &'static str, end: &'static str) -> ArcId {
        self.arcs.declare(name, start, end)
    }

    /// Make a node available as a feature of an arc.
    pub fn add_feature(&mut self, arc: &str, feature: Feature) -> Result<(), GraphError> {
        self.arcs.add(arc, feature)
    }

    /// All arcs with their features in order, and the interfaces where each feature is enabled.
    pub fn arcs(&self) -> Vec<ArcReport> {
        let report = |a: &crate::engine::arcs::ArcEntry| {
            let on = |name| {
                a.enabled
                    .iter()
                    .filter(|(_, set)| set.contains(name))
                    .map(|(&i, _)| i)
                    .collect()
            };
            let features = a.features.iter().map(|f| (f.name, on(f.name))).collect();
            ArcReport {
                name: a.name,
                start: a.start,
                end: a.end,
                features,
            }
        };
        self.arcs.arcs.iter().map(report).collect()
    }

    /// Enable or disable a feature on an interface.
    pub fn set_feature(
        &mut self,
        arc: &str,
        feature: &str,
        interface: u32,
        on: bool,
    ) -> Result<(), GraphError> {
        self.room_for_changes()?;
        let entry = self.arcs.find(arc)?;
        let missing = || GraphError::NoFeature {
            arc: arc.to_owned(),
            feature: feature.to_owned(),
        };
        let name = entry
            .features
            .iter()
            .find(|f| f.name == feature)
            .map(|f| f.name)
            .ok_or_else(missing)?;
        let before = entry.enabled.clone();
        let set = entry.enabled.entry(interface).or_default();
        if on {
            set.insert(name)
        } else {
            set.remove(name)
        };
        let sent = self.send_arcs();
        if sent.is_err()
            && let Ok(entry) = self.arcs.find(arc)
        {
            entry.enabled = before;
        }
        sent
    }

    /// Disable all features on an interface that was deleted, because another interface may get its index.
    pub fn clear_features(&mut self, interface: u32) -> Result<(), GraphError> {
        let arcs = &mut self.arcs.arcs;
        let some = arcs.iter_mut().fold(false, |some, arc| {
            let set = arc.enabled.remove(&interface);
            some | set.is_some_and(|set| !set.is_empty())
        });
        if some { self.send_arcs() } else { Ok(()) }
    }

    fn send_arcs(&mut self) -> Result<(), GraphError> {
        for worker in self.worker_set.iter() {
            let tables = Box::new(self.arcs.tables(|name| self.node(name))?);
            self.send(worker, Box::new(SetArcs { tables }))?;
        }
        self.arcs.tables(|name| self.node(name)).map(drop)
    }

    /// Check that every edge leads to a node, and build all workers.
    pub fn build(&mut self) -> Result<Vec<Worker>, GraphError> {
        self.build_first(self.settings.workers)
    }

    /// As [`Engine::build`], but only the first `workers` workers are built; others can be added later
    /// ([`Engine::add_worker`]).
    pub fn build_first(&mut self, workers: usize) -> Result<Vec<Worker>, GraphError> {
        let places = self.settings.workers;
        if !(1..=places).contains(&workers) {
            return Err(GraphError::Workers(workers));
        }
        self.channels = (0..places).map(|_| Arc::new(Channel::new())).collect();
        let queues = |_| Arc::new(ChangeQueues::new());
        self.change_queues = (0..places).map(queues).collect();
        self.sent = vec![0; places];
        self.defs.iter_mut().for_each(|d| d.from_start = true);
        self.retired_nodes = RetiredNodes::default();
        let built = (0..workers).map(|w| self.build_worker(w)).collect();
        match &built {
            Ok(_) => (0..workers).for_each(|w| self.worker_set.add(w)),
            Err(_) => {
                self.channels.clear();
                self.change_queues.clear();
            }
        }
        built
    }

    /// Build the worker with the lowest free id. It gets every change from now on, so it has to be run.
    pub fn add_worker(&mut self) -> Result<Worker, GraphError> {
        let mut places = 0..self.channels.len();
        let free = places.find(|w| !self.worker_set.has(*w));
        let place = free.ok_or(GraphError::NoPlace(self.channels.len()))?;
        let worker = self.build_worker(place)?;
        self.worker_set.add(place);
        Ok(worker)
    }

    /// A worker has ended and was dropped: its id is free. Its counts stay in the totals.
    pub fn remove_worker(&mut self, place: usize, worker: Option<Worker>) {
        self.worker_set.remove(place);
        drop(worker);
        self.unlink(place);
        let channel = &self.channels[place];
        while self.change_queues[place].pending.pop().is_some() {}
        self.sent[place] = channel.changes.load(Relaxed);
    }

    fn build_worker(&mut self, worker: usize) -> Result<Worker, GraphError> {
        let mut slots = Vec::with_capacity(MAX_NODES);
        for id in 0..self.defs.len() {
            slots.push(self.slot(NodeId(id as u16), worker)?);
        }
        let defs = &self.defs;
        let of = |role: Role| {
            let all = (0..defs.len()).filter(|&n| defs[n].role == role);
            let mut list = Vec::with_capacity(MAX_NODES);
            list.extend(all.map(|n| NodeId(n as u16)));
            list
        };
        let (sources, stages) = (of(Role::Source), of(Role::Stage));
        Ok(Worker {
            id: worker,
            dispatch: self.dispatch(worker)?,
            slots,
            sources,
            stages,
            agenda: Agenda::new(),
            reader: self.domain.register(),
            level: self.settings.level,
            clock: self.settings.clock.clone(),
            channel: self.channels[worker].clone(),
            change_queues: self.change_queues[worker].clone(),
            clock_read_cycles: crate::worker::round::clock_read_cycles(),
            ended: 0,
            began: 0,
            spent: 0,
            booked: 0,
            long: crate::worker::round::gap_threshold_cycles(),
        })
    }

    fn dispatch(&mut self, worker: usize) -> Result<DispatchState, GraphError> {
        let size = self.settings.vector_size;
        let notes = self.notes[worker].get_or_insert_with(Tracer::notes).clone();
        let mut queues = Vec::with_capacity(MAX_NODES);
        queues.extend((0..self.defs.len()).map(|_| PendingFrames::default()));
        let mut free_frames = Vec::with_capacity(4 * MAX_NODES);
        let frames = (64 + 2 * self.defs.len() + self.stage_frames).min(4 * MAX_NODES);
        free_frames.extend((0..frames).map(|_| Frame::new(size)));
        Ok(DispatchState {
            queues,
            pending: PendingNodes::new(self.order()?),
            next_frame: None,
            free_frames,
            vector_size: self.vector_size,
            frame_capacity: size,
            bufs: self.pool.cache(),
            arcs: Box::new(self.arcs.tables(|name| self.node(name))?),
            tracer: Tracer::new(MAX_NODES, worker, notes),
            handoff: HandoffRings::new(worker),
            drop_node: self.node(crate::node_api::drop_node::DROP_NODE)?,
            targets: Column::new(size),
            offsets: vec![0; size.next_multiple_of(8)].into(),
            holders: Holders::new(),
            holding: false,
            frames_allocated: 0,
        })
    }

    fn order(&self) -> Result<Vec<NodeId>, GraphError> {
        let edges = (0..self.defs.len())
            .map(|n| self.targets(NodeId(n as u16)))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(crate::engine::node_order::order(
            &edges,
            self.node(crate::node_api::drop_node::DROP_NODE)?,
        ))
    }

    fn targets(&self, id: NodeId) -> Result<Vec<NodeId>, GraphError> {
        let def = &self.defs[id.index()];
        let missing = |target: &str| GraphError::EdgeToNowhere {
            node: def.name.clone(),
            target: target.to_owned(),
        };
        def.edges
            .iter()
            .map(|t| self.node(t).map_err(|_| missing(t)))
            .collect()
    }

    fn slot(&mut self, id: NodeId, worker: usize) -> Result<Slot, GraphError> {
        let edges = self.targets(id)?.into();
        let def = &mut self.defs[id.index()];
        Ok(Slot {
            body: (def.factory)(worker),
            edges,
            stats: def.stats[worker].clone(),
            is_bulk: false,
        })
    }

    /// Send a prepared change to one worker.
    pub fn send(&mut self, worker: usize, change: Box<dyn Change>) -> Result<(), GraphError> {
        let channel = self.channels.get(worker);
        let Some(channel) = channel.filter(|_| self.worker_set.has(worker)) else {
            return Err(GraphError::Workers(worker));
        };
        let queues = &self.change_queues[worker];
        while queues.done.pop().is_some() {}
        queues
            .pending
            .push(change)
            .map_err(|_| GraphError::WorkerBusy(worker))?;
        self.sent[worker] += 1;
        channel.notify();
        Ok(())
    }

    /// Sources or stages got work by another way than a change: wake all workers, which call all of them in the next
    /// round.
    pub fn wake(&self) {
        self.channels.iter().for_each(|c| c.notify());
    }

    /// Whether a worker is asleep.
    pub fn is_asleep(&self, worker: usize) -> bool {
        let wakeup = self.channels.get(worker).and_then(|c| c.wakeup.0.get());
        wakeup.is_some_and(|wakeup| wakeup.is_asleep())
    }

    /// The number of times that a worker has slept.
    pub fn sleeps(&self, worker: usize) -> u64 {
        self.channels
            .get(worker)
            .map_or(0, |c| c.sleeps.load(Relaxed))
    }

    pub(crate) fn room_for_changes(&self) -> Result<(), GraphError> {
        let full = self
            .change_queues
            .iter()
            .position(|q| q.pending.len() + 8 > q.pending.capacity());
        full.map_or(Ok(()), |worker| Err(GraphError::WorkerBusy(worker)))
    }

    /// Whether every worker has applied every change. Also frees what the changes replaced.
    pub fn settled(&self) -> bool {
        self.domain.reclaim();
        let workers = self.channels.iter().zip(&self.change_queues);
        workers.zip(&self.sent).all(|((channel, queues), &sent)| {
            while queues.done.pop().is_some() {}
            channel.changes.load(Relaxed) == sent
        })
    }

    /// Start traces for the next `packets` packets at `node`: of all packets, or of those that `filter` accepts. The
    /// filter replaces the node's filter.
    pub fn trace(
        &mut self,
        node: &str,
        packets: u32,
        filter: Option<Arc<dyn TraceFilter>>,
    ) -> Result<(), GraphError> {
        let node = self.node(node)?;
        self.room_for_changes()?;
        self.worker_set.iter().try_for_each(|w| {
            self.send(
                w,
                Box::new(SetTrace {
                    node: Some(node),
                    packets,
                    filter: filter.clone(),
                }),
            )
        })
    }

    /// Delete the traces, and stop those in progress.
    pub fn clear_traces(&mut self) -> Result<(), GraphError> {
        self.room_for_changes()?;
        self.worker_set.iter().try_for_each(|w| {
            self.send(
                w,
                Box::new(SetTrace {
                    node: None,
                    packets: 0,
                    filter: None,
                }),
            )
        })?;
        let notes = self.notes.iter().flatten();
        notes.for_each(|q| while q.pop().is_some() {});
        self.traces.clear();
        Ok(())
    }

    /// Convert the records of the workers into text, and return all traces, oldest first.
    pub fn traces(&mut self, interface: &dyn Fn(u32) -> String) -> Vec<TraceReport> {
        let mut steps = Vec::new();
        let queues = self.notes.iter().enumerate();
        let notes = queues.filter_map(|(w, q)| Some((w, q.as_ref()?)));
        for (worker, note) in
            notes.flat_map(|(w, q)| std::iter::from_fn(move || Some((w, q.pop()?))))
        {
            let names = EngineNames {
                engine: self,
                interface,
            };
            let (owner, packet) = crate::queues::trace::mark_owner(note.packet);
            // The worker that marked a packet had it before the workers that it was handed off to.
            steps.push((owner != worker, owner, packet, note.step(&names)));
        }
        steps.sort_by_key(|(handed, ..)| *handed);
        for (_, worker, packet, step) in steps {
            let traced = self.traces.entry((worker, packet));
            let traced = traced.or_insert_with(|| TraceReport {
                worker,
                packet,
                steps: Vec::new(),
            });
            traced.steps.push(step);
        }
        let mut all: Vec<TraceReport> = self.traces.values().cloned().collect();
        all.sort_by_key(|t| t.steps.first().map(|step| step.at_ns));
        all
    }
}
