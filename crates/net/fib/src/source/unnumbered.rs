//! Unnumbered interfaces: they use the addresses of another interface (RFC 1812, 2.2.7). They are point-to-point links, or
//! links whose hosts have one address each and no network.
//!
//! Only the addresses are used, as host addresses: the networks stay with the interface that lends them. Neighbours on an
//! unnumbered interface are determined by routes over the interface, or accepted if no other route covers them.

use std::net::IpAddr;

use volley_model::IfAddress;

use super::fib::Fib;
use super::path::{Path, Via};
use super::tables::Side;
use crate::dataplane::DropWhy;
use crate::error::FibError;
use crate::family::{Af, V4, V6};

impl Fib {
    /// Makes an interface unnumbered, or ends that with `None`. True if that is a change.
    pub fn set_unnumbered(&mut self, iface: u32, numbered: Option<u32>) -> Result<bool, FibError> {
        self.info(iface)?;
        if self.numbered(iface) == numbered {
            return Ok(false);
        }
        match numbered {
            Some(numbered) => {
                self.forget_automatic(iface);
                self.check_numbered(iface, numbered)?;
                self.borrowed.insert(iface, numbered);
            }
            None => {
                self.borrowed.remove(&iface);
            }
        }
        self.tell_own(iface);
        self.touch(iface);
        self.look_again_on(iface);
        Ok(true)
    }

    /// The interface whose addresses an unnumbered interface uses.
    pub fn numbered(&self, iface: u32) -> Option<u32> {
        self.borrowed.get(&iface).copied()
    }

    /// Unnumbered interfaces that use an interface's addresses.
    pub(crate) fn borrowers(&self, numbered: u32) -> Vec<u32> {
        let all = self.borrowed.iter();
        all.filter(|(_, l)| **l == numbered)
            .map(|(i, _)| *i)
            .collect()
    }

    fn check_numbered(&self, iface: u32, numbered: u32) -> Result<(), FibError> {
        let (name, other) = (&self.info(iface)?.name, &self.info(numbered)?.name);
        let tables = |af| self.interface_table(iface, af) == self.interface_table(numbered, af);
        let why = if iface == numbered {
            "they are its own: name another interface"
        } else if !self.addresses(iface).is_empty() {
            "it has addresses: remove them first"
        } else if self.numbered(numbered).is_some() {
            "that interface has no addresses: name the interface whose addresses it uses"
        } else if !self.borrowers(iface).is_empty() {
            "others use its own: end that first"
        } else if !tables(Af::V4) || !tables(Af::V6) {
            "they look in different tables: bind both to one"
        } else {
            return Ok(());
        };
        Err(FibError::Unnumbered {
            name: name.clone(),
            numbered: other.clone(),
            why,
        })
    }

    /// Refuses to bind either interface of an unnumbered relation to another table: the addresses would be in the wrong one.
    pub(crate) fn check_binding(&self, iface: u32) -> Result<(), FibError> {
        let other = self.numbered(iface);
        let Some(other) = other.or_else(|| self.borrowers(iface).first().copied()) else {
            return Ok(());
        };
        let (name, other) = (self.info(iface)?.name.clone(), &self.info(other)?.name);
        let by = format!("the addresses that it and {other} share");
        Err(FibError::InterfaceInUse { name, by })
    }

    /// Called when an interface is deleted: ends its unnumbered relations in both directions.
    pub(crate) fn forget_numbered(&mut self, iface: u32) {
        self.borrowed.remove(&iface);
        for borrower in self.borrowers(iface) {
            self.borrowed.remove(&borrower);
            self.tell_own(borrower);
            self.touch(borrower);
            self.look_again_on(borrower);
        }
    }

    /// The addresses that an unnumbered interface uses: without their networks, and without link-local ones.
    pub(crate) fn borrowed_addresses(&self, iface: u32) -> impl Iterator<Item = IfAddress> {
        let numbered = self.numbered(iface);
        let all = numbered.map_or(&[][..], |numbered| self.addresses(numbered));
        let used = move |a: &&IfAddress| {
            numbered.is_some_and(|numbered| !self.unused.contains(&(numbered, **a)))
        };
        let near = |a: IpAddr| matches!(a, IpAddr::V6(a) if a.is_unicast_link_local());
        let host = |a: &IfAddress| IfAddress::new(a.addr(), Af::of(a.addr()).bits()).ok();
        all.iter()
            .filter(used)
            .filter_map(host)
            .filter(move |a| !near(a.addr()))
    }

    /// Whether a host outside all networks may be on an interface: its route leads there, it is a next hop there, or it has no
    /// route.
    pub fn may_be_on(&self, iface: u32, addr: IpAddr) -> bool {
        self.res.has_next_hop(iface, addr)
            || match addr {
                IpAddr::V4(a) => self.is_near::<V4>(iface, a.to_bits()),
                IpAddr::V6(a) => self.is_near::<V6>(iface, a.to_bits()),
            }
    }

    fn is_near<F: Side>(&self, iface: u32, addr: F::Addr) -> bool {
        let (_, tables) = F::side(self);
        let list = tables.cover(tables.table_of(iface), addr);
        let paths = self.res.list(list).map_or(&[][..], |l| &*l.key.paths);
        let here = |p: &Path| p.via.iface() == Some(iface);
        paths.iter().any(here) || paths.iter().all(|p| p.via == Via::Drop(DropWhy::NoRoute))
    }

    /// The interface of a neighbour that no route covers: an interface without networks.
    pub(crate) fn stray<F: Side>(&self, index: u32, addr: F::Addr) -> Option<u32> {
        let mut all = self
            .table::<F>(index)?
            .neighbors
            .range((addr, 0)..=(addr, u32::MAX));
        all.find(|n| self.numbered(n.1).is_some()).map(|n| n.1)
    }
}
