//! Nodes whose edges are known at run time only, such as those of a graph that a file describes. They are added and removed
//! together, because their edges may form loops.

use crate::data::col::ColumnInfo;
use crate::data::counters::{CounterInfo, Counters};
use crate::data::error::GraphError;
use crate::data::ids::NodeId;
use crate::data::stats::NodeStats;
use crate::engine::state::{Baseline, Engine, NodeDefinition, NodeFactory};
use crate::node_api::node::{Node, Source};
use crate::node_api::stage::{Role, Stage};
use crate::worker::body::{Body, NodeBody, SourceBody, StageBody};
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

impl Engine {
    /// Add nodes with edges to each other and to nodes that exist. An error adds none.
    pub fn add_wired(&mut self, mut nodes: Vec<WiredNode>) -> Result<(), GraphError> {
        // Nodes at which packets enter come last: their targets exist on every worker before they run.
        nodes.sort_by_key(|it| match it.role {
            Role::Node => 0,
            Role::Stage => 1,
            Role::Source => 2,
        });
        self.room_for(nodes.len())?;
        let mut entered: Vec<(NodeId, Option<NodeDefinition>)> = Vec::new();
        let mut result = Ok(());
        for node in nodes {
            match self.enter_wired(node) {
                Ok(one) => entered.push(one),
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
        }
        if let Err(error) = result.and_then(|()| self.send_wired(&entered)) {
            for (id, before) in entered.into_iter().rev() {
                let name = self.defs[id.index()].name.clone();
                self.by_name.remove(&name);
                self.withdraw(id, before);
            }
            return Err(error);
        }
        Ok(())
    }

    /// Remove nodes with edges to each other: as [`Engine::remove`]. An error while another node has an edge to one of them.
    pub fn remove_wired(&mut self, names: &[String]) -> Result<(), GraphError> {
        let ids: Vec<NodeId> =
            (names.iter().map(|name| self.node(name))).collect::<Result<_, _>>()?;
        let others = self.defs.iter().enumerate();
        let others =
            others.filter(|(n, def)| !def.removed && !ids.iter().any(|id| id.index() == *n));
        for (_, def) in others {
            let mut targets = def.edges.iter();
            if let Some(target) = targets.find(|it| names.iter().any(|name| name == *it)) {
                return Err(GraphError::EdgeToNowhere {
                    node: def.name.clone(),
                    target: (*target).to_owned(),
                });
            }
        }
        self.room_for(names.len())?;
        for id in ids {
            self.defs[id.index()].edges = &[];
        }
        names.iter().try_for_each(|name| self.remove(name))
    }

    /// Whether the workers can be sent this number of changes now.
    fn room_for(&self, changes: usize) -> Result<(), GraphError> {
        self.room_for_changes()?;
        let busy = (self.change_queues.iter())
            .position(|queue| queue.pending.len() + changes > queue.pending.capacity());
        busy.map_or(Ok(()), |worker| Err(GraphError::WorkerBusy(worker)))
    }

    fn enter_wired(
        &mut self,
        node: WiredNode,
    ) -> Result<(NodeId, Option<NodeDefinition>), GraphError> {
        if self.by_name.contains_key(&node.name) {
            return Err(GraphError::NodeExists(node.name));
        }
        crate::data::col::check(&node.name, node.columns, self.declared_columns())?;
        let targets: Vec<&str> = node.targets.iter().map(String::as_str).collect();
        let edges = self.kept_texts.list(&targets);
        let workers = self.settings.workers;
        let stats = || Arc::new(NodeStats::new(node.counters.len()));
        let definition = NodeDefinition {
            counters: node.counters,
            columns: node.columns.to_vec(),
            role: node.role,
            stats: (0..workers).map(|_| stats()).collect(),
            cleared: vec![Baseline::default(); workers],
            ..NodeDefinition::new(&node.name, edges, node.factory)
        };
        let (id, before) = self.enter(definition)?;
        self.by_name.insert(node.name, id);
        self.ignored.learn(id, node.counters);
        Ok((id, before))
    }

    fn send_wired(
        &mut self,
        entered: &[(NodeId, Option<NodeDefinition>)],
    ) -> Result<(), GraphError> {
        // Every target exists, so that no node is sent unless all can be.
        self.order()?;
        if self.channels.is_empty() {
            return Ok(());
        }
        entered.iter().try_for_each(|(id, _)| self.send_node(*id))
    }
}
