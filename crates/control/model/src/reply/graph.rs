//! The graph: nodes, edges, features.

use super::runtime::{ErrorRow, NodeRuntime};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One node in full.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct NodeReply {
    /// Its name.
    pub name: String,
    /// Index in the graph.
    pub index: u32,
    /// `source`, `internal`, `sink` or `process`.
    pub kind: String,
    /// Edges out, by index.
    pub next: Vec<NodeEdge>,
    /// Names of nodes with an edge to it.
    pub previous: Vec<String>,
    /// Clocks, one row per worker.
    pub runtime: Vec<NodeRuntime>,
    /// Its counters, zeros too.
    pub counters: Vec<ErrorRow>,
}

/// One edge.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct NodeEdge {
    /// Index among the node's edges.
    pub index: u32,
    /// Node it leads to.
    pub node: String,
}

/// All nodes and edges.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct GraphReply {
    /// In order of name.
    pub nodes: Vec<GraphNode>,
}

/// One node and where it leads.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct GraphNode {
    /// Its name.
    pub name: String,
    /// `source`, `internal`, `sink` or `process`.
    pub kind: String,
    /// Edges out, by index.
    pub next: Vec<NodeEdge>,
}

/// Feature arcs.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct FeaturesReply {
    /// In order of name.
    pub arcs: Vec<ArcRow>,
}

/// One arc.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ArcRow {
    /// Its name (`ip4-unicast`).
    pub name: String,
    /// Node it starts behind.
    pub start: String,
    /// Node it ends at.
    pub end: String,
    /// Features in the order packets pass them.
    pub features: Vec<FeatureRow>,
}

/// One feature of an arc.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct FeatureRow {
    /// Its name.
    pub name: String,
    /// Interfaces it is on for.
    pub interfaces: Vec<String>,
}
