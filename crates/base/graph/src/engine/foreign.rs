//! Nodes of plugins: their code belongs to another file and may be unmapped. The engine keeps copies of their texts, replaces
//! them while packets flow, and tells whether they are out.

use crate::data::col::{self, ColumnInfo};
use crate::data::counters::{CounterInfo, Counters, Severity};
use crate::data::error::GraphError;
use crate::data::frame::Frame;
use crate::data::ids::NodeId;
use crate::data::stats::NodeStats;
use crate::engine::arcs::Feature;
use crate::engine::changes::Rewire;
use crate::engine::state::{Baseline, Engine, NodeDefinition, NodeFactory};
use crate::engine::wired::KeptNode;
use crate::node_api::context::{NodeState, RawCx};
use crate::node_api::drop_node::DROP_NODE;
use crate::node_api::edges::Nexts;
use crate::node_api::node::{Node, Source};
use crate::node_api::stage::{Role, Stage};
use crate::queues::arcs::ArcId;
use crate::queues::dispatch::Dispatch;
use crate::queues::pending_nodes::PendingNodes;
use crate::queues::trace::TraceRecord;
use crate::worker::body::{Body, NodeBody, SourceBody, StageBody};
use crate::worker::guarded::{GuardedBody, NodeFault};
use std::sync::Arc;
use volley_simd::Level;

/// What a node drops packets for when it has panicked.
const PANICKED: CounterInfo = CounterInfo {
    name: "panicked",
    severity: Severity::Error,
    text: "packets dropped because the node panicked: `show plugins` has the text, `plugin replace` restores the node",
};

/// A node, source or stage of a plugin, before an engine has it. It is made by the plugin's code.
pub struct ForeignNode {
    name: String,
    edges: &'static [&'static str],
    /// Edges that lead elsewhere: from the first node to the second one.
    redirections: Vec<(String, String)>,
    counters: Vec<CounterInfo>,
    columns: Vec<ColumnInfo>,
    role: Role,
    frames: usize,
    factory: NodeFactory,
    fault: Arc<NodeFault>,
}

/// The instance of a worker, with its guard.
fn guarded<B: Body + 'static>(
    fault: &Arc<NodeFault>,
    counters: &[CounterInfo],
    mut make: impl FnMut(usize) -> B + 'static,
) -> NodeFactory {
    // Behind the node's own counters.
    let (fault, reason) = (fault.clone(), counters.len());
    Box::new(move |worker| Box::new(GuardedBody::new(|| make(worker), reason, fault.clone())))
}

impl ForeignNode {
    /// A node. `make` creates the instance of each worker. A panic in `make` or in the node takes the node out: its packets
    /// are dropped for the reason `panicked`.
    pub fn new<N: Node>(name: &str, mut make: impl FnMut(usize) -> N + 'static) -> Self {
        let make = move |worker| NodeBody::new(make(worker), N::COLUMNS);
        let texts = (N::Next::EDGES, N::Count::INFO, N::COLUMNS);
        ForeignNode::of(name, Role::Node, texts, make)
    }

    /// A source. `make` creates the instance of each worker. A panic takes it out: it is not polled any more.
    pub fn source<S: Source>(name: &str, mut make: impl FnMut(usize) -> S + 'static) -> Self {
        let make = move |worker| SourceBody(make(worker));
        let texts = (S::Next::EDGES, S::Count::INFO, S::COLUMNS);
        ForeignNode::of(name, Role::Source, texts, make)
    }

    /// A stage, which holds at most `frames` vectors of packets on each worker. `make` creates the instance of each worker. When
    /// the stage is replaced, its packets go to the new instance ([`Stage::leave`]); when it is removed, they leave by its first
    /// edge.
    pub fn stage<S: Stage>(
        name: &str,
        frames: usize,
        mut make: impl FnMut(usize) -> S + 'static,
    ) -> Self {
        let make = move |worker| StageBody(make(worker));
        let texts = (S::Next::EDGES, S::Count::INFO, S::COLUMNS);
        ForeignNode {
            frames,
            ..ForeignNode::of(name, Role::Stage, texts, make)
        }
    }

    fn of<B: Body + 'static>(
        name: &str,
        role: Role,
        (edges, counters, columns): (&'static [&'static str], &[CounterInfo], &[ColumnInfo]),
        make: impl FnMut(usize) -> B + 'static,
    ) -> Self {
        let fault = Arc::<NodeFault>::default();
        ForeignNode {
            name: name.to_owned(),
            edges,
            redirections: Vec::new(),
            counters: counters.iter().copied().chain([PANICKED]).collect(),
            columns: columns.to_vec(),
            role,
            frames: 0,
            factory: guarded(&fault, counters, make),
            fault,
        }
    }

    /// Vectors of packets that a stage holds at most on each worker: see [`Engine::reserve_frames`].
    pub fn frames(&self) -> usize {
        self.frames
    }

    /// Let its edge to the node `from` lead to the node `to`: as [`Engine::redirect`], from the first packet on. An error if
    /// there is no such edge.
    pub fn redirect(&mut self, from: &str, to: &str) -> Result<(), GraphError> {
        if !self.targets().any(|target| target == from) {
            return Err(no_edge(&self.name, from));
        }
        self.redirections.push((from.to_owned(), to.to_owned()));
        Ok(())
    }

    /// The nodes to which its edges lead, with its redirections.
    pub fn targets(&self) -> impl Iterator<Item = String> {
        let lead = |edge: &&'static str| {
            let all = self.redirections.iter();
            all.fold((*edge).to_owned(), |edge, (from, to)| match edge == *from {
                true => to.clone(),
                false => edge,
            })
        };
        self.edges.iter().map(lead)
    }

    /// Name of the node in the graph.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it is out.
    pub fn fault(&self) -> &Arc<NodeFault> {
        &self.fault
    }
}

impl Engine {
    /// Add a plugin's node.
    pub fn add_foreign(&mut self, node: ForeignNode) -> Result<NodeId, GraphError> {
        let definition = self.foreign(node);
        self.define(definition)
    }

    /// Add nodes of a plugin, which may lead to each other. An error changes nothing.
    pub fn add_foreign_nodes(&mut self, nodes: Vec<ForeignNode>) -> Result<(), GraphError> {
        let definitions = nodes.into_iter().map(|node| self.foreign(node));
        let definitions = definitions.collect();
        self.change_nodes(Vec::new(), Vec::new(), definitions)
    }

    /// Remove nodes, which may lead to each other: packets that still reach them are dropped, and those that a stage holds leave
    /// by its first edge through the old graph. An error, which changes nothing, while another node has an edge to one.
    pub fn remove_nodes(&mut self, nodes: Vec<String>) -> Result<(), GraphError> {
        self.change_nodes(nodes, Vec::new(), Vec::new())
    }

    /// Whether [`Engine::replace_foreign`] would refuse the node now.
    pub fn check_replacement(&self, node: &ForeignNode) -> Result<(), GraphError> {
        let id = self.node(&node.name)?;
        self.room_for_changes()?;
        if self.placements.0.contains_key(&id) {
            return Err(GraphError::NotReplaceable {
                node: node.name.clone(),
                why: "it runs on one worker only; `set node worker NODE default` first",
            });
        }
        let others = self.declared_columns();
        let others = others.filter(|(owner, _)| *owner != node.name);
        col::check(&node.name, &node.columns, others)
    }

    /// Replace the node of the same name by another one: packets that wait for the node are run by the new one, those that a
    /// stage holds go to the new one, and none is lost. Counters go on when they are the same. Redirections are those of the new
    /// node. An error changes nothing.
    pub fn replace_foreign(&mut self, node: ForeignNode) -> Result<(), GraphError> {
        self.check_replacement(&node)?;
        let id = self.node(&node.name)?;
        let mut definition = self.foreign(node);
        let before = &mut self.defs[id.index()];
        definition.from_start = before.from_start;
        definition.built_in = before.built_in.take();
        if before.counters == definition.counters {
            definition.stats = before.stats.clone();
            definition.cleared = before.cleared.clone();
        } else {
            self.count_from_zero(&mut definition);
        }
        let (other, done) = self.exchange_definition(id, definition);
        if done.is_err() {
            self.defs[id.index()].built_in = other.built_in;
        }
        done
    }

    /// Replace a node of the router by a plugin's node of the same name until [`Engine::restore`]: packets that wait for the node
    /// are run by the new one. The counters are those of the new node. An error changes nothing.
    pub fn override_node(&mut self, node: ForeignNode) -> Result<(), GraphError> {
        self.check_replacement(&node)?;
        let id = self.node(&node.name)?;
        let is_overridden = self.defs[id.index()].built_in.is_some();
        if node.name == DROP_NODE || is_overridden {
            let why = match is_overridden {
                true => "a plugin has replaced it already",
                false => "it ends the graph",
            };
            let node = node.name;
            return Err(GraphError::NotReplaceable { node, why });
        }
        let mut definition = self.foreign(node);
        definition.from_start = self.defs[id.index()].from_start;
        self.count_from_zero(&mut definition);
        let (before, done) = self.exchange_definition(id, definition);
        if done.is_ok() {
            self.keep_built_in(id, before);
        }
        done
    }

    /// Keeps the node of the router that is replaced, without redirections: those of the node in its place count.
    fn keep_built_in(&mut self, id: NodeId, mut before: NodeDefinition) {
        before.redirections.clear();
        before.edges = before.declared;
        self.defs[id.index()].built_in = Some(Box::new(before));
    }

    /// Undo [`Engine::override_node`]: the node of the router begins with a new state and its old counters. Redirections of the
    /// node in its place stay. Without an override nothing changes.
    pub fn restore(&mut self, name: &str) -> Result<(), GraphError> {
        let id = self.node(name)?;
        self.room_for_changes()?;
        let now = &mut self.defs[id.index()];
        let Some(mut before) = now.built_in.take() else {
            return Ok(());
        };
        before.redirections = now.redirections.clone();
        before.lead(&mut self.kept_texts);
        let (other, done) = self.exchange_definition(id, *before);
        if done.is_err() {
            self.keep_built_in(id, other);
        }
        done
    }

    /// Gives a definition new counters.
    fn count_from_zero(&self, definition: &mut NodeDefinition) {
        let (workers, counters) = (self.settings.workers, definition.counters.len());
        let stats = || Arc::new(NodeStats::new(counters));
        definition.stats = (0..workers).map(|_| stats()).collect();
        definition.cleared = vec![Baseline::default(); workers];
    }

    /// Give a node another definition, and its workers the instances. Returns the definition that the node does not have now:
    /// the old one, and after an error the new one.
    fn exchange_definition(
        &mut self,
        id: NodeId,
        definition: NodeDefinition,
    ) -> (NodeDefinition, Result<(), GraphError>) {
        let counters = definition.counters;
        let before = std::mem::replace(&mut self.defs[id.index()], definition);
        if !self.channels.is_empty() {
            let sent = match before.role {
                Role::Stage => self.send_for_stage(id, Some(id)),
                Role::Node | Role::Source => self.send_node(id),
            };
            if let Err(error) = sent {
                let refused = std::mem::replace(&mut self.defs[id.index()], before);
                return (refused, Err(error));
            }
        }
        self.ignored.learn(id, counters);
        (before, Ok(()))
    }

    /// Send the instance that takes the place of a stage. The packets that the stage holds go to `heir`, or by its first edge
    /// through the old graph.
    pub(super) fn send_for_stage(
        &mut self,
        id: NodeId,
        heir: Option<NodeId>,
    ) -> Result<(), GraphError> {
        self.targets(id)?;
        self.room_for_changes()?;
        for worker in self.worker_set.iter() {
            let pending = PendingNodes::new(self.order()?);
            let mut node = self.node_change(id, worker)?;
            (node.leaves, node.heir) = (true, heir);
            let rewire = Rewire {
                nodes: vec![node],
                edges: Vec::new(),
                pending,
            };
            self.send(worker, Box::new(rewire))?;
        }
        Ok(())
    }

    /// Let an edge of a node lead to another node, between two vectors, until [`Engine::redirect_back`]. Nodes that choose their
    /// successor at run time are not concerned. An error changes nothing.
    pub fn redirect(&mut self, node: &str, from: &str, to: &str) -> Result<(), GraphError> {
        let id = self.node(node)?;
        if !self.defs[id.index()].edges.contains(&from) {
            return Err(no_edge(node, from));
        }
        let redirection = (self.kept_texts.text(from), self.kept_texts.text(to));
        self.defs[id.index()].redirections.push(redirection);
        self.lead_again(id)
            .inspect_err(|_| _ = self.defs[id.index()].redirections.pop())
    }

    /// Undo [`Engine::redirect`]. An error, which changes nothing, if the node has no such redirection.
    pub fn redirect_back(&mut self, node: &str, from: &str, to: &str) -> Result<(), GraphError> {
        let id = self.node(node)?;
        let all = &mut self.defs[id.index()].redirections;
        let at = all.iter().rposition(|it| *it == (from, to));
        let at = at.ok_or_else(|| no_edge(node, to))?;
        let redirection = all.remove(at);
        self.lead_again(id)
            .inspect_err(|_| self.defs[id.index()].redirections.insert(at, redirection))
    }

    /// Let the edges of a node lead where its redirections say.
    fn lead_again(&mut self, id: NodeId) -> Result<(), GraphError> {
        let def = &self.defs[id.index()];
        let keep = KeptNode {
            name: def.name.clone(),
            to: def.name.clone(),
            targets: def.declared.iter().map(|it| (*it).to_owned()).collect(),
        };
        self.change_nodes(Vec::new(), vec![keep], Vec::new())
    }

    /// Declare a feature arc whose texts may be unmapped. An error if there is an arc of this name.
    pub fn add_foreign_arc(
        &mut self,
        name: &str,
        start: &str,
        end: &str,
    ) -> Result<ArcId, GraphError> {
        let kept = &mut self.kept_texts;
        let [name, start, end] = [name, start, end].map(|text| kept.text(text));
        self.arcs.add_arc(name, start, end)
    }

    /// The number of an arc.
    pub fn arc_number(&self, name: &str) -> Result<ArcId, GraphError> {
        self.arcs.number(name)
    }

    /// Give an arc of [`Engine::add_foreign_arc`] another start and end. An error changes nothing.
    pub fn foreign_arc(&mut self, name: &str, start: &str, end: &str) -> Result<(), GraphError> {
        let kept = &mut self.kept_texts;
        let [start, end] = [start, end].map(|text| kept.text(text));
        let entry = self.arcs.find(name)?;
        let before = (entry.start, entry.end);
        (entry.start, entry.end) = (start, end);
        if before.1 != end
            && let Err(error) = self.send_arcs()
        {
            // The end may be no node: with it, no arc could change any more.
            let entry = self.arcs.find(name)?;
            (entry.start, entry.end) = before;
            return Err(error);
        }
        Ok(())
    }

    /// Remove an arc of [`Engine::add_foreign_arc`] without features. Its number stays its own: packets may carry it.
    pub fn remove_foreign_arc(&mut self, name: &str) -> Result<(), GraphError> {
        self.room_for_changes()?;
        self.arcs.remove_arc(name)?;
        self.send_arcs()
    }

    /// Make a plugin's node available as a feature of an arc: as [`Engine::add_feature`] and [`Engine::add_consumer`].
    pub fn add_foreign_feature(
        &mut self,
        arc: &str,
        feature: &Feature,
        consumes: bool,
    ) -> Result<(), GraphError> {
        let feature = self.kept_texts.feature(feature);
        self.arcs.add(arc, feature, consumes)
    }

    fn foreign(&mut self, node: ForeignNode) -> NodeDefinition {
        let kept = &mut self.kept_texts;
        let redirections = node.redirections.iter();
        let mut definition = NodeDefinition {
            counters: kept.counters(&node.counters),
            columns: node.columns.iter().map(|it| kept.column(it)).collect(),
            role: node.role,
            redirections: redirections
                .map(|(from, to)| (kept.text(from), kept.text(to)))
                .collect(),
            ..NodeDefinition::new(&node.name, kept.list(node.edges), node.factory)
        };
        definition.lead(kept);
        definition
    }
}

fn no_edge(node: &str, target: &str) -> GraphError {
    GraphError::NoEdge {
        node: node.to_owned(),
        target: target.to_owned(),
    }
}

/// A type that both sides of a plugin use: its name, size and alignment in bytes.
pub type SharedType = (&'static str, usize, usize);

/// Types of the engine that a plugin's code reads and writes: part of the fingerprint that a plugin is checked by.
pub const SHARED_TYPES: &[SharedType] = &[
    shared::<Frame>("Frame"),
    shared::<Dispatch>("Dispatch"),
    shared::<RawCx<'static>>("RawCx"),
    shared::<TraceRecord>("TraceRecord"),
    shared::<ForeignNode>("ForeignNode"),
    shared::<NodeFault>("NodeFault"),
    shared::<NodeStats>("NodeStats"),
    shared::<NodeState>("NodeState"),
    shared::<Feature>("Feature"),
    shared::<Level>("Level"),
    ("Frame::cols", std::mem::offset_of!(Frame, cols), 0),
    ("Frame::valid", std::mem::offset_of!(Frame, valid), 0),
    ("Dispatch::bufs", std::mem::offset_of!(Dispatch, bufs), 0),
    (
        "Dispatch::queues",
        std::mem::offset_of!(Dispatch, queues),
        0,
    ),
    ("Dispatch::arcs", std::mem::offset_of!(Dispatch, arcs), 0),
    ("RawCx::own", std::mem::offset_of!(RawCx<'static>, own), 0),
    (
        "NodeState::stats",
        std::mem::offset_of!(NodeState, stats),
        0,
    ),
];

const fn shared<T>(name: &'static str) -> SharedType {
    (name, size_of::<T>(), align_of::<T>())
}
