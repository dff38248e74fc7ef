//! What the control thread knows of an interface and its link.

use crate::nd;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use volley_model::{Family, IfAddress, Prefix};

/// A MAC address.
pub type Mac = [u8; 6];

/// Nanoseconds of a second.
pub const SECOND: u64 = 1_000_000_000;

/// Whether an address is good on its link only, on every link.
pub fn is_link_local(addr: IpAddr) -> bool {
    matches!(addr, IpAddr::V6(a) if a.is_unicast_link_local())
}

/// What is known of an interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// Its MAC address.
    pub mac: Mac,
    /// Its MTU.
    pub mtu: u16,
    /// Whether it is up.
    pub up: bool,
    /// Whether the link can have neighbours that are learned.
    pub learns: bool,
    /// Its addresses that are used.
    pub addresses: Vec<IfAddress>,
    /// Of these, those that it made itself: they say nothing of a network.
    pub automatic: Vec<IfAddress>,
    /// Networks that routers say are on the link.
    pub networks: Vec<Prefix>,
    /// They are another interface's: there is no network.
    pub is_unnumbered: bool,
}

impl Link {
    /// Whether it has an address of a family.
    pub fn has(&self, family: Family) -> bool {
        self.addresses.iter().any(|a| a.family() == family)
    }

    /// Whether an address is on its link.
    pub fn on_link(&self, addr: IpAddr) -> bool {
        let own = |a: &&IfAddress| !self.automatic.contains(a);
        let mut own = self.addresses.iter().filter(own);
        let near = own.any(|a| a.subnet().contains(addr))
            || self.networks.iter().any(|n| n.contains(addr));
        near || is_link_local(addr) && self.addresses.iter().any(|a| a.addr().is_ipv6())
    }

    /// Addresses that are configured, or those of the interface whose addresses are used.
    pub fn own_addresses(&self) -> impl Iterator<Item = IfAddress> {
        let own = |a: &IfAddress| !self.automatic.contains(a);
        self.addresses.iter().copied().filter(own)
    }

    /// Our address for a solicitation; the link-local one where no other fits.
    pub fn source6(&self, target: Ipv6Addr) -> Ipv6Addr {
        let local = nd::link_local(self.mac);
        if target.is_unicast_link_local() {
            return local;
        }
        match IfAddress::nearest(&self.addresses, target.into()) {
            Some(IpAddr::V6(a)) => a,
            _ => local,
        }
    }

    /// Our address for a question about `target`.
    pub fn source(&self, target: Ipv4Addr) -> Option<Ipv4Addr> {
        match IfAddress::nearest(&self.addresses, target.into())? {
            IpAddr::V4(a) => Some(a),
            IpAddr::V6(_) => None,
        }
    }
}
