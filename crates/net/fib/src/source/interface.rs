//! Contributions of interfaces that are up: connected networks and own addresses.
//!
//! The FIB knows only the interfaces passed to [`Fib::set_interface`]; it does not depend on an interface crate. An address
//! `a/n` on an interface that is up contributes the network (attached), the own address (local), and for IPv4 shorter than /31
//! the network and broadcast addresses (drop; or, for directed broadcasts, all hosts). If several addresses contribute the same
//! prefix, local takes precedence over attached over drop, then the first interface by name: the order of creation must not
//! matter. A link-local IPv6 address contributes only itself: its network is not routed.

use std::collections::BTreeSet;

use volley_model::IfAddress;

use super::down::DownNet;
use super::facts::IfInfo;
use super::fib::Fib;
use super::path::{Path, Via};
use super::tables::Side;
use crate::dataplane::DropWhy;
use crate::error::FibError;
use crate::family::{Af, Prefix, V4, V6, wide};
use crate::source::Source;

impl Fib {
    /// Adds an interface or updates its attributes (state, MAC address, MTU, name). The error is the first route that did not
    /// fit; all others are installed.
    pub fn set_interface(&mut self, info: IfInfo) -> Result<(), FibError> {
        let index = info.index;
        self.touch(index);
        if !info.up {
            self.forget_automatic(index);
        }
        let Some(before) = self.res.ifs.insert(index, info.clone()) else {
            return Ok(());
        };
        if (before.mac, before.mtu) != (info.mac, info.mtu) {
            self.res.iface_renewed(index);
        }
        let addresses = self.addresses.get(&index).cloned().unwrap_or_default();
        let mut done = Ok(());
        if before.up != info.up {
            self.tell_down(index);
            self.res.iface_turned(index);
            for addr in addresses {
                done = done.and(self.connect(index, addr, info.up));
            }
        } else if info.up && before.name != info.name {
            for addr in addresses {
                done = done.and(match addr.family() {
                    Af::V4 => self.decide_all::<V4>(index, addr),
                    Af::V6 => self.decide_all::<V6>(index, addr),
                });
            }
        }
        done
    }

    /// Records that an interface or its addresses have changed.
    pub(crate) fn touch(&mut self, iface: u32) {
        self.attachments += 1;
        self.touched.insert(iface);
        self.touched.extend(self.borrowers(iface));
    }

    /// A number that increases whenever interfaces or their addresses change.
    pub fn attachments(&self) -> u64 {
        self.attachments
    }

    /// Interfaces that were added, deleted or changed, or whose addresses changed, since the last call. There is one caller.
    pub fn take_touched(&mut self) -> BTreeSet<u32> {
        std::mem::take(&mut self.touched)
    }

    /// The attributes of an interface.
    pub fn interface(&self, iface: u32) -> Option<&IfInfo> {
        self.res.ifs.get(&iface)
    }

    /// All interfaces in order of index.
    pub fn interfaces(&self) -> impl Iterator<Item = &IfInfo> {
        self.res.ifs.values()
    }

    /// Index of an interface by name.
    pub fn interface_index(&self, name: &str) -> Option<u32> {
        self.res
            .ifs
            .values()
            .find(|i| i.name == name)
            .map(|i| i.index)
    }

    pub(crate) fn info(&self, iface: u32) -> Result<&IfInfo, FibError> {
        self.res
            .ifs
            .get(&iface)
            .ok_or(FibError::NoInterface { iface })
    }

    /// Deletes an interface with its addresses, neighbours and table bindings; refused while a route names it.
    pub fn remove_interface(&mut self, iface: u32) -> Result<(), FibError> {
        let name = self.info(iface)?.name.clone();
        if let Some(by) = self.user_of(iface) {
            return Err(FibError::InterfaceInUse { name, by });
        }
        self.forget_automatic(iface);
        for addr in self.addresses.remove(&iface).unwrap_or_default() {
            self.forget_holder(iface, addr);
            self.connect(iface, addr, false)?;
            self.unused.remove(&(iface, addr));
        }
        self.tell_down(iface);
        self.careful.remove(&iface);
        self.forget_numbered(iface);
        self.tell_own(iface);
        for addr in self.neighbors_on(iface) {
            self.remove_neighbor(iface, addr)?;
        }
        self.directed_broadcast.remove(&iface);
        self.v4.bind(iface, 0);
        self.v6.bind(iface, 0);
        self.res.ifs.remove(&iface);
        self.touch(iface);
        Ok(())
    }

    /// Description of a route that names the interface and was not created by it.
    pub fn user_of(&self, iface: u32) -> Option<String> {
        let names = |p: &Path| p.via.iface() == Some(iface);
        let own = |s| matches!(s, Source::Interface | Source::Adjacency | Source::Autoconf);
        let list = self
            .res
            .leaves
            .lists()
            .find(|l| !own(l.key.source) && l.key.paths.iter().any(names))?;
        let path = list.key.paths.iter().find(|p| names(p))?;
        Some(format!(
            "routes with path {}",
            self.path_text(list.key.af, path)
        ))
    }

    /// Binds an interface to a table of a family. The interface must have no address of that family.
    pub fn bind_interface(&mut self, iface: u32, af: Af, table: u32) -> Result<(), FibError> {
        let index = self.table_index(af, table)?;
        let name = self.info(iface)?.name.clone();
        if af == Af::V6 {
            self.forget_automatic(iface);
        }
        let addr = self
            .addresses(iface)
            .iter()
            .find(|a| a.family() == af)
            .copied();
        if let Some(addr) = addr {
            return Err(FibError::InterfaceInUse {
                name,
                by: format!("its address {addr}"),
            });
        }
        self.check_binding(iface)?;
        match af {
            Af::V4 => self.rebind::<V4>(iface, index),
            Af::V6 => self.rebind::<V6>(iface, index),
        }
        Ok(())
    }

    fn rebind<F: Side>(&mut self, iface: u32, index: u32) {
        let (_, tables) = F::side_mut(self);
        let before = tables.table_of(iface);
        tables.bind(iface, index);
        self.move_neighbors::<F>(iface, before, index);
    }

    /// Number of the table that an interface uses for a family.
    pub fn interface_table(&self, iface: u32, af: Af) -> u32 {
        let index = match af {
            Af::V4 => self.v4.table_of(iface),
            Af::V6 => self.v6.table_of(iface),
        };
        self.table_number(af, index).unwrap_or(0)
    }

    /// Addresses of an interface in the order they were added.
    pub fn addresses(&self, iface: u32) -> &[IfAddress] {
        self.addresses.get(&iface).map_or(&[], Vec::as_slice)
    }

    /// Adds an address.
    pub fn add_address(&mut self, iface: u32, addr: IfAddress) -> Result<(), FibError> {
        let up = self.info(iface)?.up;
        self.check_address(iface, addr)?;
        if self.careful.contains(&iface) {
            self.unused.insert((iface, addr));
        }
        if up && let Err(e) = self.connect(iface, addr, true) {
            let undone = self.connect(iface, addr, false);
            debug_assert!(undone.is_ok(), "taking routes out needs no room");
            return Err(e);
        }
        self.addresses.entry(iface).or_default().push(addr);
        self.holders.entry(addr.addr()).or_default().push(iface);
        self.tell_down_one(iface, addr, true);
        self.tell_own(iface);
        self.touch(iface);
        Ok(())
    }

    /// Updates the networks that an interface would have if it were up: next hops in them resolve to "interface down".
    fn tell_down(&mut self, iface: u32) {
        let up = self.info(iface).is_ok_and(|info| info.up);
        let addresses = self.addresses(iface).iter().filter(|_| !up);
        let networks = addresses.filter_map(|addr| self.down_net_of(iface, *addr));
        let networks: Vec<DownNet> = networks.collect();
        self.res.set_down(iface, &networks);
    }

    /// Adds or removes one address of an interface that is down in its networks.
    fn tell_down_one(&mut self, iface: u32, addr: IfAddress, more: bool) {
        let up = self.info(iface).is_ok_and(|info| info.up);
        if !up && let Some(net) = self.down_net_of(iface, addr) {
            self.res.change_down(iface, net, more);
        }
    }

    fn down_net_of(&self, iface: u32, addr: IfAddress) -> Option<DownNet> {
        match addr.family() {
            Af::V4 => self.down_net::<V4>(iface, addr),
            Af::V6 => self.down_net::<V6>(iface, addr),
        }
    }

    fn down_net<F: Side>(&self, iface: u32, addr: IfAddress) -> Option<DownNet> {
        let own = F::number(addr.addr())?;
        let net = Prefix::<F>::around(own, addr.len());
        let routed = addr.len() < F::BITS && !link_local(addr.addr());
        routed.then(|| DownNet {
            af: F::AF,
            table: F::side(self).1.table_of(iface),
            first: wide(F::ip(net.addr())),
            last: wide(F::ip(net.last())),
        })
    }

    fn forget_holder(&mut self, iface: u32, addr: IfAddress) {
        let Some(all) = self.holders.get_mut(&addr.addr()) else {
            return;
        };
        if let Some(at) = all.iter().position(|i| *i == iface) {
            all.swap_remove(at);
        }
        if all.is_empty() {
            self.holders.remove(&addr.addr());
        }
    }

    /// Begins a transaction: changed addresses are published once, by [`Fib::tell_own_now`].
    pub fn tell_own_later(&mut self) {
        self.own_later.get_or_insert_default();
    }

    /// Publishes the addresses that have changed since [`Fib::tell_own_later`].
    pub fn tell_own_now(&mut self) {
        for iface in self.own_later.take().unwrap_or_default() {
            self.tell_own(iface);
        }
    }

    /// Publishes an interface's addresses to workers, as source addresses of the packets that they originate.
    pub(crate) fn tell_own(&mut self, iface: u32) {
        if let Some(later) = &mut self.own_later {
            later.insert(iface);
            return;
        }
        let borrowers = self.borrowers(iface);
        for iface in borrowers.into_iter().chain([iface]) {
            let all: Vec<IfAddress> = self.used_addresses(iface).collect();
            self.v4.set_own(iface, &all);
            self.v6.set_own(iface, &all);
        }
    }

    /// Addresses that an interface uses: its own, or those of another interface if it is unnumbered.
    pub fn used_addresses(&self, iface: u32) -> impl Iterator<Item = IfAddress> {
        let all = self.addresses(iface).iter().copied();
        let own = all.filter(move |addr| !self.unused.contains(&(iface, *addr)));
        own.chain(self.borrowed_addresses(iface))
    }

    /// Sets whether new addresses of an interface are unused until [`Fib::set_usable`].
    pub fn set_careful(&mut self, iface: u32, careful: bool) {
        if careful {
            self.careful.insert(iface);
        } else {
            self.careful.remove(&iface);
        }
    }

    /// Sets whether an address is used, that is, has a connected and a local route.
    pub fn set_usable(
        &mut self,
        iface: u32,
        addr: IfAddress,
        usable: bool,
    ) -> Result<(), FibError> {
        let known = self.addresses(iface).contains(&addr);
        if !known || usable != self.unused.contains(&(iface, addr)) {
            return Ok(());
        }
        let up = self.info(iface)?.up;
        let done = if usable {
            self.unused.remove(&(iface, addr));
            if up {
                self.connect(iface, addr, true)
            } else {
                Ok(())
            }
        } else {
            let done = if up {
                self.connect(iface, addr, false)
            } else {
                Ok(())
            };
            self.unused.insert((iface, addr));
            done
        };
        self.tell_own(iface);
        self.touch(iface);
        done
    }

    fn check_address(&self, iface: u32, addr: IfAddress) -> Result<(), FibError> {
        let ip = addr.addr();
        let fault = |why| Err(FibError::Address { addr: ip, why });
        if ip.is_unspecified() || ip.is_multicast() {
            return fault("it is no host's address");
        }
        if matches!(ip, std::net::IpAddr::V4(a) if a.is_broadcast()) {
            return fault("it is the broadcast address");
        }
        if self.numbered(iface).is_some() {
            return fault("the interface uses another's addresses: end that first");
        }
        if addr.len() == 0 {
            return fault("a network of length 0 would be the whole address space");
        }
        let af = addr.family();
        let table = self.interface_table(iface, af);
        let others = self.holders.get(&ip).into_iter().flatten();
        let mut rivals = others.filter(|other| {
            **other == iface || (self.interface_table(**other, af) == table && !link_local(ip))
        });
        if let Some(rival) = rivals.next() {
            let name = self.info(*rival)?.name.clone();
            return Err(FibError::AddressExists { addr: ip, name });
        }
        Ok(())
    }

    /// Removes an address.
    pub fn del_address(&mut self, iface: u32, addr: IfAddress) -> Result<(), FibError> {
        let (name, up) = (self.info(iface)?.name.clone(), self.info(iface)?.up);
        let all = self.addresses.entry(iface).or_default();
        let Some(at) = all.iter().position(|a| *a == addr) else {
            return Err(FibError::NoAddress {
                addr: addr.addr(),
                name,
            });
        };
        all.remove(at);
        self.forget_holder(iface, addr);
        self.unused.remove(&(iface, addr));
        self.tell_down_one(iface, addr, false);
        self.tell_own(iface);
        self.touch(iface);
        if up {
            self.connect(iface, addr, false)
        } else {
            Ok(())
        }
    }

    /// Adds or removes the routes that an address contributes.
    fn connect(&mut self, iface: u32, addr: IfAddress, present: bool) -> Result<(), FibError> {
        if present && self.unused.contains(&(iface, addr)) {
            return Ok(());
        }
        let addr = self.contributed(iface, addr);
        match addr.family() {
            Af::V4 => self.connect_in::<V4>(iface, addr, present),
            Af::V6 => self.connect_in::<V6>(iface, addr, present),
        }
    }

    fn connect_in<F: Side>(
        &mut self,
        iface: u32,
        addr: IfAddress,
        present: bool,
    ) -> Result<(), FibError> {
        let index = F::side(self).1.table_of(iface);
        let mut done = Ok(());
        let broadcast = self.broadcast(iface);
        for (prefix, via) in contributions::<F>(iface, addr, broadcast) {
            let Some(table) = F::side_mut(self).1.get_mut(index) else {
                continue;
            };
            let asked = table.connected.entry(prefix).or_default();
            if present {
                asked.push(via.into());
            } else if let Some(at) = asked.iter().position(|p| p.via == via) {
                asked.swap_remove(at);
            }
            done = done.and(self.decide(index, prefix));
        }
        done
    }

    /// Target of the broadcast addresses of an interface's networks.
    fn broadcast(&self, iface: u32) -> Via {
        match self.directed_broadcast.contains(&iface) {
            true => Via::Broadcast { iface },
            false => Via::Drop(DropWhy::SubnetBroadcast),
        }
    }

    /// Sets whether packets from other networks to the broadcast addresses of an interface's networks are sent to all hosts
    /// (RFC 1812, 5.3.5.2). True if that is a change.
    pub fn set_directed_broadcast(&mut self, iface: u32, on: bool) -> Result<bool, FibError> {
        let up = self.info(iface)?.up;
        let before = self.broadcast(iface);
        let changed = match on {
            true => self.directed_broadcast.insert(iface),
            false => self.directed_broadcast.remove(&iface),
        };
        if !changed || !up {
            return Ok(changed);
        }
        let (after, index) = (self.broadcast(iface), self.v4.table_of(iface));
        let all = self.addresses.get(&iface).cloned().unwrap_or_default();
        for (prefix, via) in all
            .into_iter()
            .flat_map(|addr| contributions::<V4>(iface, addr, after))
        {
            let table = self.v4.get_mut(index).filter(|_| via == after);
            let asked = table.and_then(|table| table.connected.get_mut(&prefix));
            if let Some(path) = asked.into_iter().flatten().find(|p| p.via == before) {
                *path = after.into();
                self.decide(index, prefix)?;
            }
        }
        Ok(true)
    }

    /// Selects again for all prefixes that an address contributes.
    fn decide_all<F: Side>(&mut self, iface: u32, addr: IfAddress) -> Result<(), FibError> {
        let index = F::side(self).1.table_of(iface);
        let mut done = Ok(());
        for (prefix, _) in contributions::<F>(iface, addr, self.broadcast(iface)) {
            done = done.and(self.decide(index, prefix));
        }
        done
    }

    /// Selects the best contribution for a prefix and installs it.
    fn decide<F: Side>(&mut self, index: u32, prefix: Prefix<F>) -> Result<(), FibError> {
        let Some(table) = self.table::<F>(index) else {
            return Ok(());
        };
        let asked = table.connected.get(&prefix).into_iter().flatten();
        let best = asked.min_by_key(|p| self.rank(p)).copied();
        if let Some(path) = best {
            return self
                .set_in(index, prefix, Source::Interface, &[path])
                .map(drop);
        }
        if let Some(table) = F::side_mut(self).1.get_mut(index) {
            table.connected.remove(&prefix);
        }
        self.remove_in(index, prefix, Source::Interface);
        Ok(())
    }

    fn rank(&self, path: &Path) -> (u8, &str) {
        let name = |iface: u32| self.res.ifs.get(&iface).map_or("", |i| &*i.name);
        match path.via {
            Via::Local { iface } => (0, iface.map_or("", name)),
            Via::Attached { iface } => (1, name(iface)),
            Via::Broadcast { iface } => (2, name(iface)),
            _ => (3, ""),
        }
    }
}

fn link_local(ip: std::net::IpAddr) -> bool {
    matches!(ip, std::net::IpAddr::V6(a) if a.is_unicast_link_local())
}

/// The routes of an address on an interface that is up.
fn contributions<F: Side>(iface: u32, addr: IfAddress, broadcast: Via) -> Vec<(Prefix<F>, Via)> {
    let Some(own) = F::number(addr.addr()) else {
        return Vec::new();
    };
    let mut out = vec![(Prefix::host(own), Via::Local { iface: Some(iface) })];
    if link_local(addr.addr()) {
        return out;
    }
    let net = Prefix::around(own, addr.len());
    if addr.len() < F::BITS {
        out.push((net, Via::Attached { iface }));
    }
    if F::AF == Af::V4 && addr.len() < 31 {
        let drop = Via::Drop(DropWhy::SubnetBroadcast);
        out.push((Prefix::host(net.addr()), drop));
        out.push((Prefix::host(net.last()), broadcast));
    }
    out
}
