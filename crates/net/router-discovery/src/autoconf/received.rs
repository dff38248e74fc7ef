//! Contents of a received router advertisement.

use super::packet;
use crate::link::Mac;
use std::net::Ipv6Addr;
use volley_wire::nd::NdMessage;

/// Most prefixes that are used of one advertisement.
pub const PREFIXES: usize = 16;
/// A prefix that a router advertises.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PrefixOffer {
    /// The prefix; host bits may be set.
    pub prefix: u128,
    /// Prefix length.
    pub len: u8,
    /// L flag: the prefix is on-link.
    pub on_link: bool,
    /// A flag: hosts form addresses from the prefix.
    pub autonomous: bool,
    /// Valid lifetime in seconds.
    pub valid_s: u32,
    /// Preferred lifetime in seconds.
    pub preferred_s: u32,
}

/// A router advertisement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedAdvert {
    /// The router's link-local address.
    pub router: Ipv6Addr,
    /// The router's MAC address; zeros if the advertisement has none.
    pub mac: Mac,
    /// Router lifetime in seconds.
    pub lifetime_s: u16,
    /// Preference: 0 = high, 1 = medium, 2 = low.
    pub preference: u8,
    /// M flag: hosts get addresses by DHCPv6.
    pub managed: bool,
    /// O flag: hosts get other configuration by DHCPv6.
    pub other: bool,
    /// Hop limit for hosts, 0 = unspecified.
    pub hop_limit: u8,
    /// Reachable time in milliseconds, 0 = unspecified.
    pub reachable_ms: u32,
    /// Retransmission time in milliseconds, 0 = unspecified.
    pub retransmit_ms: u32,
    /// MTU of the link.
    pub mtu: Option<u32>,
    /// Prefixes; the first `count` are valid.
    pub offers: [PrefixOffer; PREFIXES],
    /// Number of valid prefixes.
    pub count: u8,
    /// Number of prefixes beyond the capacity.
    pub more: u8,
}

impl ReceivedAdvert {
    /// Reads a valid message from `source`; none if it is no router advertisement.
    pub fn read(source: Ipv6Addr, message: &NdMessage<'_>) -> Option<Self> {
        packet::read(source, message)
    }

    /// The valid prefixes.
    pub fn offers(&self) -> &[PrefixOffer] {
        self.offers.get(..usize::from(self.count)).unwrap_or(&[])
    }
}
