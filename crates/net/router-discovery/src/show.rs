//! Rows of `show ip6 nd` for router discovery.

use crate::neighbor_state::NeighborState;
use schemars::JsonSchema;
use serde::Serialize;
use std::net::Ipv6Addr;
use volley_model::{IfAddress, Prefix};
use volley_object::Instance;

/// Whether an address is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AddressState {
    /// It is used.
    Preferred,
    /// Duplicate address detection is not over (RFC 4862, 5.4).
    Tentative,
    /// Another station has it: it is not used.
    Duplicate,
    /// It is used, but nothing new begins with it where another can be.
    Deprecated,
}

/// Router advertisements of an interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AdvertRow {
    /// As it was set.
    pub settings: Option<Instance>,
    /// Shortest time between two unsolicited advertisements.
    pub min_interval_s: u32,
    /// Longest time between two unsolicited advertisements.
    pub max_interval_s: u32,
    /// Lifetime of the default router.
    pub lifetime_s: u16,
    /// Prefixes that it advertises.
    pub prefixes: Vec<Prefix>,
    /// Advertisements so far.
    pub sent: u64,
    /// Solicitations heard.
    pub solicited: u64,
    /// Advertisements of other routers that differ from this router's (RFC 4861, 6.2.7).
    pub inconsistent: u64,
    /// Milliseconds until the next one; none while it sends none.
    pub next_ms: Option<u64>,
}

/// Autoconfiguration of an interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AutoconfRow {
    /// Whether its routers are default routers.
    pub default_route: bool,
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AutoconfState {
    /// The interface is down, uses the addresses of another one, or has no link with routers.
    Down,
    /// Another station has its link-local address: nothing is taken.
    Disabled,
    /// Router solicitations are being sent.
    Soliciting,
    /// No router answered: advertisements that come later are taken.
    Unanswered,
    /// A router was heard.
    Heard,
}

/// A router that an interface heard.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RouterRow {
    /// Its link-local address.
    pub address: Ipv6Addr,
    /// Milliseconds for which it is a default router.
    pub lifetime_ms: u64,
    /// 0 = high, 1 = medium, 2 = low (RFC 4191).
    pub preference: u8,
    /// Whether packets without a better route go to it; several share them.
    pub in_use: bool,
    /// Whether it does not answer: other routers are preferred (RFC 4861, 6.3.6).
    pub silent: bool,
    /// Its state as a neighbour; none = it is none.
    pub neighbor: Option<NeighborState>,
    /// Hop limit that it advertises; 0 = unspecified. Not used.
    pub hop_limit: u8,
    /// MTU that it tells hosts. Not used.
    pub mtu: Option<u32>,
    /// Reachable time in milliseconds that it advertises; 0 = unspecified. Not used.
    pub reachable_ms: u32,
    /// Retransmission time in milliseconds that it advertises; 0 = unspecified. Not used.
    pub retransmit_ms: u32,
}

/// A network of the link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OnLinkRow {
    /// Which.
    pub prefix: Prefix,
    /// Milliseconds for which it holds; none = always.
    pub valid_ms: Option<u64>,
}

/// An address made of a prefix.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
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
