//! Answer to [`crate::Query::Discovery`].

use crate::addr::{IfAddress, Prefix};
use crate::advert::RouterAdvert;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::Ipv6Addr;

/// How interfaces deal with their neighbours.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct DiscoveryReply {
    /// In order of index.
    pub interfaces: Vec<DiscoveryRow>,
}

/// One interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DiscoveryRow {
    /// The interface.
    pub interface: String,
    /// Its link-local address; none without an IPv6 address.
    pub link_local: Option<Ipv6Addr>,
    /// Its addresses.
    pub addresses: Vec<AddressRow>,
    /// Probes for an address before it is used.
    pub probes: u32,
    /// For whom it answers.
    pub proxies: Vec<Prefix>,
    /// Groups of IPv6 that it listens to, and tells its link so.
    pub groups: Vec<Ipv6Addr>,
    /// What it advertises as a router.
    pub advert: Option<AdvertRow>,
}

/// An address of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AddressRow {
    /// The address.
    pub address: IfAddress,
    /// How far it is.
    pub state: AddressState,
}

/// Whether an address is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AddressState {
    /// It is used.
    Preferred,
    /// Its link is being asked whether somebody has it.
    Tentative,
    /// Another station has it: it is not used.
    Duplicate,
}

/// Router advertisements of an interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AdvertRow {
    /// As it was set.
    pub settings: RouterAdvert,
    /// Prefixes that it advertises.
    pub prefixes: Vec<Prefix>,
    /// Advertisements so far.
    pub sent: u64,
    /// Solicitations heard.
    pub solicited: u64,
    /// Milliseconds until the next one; none while it sends none.
    pub next_ms: Option<u64>,
}
