//! Interface and link attributes on the control thread.

use crate::nd;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use volley_model::{Family, IfAddress, Prefix};

/// A MAC address.
pub type Mac = [u8; 6];

/// Nanoseconds of a second.
pub const SECOND: u64 = 1_000_000_000;

/// Whether an address is link-local.
pub fn is_link_local(addr: IpAddr) -> bool {
    matches!(addr, IpAddr::V6(a) if a.is_unicast_link_local())
}

/// Attributes of an interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// MAC address of the interface.
    pub mac: Mac,
    /// MTU of the interface.
    pub mtu: u16,
    /// Whether the interface is up.
    pub up: bool,
    /// Whether neighbours can be learned on the link.
    pub learns: bool,
    /// Addresses in use.
    pub addresses: Vec<IfAddress>,
    /// Autoconfigured addresses among these: they have no network.
    pub automatic: Vec<IfAddress>,
    /// On-link prefixes that routers advertise.
    pub networks: Vec<Prefix>,
    /// The addresses belong to another interface: there is no network.
    pub is_unnumbered: bool,
}

impl Link {
    /// Whether the interface has an address of a family.
    pub fn has(&self, family: Family) -> bool {
        self.addresses.iter().any(|a| a.family() == family)
    }

    /// Whether an address is on-link.
    pub fn on_link(&self, addr: IpAddr) -> bool {
        let own = |a: &&IfAddress| !self.automatic.contains(a);
        let mut own = self.addresses.iter().filter(own);
        let near = own.any(|a| a.subnet().contains(addr))
            || self.networks.iter().any(|n| n.contains(addr));
        near || is_link_local(addr) && self.addresses.iter().any(|a| a.addr().is_ipv6())
    }

    /// Configured addresses, or those of the interface that lends its addresses.
    pub fn own_addresses(&self) -> impl Iterator<Item = IfAddress> {
        let own = |a: &IfAddress| !self.automatic.contains(a);
        self.addresses.iter().copied().filter(own)
    }

    /// Source address of a solicitation; the link-local one if no other fits.
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

    /// Source address of an ARP request for `target`.
    pub fn source(&self, target: Ipv4Addr) -> Option<Ipv4Addr> {
        match IfAddress::nearest(&self.addresses, target.into())? {
            IpAddr::V4(a) => Some(a),
            IpAddr::V6(_) => None,
        }
    }
}
