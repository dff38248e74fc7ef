//! The gateway of an interface.

use crate::family::Af;
use crate::path::PathTarget;
use crate::show::ShowFib;
use crate::source::Fib;
use std::net::{IpAddr, Ipv4Addr};
use volley_model::Prefix;

impl Fib {
    /// The next hop of the default route of IPv4 that leaves by an interface.
    pub fn gateway(&self, iface: u32) -> Option<Ipv4Addr> {
        let name = &self.interface(iface)?.name;
        let asked = ShowFib {
            family: Af::V4,
            table: Some(self.interface_table(iface, Af::V4)),
            prefix: Prefix::masked(Ipv4Addr::UNSPECIFIED.into(), 0).ok(),
            address: None,
            summary: false,
            limit: Some(1),
        };
        let reply = self.routes_shown(&asked).ok()?;
        let is_here = |next: IpAddr, interface: &Option<String>| match interface {
            Some(interface) => interface == name,
            None => self
                .addresses(iface)
                .iter()
                .any(|it| it.subnet().contains(next)),
        };
        let routes = reply.tables.iter().flat_map(|table| &table.routes);
        let mut paths = routes.flat_map(|route| &route.paths);
        paths.find_map(|path| match &path.target {
            PathTarget::Via {
                addr: next @ IpAddr::V4(gateway),
                interface,
                ..
            } if is_here(*next, interface) => Some(*gateway),
            _ => None,
        })
    }
}
