//! `show node | graph | features`.

use volley_model::reply::{FeaturesReply, GraphReply, NodeReply};
use volley_show::table;

pub(super) fn node(n: &NodeReply) -> String {
    let mut out = format!("node {} (index {}, {})\n", n.name, n.index, n.kind);
    let row = |e: &volley_model::reply::NodeEdge| vec![format!("  {}", e.index), e.node.clone()];
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

pub(super) fn graph(reply: &GraphReply) -> String {
    let row = |n: &volley_model::reply::GraphNode| {
        let next: Vec<_> = n.next.iter().map(|e| e.node.as_str()).collect();
        vec![n.name.clone(), n.kind.clone(), next.join(" ")]
    };
    let rows: Vec<_> = reply.nodes.iter().map(row).collect();
    table(&["Name", "Kind", "Next"], &rows)
}

pub(super) fn dot(reply: &GraphReply) -> String {
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

pub(super) fn features(reply: &FeaturesReply) -> String {
    let mut out = String::new();
    for arc in &reply.arcs {
        out += &format!("{} (from {} to {}):\n", arc.name, arc.start, arc.end);
        for f in &arc.features {
            let on = if f.interfaces.is_empty() {
                String::new()
            } else {
                format!("  on: {}", f.interfaces.join(" "))
            };
            out += &format!("  {}{on}\n", f.name);
        }
    }
    out
}
