//! `show node` and `show graph`: the queries, their replies, and their text.

use super::runtime::{ErrorRow, NodeRuntime};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use volley_object::Query;
use volley_show::table;

/// One node: edges, clocks, counters.
#[derive(Clone, Debug, PartialEq, Query)]
#[query(
    name = "node",
    show = "show node <name>",
    example = "show node ip4-lookup"
)]
#[query(reply = NodeReply, text = node)]
pub struct ShowNode {
    /// Node of the graph.
    #[query(needs = "node", example = "pg-input")]
    pub name: String,
}

/// All nodes and edges, as text or for graphviz.
#[derive(Clone, Debug, PartialEq, Query)]
#[query(
    name = "graph",
    show = "show graph [dot | text]",
    example = "show graph dot"
)]
#[query(reply = GraphReply, text = graph, view(dot = dot, "All nodes and edges, for graphviz."))]
pub struct ShowGraph;

/// One node in full.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct NodeReply {
    /// Name of the node.
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
    /// Counters of the node, also those that are zero.
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
    /// Name of the node.
    pub name: String,
    /// `source`, `internal`, `sink` or `process`.
    pub kind: String,
    /// Edges out, by index.
    pub next: Vec<NodeEdge>,
}

fn node(n: &NodeReply) -> String {
    let mut out = format!("node {} (index {}, {})\n", n.name, n.index, n.kind);
    let row = |e: &NodeEdge| vec![format!("  {}", e.index), e.node.clone()];
    let rows: Vec<_> = n.next.iter().map(row).collect();
    if !rows.is_empty() {
        out += &table(&["  Next", "Node"], &rows);
    }
    if !n.previous.is_empty() {
        out += &format!("  known previous nodes: {}\n", n.previous.join(", "));
    }
    for r in &n.runtime {
        out += &format!(
            "  {} calls, {} vectors, {:.2} clocks/packet, {:.2} vectors/call, {} max\n",
            r.calls, r.vectors, r.cycles_per_packet, r.vectors_per_call, r.max_vector
        );
    }
    for c in &n.counters {
        out += &format!(
            "  {:>10}  {} ({}): {}\n",
            c.count, c.reason, c.severity, c.text
        );
    }
    out
}

fn graph(reply: &GraphReply) -> String {
    let row = |n: &GraphNode| {
        let next: Vec<_> = n.next.iter().map(|e| e.node.as_str()).collect();
        vec![n.name.clone(), n.kind.clone(), next.join(" ")]
    };
    let rows: Vec<_> = reply.nodes.iter().map(row).collect();
    table(&["Name", "Kind", "Next"], &rows)
}

fn dot(reply: &GraphReply) -> String {
    let mut out = "digraph volley {\n  rankdir=LR;\n  node [shape=box];\n".to_string();
    for n in &reply.nodes {
        let shape = match n.kind.as_str() {
            "source" => " [shape=cds]",
            "sink" => " [shape=octagon]",
            "process" => " [style=dashed]",
            _ => "",
        };
        out += &format!("  {:?}{shape};\n", n.name);
        for e in &n.next {
            out += &format!("  {:?} -> {:?};\n", n.name, e.node);
        }
    }
    out + "}\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn graphs_are_drawn() {
        let edge = NodeEdge {
            index: 0,
            node: "ip4-lookup".into(),
        };
        let node = GraphNode {
            name: "ip4-input".into(),
            kind: "internal".into(),
            next: vec![edge],
        };
        let out = dot(&GraphReply { nodes: vec![node] });
        assert!(
            out.contains("  \"ip4-input\" -> \"ip4-lookup\";\n"),
            "{out}"
        );
    }
}
