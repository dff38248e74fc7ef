//! State of neighbours.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Reachability state of a neighbour (RFC 4861, 7.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NeighborState {
    /// Configured.
    Static,
    /// The address is being resolved: no answer yet.
    Incomplete,
    /// The neighbour was confirmed a short while ago.
    Reachable,
    /// The neighbour was not confirmed recently.
    Stale,
    /// The neighbour is in use, and will be probed soon.
    Delay,
    /// The neighbour is being probed.
    Probe,
}

impl NeighborState {
    /// Lower-case name.
    pub fn name(self) -> &'static str {
        match self {
            NeighborState::Static => "static",
            NeighborState::Incomplete => "incomplete",
            NeighborState::Reachable => "reachable",
            NeighborState::Stale => "stale",
            NeighborState::Delay => "delay",
            NeighborState::Probe => "probe",
        }
    }
}
