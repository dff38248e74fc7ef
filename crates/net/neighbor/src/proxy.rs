//! For whom an interface answers: ranges of addresses that its link takes for near and that are reached through another
//! interface (RFC 1027; RFC 4861, 7.2.8).

use crate::control::Control;
use crate::way::InterfaceRoutes;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use volley_fib::{Family, V6};
use volley_iface::{Flag, IfIdx};
use volley_model::Prefix;
use volley_router_discovery::nd;
use volley_tables::Publisher;

/// What workers know of it: the ranges of each interface.
#[derive(Debug, Default)]
pub struct Proxies(BTreeMap<u32, Vec<Prefix>>);

impl Proxies {
    /// These ranges.
    pub fn new(ranges: BTreeMap<u32, Vec<Prefix>>) -> Self {
        Proxies(ranges)
    }

    /// Whether a question on an interface is answered for somebody with this address: it is of a range, and the way to it
    /// leads out by another interface.
    pub(crate) fn answers<F: Family>(
        &self,
        way: &InterfaceRoutes<'_, F>,
        target: F::Addr,
        addr: IpAddr,
    ) -> bool {
        let ranges = self.0.get(&way.rx).map_or(&[][..], Vec::as_slice);
        ranges.iter().any(|range| range.contains(addr)) && way.leads_elsewhere(way.to(target))
    }

    /// The same for a solicitation: it has to be sent to whom it asks for.
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

/// The ranges of all interfaces on the control thread.
pub(crate) struct ProxyRanges {
    ranges: BTreeMap<u32, Vec<Prefix>>,
    published: Publisher<Proxies>,
}

impl ProxyRanges {
    /// No ranges; changes are published for workers.
    pub(crate) fn new(published: Publisher<Proxies>) -> Self {
        ProxyRanges {
            ranges: BTreeMap::new(),
            published,
        }
    }

    /// For whom an interface answers.
    pub(crate) fn of(&self, iface: u32) -> &[Prefix] {
        self.ranges.get(&iface).map_or(&[], Vec::as_slice)
    }

    /// For whom an interface answers from now on.
    fn set(&mut self, iface: u32, ranges: &[Prefix]) {
        if ranges.is_empty() {
            self.ranges.remove(&iface);
        } else {
            self.ranges.insert(iface, ranges.to_vec());
        }
        self.publish();
    }

    /// An interface has gone.
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
    /// Say for whom an interface answers.
    pub fn answer_for(&mut self, iface: u32, ranges: &[Prefix]) {
        self.proxies.set(iface, ranges);
        let interfaces = self.interfaces.borrow();
        let (index, on) = (IfIdx(iface), !ranges.is_empty());
        interfaces.table().set(index, Flag::ProxyNeighbors, on);
    }
}
