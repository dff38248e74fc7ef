//! The interface that received an ND message, with the lookups that the checks need.

use crate::message::Found;
use crate::proxy::Proxies;
use crate::way::InterfaceRoutes;
use std::net::Ipv6Addr;
use volley_fib::V6;
use volley_fib::dataplane::Dpo;
use volley_iface::{Flag, IfTable};
use volley_router_discovery::nd::{ALL_NODES, link_local, solicited_node};

/// The receiving interface, with the lookups for addresses in a message.
pub(crate) struct Link<'g> {
    pub(crate) way: InterfaceRoutes<'g, V6>,
    pub(crate) own: [u8; 6],
    pub(crate) proxies: &'g Proxies,
}

impl Link<'_> {
    pub(crate) fn to(&self, address: Ipv6Addr) -> Dpo {
        self.way.to(u128::from(address))
    }

    /// Whether the address is one of the interface.
    pub(crate) fn is_own(&self, address: Ipv6Addr) -> bool {
        let mut own = self.way.view.own(self.way.rx).iter();
        address == link_local(self.own) || own.any(|(a, _)| *a == u128::from(address))
    }

    /// Whether the interface listens to the address.
    pub(crate) fn takes(&self, to: Ipv6Addr) -> bool {
        let own = self.way.view.own(self.way.rx).iter();
        let mut groups = own.map(|(a, _)| solicited_node(Ipv6Addr::from(*a)));
        to == ALL_NODES
            || self.is_own(to)
            || to == solicited_node(link_local(self.own))
            || groups.any(|group| group == to)
    }

    /// Whether the router answers a solicitation as a proxy. It does not answer one from the unspecified address (a DAD probe).
    pub(crate) fn answers_for(&self, table: &IfTable, found: &Found) -> bool {
        table.has(self.way.rx, Flag::ProxyNeighbors)
            && found.flags.is_none()
            && !found.source.is_unspecified()
            && self.proxies.answers6(&self.way, found.to, found.target)
    }

    /// Whether a neighbour with the address is on the link.
    pub(crate) fn leads_back(&self, table: &IfTable, address: Ipv6Addr) -> bool {
        // An unnumbered interface has no network: the control thread decides which neighbours may be on the link.
        address.is_unicast_link_local()
            || table.has(self.way.rx, Flag::Unnumbered)
            || self.way.leads_back(self.to(address))
    }
}
