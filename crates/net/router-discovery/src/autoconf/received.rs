//! What a router advertises, as it was received.

use super::packet;
use crate::link::Mac;
use std::net::Ipv6Addr;
use volley_wire::nd::NdMessage;

/// Prefixes of one advertisement that are used, at most.
pub const PREFIXES: usize = 16;
/// A prefix that a router advertises.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PrefixOffer {
    /// The prefix; host bits may be set.
    pub prefix: u128,
    /// Its length.
    pub len: u8,
    /// It is on the link.
    pub on_link: bool,
    /// Hosts make addresses of it.
    pub autonomous: bool,
    /// Seconds for which it holds.
    pub valid_s: u32,
    /// Seconds for which addresses of it are preferred.
    pub preferred_s: u32,
}

/// What a router says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedAdvert {
    /// The router's link-local address.
    pub router: Ipv6Addr,
    /// Its MAC address; zeros where it does not say it.
    pub mac: Mac,
    /// Seconds for which it is a default router.
    pub lifetime_s: u16,
    /// 0 = high, 1 = medium, 2 = low.
    pub preference: u8,
    /// Hosts get addresses by DHCPv6.
    pub managed: bool,
    /// Hosts get other things by DHCPv6.
    pub other: bool,
    /// Hop limit for hosts, 0 = not said.
    pub hop_limit: u8,
    /// Milliseconds that neighbours are reachable, 0 = not said.
    pub reachable_ms: u32,
    /// Milliseconds between solicitations, 0 = not said.
    pub retransmit_ms: u32,
    /// MTU of the link.
    pub mtu: Option<u32>,
    /// The first of these count.
    pub offers: [PrefixOffer; PREFIXES],
    /// How many.
    pub count: u8,
    /// Prefixes that there was no room for.
    pub more: u8,
}

impl ReceivedAdvert {
    /// What a sound message from `source` says; none where it is no router advertisement.
    pub fn read(source: Ipv6Addr, message: &NdMessage<'_>) -> Option<Self> {
        packet::read(source, message)
    }

    /// The prefixes.
    pub fn offers(&self) -> &[PrefixOffer] {
        self.offers.get(..usize::from(self.count)).unwrap_or(&[])
    }
}
