//! The expected configuration of the core as plain maps, and changes by seed.

use super::random::Random;
use crate::tests::{Table, request};
use std::collections::{BTreeMap, BTreeSet};
use volley_iface::Admin;
use volley_iface::AdminState;
use volley_model::{Family, Request};

const NAMES: [&str; 5] = ["pg0", "pg1", "pg2", "pg3", "pg4"];
const TABLES: [u32; 3] = [7, 8, 9];
const MTUS: [u32; 3] = [1400, 2000, 9000];
/// Maximum number of prefixes.
const PREFIXES: usize = 24;
/// Maximum number of addresses of an interface.
const ADDRESSES: usize = 6;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Interface {
    mtu: Option<u32>,
    is_up: bool,
    table: u32,
    addresses: Vec<String>,
    cross: Option<String>,
}

/// A configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Model {
    interfaces: BTreeMap<String, Interface>,
    tables: BTreeSet<u32>,
    routes: BTreeMap<String, String>,
}

/// A change: a line of [`request`], or one that only this simulation has.
pub(super) fn requested(line: &str) -> Request {
    let last = line.rsplit(' ').next().unwrap_or_default();
    match line.split(' ').next() {
        Some("down") => Admin::request(last.to_owned(), AdminState::Down).unwrap(),
        Some("notable") => {
            let (id, family) = (last.parse().unwrap(), Family::V4);
            // The class to which others refer is registered first.
            request("table 7");
            Request::unset(&Table { id, family }).unwrap()
        }
        _ => request(line),
    }
}

fn prefix(n: usize) -> String {
    format!("10.0.{n}.0/24")
}

impl Model {
    /// The commands that create the configuration, sorted.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (name, it) in &self.interfaces {
            lines.push(format!("create packet-generator interface {name}"));
            lines.extend(it.mtu.map(|mtu| format!("set interface mtu {mtu} {name}")));
            lines.extend(it.is_up.then(|| format!("set interface state {name} up")));
            if it.table != 0 {
                lines.push(format!("set interface ip table {name} {}", it.table));
            }
            lines.extend(it.addresses.iter().map(|of| address_line(name, of)));
            lines.extend(
                it.cross
                    .iter()
                    .map(|tx| format!("test binding {name} {tx}")),
            );
        }
        lines.extend(self.tables.iter().map(|id| format!("ip table add {id}")));
        let routes = self.routes.iter();
        lines.extend(routes.map(|(prefix, via)| format!("ip route add {prefix} via {via}")));
        lines.sort();
        lines
    }

    /// The commands that give each interface its addresses, in order.
    pub(super) fn addresses(&self) -> BTreeMap<&str, Vec<String>> {
        let all = self.interfaces.iter();
        all.map(|(name, it)| {
            let lines = it.addresses.iter().map(|of| address_line(name, of));
            (name.as_str(), lines.collect())
        })
        .collect()
    }

    /// The changes that lead from an empty configuration to this one.
    pub(super) fn changes(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.tables.iter().map(|id| format!("table {id}")).collect();
        lines.extend(self.interfaces.keys().map(|name| format!("create {name}")));
        for (name, it) in &self.interfaces {
            lines.extend(it.mtu.map(|mtu| format!("mtu {name} {mtu}")));
            lines.extend(it.is_up.then(|| format!("up {name}")));
            if it.table != 0 {
                lines.push(format!("bind {name} {}", it.table));
            }
            lines.extend(it.addresses.iter().map(|of| format!("address {name} {of}")));
            lines.extend(it.cross.iter().map(|tx| format!("xconnect {name} {tx}")));
        }
        let routes = self.routes.iter();
        lines.extend(routes.map(|(prefix, via)| format!("route {prefix} {via}")));
        lines
    }

    fn uses(&self, name: &str) -> bool {
        let by_others = self.interfaces.iter().filter(|(other, _)| *other != name);
        let mut crossed = by_others.filter_map(|(_, it)| it.cross.as_deref());
        self.routes.values().any(|via| via == name) || crossed.any(|tx| tx == name)
    }

    /// A valid change, applied to this configuration; `None` if none was found.
    pub(super) fn change(&mut self, random: &Random) -> Option<String> {
        let there: Vec<String> = self.interfaces.keys().cloned().collect();
        let name = random.pick(&there).cloned();
        match random.below(12) {
            0 | 1 => self.create(random),
            2 => self.delete(&name?),
            3 => self.rename(&name?, random),
            4 => self.table(random),
            5 | 6 => self.route(&name?, random),
            7 => self.unroute(random),
            8 => self.cross(&name?, &there, random),
            9 | 10 => self.address(name?, random),
            _ => self.set(name?, random),
        }
    }

    fn create(&mut self, random: &Random) -> Option<String> {
        let name = random.pick(&NAMES)?.to_string();
        let is_new = !self.interfaces.contains_key(&name);
        is_new.then(|| {
            let line = format!("create {name}");
            self.interfaces.insert(name, Interface::default());
            line
        })
    }

    fn delete(&mut self, name: &str) -> Option<String> {
        if self.uses(name) {
            return None;
        }
        self.interfaces.remove(name)?;
        Some(format!("delete {name}"))
    }

    fn rename(&mut self, name: &str, random: &Random) -> Option<String> {
        let new = random.pick(&NAMES)?.to_string();
        if self.interfaces.contains_key(&new) {
            return None;
        }
        let it = self.interfaces.remove(name)?;
        self.interfaces.insert(new.clone(), it);
        let crossed = self.interfaces.values_mut();
        let names = crossed.filter_map(|it| it.cross.as_mut());
        for known in names.chain(self.routes.values_mut()) {
            if known == name {
                known.clone_from(&new);
            }
        }
        Some(format!("rename {name} {new}"))
    }

    fn table(&mut self, random: &Random) -> Option<String> {
        let id = *random.pick(&TABLES)?;
        if !self.tables.contains(&id) {
            self.tables.insert(id);
            return Some(format!("table {id}"));
        }
        if self.interfaces.values().any(|it| it.table == id) {
            return None;
        }
        self.tables.remove(&id);
        Some(format!("notable {id}"))
    }

    fn route(&mut self, via: &str, random: &Random) -> Option<String> {
        let prefix = prefix(random.below(PREFIXES));
        let line = format!("route {prefix} {via}");
        self.routes.insert(prefix, via.to_owned());
        Some(line)
    }

    fn unroute(&mut self, random: &Random) -> Option<String> {
        let all: Vec<String> = self.routes.keys().cloned().collect();
        let prefix = random.pick(&all)?;
        self.routes.remove(prefix);
        Some(format!("noroute {prefix}"))
    }

    fn cross(&mut self, rx: &str, there: &[String], random: &Random) -> Option<String> {
        let tx = random.pick(there)?;
        let it = self.interfaces.get_mut(rx)?;
        if it.cross.is_some() && random.percent(40) {
            it.cross = None;
            return Some(format!("l3 {rx}"));
        }
        (tx != rx).then(|| {
            it.cross = Some(tx.clone());
            format!("xconnect {rx} {tx}")
        })
    }

    fn address(&mut self, name: String, random: &Random) -> Option<String> {
        let it = self.interfaces.get_mut(&name)?;
        let address = format!("192.0.2.{}/24", random.below(ADDRESSES) + 1);
        if let Some(at) = it.addresses.iter().position(|known| *known == address) {
            it.addresses.remove(at);
            return Some(format!("noaddress {name} {address}"));
        }
        it.addresses.push(address.clone());
        Some(format!("address {name} {address}"))
    }

    fn set(&mut self, name: String, random: &Random) -> Option<String> {
        let it = self.interfaces.get_mut(&name)?;
        match random.below(3) {
            0 => {
                it.is_up = !it.is_up;
                let state = if it.is_up { "up" } else { "down" };
                Some(format!("{state} {name}"))
            }
            1 => {
                it.mtu = random.pick(&MTUS).copied();
                Some(format!("mtu {name} {}", it.mtu?))
            }
            _ => {
                let known: Vec<u32> = [0].into_iter().chain(self.tables.iter().copied()).collect();
                it.table = *random.pick(&known)?;
                Some(format!("bind {name} {}", it.table))
            }
        }
    }

    /// A change that is invalid in any combination.
    pub(super) fn impossible(&self, random: &Random) -> String {
        let there = self.interfaces.keys().next();
        match (random.below(4), there) {
            (0, Some(name)) => format!("create {name}"),
            (1, Some(name)) => format!("xconnect {name} nowhere"),
            (2, Some(name)) => format!("bind {name} 99"),
            (3, _) => "delete nowhere".into(),
            _ => "route 10.9.0.0/16 nowhere".into(),
        }
    }
}

fn address_line(name: &str, address: &str) -> String {
    format!("set interface ip address {name} {address}")
}
