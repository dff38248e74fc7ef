//! Links, addresses and configured neighbours, both ways: what the two sides last had alike tells which of them has changed
//! since, and that side goes before. No socket here: what is to be done comes out as requests and orders.

use crate::InterfaceState;
use crate::Neighbor;
use crate::devices::Devices;
use crate::message::{Item, Link};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use volley_iface::AdminState;
use volley_iface::VlanTag;
use volley_lcp::LcpRow;
use volley_model::{IfAddress, Mac, Request};
use volley_object::{FieldType, Instance, Value};

/// The request for a static neighbour, by the fields of its class; without a MAC address, for none. None where the class
/// does not take the values.
fn neighbor(interface: &str, address: IpAddr, mac: Option<Mac>) -> Option<Request> {
    let key = [
        ("interface", Value::text(interface)),
        ("address", address.to_value()),
    ];
    match mac {
        Some(mac) => {
            let [interface, address] = key;
            let fields = [interface, address, ("mac", mac.to_value())];
            Request::set_fields("neighbor", &fields).ok()
        }
        None => Request::unset_key("neighbor", key.map(|(_, value)| value)).ok(),
    }
}

/// What the kernel is to do with one of its interfaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// Set it up, or down.
    Up(bool),
    /// Set its MTU.
    Mtu(u32),
    /// Set its MAC address.
    Mac(Mac),
    /// Give it an address, or take it away.
    Address(IfAddress, bool),
    /// Give it a neighbour for good, or none.
    Neighbor(IpAddr, Option<Mac>),
    /// Make an 802.1Q device on it, of this name.
    Device(String, VlanTag, u16),
    /// Take it away.
    Gone,
}

/// What is to be done so that both sides are alike.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct SyncPlan {
    /// By Volley.
    pub requests: Vec<Request>,
    /// By the kernel, on the interface with this number.
    pub orders: Vec<(u32, Order)>,
    /// By Volley, each of them whole or not at all.
    pub together: Vec<Vec<Request>>,
    /// Link-local addresses that the kernel made itself, by interface: to be used, or no longer. They are no configuration.
    pub automatic: Vec<(String, IfAddress, bool)>,
    /// Something is to be looked at once more, soon.
    pub again: bool,
}

/// What both sides had alike the last time.
#[derive(Default)]
struct SyncedState {
    up: Option<bool>,
    mtu: Option<u32>,
    addresses: BTreeSet<IfAddress>,
    /// Addresses of the kernel's own making that were handed to Volley.
    automatic: BTreeSet<IfAddress>,
    neighbors: BTreeMap<IpAddr, Mac>,
    /// Addresses that the kernel seems to have lost.
    missed: BTreeSet<IfAddress>,
    /// Neighbours that the kernel seems to have lost.
    missing: BTreeSet<IpAddr>,
}

/// The kernel's side of everything, and what was agreed.
#[derive(Default)]
pub struct KernelState {
    pub(crate) links: BTreeMap<u32, Link>,
    addresses: BTreeMap<u32, BTreeSet<IfAddress>>,
    /// Link-local addresses that the kernel made itself.
    automatic: BTreeMap<u32, BTreeSet<IfAddress>>,
    neighbors: BTreeMap<u32, BTreeMap<IpAddr, Mac>>,
    /// Links that went down or got another MAC address since the last plan: the kernel has thrown their neighbours away.
    flushed: BTreeSet<u32>,
    /// Links that went down since the last plan: the kernel has thrown their IPv6 addresses away.
    downed: BTreeSet<u32>,
    agreed: BTreeMap<String, SyncedState>,
    pub(crate) devices: Devices,
}

/// An interface as both sides have it.
struct SyncView<'a> {
    row: &'a InterfaceState,
    link: &'a Link,
    addresses: &'a BTreeSet<IfAddress>,
    /// Link-local addresses that the kernel made itself.
    made: &'a BTreeSet<IfAddress>,
    neighbors: (&'a BTreeMap<IpAddr, Mac>, BTreeMap<IpAddr, Mac>),
}

impl KernelState {
    /// The kernel is read anew.
    pub fn forget(&mut self) {
        self.links.clear();
        self.addresses.clear();
        self.automatic.clear();
        self.neighbors.clear();
    }

    /// Something is there. True when an interface went down by it.
    pub fn new_item(&mut self, item: Item) -> bool {
        match item {
            Item::Link(link) => {
                let (index, up, mac) = (link.index, link.up, link.mac);
                let before = self.links.insert(index, link);
                let down = before.as_ref().is_some_and(|b| b.up && !up);
                if down || before.is_some_and(|b| b.mac != mac) {
                    self.flush(index);
                }
                if down {
                    self.downed.insert(index);
                }
                return down;
            }
            Item::Address(index, address) => {
                self.addresses.entry(index).or_default().insert(address);
            }
            Item::Automatic(index, address) => {
                self.automatic.entry(index).or_default().insert(address);
            }
            Item::Neighbor(index, address, Some(mac)) => {
                self.neighbors
                    .entry(index)
                    .or_default()
                    .insert(address, mac);
            }
            Item::Neighbor(index, address, None) => {
                self.neighbors.entry(index).or_default().remove(&address);
            }
            Item::Route(_) | Item::NextHop(..) => {}
        }
        false
    }

    /// A link went down or got another MAC address: its neighbours are gone, those that were configured too.
    fn flush(&mut self, index: u32) {
        self.neighbors.remove(&index);
        self.flushed.insert(index);
    }

    /// Something is gone. True when routes may have gone with it of which the kernel says nothing: those of IPv4 over an
    /// interface, and from an address.
    pub fn lost_item(&mut self, item: &Item) -> bool {
        match item {
            Item::Link(link) => {
                self.addresses.remove(&link.index);
                self.automatic.remove(&link.index);
                self.neighbors.remove(&link.index);
                return self.links.remove(&link.index).is_some();
            }
            Item::Address(index, address) => {
                self.addresses.entry(*index).or_default().remove(address);
                return address.addr().is_ipv4();
            }
            Item::Automatic(index, address) => {
                self.automatic.entry(*index).or_default().remove(address);
            }
            Item::Neighbor(index, address, _) => {
                self.neighbors.entry(*index).or_default().remove(address);
            }
            Item::Route(_) | Item::NextHop(..) => {}
        }
        false
    }

    /// The kernel's number of a twin.
    pub fn index(&self, host: &str) -> Option<u32> {
        self.link(host).map(|l| l.index)
    }

    /// A twin as the kernel has it.
    pub fn link(&self, host: &str) -> Option<&Link> {
        self.links.values().find(|l| l.name == host)
    }

    /// The kernel's number of a twin that is up.
    pub fn up(&self, host: &str) -> Option<u32> {
        self.link(host).filter(|l| l.up).map(|l| l.index)
    }

    /// The kernel has done what was ordered.
    pub fn done(&mut self, index: u32, order: &Order) {
        if matches!(order, Order::Up(false) | Order::Mac(_)) {
            self.flush(index);
        }
        if *order == Order::Up(false) {
            self.downed.insert(index);
        }
        match order {
            Order::Up(up) => _ = self.links.entry(index).and_modify(|l| l.up = *up),
            Order::Mtu(mtu) => _ = self.links.entry(index).and_modify(|l| l.mtu = *mtu),
            // The kernel tells what has become of it.
            Order::Device(..) | Order::Gone => {}
            Order::Mac(mac) => _ = self.links.entry(index).and_modify(|l| l.mac = Some(*mac)),
            Order::Address(address, there) => {
                let all = self.addresses.entry(index).or_default();
                _ = if *there {
                    all.insert(*address)
                } else {
                    all.remove(address)
                };
            }
            Order::Neighbor(address, mac) => {
                let all = self.neighbors.entry(index).or_default();
                _ = match mac {
                    Some(mac) => all.insert(*address, *mac),
                    None => all.remove(address),
                };
            }
        }
    }

    fn both<'a>(
        &'a self,
        pair: &LcpRow,
        rows: &'a [InterfaceState],
        neighbors: &[Neighbor],
    ) -> Option<SyncView<'a>> {
        static NONE: (BTreeSet<IfAddress>, BTreeMap<IpAddr, Mac>) =
            (BTreeSet::new(), BTreeMap::new());
        let index = self.index(&pair.host)?;
        let ours = neighbors.iter().filter(|n| n.interface == pair.interface);
        Some(SyncView {
            row: rows.iter().find(|r| r.name == pair.interface)?,
            link: self.links.get(&index)?,
            addresses: self.addresses.get(&index).unwrap_or(&NONE.0),
            made: self.automatic.get(&index).unwrap_or(&NONE.0),
            neighbors: (
                self.neighbors.get(&index).unwrap_or(&NONE.1),
                ours.map(|n| (n.address, n.mac)).collect(),
            ),
        })
    }

    /// What makes all twins like their interfaces, and the other way round.
    pub fn plan(
        &mut self,
        pairs: &[LcpRow],
        rows: &[InterfaceState],
        neighbors: &[Neighbor],
    ) -> SyncPlan {
        let mut todo = SyncPlan::default();
        let mut agreed = std::mem::take(&mut self.agreed);
        let flushed = std::mem::take(&mut self.flushed);
        let downed = std::mem::take(&mut self.downed);
        agreed.retain(|name, _| pairs.iter().any(|p| p.interface == *name));
        for pair in pairs {
            if let Some(both) = self.both(pair, rows, neighbors) {
                let agreed = agreed.entry(pair.interface.clone()).or_default();
                if flushed.contains(&both.link.index) {
                    // Nobody took them away: Volley's are given to the kernel again.
                    agreed.neighbors.clear();
                }
                if downed.contains(&both.link.index) {
                    // Nobody took these away either.
                    let stays = |a: &IfAddress| a.addr().is_ipv4() || both.addresses.contains(a);
                    agreed.addresses.retain(stays);
                }
                both.link_state(agreed, &mut todo);
                both.address_state(agreed, &mut todo);
                both.automatic_state(agreed, &mut todo);
                both.neighbor_state(agreed, &mut todo);
            }
        }
        self.agreed = agreed;
        todo
    }

    /// What differs now, as kind, what, the kernel's and Volley's; and how many things were compared.
    pub fn differences(
        &self,
        pairs: &[LcpRow],
        rows: &[InterfaceState],
        neighbors: &[Neighbor],
    ) -> (u64, Vec<[String; 4]>) {
        let (mut compared, mut found) = self.odd_devices(pairs, rows);
        for pair in pairs {
            let name = &pair.interface;
            let Some(both) = self.both(pair, rows, neighbors) else {
                compared += 1;
                found.push(["link".into(), name.clone(), String::new(), name.clone()]);
                continue;
            };
            let all = both.compare();
            compared += all.len() as u64;
            let differs = all
                .into_iter()
                .filter(|(_, _, kernel, volley)| kernel != volley);
            found.extend(differs.map(|(kind, what, kernel, volley)| {
                [
                    kind.to_owned(),
                    format!("{name} {what}").trim_end().to_owned(),
                    kernel,
                    volley,
                ]
            }));
        }
        (compared, found)
    }
}

type Compared = (&'static str, String, String, String);

impl SyncView<'_> {
    fn link_state(&self, agreed: &mut SyncedState, todo: &mut SyncPlan) {
        let index = self.link.index;
        let (kernel, volley) = (self.link.up, self.row.state == AdminState::Up);
        // A new twin is made down: whoever has set it up meant it.
        let new = agreed.up.is_none() && kernel;
        if kernel == volley {
            agreed.up = Some(volley);
        } else if agreed.up == Some(volley) || new {
            let state = if kernel {
                AdminState::Up
            } else {
                AdminState::Down
            };
            let state = Instance::of_value("admin_state", &self.row.name, state.to_value());
            todo.requests.extend(state.ok().map(Request::Set));
        } else {
            todo.orders.push((index, Order::Up(volley)));
        }
        let (kernel, volley) = (self.link.mtu, self.row.mtu);
        if kernel == volley {
            agreed.mtu = Some(volley);
        } else if agreed.mtu == Some(volley) {
            let mtu = Instance::of_value("mtu", &self.row.name, kernel.to_value());
            todo.requests.extend(mtu.ok().map(Request::Set));
        } else {
            todo.orders.push((index, Order::Mtu(volley)));
        }
        if let Some(mac) = self.row.mac.filter(|mac| self.link.mac != Some(*mac)) {
            todo.orders.push((index, Order::Mac(mac)));
        }
    }

    fn address_state(&self, agreed: &mut SyncedState, todo: &mut SyncPlan) {
        // What the kernel made itself, it has as well when it is configured here.
        let ours = self.row.addresses.iter().copied();
        let ours: BTreeSet<IfAddress> = ours.filter(|a| !self.made.contains(a)).collect();
        let interface = || self.row.name.to_value();
        agreed
            .addresses
            .retain(|a| ours.contains(a) || self.addresses.contains(a));
        for &address in self.addresses.union(&ours) {
            let was = agreed.addresses.contains(&address);
            match (self.addresses.contains(&address), ours.contains(&address)) {
                (true, true) => {
                    agreed.addresses.insert(address);
                    agreed.missed.remove(&address);
                }
                (true, false) if was => todo
                    .orders
                    .push((self.link.index, Order::Address(address, false))),
                (true, false) => {
                    let fields = [("interface", interface()), ("address", address.to_value())];
                    let add = Request::set_fields("address", &fields);
                    todo.requests.extend(add.ok());
                }
                // An interface of the kernel that is down loses its IPv6 addresses by itself.
                (false, _) if was && !self.link.up => _ = agreed.addresses.remove(&address),
                // It may be on its way down: the kernel tells that afterwards.
                (false, _) if was && agreed.missed.insert(address) => todo.again = true,
                (false, _) if was => {
                    let del = Request::unset_key("address", [interface(), address.to_value()]);
                    todo.requests.extend(del.ok());
                }
                (false, _) if address.addr().is_ipv6() && !self.link.up => {}
                (false, _) => todo
                    .orders
                    .push((self.link.index, Order::Address(address, true))),
            }
        }
    }

    /// Link-local addresses of the kernel's own making: used while both are up, never configuration.
    fn automatic_state(&self, agreed: &mut SyncedState, todo: &mut SyncPlan) {
        let up = self.link.up && self.row.state == AdminState::Up;
        let wanted = self.made.iter().filter(|_| up).copied();
        let wanted = wanted.filter(|a| !self.row.addresses.contains(a));
        let wanted: BTreeSet<IfAddress> = wanted.collect();
        let mut order = |address: &IfAddress, there| {
            let interface = self.row.name.clone();
            todo.automatic.push((interface, *address, there));
        };
        let gone = agreed.automatic.difference(&wanted);
        gone.for_each(|address| order(address, false));
        let new = wanted.iter().filter(|a| !self.row.automatic.contains(a));
        new.for_each(|address| order(address, true));
        agreed.automatic = wanted;
    }

    fn neighbor_state(&self, agreed: &mut SyncedState, todo: &mut SyncPlan) {
        let (kernel, volley) = (self.neighbors.0, &self.neighbors.1);
        let interface = || self.row.name.clone();
        let all: BTreeSet<IpAddr> = kernel.keys().chain(volley.keys()).copied().collect();
        agreed.neighbors.retain(|a, _| all.contains(a));
        agreed.missing.retain(|a| all.contains(a));
        for address in all {
            let (theirs, ours) = (kernel.get(&address), volley.get(&address));
            let was = agreed.neighbors.get(&address);
            if theirs == ours {
                let mac = theirs.copied().unwrap_or_default();
                agreed.neighbors.insert(address, mac);
                agreed.missing.remove(&address);
                continue;
            }
            let unchanged = was == ours;
            match theirs {
                // An interface of the kernel that is down has lost its neighbours by itself.
                None if !self.link.up => _ = agreed.neighbors.remove(&address),
                // It may be on its way down, or its MAC address changes: the kernel tells that afterwards.
                None if unchanged && agreed.missing.insert(address) => todo.again = true,
                // Volley has what was agreed, or neither had it: the kernel has changed it.
                Some(mac) if unchanged => {
                    let set = neighbor(&interface(), address, Some(*mac));
                    todo.requests.extend(set);
                }
                None if unchanged => {
                    todo.requests.extend(neighbor(&interface(), address, None));
                }
                _ => todo
                    .orders
                    .push((self.link.index, Order::Neighbor(address, ours.copied()))),
            }
        }
    }

    fn compare(&self) -> Vec<Compared> {
        let up = |up| if up { "up" } else { "down" }.to_owned();
        let mac = |mac: Option<Mac>| mac.map_or(String::new(), |m| m.to_string());
        let mut all = vec![
            (
                "link",
                String::new(),
                up(self.link.up),
                up(self.row.state == AdminState::Up),
            ),
            (
                "mtu",
                String::new(),
                self.link.mtu.to_string(),
                self.row.mtu.to_string(),
            ),
            ("mac", String::new(), mac(self.link.mac), mac(self.row.mac)),
        ];
        let ours = self.row.addresses.iter().copied();
        let ours: BTreeSet<IfAddress> = ours.filter(|a| !self.made.contains(a)).collect();
        // An interface of the kernel that is down has no IPv6 addresses, and gets them when it is up.
        let lost =
            |a: &IfAddress| a.addr().is_ipv6() && !self.link.up && !self.addresses.contains(a);
        for address in self.addresses.union(&ours).filter(|a| !lost(a)) {
            let side = |has: bool| {
                if has {
                    address.to_string()
                } else {
                    String::new()
                }
            };
            let (kernel, volley) = (self.addresses.contains(address), ours.contains(address));
            all.push(("address", address.to_string(), side(kernel), side(volley)));
        }
        let (kernel, volley) = (self.neighbors.0, &self.neighbors.1);
        let each: BTreeSet<&IpAddr> = kernel.keys().chain(volley.keys()).collect();
        for address in each {
            let (theirs, ours) = (kernel.get(address).copied(), volley.get(address).copied());
            if theirs.is_none() && !self.link.up {
                continue;
            }
            all.push(("neighbor", address.to_string(), mac(theirs), mac(ours)));
        }
        all
    }
}

#[cfg(test)]
mod tests;
