//! Rows of `show ip6 nd` for router discovery.

use crate::neighbor_state::NeighborState;
use schemars::JsonSchema;
use serde::Serialize;
use std::net::Ipv6Addr;
use volley_model::{IfAddress, Prefix};
use volley_object::Instance;

/// State of an address of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AddressState {
    /// The address is used.
    Preferred,
    /// Duplicate address detection is in progress (RFC 4862, 5.4).
    Tentative,
    /// Another host has the address: the address is not used.
    Duplicate,
    /// The address is used for existing communication, and for new communication only if there is no other.
    Deprecated,
}

/// Router advertisements of an interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AdvertRow {
    /// Configured settings.
    pub settings: Option<Instance>,
    /// Shortest time between two unsolicited advertisements.
    pub min_interval_s: u32,
    /// Longest time between two unsolicited advertisements.
    pub max_interval_s: u32,
    /// Lifetime of the default router.
    pub lifetime_s: u16,
    /// Advertised prefixes.
    pub prefixes: Vec<Prefix>,
    /// Advertisements so far.
    pub sent: u64,
    /// Received router solicitations.
    pub solicited: u64,
    /// Advertisements of other routers that differ from this router's (RFC 4861, 6.2.7).
    pub inconsistent: u64,
    /// Milliseconds until the next advertisement; none if none is scheduled.
    pub next_ms: Option<u64>,
}

/// Autoconfiguration of an interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AutoconfRow {
    /// Whether default routes are installed.
    pub default_route: bool,
    /// State of autoconfiguration.
    pub state: AutoconfState,
    /// Solicitations of routers sent.
    pub solicitations: u64,
    /// Advertisements accepted.
    pub heard: u64,
    /// Options and routers refused: they are invalid, or a limit is reached.
    pub refused: u64,
    /// Routers of the link.
    pub routers: Vec<RouterRow>,
    /// On-link prefixes.
    pub on_link: Vec<OnLinkRow>,
    /// Addresses made of prefixes.
    pub addresses: Vec<AutoconfAddressRow>,
}

/// State of autoconfiguration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AutoconfState {
    /// The interface is down, is unnumbered, or has no link with routers.
    Down,
    /// Another host has the link-local address: autoconfiguration is disabled.
    Disabled,
    /// Router solicitations are being sent.
    Soliciting,
    /// No router has answered: later advertisements are accepted.
    Unanswered,
    /// A router advertisement was received.
    Heard,
}

/// Default router of an interface, from its advertisements.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RouterRow {
    /// Link-local address of the router.
    pub address: Ipv6Addr,
    /// Milliseconds of the router lifetime left.
    pub lifetime_ms: u64,
    /// Preference: 0 = high, 1 = medium, 2 = low (RFC 4191).
    pub preference: u8,
    /// Whether the default route uses the router; several routers share the traffic.
    pub in_use: bool,
    /// Whether the router does not answer: other routers are preferred (RFC 4861, 6.3.6).
    pub silent: bool,
    /// State of the router as a neighbour; none = no entry.
    pub neighbor: Option<NeighborState>,
    /// Advertised hop limit; 0 = unspecified. Not used.
    pub hop_limit: u8,
    /// Advertised MTU. Not used.
    pub mtu: Option<u32>,
    /// Advertised reachable time in milliseconds; 0 = unspecified. Not used.
    pub reachable_ms: u32,
    /// Advertised retransmission time in milliseconds; 0 = unspecified. Not used.
    pub retransmit_ms: u32,
}

/// On-link prefix.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OnLinkRow {
    /// Prefix.
    pub prefix: Prefix,
    /// Milliseconds of the valid lifetime left; none = infinite.
    pub valid_ms: Option<u64>,
}

/// Address formed from a prefix.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AutoconfAddressRow {
    /// The address.
    pub address: IfAddress,
    /// State of the address; none = the interface does not have it as an autoconfigured address: it is refused, or configured.
    pub state: Option<AddressState>,
    /// Milliseconds of the valid lifetime left; none = infinite.
    pub valid_ms: Option<u64>,
    /// Milliseconds of the preferred lifetime left; none = infinite.
    pub preferred_ms: Option<u64>,
}
