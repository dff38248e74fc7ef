//! Bridge domains and the stations they know.

use crate::addr::Mac;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bridge domains.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct BridgeDomainsReply {
    /// By number.
    pub domains: Vec<BridgeDomainRow>,
}

/// One bridge domain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BridgeDomainRow {
    /// Identifier.
    pub id: u32,
    /// Whether the addresses of stations are learned.
    pub learn: bool,
    /// Whether frames to groups and to all stations are flooded.
    pub flood: bool,
    /// Whether frames to unknown stations are flooded.
    pub uu_flood: bool,
    /// Whether frames to known stations are forwarded.
    pub forward: bool,
    /// Minutes after which a silent station is forgotten; 0 = never.
    pub mac_age: u32,
    /// Most stations that are learned.
    pub mac_limit: u32,
    /// Of the groups 01:80:c2:00:00:00 to :0f those that are flooded, as bits.
    pub group_fwd_mask: u32,
    /// Its ports, by number of the interface.
    pub ports: Vec<BridgePortRow>,
    /// Stations that were learned and are known.
    pub learned: u64,
    /// Stations that are configured and in use.
    pub fixed: u64,
    /// What happened.
    pub counts: BridgeCounts,
}

/// One port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BridgePortRow {
    /// Interface.
    pub interface: String,
    /// Split-horizon group; 0 = in none.
    pub shg: u32,
    /// Whether packets pass.
    pub up: bool,
}

/// What happened to a bridge domain's stations, since it was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct BridgeCounts {
    /// Learned.
    pub learned: u64,
    /// Found behind another port.
    pub moved: u64,
    /// Forgotten because they were silent.
    pub aged: u64,
    /// Forgotten because they were flushed, or their port went down or away.
    pub flushed: u64,
    /// Not learned because of the domain's `mac_limit`, or because the table was full.
    pub refused: u64,
}

/// Stations.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct L2FibReply {
    /// By domain and address.
    pub entries: Vec<L2FibRow>,
}

/// One station.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct L2FibRow {
    /// Its address.
    pub mac: Mac,
    /// Bridge domain.
    pub domain: u32,
    /// The port behind which it is; none = its frames are dropped.
    pub interface: Option<String>,
    /// Whether it is configured.
    pub fixed: bool,
    /// Seconds since it was heard, as far as a look every few seconds tells; none where it does not age.
    pub age_s: Option<u64>,
}
