//! Proxy ARP and proxy ND: prefixes that hosts of a link take for on-link and that the router reaches through another interface
//! (RFC 1027; RFC 4861, 7.2.8).

use crate::control::Control;
use crate::way::InterfaceRoutes;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use volley_fib::{Family, V6};
use volley_iface::{Flag, IfIdx};
use volley_model::Prefix;
use volley_router_discovery::nd;
use volley_tables::Publisher;

/// Prefixes by interface, as workers read them.
#[derive(Debug, Default)]
pub struct Proxies(BTreeMap<u32, Vec<Prefix>>);

impl Proxies {
    /// A table of these prefixes.
    pub fn new(ranges: BTreeMap<u32, Vec<Prefix>>) -> Self {
        Proxies(ranges)
    }

    /// Whether a request for this address is answered: the address is in a prefix of the interface, and its path leads out by
    /// another interface.
    pub(crate) fn answers<F: Family>(
        &self,
        way: &InterfaceRoutes<'_, F>,
        target: F::Addr,
        addr: IpAddr,
    ) -> bool {
        let ranges = self.0.get(&way.rx).map_or(&[][..], Vec::as_slice);
        ranges.iter().any(|range| range.contains(addr)) && way.leads_elsewhere(way.to(target))
    }

    /// Whether a solicitation is answered: its destination must be the target or its solicited-node group.
    pub(crate) fn answers6(
        &self,
        way: &InterfaceRoutes<'_, V6>,
        to: Ipv6Addr,
        target: Ipv6Addr,
    ) -> bool {
        let meant = to == nd::solicited_node(target) || to == target;
        meant && self.answers(way, u128::from(target), target.into())
    }
}

/// Prefixes of all interfaces, on the control thread.
pub(crate) struct ProxyRanges {
    ranges: BTreeMap<u32, Vec<Prefix>>,
    published: Publisher<Proxies>,
}

impl ProxyRanges {
    /// An empty table; each change is published to workers.
    pub(crate) fn new(published: Publisher<Proxies>) -> Self {
        ProxyRanges {
            ranges: BTreeMap::new(),
            published,
        }
    }

    /// The prefixes that an interface answers for.
    pub(crate) fn of(&self, iface: u32) -> &[Prefix] {
        self.ranges.get(&iface).map_or(&[], Vec::as_slice)
    }

    /// Sets the prefixes that an interface answers for.
    fn set(&mut self, iface: u32, ranges: &[Prefix]) {
        if ranges.is_empty() {
            self.ranges.remove(&iface);
        } else {
            self.ranges.insert(iface, ranges.to_vec());
        }
        self.publish();
    }

    /// Removes the prefixes of a deleted interface.
    pub(crate) fn forget(&mut self, iface: u32) {
        if self.ranges.remove(&iface).is_some() {
            self.publish();
        }
    }

    fn publish(&mut self) {
        self.published.publish(Proxies::new(self.ranges.clone()));
    }
}

impl Control {
    /// Sets the prefixes that an interface answers for.
    pub fn answer_for(&mut self, iface: u32, ranges: &[Prefix]) {
        self.proxies.set(iface, ranges);
        let interfaces = self.interfaces.borrow();
        let (index, on) = (IfIdx(iface), !ranges.is_empty());
        interfaces.table().set(index, Flag::ProxyNeighbors, on);
    }
}
