//! What an interface has from the routers of its link (RFC 4862; RFC 4861, 6.3): addresses, networks on the link, ways to
//! everywhere.
//!
//! Nobody configured it, so whatever somebody configures goes before it: its routes are of a source of their own
//! ([`Source::Autoconf`]), and an address that is wanted by hand is given up. It goes with the interface, when that goes down,
//! and when it gets another table. An address says nothing of a network here (RFC 5942, 4): that is advertised by itself.

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
    /// Adds an address that an interface made itself. It has no network.
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

    /// Removes one; false when there was none.
    pub fn del_automatic(&mut self, iface: u32, addr: IfAddress) -> bool {
        let there = self.is_automatic(iface, addr);
        // Taking routes out needs no room.
        let gone = there && self.del_address(iface, addr).is_ok();
        self.unmark(iface, addr);
        gone
    }

    /// Removes an address that somebody configured.
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

    /// Whether an interface made an address itself.
    pub fn is_automatic(&self, iface: u32, addr: IfAddress) -> bool {
        self.automatic_addresses(iface).contains(&addr)
    }

    /// Addresses that an interface made itself.
    pub fn automatic_addresses(&self, iface: u32) -> &[IfAddress] {
        self.automatic
            .get(&iface)
            .map_or(&[], |it| &it.addresses[..])
    }

    /// Networks that are on an interface's link because a router says so.
    pub fn on_link(&self, iface: u32) -> &[Network] {
        self.automatic.get(&iface).map_or(&[], |it| &it.on_link[..])
    }

    /// An address as what it contributes to routing: one that was made here has no network.
    pub(crate) fn contributed(&self, iface: u32, addr: IfAddress) -> IfAddress {
        let host = || IfAddress::new(addr.addr(), addr.family().bits());
        match self.is_automatic(iface, addr) {
            true => host().unwrap_or(addr),
            false => addr,
        }
    }

    /// Puts an address behind all others of its interface: what is sent comes from it only when there is no other.
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

    /// Says which networks are on an interface's link, and no others. The error is the first one that found no room.
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

    /// Says by which routers of an interface's link everything is reached, each with its preference (the smallest is used).
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

    /// Lets a prefix have the routes that all interfaces of a table together have for it. A network that is on several links
    /// is on the one whose name sorts first: which was heard first must not matter.
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

    /// An interface has nothing from routers any more.
    pub fn forget_automatic(&mut self, iface: u32) {
        if !self.automatic.contains_key(&iface) {
            return;
        }
        // Taking routes out needs no room.
        let _ = self.set_on_link(iface, &[]);
        let _ = self.set_default_routers(iface, &[]);
        for addr in self.automatic_addresses(iface).to_vec() {
            self.del_automatic(iface, addr);
        }
        self.automatic.remove(&iface);
    }

    /// Somebody wants an address for an interface: nobody keeps it who made it himself.
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
