//! Warnings about a change that is carried out nevertheless: networks on two interfaces, gateways that are not on-link.

use crate::path;
use std::net::IpAddr;

use crate::path::PathTarget;
use volley_model::IfAddress;

use crate::family::{V4, V6};
use crate::source::{Fib, PathState, Side, Source, Via};

/// Network part of an address; the host bits are 0.
fn network(addr: IpAddr, len: u8) -> u128 {
    let (bits, width) = match addr {
        IpAddr::V4(a) => (u128::from(a.to_bits()) << 96, len),
        IpAddr::V6(a) => (a.to_bits(), len),
    };
    bits & u128::MAX.checked_shl(128 - u32::from(width)).unwrap_or(0)
}

/// Whether an address is in the network of another one.
fn covers(net: IfAddress, addr: IpAddr) -> bool {
    net.addr().is_ipv4() == addr.is_ipv4()
        && network(net.addr(), net.len()) == network(addr, net.len())
}

fn near(addr: IpAddr) -> bool {
    matches!(addr, IpAddr::V6(a) if a.is_unicast_link_local())
}

impl Fib {
    /// Networks of other interfaces in the table that overlap the network of a new address.
    pub(super) fn overlaps(&self, iface: u32, address: IfAddress) -> Vec<String> {
        let af = address.family();
        if near(address.addr()) {
            return Vec::new();
        }
        let table = self.interface_table(iface, af);
        let rivals = self
            .interfaces()
            .filter(|i| i.index != iface && self.interface_table(i.index, af) == table);
        let mut notes = Vec::new();
        for rival in rivals {
            let shares = |other: &&IfAddress| {
                !near(other.addr())
                    && (covers(**other, address.addr()) || covers(address, other.addr()))
            };
            let found = self.addresses(rival.index).iter().find(shares);
            notes.extend(found.map(|other| {
                format!(
                    "warning: the network of {address} on {} overlaps that of {other} on {}: packets to addresses of both go \
                     by the longer prefix, else by the interface whose name sorts first",
                    self.iface_name(iface),
                    rival.name
                )
            }));
        }
        notes
    }

    /// Gateways of a static route that are not on the link of their interface, where they may not answer.
    pub(super) fn gateways_elsewhere(&self, source: Source, paths: &[path::Path]) -> Vec<String> {
        if source != Source::Static {
            return Vec::new();
        }
        let gateway = |path: &path::Path| match &path.target {
            PathTarget::Via {
                addr,
                interface: Some(name),
                ..
            } if !path.onlink => Some((*addr, name.clone())),
            _ => None,
        };
        let mut notes = Vec::new();
        for (addr, name) in paths.iter().filter_map(gateway) {
            let Some(iface) = self.interface_index(&name) else {
                continue;
            };
            if self.is_on_link(iface, addr) {
                continue;
            }
            notes.push(format!(
                "warning: gateway {addr} is not on the link of {name}: no address of {name} has a network with it, and it is no \
                 static neighbor there; `onlink` behind the interface says that it is on the link all the same"
            ));
        }
        notes
    }

    fn is_on_link(&self, iface: u32, addr: IpAddr) -> bool {
        let on = |net: &IfAddress| covers(*net, addr);
        let advertised = self.on_link(iface).iter();
        near(addr)
            // An unnumbered interface has a link without a network.
            || self.numbered(iface).is_some()
            || self.addresses(iface).iter().any(on)
            || advertised.filter_map(|p| IfAddress::new(p.addr(), p.len()).ok()).any(|n| on(&n))
            || self.res.macs.contains_key(&(iface, addr))
            || match addr {
                IpAddr::V4(_) => self.is_attached::<V4>(iface, addr),
                IpAddr::V6(_) => self.is_attached::<V6>(iface, addr),
            }
    }

    /// Whether a route makes an address on-link on an interface.
    fn is_attached<F: Side>(&self, iface: u32, addr: IpAddr) -> bool {
        let table = F::side(self).1.table_of(iface);
        let found = F::number(addr).and_then(|addr| self.show_match::<F>(table, addr));
        found.is_some_and(|route| {
            let attached = |p: &PathState| p.path.via == Via::Attached { iface };
            route.paths.iter().any(attached)
        })
    }
}
