//! State of neighbours.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How sure a neighbour is (RFC 4861, 7.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NeighborState {
    /// Configured.
    Static,
    /// The address is being resolved: no answer yet.
    Incomplete,
    /// It answered a short while ago.
    Reachable,
    /// It may still be there.
    Stale,
    /// It is used, and will be asked soon.
    Delay,
    /// It is being asked whether it is still there.
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
