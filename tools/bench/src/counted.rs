//! Events of nodes in a report.

use serde::Serialize;
use std::collections::BTreeMap;

/// Events of the nodes, and what counted them.
#[derive(Debug, Serialize)]
pub struct Counted {
    /// `PMU`, `callgrind`, or none.
    pub source: Option<&'static str>,
    /// What the figures are, or how to get some.
    pub text: String,
    /// Events by node and name.
    pub nodes: BTreeMap<String, BTreeMap<&'static str, PerUnit>>,
}

/// Events for a packet and for a call.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PerUnit {
    /// For each packet.
    pub per_packet: f64,
    /// For each call of the node.
    pub per_call: f64,
}
