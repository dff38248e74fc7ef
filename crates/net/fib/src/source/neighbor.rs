//! Neighbours, configured or learned: they complete adjacencies and have host routes in connected networks.
//!
//! The host route (source adjacency) exists only while the longest shorter prefix over the address is attached to the
//! neighbour's interface, or while no route covers the address and the interface has no networks.

use std::net::IpAddr;

use super::facts::Neighbor;
use super::fib::Fib;
use super::path::Via;
use super::tables::Side;
use crate::dataplane::DropWhy;
use crate::error::FibError;
use crate::family::{Af, Prefix, V4, V6};
use crate::source::Source;

impl Fib {
    /// Adds or changes a neighbour; true if anything changed. A learned neighbour never replaces a configured one.
    pub fn set_neighbor(
        &mut self,
        iface: u32,
        addr: IpAddr,
        neighbor: Neighbor,
    ) -> Result<bool, FibError> {
        self.info(iface)?;
        if addr.is_multicast() || addr.is_unspecified() {
            return Err(FibError::Address {
                addr,
                why: "a neighbor has one host's address",
            });
        }
        if neighbor.learned && self.neighbor(iface, addr).is_some_and(|n| !n.learned) {
            return Ok(false);
        }
        let before = self.neighbors.insert((iface, addr), neighbor);
        if before == Some(neighbor) {
            return Ok(false);
        }
        self.res.macs.insert((iface, addr), neighbor.mac);
        let done = match addr {
            IpAddr::V4(a) => self.enter::<V4>(iface, a.to_bits()),
            IpAddr::V6(a) => self.enter::<V6>(iface, a.to_bits()),
        };
        if done.is_err() {
            match before {
                None => self.remove_neighbor(iface, addr)?,
                Some(before) => {
                    self.neighbors.insert((iface, addr), before);
                    self.res.macs.insert((iface, addr), before.mac);
                }
            }
        }
        done?;
        if before.map(|n| n.mac) != Some(neighbor.mac) {
            self.res.neighbor_changed(iface, addr);
        }
        Ok(true)
    }

    fn enter<F: Side>(&mut self, iface: u32, addr: F::Addr) -> Result<(), FibError> {
        let (_, tables) = F::side_mut(self);
        let index = tables.table_of(iface);
        if let Some(table) = tables.get_mut(index) {
            table.neighbors.insert((addr, iface));
        }
        self.sync_neighbor::<F>(index, addr)
    }

    /// Removes a neighbour; adjacencies to it become incomplete.
    pub fn remove_neighbor(&mut self, iface: u32, addr: IpAddr) -> Result<(), FibError> {
        let name = self.info(iface)?.name.clone();
        if self.neighbors.remove(&(iface, addr)).is_none() {
            return Err(FibError::NoNeighbor { addr, name });
        }
        self.res.macs.remove(&(iface, addr));
        match addr {
            IpAddr::V4(a) => self.leave::<V4>(iface, a.to_bits())?,
            IpAddr::V6(a) => self.leave::<V6>(iface, a.to_bits())?,
        }
        self.res.neighbor_changed(iface, addr);
        Ok(())
    }

    fn leave<F: Side>(&mut self, iface: u32, addr: F::Addr) -> Result<(), FibError> {
        let (_, tables) = F::side_mut(self);
        let index = tables.table_of(iface);
        if let Some(table) = tables.get_mut(index) {
            table.neighbors.remove(&(addr, iface));
        }
        self.sync_neighbor::<F>(index, addr)
    }

    /// The entry of one neighbour.
    pub fn neighbor(&self, iface: u32, addr: IpAddr) -> Option<Neighbor> {
        self.neighbors.get(&(iface, addr)).copied()
    }

    /// Removes a learned neighbour; true if there was one.
    pub fn forget_neighbor(&mut self, iface: u32, addr: IpAddr) -> bool {
        let learned = self.neighbor(iface, addr).is_some_and(|n| n.learned);
        learned && self.remove_neighbor(iface, addr).is_ok()
    }

    /// All neighbours in order of interface and address.
    pub fn neighbors(&self) -> impl Iterator<Item = (u32, IpAddr, Neighbor)> {
        self.neighbors
            .iter()
            .map(|((iface, addr), n)| (*iface, *addr, *n))
    }

    pub(crate) fn neighbors_on(&self, iface: u32) -> Vec<IpAddr> {
        self.neighbors
            .keys()
            .filter(|k| k.0 == iface)
            .map(|k| k.1)
            .collect()
    }

    /// Moves the neighbours of an interface to its new table.
    pub(crate) fn move_neighbors<F: Side>(&mut self, iface: u32, from: u32, to: u32) {
        let here = |a: &IpAddr| Af::of(*a) == F::AF;
        for ip in self.neighbors_on(iface).into_iter().filter(here) {
            let Some(addr) = F::number(ip) else { continue };
            for (index, stays) in [(from, false), (to, true)] {
                if let Some(table) = F::side_mut(self).1.get_mut(index) {
                    if stays {
                        table.neighbors.insert((addr, iface));
                    } else {
                        table.neighbors.remove(&(addr, iface));
                    }
                }
                self.sync_in_passing::<F>(index, addr);
            }
        }
    }

    /// Called after the forwarding of a prefix changed: adds or removes host routes of neighbours inside it.
    pub(crate) fn neighbors_in<F: Side>(&mut self, index: u32, prefix: Prefix<F>) {
        let Some(table) = self.table::<F>(index) else {
            return;
        };
        if table.neighbors.is_empty() {
            return;
        }
        let range = (prefix.addr(), 0)..=(prefix.last(), u32::MAX);
        let mut addrs: Vec<F::Addr> = table.neighbors.range(range).map(|n| n.0).collect();
        addrs.dedup();
        for addr in addrs {
            self.sync_in_passing::<F>(index, addr);
        }
    }

    /// Called after an interface got its first or lost its last network: adds or removes host routes of its neighbours.
    pub(crate) fn look_again_on(&mut self, iface: u32) {
        for ip in self.neighbors_on(iface) {
            match ip {
                IpAddr::V4(a) => self.sync_in_passing::<V4>(self.v4.table_of(iface), a.to_bits()),
                IpAddr::V6(a) => self.sync_in_passing::<V6>(self.v6.table_of(iface), a.to_bits()),
            }
        }
    }

    /// A host route that does not fit into the match is left out: its packets use the connected route.
    fn sync_in_passing<F: Side>(&mut self, index: u32, addr: F::Addr) {
        let _room = self.sync_neighbor::<F>(index, addr);
    }

    /// Installs the host route of an address if, and only if, a neighbour on the attached interface has the address.
    fn sync_neighbor<F: Side>(&mut self, index: u32, addr: F::Addr) -> Result<(), FibError> {
        let host = Prefix::<F>::host(addr);
        match self.attached_neighbor::<F>(index, addr) {
            Some(iface) => {
                let via = Via::NextHop {
                    addr: F::ip(addr),
                    iface,
                };
                self.set_in(index, host, Source::Adjacency, &[via.into()])
                    .map(drop)
            }
            None => {
                self.remove_in(index, host, Source::Adjacency);
                Ok(())
            }
        }
    }

    /// The interface that the address is attached to, if a neighbour there has the address.
    fn attached_neighbor<F: Side>(&self, index: u32, addr: F::Addr) -> Option<u32> {
        let table = self.table::<F>(index)?;
        let (_, list) = table.routes.cover(addr, F::BITS)?;
        let [path] = &*self.res.list(list)?.key.paths else {
            return None;
        };
        let iface = match path.via {
            Via::Attached { iface } => iface,
            Via::Drop(DropWhy::NoRoute) => self.stray::<F>(index, addr)?,
            _ => return None,
        };
        let neighbor = self.neighbors.get(&(iface, F::ip(addr)))?;
        let here = table.neighbors.contains(&(addr, iface));
        (neighbor.host_route && here).then_some(iface)
    }
}
