//! Nodes whose edges are known at run time only, such as those of a graph that a file describes. A graph changes as a whole, between
//! two vectors: packets are in the old graph or in the new one, and nodes that are in both go on.

use crate::data::col::ColumnInfo;
use crate::data::counters::{CounterInfo, Counters};
use crate::data::error::GraphError;
use crate::data::ids::NodeId;
use crate::data::stats::NodeStats;
use crate::engine::changes::Rewire;
use crate::engine::state::{Baseline, Engine, NodeDefinition, NodeFactory};
use crate::node_api::node::{Node, Source};
use crate::node_api::stage::{Role, Stage};
use crate::queues::pending_nodes::PendingNodes;
use crate::worker::body::{Body, NodeBody, SourceBody, StageBody};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// A node with its edges, before an engine has it. Edge `n` of the node leads to the `n`-th target: its
/// [`Nexts`](crate::Nexts) name positions only.
pub struct WiredNode {
    name: String,
    targets: Vec<String>,
    counters: &'static [CounterInfo],
    columns: &'static [ColumnInfo],
    role: Role,
    factory: NodeFactory,
}

impl WiredNode {
    /// A node. `make` creates the instance of each worker.
    pub fn node<N: Node>(
        name: &str,
        targets: Vec<String>,
        mut make: impl FnMut(usize) -> N + 'static,
    ) -> Self {
        let factory = move |w| Box::new(NodeBody::new(make(w), N::COLUMNS)) as Box<dyn Body>;
        WiredNode {
            name: name.to_owned(),
            targets,
            counters: N::Count::INFO,
            columns: N::COLUMNS,
            role: Role::Node,
            factory: Box::new(factory),
        }
    }

    /// A stage. `make` creates the instance of each worker.
    pub fn stage<S: Stage>(
        name: &str,
        targets: Vec<String>,
        mut make: impl FnMut(usize) -> S + 'static,
    ) -> Self {
        let factory = move |w| Box::new(StageBody(make(w))) as Box<dyn Body>;
        WiredNode {
            name: name.to_owned(),
            targets,
            counters: S::Count::INFO,
            columns: S::COLUMNS,
            role: Role::Stage,
            factory: Box::new(factory),
        }
    }

    /// A source. `make` creates the instance of each worker.
    pub fn source<S: Source>(
        name: &str,
        targets: Vec<String>,
        mut make: impl FnMut(usize) -> S + 'static,
    ) -> Self {
        let factory = move |w| Box::new(SourceBody(make(w))) as Box<dyn Body>;
        WiredNode {
            name: name.to_owned(),
            targets,
            counters: S::Count::INFO,
            columns: S::COLUMNS,
            role: Role::Source,
            factory: Box::new(factory),
        }
    }

    /// The name of the node.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// A node that stays in the graph, with its state: it may get another name and other edges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptNode {
    /// The name until now.
    pub name: String,
    /// The name from now on.
    pub to: String,
    /// The targets of its edges, by their names from now on.
    pub targets: Vec<String>,
}

/// Changes of wired nodes that take effect together.
#[derive(Default)]
pub struct Rewiring {
    /// Nodes that are removed. Packets that a stage among them holds go to the node that gets its name, else by its first edge
    /// through the old graph ([`Stage::leave`]).
    pub remove: Vec<String>,
    /// Nodes that stay.
    pub keep: Vec<KeptNode>,
    /// Nodes that are new.
    pub add: Vec<WiredNode>,
}

/// Where the edges of a node lead, and where they would without redirections.
type Edges = [&'static [&'static str]; 2];

/// What a rewiring has changed so far, to undo it.
struct Undo {
    by_name: HashMap<String, NodeId>,
    /// Names and edges of nodes that are kept or removed.
    texts: Vec<(NodeId, String, Edges)>,
    /// New nodes, each with the old node of its number.
    entered: Vec<(NodeId, Option<NodeDefinition>)>,
}

impl Engine {
    /// Change wired nodes. Each worker makes all changes between two vectors. An error changes nothing; one that names an edge
    /// means that a node would have an edge to a node that does not exist.
    pub fn rewire(&mut self, rewiring: Rewiring) -> Result<(), GraphError> {
        let add = rewiring.add.into_iter().map(|node| self.wired(node));
        let add = add.collect();
        self.change_nodes(rewiring.remove, rewiring.keep, add)
    }

    /// Remove, rename and add nodes: see [`Engine::rewire`]. New nodes may lead to each other.
    pub(super) fn change_nodes(
        &mut self,
        remove: Vec<String>,
        keep: Vec<KeptNode>,
        add: Vec<NodeDefinition>,
    ) -> Result<(), GraphError> {
        self.room_for_changes()?;
        let mut undo = Undo {
            by_name: self.by_name.clone(),
            texts: Vec::new(),
            entered: Vec::new(),
        };
        let removed = match self.rename_and_enter((remove, keep, add), &mut undo) {
            Ok(removed) => removed,
            Err(error) => {
                self.undo(undo);
                return Err(error);
            }
        };
        let heirs = self.heirs(&removed, &undo);
        removed.iter().for_each(|id| self.retire(*id));
        if !self.channels.is_empty() {
            self.send_rewiring(&removed, &heirs, &undo)?;
        }
        removed.into_iter().for_each(|id| self.leave(id));
        Ok(())
    }

    /// Give all nodes their names and edges, and enter the new ones. Returns the nodes to remove.
    fn rename_and_enter(
        &mut self,
        (remove, keep, add): (Vec<String>, Vec<KeptNode>, Vec<NodeDefinition>),
        undo: &mut Undo,
    ) -> Result<Vec<NodeId>, GraphError> {
        let ids = |engine: &Engine, names: &mut dyn Iterator<Item = &String>| {
            names
                .map(|name| engine.node(name))
                .collect::<Result<Vec<_>, _>>()
        };
        let removed = ids(self, &mut remove.iter())?;
        let kept = ids(self, &mut keep.iter().map(|it| &it.name))?;
        for id in removed.iter().chain(&kept) {
            let def = &mut self.defs[id.index()];
            let edges = [def.edges, def.declared];
            undo.texts.push((*id, def.name.clone(), edges));
            def.edges = &[];
            self.by_name.remove(&def.name);
        }
        for (id, it) in kept.into_iter().zip(keep) {
            if self.by_name.contains_key(&it.to) {
                return Err(GraphError::NodeExists(it.to));
            }
            let targets: Vec<&str> = it.targets.iter().map(String::as_str).collect();
            let def = &mut self.defs[id.index()];
            def.name = it.to.clone();
            def.declared = self.kept_texts.list(&targets);
            def.lead(&mut self.kept_texts);
            self.by_name.insert(it.to, id);
        }
        for definition in add {
            undo.entered.push(self.enter_new(definition)?);
        }
        // Every target exists.
        self.order()?;
        Ok(removed)
    }

    fn undo(&mut self, undo: Undo) {
        for (id, before) in undo.entered.into_iter().rev() {
            self.withdraw(id, before);
        }
        for (id, name, edges) in undo.texts {
            let def = &mut self.defs[id.index()];
            (def.name, [def.edges, def.declared]) = (name, edges);
        }
        self.by_name = undo.by_name;
    }

    /// The stages among removed nodes, each with the node that gets its name, if that is a stage.
    fn heirs(&self, removed: &[NodeId], undo: &Undo) -> BTreeMap<NodeId, Option<NodeId>> {
        let before = undo.texts.iter().take(removed.len());
        let stages = before.filter(|(id, ..)| self.role(*id) == Role::Stage);
        let heir = |name: &String| self.by_name.get(name).copied();
        let stage = |id: &NodeId| self.role(*id) == Role::Stage;
        stages
            .map(|(id, name, _)| (*id, heir(name).filter(stage)))
            .collect()
    }

    fn send_rewiring(
        &mut self,
        removed: &[NodeId],
        heirs: &BTreeMap<NodeId, Option<NodeId>>,
        undo: &Undo,
    ) -> Result<(), GraphError> {
        let order = self.order()?;
        for worker in self.worker_set.clone().iter() {
            let mut nodes = Vec::new();
            for (id, _) in &undo.entered {
                nodes.push(self.node_change(*id, worker)?);
            }
            for id in removed {
                let mut change = self.node_change(*id, worker)?;
                change.leaves = heirs.contains_key(id);
                change.heir = heirs.get(id).copied().flatten();
                nodes.push(change);
            }
            let kept = undo.texts.iter().skip(removed.len());
            let edges = kept
                .map(|(id, ..)| Ok((*id, self.targets(*id)?.into())))
                .collect::<Result<Vec<_>, GraphError>>()?;
            let pending = PendingNodes::new(order.clone());
            let rewire = Rewire {
                nodes,
                edges,
                pending,
            };
            self.send(worker, Box::new(rewire))?;
        }
        Ok(())
    }

    /// The definition of a wired node.
    fn wired(&mut self, node: WiredNode) -> NodeDefinition {
        let targets: Vec<&str> = node.targets.iter().map(String::as_str).collect();
        let edges = self.kept_texts.list(&targets);
        NodeDefinition {
            counters: node.counters,
            columns: node.columns.to_vec(),
            role: node.role,
            ..NodeDefinition::new(&node.name, edges, node.factory)
        }
    }

    /// Give a new node its number and its statistics. Its edges are checked later.
    pub(super) fn enter_new(
        &mut self,
        mut definition: NodeDefinition,
    ) -> Result<(NodeId, Option<NodeDefinition>), GraphError> {
        if self.by_name.contains_key(&definition.name) {
            return Err(GraphError::NodeExists(definition.name));
        }
        let others = self.declared_columns();
        crate::data::col::check(&definition.name, &definition.columns, others)?;
        let (workers, counters) = (self.settings.workers, definition.counters);
        let stats = || Arc::new(NodeStats::new(counters.len()));
        definition.stats = (0..workers).map(|_| stats()).collect();
        definition.cleared = vec![Baseline::default(); workers];
        let name = definition.name.clone();
        let (id, before) = self.enter(definition)?;
        self.by_name.insert(name, id);
        self.ignored.learn(id, counters);
        Ok((id, before))
    }
}
