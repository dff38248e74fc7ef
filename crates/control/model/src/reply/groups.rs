//! Answer to [`crate::Query::Groups`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use volley_object::Instance;

/// Groups that hosts listen to.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct GroupsReply {
    /// By interface.
    pub interfaces: Vec<GroupsRow>,
}

/// One interface that asks for groups.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GroupsRow {
    /// The interface.
    pub interface: String,
    /// How it asks.
    pub settings: Option<Instance>,
    /// The router that asks on this link: the one with the lowest address; none = nobody, for the interface is down or has no address.
    pub querier: Option<IpAddr>,
    /// Whether that is this router.
    pub own: bool,
    /// Milliseconds until the other router counts as gone.
    pub other_ms: Option<u64>,
    /// Queries sent.
    pub queries: u64,
    /// Messages of hosts that were taken.
    pub reports: u64,
    /// Groups and sources that there was no room for.
    pub refused: u64,
    /// Groups with members.
    pub groups: Vec<GroupRow>,
}

/// One group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GroupRow {
    /// The group.
    pub group: IpAddr,
    /// All sources are wanted but those that are named and blocked; else only those that are named.
    pub exclude: bool,
    /// Milliseconds until it is known that nobody wants all sources.
    pub expires_ms: Option<u64>,
    /// The version of the oldest host (of IGMP: 1 to 3; of MLD: 1, 2).
    pub version: u8,
    /// Sources that are named.
    pub sources: Vec<SourceRow>,
}

/// One source of a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SourceRow {
    /// The source.
    pub source: IpAddr,
    /// Milliseconds for which somebody wants it; none = it is blocked.
    pub expires_ms: Option<u64>,
}
