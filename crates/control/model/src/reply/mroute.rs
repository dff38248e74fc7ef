//! Multicast routes and what they carried.

use crate::mroute::Mroute;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Multicast routes.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct MroutesReply {
    /// By table, group and source.
    pub routes: Vec<MrouteRow>,
}

/// One multicast route.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MrouteRow {
    /// What is configured.
    pub route: Mroute,
    /// Packets that came by an accepting interface.
    pub packets: u64,
    /// Their bytes, from the IP header on.
    pub bytes: u64,
    /// Packets that came by another interface, and were dropped.
    pub wrong_interface: u64,
}
