//! Nodes of plugins: their code belongs to another file and may be unmapped. The engine keeps copies of their texts, replaces
//! them while packets flow, and tells whether they are out.

use crate::data::col::{self, ColumnInfo};
use crate::data::counters::{CounterInfo, Counters, Severity};
use crate::data::error::GraphError;
use crate::data::frame::Frame;
use crate::data::ids::NodeId;
use crate::data::stats::NodeStats;
use crate::engine::arcs::Feature;
use crate::engine::state::{Baseline, Engine, NodeDefinition, NodeFactory};
use crate::node_api::context::{NodeState, RawCx};
use crate::node_api::edges::Nexts;
use crate::node_api::node::Node;
use crate::queues::dispatch::DispatchState;
use crate::queues::trace::TraceRecord;
use crate::worker::body::Body;
use crate::worker::guarded::{GuardedBody, NodeFault};
use std::sync::Arc;
use volley_simd::Level;

/// What a node drops packets for when it has panicked.
const PANICKED: CounterInfo = CounterInfo {
    name: "panicked",
    severity: Severity::Error,
    text: "packets dropped because the node panicked: `show plugins` has the text, `plugin replace` restores the node",
};

/// A node of a plugin, before an engine has it. It is made by the plugin's code.
pub struct ForeignNode {
    name: String,
    edges: &'static [&'static str],
    counters: Vec<CounterInfo>,
    columns: Vec<ColumnInfo>,
    factory: NodeFactory,
    fault: Arc<NodeFault>,
}

impl ForeignNode {
    /// A node. `make` creates the instance of each worker. A panic in `make` or in the node takes the node out: its packets
    /// are dropped for the reason `panicked`.
    pub fn new<N: Node>(name: &str, mut make: impl FnMut(usize) -> N + 'static) -> Self {
        let fault = Arc::<NodeFault>::default();
        let mine = fault.clone();
        let factory = move |worker| {
            let fault = mine.clone();
            Box::new(GuardedBody::new(|| make(worker), N::COLUMNS, fault)) as Box<dyn Body>
        };
        ForeignNode {
            name: name.to_owned(),
            edges: N::Next::EDGES,
            counters: N::Count::INFO.iter().copied().chain([PANICKED]).collect(),
            columns: N::COLUMNS.to_vec(),
            factory: Box::new(factory),
            fault,
        }
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

    /// Replace the node of the same name by another one: packets that wait for the node are run by the new one, and none is
    /// lost. Counters go on when they are the same. An error changes nothing.
    pub fn replace_foreign(&mut self, node: ForeignNode) -> Result<(), GraphError> {
        self.check_replacement(&node)?;
        let id = self.node(&node.name)?;
        let mut definition = self.foreign(node);
        let before = &self.defs[id.index()];
        definition.from_start = before.from_start;
        if before.counters == definition.counters {
            definition.stats = before.stats.clone();
            definition.cleared = before.cleared.clone();
        } else {
            let (workers, counters) = (self.settings.workers, definition.counters.len());
            let stats = || Arc::new(NodeStats::new(counters));
            definition.stats = (0..workers).map(|_| stats()).collect();
            definition.cleared = vec![Baseline::default(); workers];
        }
        let counters = definition.counters;
        let before = std::mem::replace(&mut self.defs[id.index()], definition);
        if !self.channels.is_empty()
            && let Err(error) = self.send_node(id)
        {
            self.defs[id.index()] = before;
            return Err(error);
        }
        self.ignored.learn(id, counters);
        Ok(())
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
        NodeDefinition {
            counters: kept.counters(&node.counters),
            columns: node.columns.iter().map(|it| kept.column(it)).collect(),
            ..NodeDefinition::new(&node.name, kept.list(node.edges), node.factory)
        }
    }
}

/// A type that both sides of a plugin use: its name, size and alignment in bytes.
pub type SharedType = (&'static str, usize, usize);

/// Types of the engine that a plugin's code reads and writes: part of the fingerprint that a plugin is checked by.
pub const SHARED_TYPES: &[SharedType] = &[
    shared::<Frame>("Frame"),
    shared::<DispatchState>("DispatchState"),
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
    (
        "DispatchState::bufs",
        std::mem::offset_of!(DispatchState, bufs),
        0,
    ),
    (
        "DispatchState::queues",
        std::mem::offset_of!(DispatchState, queues),
        0,
    ),
    (
        "DispatchState::arcs",
        std::mem::offset_of!(DispatchState, arcs),
        0,
    ),
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
