//! Multicast routes and what they carried.

use crate::addr::Prefix;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// Multicast routes.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct MroutesReply {
    /// By table, group and source.
    pub routes: Vec<MrouteRow>,
}

/// Where packets for a group may come from, and where they go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RouteOfGroup {
    /// The groups: of full length for one.
    pub group: Prefix,
    /// The source, for one group; none = any.
    pub source: Option<IpAddr>,
    /// IP table that the receiving interface looks in.
    pub table: u32,
    /// Interfaces by which packets may come.
    pub accept: Vec<String>,
    /// Interfaces that get a copy, but never the one that a packet came by.
    pub forward: Vec<String>,
}

/// One multicast route.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MrouteRow {
    /// What is configured.
    pub route: RouteOfGroup,
    /// Packets that came by an accepting interface.
    pub packets: u64,
    /// Their bytes, from the IP header on.
    pub bytes: u64,
    /// Packets that came by another interface, and were dropped.
    pub wrong_interface: u64,
}
