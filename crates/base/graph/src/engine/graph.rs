//! The graph of the engine: nodes, their edges and their numbers.

use crate::data::col::{self, ColumnInfo, ColumnKind, Life};
use crate::data::counters::{CounterInfo, Counters};
use crate::data::error::GraphError;
use crate::data::frame::Frame;
use crate::data::ids::NodeId;
use crate::data::shares::Shares;
use crate::data::stats::NodeStats;
use crate::data::worker_set::{MAX_WORKERS, WorkerSet};
use crate::engine::arcs::ArcRegistry;
use crate::engine::changes::{AddFrames, AddNode, NodeChange};
use crate::engine::events::EventCounts;
use crate::engine::node_order;
use crate::engine::state::{
    Engine, HandoffMesh, LoopBase, NodeDefinition, NodePlacements, RetiredNodes, Settings,
};
use crate::engine::texts::KeptTexts;
use crate::node_api::context::NodeState;
use crate::node_api::drop_node::{DROP_NODE, DropHook, DropNode, Ignored};
use crate::node_api::edges::Nexts;
use crate::node_api::node::{Node, Source};
use crate::node_api::stage::{Role, Stage};
use crate::queues::channel::Channel;
use crate::queues::drop_table::DropTable;
use crate::queues::pending_nodes::PendingNodes;
use crate::worker::body::{Body, NodeBody, SourceBody, StageBody};
use crate::worker::round::Slot;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use volley_buf::Pool;
use volley_tables::qsbr::Domain;

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
        let empty = (0..settings.workers).map(|_| Arc::default());
        let drop_tables: Arc<[Arc<DropTable>]> = empty.collect();
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
            loops_cleared: vec![LoopBase::default(); places],
            handoff_mesh: HandoffMesh::default(),
            placements: NodePlacements::default(),
            shares: Shares::default(),
            retired_nodes: RetiredNodes::default(),
            columns: Vec::new(),
            gso_names: ["kind 0", "kind 1", "kind 2"],
            events: EventCounts::default(),
            kept_texts: KeptTexts::default(),
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
        make: impl FnMut(usize) -> N + 'static,
    ) -> Result<NodeId, GraphError> {
        self.add_with_columns(name, N::COLUMNS, make)
    }

    /// Add a node whose columns are known at run time only: see [`Engine::register_column`].
    pub fn add_with_columns<N: Node>(
        &mut self,
        name: &str,
        columns: &[ColumnInfo],
        mut make: impl FnMut(usize) -> N + 'static,
    ) -> Result<NodeId, GraphError> {
        let mine = columns.to_vec();
        let factory = move |w| Box::new(NodeBody::new(make(w), &mine)) as Box<dyn Body>;
        let definition = NodeDefinition {
            counters: N::Count::INFO,
            columns: columns.to_vec(),
            ..NodeDefinition::new(name, N::Next::EDGES, Box::new(factory))
        };
        self.define(definition)
    }

    /// Add a source. `make` creates the instance of each worker.
    pub fn add_source<S: Source>(
        &mut self,
        name: &str,
        mut make: impl FnMut(usize) -> S + 'static,
    ) -> Result<NodeId, GraphError> {
        let factory = move |w| Box::new(SourceBody(make(w))) as Box<dyn Body>;
        self.define(NodeDefinition {
            counters: S::Count::INFO,
            columns: S::COLUMNS.to_vec(),
            role: Role::Source,
            ..NodeDefinition::new(name, S::Next::EDGES, Box::new(factory))
        })
    }

    /// Add a stage. `make` creates the instance of each worker.
    pub fn add_stage<S: Stage>(
        &mut self,
        name: &str,
        mut make: impl FnMut(usize) -> S + 'static,
    ) -> Result<NodeId, GraphError> {
        let factory = move |w| Box::new(StageBody(make(w))) as Box<dyn Body>;
        self.define(NodeDefinition {
            counters: S::Count::INFO,
            columns: S::COLUMNS.to_vec(),
            role: Role::Stage,
            ..NodeDefinition::new(name, S::Next::EDGES, Box::new(factory))
        })
    }

    /// Reserve `frames` more frames on every worker: the maximum that its stages hold at a time.
    pub fn reserve_frames(&mut self, frames: usize) -> Result<(), GraphError> {
        self.room_for_changes()?;
        self.stage_frames += frames;
        let size = self.settings().vector_size;
        for worker in self.worker_set().clone().iter() {
            let spare = (0..frames).map(|_| Frame::new(size)).collect();
            self.send(worker, Box::new(AddFrames { spare }))?;
        }
        Ok(())
    }

    /// Add a node with its statistics.
    pub(super) fn define(&mut self, def: NodeDefinition) -> Result<NodeId, GraphError> {
        let name = def.name.clone();
        let (id, before) = self.enter_new(def)?;
        if !self.channels.is_empty()
            && let Err(error) = self.send_node(id)
        {
            self.by_name.remove(&name);
            self.withdraw(id, before);
            return Err(error);
        }
        Ok(id)
    }

    /// Register a column at run time. It gets storage that no other column needs at the same time, and keeps it. A name that
    /// `owner` has already registered returns the same column. Nodes with such columns: [`Engine::add_with_columns`].
    pub fn register_column(
        &mut self,
        owner: &'static str,
        name: &'static str,
        kind: ColumnKind,
        life: Life,
    ) -> Result<ColumnInfo, GraphError> {
        let mut known = self.columns.iter();
        if let Some((_, column)) = known.find(|(by, it)| *by == owner && it.name == name) {
            return Ok(*column);
        }
        let column = col::place(name, kind, life, self.declared_columns())?;
        self.columns.push((owner, column));
        Ok(column)
    }

    /// The columns of all nodes and those that were registered, each with the name of its owner.
    pub(super) fn declared_columns(&self) -> impl Iterator<Item = (&str, &ColumnInfo)> + Clone {
        let nodes = self.defs.iter().filter(|d| !d.removed);
        let of_nodes = nodes.flat_map(|d| d.columns.iter().map(|column| (d.name.as_str(), column)));
        of_nodes.chain(self.columns.iter().map(|(owner, column)| (*owner, column)))
    }

    /// Add a node that was made at run time to every worker.
    pub(super) fn send_node(&mut self, id: NodeId) -> Result<(), GraphError> {
        self.targets(id)?;
        self.room_for_changes()?;
        for worker in self.worker_set.iter() {
            let pending = PendingNodes::new(self.order()?);
            let node = self.node_change(id, worker)?;
            self.send(worker, Box::new(AddNode { node, pending }))?;
        }
        Ok(())
    }

    /// The instance of a node for a worker that runs.
    pub(super) fn node_change(
        &mut self,
        id: NodeId,
        worker: usize,
    ) -> Result<NodeChange, GraphError> {
        let spare = (0..2)
            .map(|_| Frame::new(self.settings.vector_size))
            .collect();
        Ok(NodeChange {
            id,
            slot: Some(self.slot(id, worker)?),
            role: self.defs[id.index()].role,
            spare,
            filter: None,
            leaves: false,
            heir: None,
        })
    }

    /// Remove a node: packets that still reach it are dropped. The name becomes free at once, the id when every worker
    /// has removed the node. An error while another node has an edge to it.
    pub fn remove(&mut self, name: &str) -> Result<(), GraphError> {
        let id = self.node(name)?;
        self.check_no_edge_to(name)?;
        self.room_for_changes()?;
        self.by_name.remove(name);
        let is_stage = self.role(id) == Role::Stage;
        self.retire(id);
        if !self.channels.is_empty() {
            match is_stage {
                true => self.send_for_stage(id, None)?,
                false => self.send_node(id)?,
            }
        }
        self.leave(id);
        Ok(())
    }

    /// A node that is removed drops packets.
    pub(super) fn retire(&mut self, id: NodeId) {
        let def = &mut self.defs[id.index()];
        (def.removed, def.edges, def.role) = (true, &[], Role::Node);
        def.built_in = None;
        def.columns.clear();
        let (tables, ignored) = (self.drop_tables.clone(), self.ignored.clone());
        def.factory = Box::new(move |w| {
            let node = DropNode::new(w, None, tables[w].clone(), ignored.clone());
            Box::new(NodeBody::new(node, &[]))
        });
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

    /// Call `tap` for every dropped packet. The hook must be set before the workers are built.
    pub fn set_drop_hook(&mut self, tap: Arc<dyn DropHook>) {
        let (tables, ignored) = (self.drop_tables.clone(), self.ignored.clone());
        if let Some(def) = self
            .by_name
            .get(DropNode::NAME)
            .and_then(|id| self.defs.get_mut(id.index()))
        {
            def.factory = Box::new(move |w| {
                let node = DropNode::new(w, Some(tap.clone()), tables[w].clone(), ignored.clone());
                Box::new(NodeBody::new(node, &[]))
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

    pub(super) fn order(&self) -> Result<Vec<NodeId>, GraphError> {
        let edges = (0..self.defs.len())
            .map(|n| self.targets(NodeId(n as u16)))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(node_order::order(&edges, self.node(DROP_NODE)?))
    }

    pub(super) fn targets(&self, id: NodeId) -> Result<Vec<NodeId>, GraphError> {
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

    pub(super) fn slot(&mut self, id: NodeId, worker: usize) -> Result<Slot, GraphError> {
        let edges = self.targets(id)?.into();
        let def = &mut self.defs[id.index()];
        let body = (def.factory)(worker);
        let body = match def.removed {
            true => body,
            false => self.events.body(worker, id, &def.name, body),
        };
        Ok(Slot {
            body,
            own: NodeState {
                node: id,
                edges,
                stats: def.stats[worker].clone(),
            },
            is_bulk: false,
        })
    }

    pub(crate) fn role(&self, id: NodeId) -> Role {
        self.defs[id.index()].role
    }

    pub(crate) fn is_from_start(&self, id: NodeId) -> bool {
        self.defs[id.index()].from_start
    }

    pub(crate) fn stats_of(&self, id: NodeId, worker: usize) -> Arc<NodeStats> {
        self.defs[id.index()].stats[worker].clone()
    }

    pub(crate) fn channel(&self, worker: usize) -> Arc<Channel> {
        self.channels[worker].clone()
    }
}
