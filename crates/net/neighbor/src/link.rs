//! What the control thread knows of an interface and its link.

use crate::entry::Mac;
use crate::nd;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use volley_model::{Family, IfAddress, Prefix};

/// Whether an address is good on its link only, on every link.
pub(crate) fn is_link_local(addr: IpAddr) -> bool {
    matches!(addr, IpAddr::V6(a) if a.is_unicast_link_local())
}

/// What is known of an interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) mac: Mac,
    pub(crate) mtu: u16,
    pub(crate) up: bool,
    pub(crate) learns: bool,
    pub(crate) addresses: Vec<IfAddress>,
    /// Of these, those that it made itself: they say nothing of a network.
    pub(crate) automatic: Vec<IfAddress>,
    /// Networks that routers say are on the link.
    pub(crate) networks: Vec<Prefix>,
    /// They are another interface's: there is no network.
    pub(crate) is_unnumbered: bool,
}

impl Link {
    /// Whether it has an address of a family.
    pub(crate) fn has(&self, family: Family) -> bool {
        self.addresses.iter().any(|a| a.family() == family)
    }

    pub(crate) fn on_link(&self, addr: IpAddr) -> bool {
        let own = |a: &&IfAddress| !self.automatic.contains(a);
        let mut own = self.addresses.iter().filter(own);
        let near = own.any(|a| a.subnet().contains(addr))
            || self.networks.iter().any(|n| n.contains(addr));
        near || is_link_local(addr) && self.addresses.iter().any(|a| a.addr().is_ipv6())
    }

    /// Addresses that are configured, or those of the interface whose addresses are used.
    pub(crate) fn own_addresses(&self) -> impl Iterator<Item = IfAddress> {
        let own = |a: &IfAddress| !self.automatic.contains(a);
        self.addresses.iter().copied().filter(own)
    }

    /// Our address for a solicitation; the link-local one where no other fits.
    pub(crate) fn source6(&self, target: Ipv6Addr) -> Ipv6Addr {
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
    pub(crate) fn source(&self, target: Ipv4Addr) -> Option<Ipv4Addr> {
        match IfAddress::nearest(&self.addresses, target.into())? {
            IpAddr::V4(a) => Some(a),
            IpAddr::V6(_) => None,
        }
    }
}
