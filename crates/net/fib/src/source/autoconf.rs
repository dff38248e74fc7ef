//! State that an interface gets from routers of its link (RFC 4862; RFC 4861, 6.3): addresses, on-link prefixes, default
//! routes.
//!
//! Configured state takes precedence: these routes have a separate source ([`Source::Autoconf`]), and an autoconfigured address
//! yields to the same configured one. The state is removed with the interface, when the interface goes down, and when it is
//! bound to another table. An autoconfigured address contributes no network (RFC 5942, 4): routers advertise on-link prefixes
//! separately.

use std::net::Ipv6Addr;

use volley_model::{IfAddress, Prefix as Network};

use super::facts::Automatic;
use super::fib::Fib;
use super::path::{Path, Via};
use crate::error::FibError;
use crate::family::{Af, Family, Prefix, V6};
use crate::source::Source;

fn number(network: &Network) -> Option<Prefix<V6>> {
    Some(Prefix::around(V6::number(network.addr())?, network.len()))
}

impl Fib {
    /// Adds an autoconfigured address. It contributes no network.
    pub fn add_automatic(&mut self, iface: u32, addr: IfAddress) -> Result<(), FibError> {
        if self.is_automatic(iface, addr) {
            return Ok(());
        }
        let all = self.automatic.entry(iface).or_default();
        all.addresses.push(addr);
        let done = self.add_address(iface, addr);
        if done.is_err() {
            self.unmark(iface, addr);
        }
        done
    }

    /// Removes an autoconfigured address; false if there was none.
    pub fn del_automatic(&mut self, iface: u32, addr: IfAddress) -> bool {
        let there = self.is_automatic(iface, addr);
        // A removal of routes needs no free capacity.
        let gone = there && self.del_address(iface, addr).is_ok();
        self.unmark(iface, addr);
        gone
    }

    /// Removes a configured address.
    pub(crate) fn del_configured(&mut self, iface: u32, addr: IfAddress) -> Result<(), FibError> {
        if self.is_automatic(iface, addr) {
            return Err(FibError::Automatic {
                addr,
                name: self.info(iface)?.name.clone(),
            });
        }
        self.del_address(iface, addr)
    }

    fn unmark(&mut self, iface: u32, addr: IfAddress) {
        if let Some(it) = self.automatic.get_mut(&iface) {
            it.addresses.retain(|a| *a != addr);
        }
    }

    /// Whether an address of an interface was autoconfigured.
    pub fn is_automatic(&self, iface: u32, addr: IfAddress) -> bool {
        self.automatic_addresses(iface).contains(&addr)
    }

    /// Autoconfigured addresses of an interface.
    pub fn automatic_addresses(&self, iface: u32) -> &[IfAddress] {
        self.automatic
            .get(&iface)
            .map_or(&[], |it| &it.addresses[..])
    }

    /// On-link prefixes of an interface that routers advertise.
    pub fn on_link(&self, iface: u32) -> &[Network] {
        self.automatic.get(&iface).map_or(&[], |it| &it.on_link[..])
    }

    /// The address with the prefix length of its network contribution: a host length if it was autoconfigured.
    pub(crate) fn contributed(&self, iface: u32, addr: IfAddress) -> IfAddress {
        let host = || IfAddress::new(addr.addr(), addr.family().bits());
        match self.is_automatic(iface, addr) {
            true => host().unwrap_or(addr),
            false => addr,
        }
    }

    /// Moves an address to the end of its interface's list: it becomes a source address only if there is no other.
    pub fn stand_last(&mut self, iface: u32, addr: IfAddress) {
        let all = self.addresses.entry(iface).or_default();
        let Some(at) = all.iter().position(|a| *a == addr) else {
            return;
        };
        if at + 1 < all.len() {
            let addr = all.remove(at);
            all.push(addr);
            self.tell_own(iface);
            self.touch(iface);
        }
    }

    /// Replaces the on-link prefixes of an interface. The error is the first prefix that did not fit.
    pub fn set_on_link(&mut self, iface: u32, networks: &[Network]) -> Result<(), FibError> {
        self.info(iface)?;
        let it = self.automatic.entry(iface).or_default();
        let old = std::mem::replace(&mut it.on_link, networks.to_vec());
        let index = self.v6.table_of(iface);
        let gone = old.iter().filter(|n| !networks.contains(n));
        let new = networks.iter().filter(|n| !old.contains(n));
        let changed: Vec<Prefix<V6>> = gone.chain(new).filter_map(number).collect();
        if !changed.is_empty() {
            self.touch(iface);
        }
        let mut done = Ok(());
        for prefix in changed {
            done = done.and(self.settle(index, prefix));
        }
        done
    }

    /// Replaces the default routers of an interface's link, each with its preference (the smallest is used).
    pub fn set_default_routers(
        &mut self,
        iface: u32,
        routers: &[(Ipv6Addr, u8)],
    ) -> Result<(), FibError> {
        self.info(iface)?;
        let it = self.automatic.entry(iface).or_default();
        if it.routers == routers {
            return Ok(());
        }
        it.routers = routers.to_vec();
        let index = self.v6.table_of(iface);
        self.settle(index, Prefix::around(0, 0))
    }

    /// Updates the routes of a prefix from the on-link prefixes of all interfaces of a table. If several interfaces have the
    /// prefix, the first by name wins: the order of arrival must not matter.
    fn settle(&mut self, index: u32, prefix: Prefix<V6>) -> Result<(), FibError> {
        let here = |iface: &u32| self.v6.table_of(*iface) == index;
        let all = self.automatic.iter().filter(|(iface, _)| here(iface));
        let paths: Vec<Path> = if prefix.len() == 0 {
            let path = |iface: u32, (addr, preference): (Ipv6Addr, u8)| Path {
                preference,
                ..Path::from(Via::NextHop {
                    addr: addr.into(),
                    iface,
                })
            };
            all.flat_map(|(iface, it)| it.routers.iter().map(|router| path(*iface, *router)))
                .collect()
        } else {
            let has = |it: &Automatic| it.on_link.iter().any(|n| number(n) == Some(prefix));
            let claims = all.filter(|(_, it)| has(it)).map(|(iface, _)| *iface);
            let name = |iface: &u32| self.res.ifs.get(iface).map(|info| info.name.clone());
            let first = claims.min_by_key(name);
            first
                .map(|iface| Via::Attached { iface }.into())
                .into_iter()
                .collect()
        };
        if paths.is_empty() {
            self.remove_in(index, prefix, Source::Autoconf);
            return Ok(());
        }
        self.set_in(index, prefix, Source::Autoconf, &paths)
            .map(drop)
    }

    /// Removes all state that an interface got from routers.
    pub fn forget_automatic(&mut self, iface: u32) {
        if !self.automatic.contains_key(&iface) {
            return;
        }
        // A removal of routes needs no free capacity.
        let _ = self.set_on_link(iface, &[]);
        let _ = self.set_default_routers(iface, &[]);
        for addr in self.automatic_addresses(iface).to_vec() {
            self.del_automatic(iface, addr);
        }
        self.automatic.remove(&iface);
    }

    /// Removes an autoconfigured address that is now being configured.
    pub(crate) fn give_way(&mut self, iface: u32, addr: IfAddress) {
        let table = |iface| self.interface_table(iface, Af::V6);
        let rival = |on: u32| on == iface || table(on) == table(iface);
        let of = |(on, it): (&u32, &Automatic)| {
            let same = it.addresses.iter().filter(|a| a.addr() == addr.addr());
            same.map(|a| (*on, *a)).collect::<Vec<_>>()
        };
        let mut found: Vec<(u32, IfAddress)> = self.automatic.iter().flat_map(of).collect();
        let near = matches!(addr.addr(), std::net::IpAddr::V6(a) if a.is_unicast_link_local());
        found.retain(|(on, _)| *on == iface || !near && rival(*on));
        for (on, addr) in found {
            self.del_automatic(on, addr);
        }
    }
}
