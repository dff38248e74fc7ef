//! Answer to [`crate::Query::Discovery`].

use crate::addr::{IfAddress, Prefix};
use crate::advert::RouterAdvert;
use crate::autoconf::Autoconf;
use crate::reply::NeighborState;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::Ipv6Addr;

/// How interfaces deal with their neighbours.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct InterfaceProtocolReply {
    /// In order of index.
    pub interfaces: Vec<InterfaceProtocolRow>,
}

/// One interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct InterfaceProtocolRow {
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
    /// What it takes from the routers of its link.
    #[serde(default)]
    pub autoconf: Option<AutoconfRow>,
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
    /// It is used, but nothing new begins with it where another can be.
    Deprecated,
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
    /// Advertisements of other routers that differ from what is said here (RFC 4861, 6.2.7).
    #[serde(default)]
    pub inconsistent: u64,
    /// Milliseconds until the next one; none while it sends none.
    pub next_ms: Option<u64>,
}

/// Autoconfiguration of an interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AutoconfRow {
    /// As it was set.
    pub settings: Autoconf,
    /// How far it is.
    pub state: AutoconfState,
    /// Solicitations of routers sent.
    pub solicitations: u64,
    /// Advertisements taken.
    pub heard: u64,
    /// Options and routers that were not taken: they are not as they have to be, or there was no room.
    pub refused: u64,
    /// Routers of the link.
    pub routers: Vec<RouterRow>,
    /// Networks of the link.
    pub on_link: Vec<OnLinkRow>,
    /// Addresses made of prefixes.
    pub addresses: Vec<AutoconfAddressRow>,
}

/// How far autoconfiguration is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AutoconfState {
    /// The interface is down, uses the addresses of another, or leads to nobody.
    Down,
    /// Another station has its link-local address: nothing is taken.
    Disabled,
    /// Routers are being asked for.
    Soliciting,
    /// Nobody answered: advertisements that come later are taken.
    Unanswered,
    /// A router was heard.
    Heard,
}

/// A router that an interface heard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RouterRow {
    /// Its link-local address.
    pub address: Ipv6Addr,
    /// Milliseconds for which it is a way to everywhere.
    pub lifetime_ms: u64,
    /// 0 = high, 1 = medium, 2 = low (RFC 4191).
    pub preference: u8,
    /// Whether packets without a better route go to it; several share them.
    #[serde(default)]
    pub in_use: bool,
    /// Whether it does not answer: others go before it (RFC 4861, 6.3.6).
    #[serde(default)]
    pub silent: bool,
    /// Its state as a neighbour; none = it is none.
    #[serde(default)]
    pub neighbor: Option<NeighborState>,
    /// Hop limit that it tells hosts; 0 = not said. Not used.
    pub hop_limit: u8,
    /// MTU that it tells hosts. Not used.
    pub mtu: Option<u32>,
    /// Milliseconds that neighbours count as reachable, as it tells hosts; 0 = not said. Not used.
    pub reachable_ms: u32,
    /// Milliseconds between solicitations, as it tells hosts; 0 = not said. Not used.
    pub retransmit_ms: u32,
}

/// A network of the link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OnLinkRow {
    /// Which.
    pub prefix: Prefix,
    /// Milliseconds for which it holds; none = always.
    pub valid_ms: Option<u64>,
}

/// An address made of a prefix.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AutoconfAddressRow {
    /// The address.
    pub address: IfAddress,
    /// How far it is; none = it is not on the interface, for it could not be, or it is configured there.
    pub state: Option<AddressState>,
    /// Milliseconds for which it is valid; none = always.
    pub valid_ms: Option<u64>,
    /// Milliseconds for which it is preferred; none = always.
    pub preferred_ms: Option<u64>,
}
