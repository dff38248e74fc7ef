//! Routes, tables and neighbours.

use crate::addr::{Family, Mac, Prefix};
use crate::route::{PathTarget, RouteSource};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// Routes of one family.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct FibReply {
    /// In order of number.
    pub tables: Vec<FibTable>,
    /// Routes that matched and are not in this answer.
    pub more: u64,
}

/// One table.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct FibTable {
    /// IP version.
    pub family: Family,
    /// Its number.
    pub table: u32,
    /// Prefixes in it.
    pub prefixes: u64,
    /// Bytes of the data-plane lookup structure.
    pub bytes: u64,
    /// Prefixes by length, lengths that have none left out.
    pub lengths: Vec<LengthCount>,
    /// The routes asked for, in order of address and length.
    pub routes: Vec<FibRoute>,
    /// The prefix asked for, where the table does not have it: `routes` has the route that covers it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absent: Option<AbsentPrefix>,
}

/// A prefix that a table does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AbsentPrefix {
    /// The prefix asked for.
    pub prefix: Prefix,
    /// Longer prefixes inside it that the table has: packets to those follow their own routes.
    pub inside: u64,
}

/// Prefixes of one length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct LengthCount {
    /// Length in bits.
    pub len: u8,
    /// Prefixes.
    pub count: u64,
}

/// One route: its best source's paths, and what the data plane does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FibRoute {
    /// Prefix.
    pub prefix: Prefix,
    /// Source that forwards.
    pub source: RouteSource,
    /// Other sources that have this prefix, best first.
    pub others: Vec<RouteSource>,
    /// Paths of the source that forwards.
    pub paths: Vec<FibPath>,
    /// Load balance (data-plane leaf) id.
    pub load_balance: u32,
    /// Buckets in order: flow hash modulo their number chooses.
    pub buckets: Vec<FibBucket>,
}

/// One path of a route.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FibPath {
    /// Where to.
    pub target: PathTarget,
    /// Weight.
    pub weight: u32,
    /// Preference.
    pub preference: u8,
    /// The next hop is on the link of its interface, whatever addresses say.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub onlink: bool,
    /// It leads somewhere now.
    pub resolved: bool,
}

/// One bucket of a load balance.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct FibBucket {
    /// `adjacency`, `glean`, `incomplete`, `local`, `drop`, ...
    pub kind: String,
    /// Index of the object of that kind.
    pub index: u32,
    /// In words: `via 192.0.2.1 pg1 02fe...`.
    pub text: String,
}

/// Neighbours.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct NeighborsReply {
    /// In order of interface and address.
    pub neighbors: Vec<NeighborRow>,
    /// What happened to neighbours of both families since the start, where it did.
    pub events: Vec<NeighborEvent>,
}

/// How often something happened to neighbours.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NeighborEvent {
    /// Its name.
    pub event: String,
    /// How often.
    pub count: u64,
    /// What it means.
    pub text: String,
}

/// One neighbour.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NeighborRow {
    /// Interface.
    pub interface: String,
    /// Its address.
    pub address: IpAddr,
    /// Its MAC address; none = not known yet.
    pub mac: Option<Mac>,
    /// Configured, not learned.
    pub fixed: bool,
    /// How sure it is.
    pub state: NeighborState,
    /// Packets that wait for its MAC address.
    pub held: u32,
    /// Seconds since it was made or confirmed.
    pub age_s: u64,
}

/// How sure a neighbour is (RFC 4861, 7.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NeighborState {
    /// Configured.
    Static,
    /// It was asked for, and has not answered yet.
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

/// IP tables.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct TablesReply {
    /// In order of family and number.
    pub tables: Vec<TableRow>,
}

/// One IP table.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct TableRow {
    /// IP version.
    pub family: Family,
    /// Its number.
    pub table: u32,
    /// Prefixes in it.
    pub prefixes: u64,
    /// Bytes of the data-plane lookup structure.
    pub bytes: u64,
    /// Interfaces bound to it.
    pub interfaces: Vec<String>,
}
