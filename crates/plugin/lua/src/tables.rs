//! Tables of routes of scripts: the control thread writes, workers read. A worker requests changes by a bounded queue, so that
//! lookups never wait for a change.

use crossbeam_queue::ArrayQueue;
use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use volley_sdk::tables::lpm4::{Lpm4, Lpm4Snap};
use volley_sdk::tables::{Domain, Publisher, Reader, Snap};
use volley_sdk::wire::{EtherType, IntoBytes, MacAddr, Prefix, eth::EthHeader};

/// No interface.
pub(crate) const NO_INTERFACE: u32 = u32::MAX;
/// The maximum number of changes that wait for the control thread.
const WAITING: usize = 4096;
/// The maximum number of prefixes that a script adds to a table while it runs.
const MOST_LEARNED: usize = 65_536;
/// The maximum number of different routes of a table: a route keeps its number, and packets from the wire may make a script set routes.
const MOST_ROUTES: usize = 2 * MOST_LEARNED;

fn full() -> String {
    format!("more than {MOST_ROUTES} different routes: let prefixes share next hops")
}

/// The result of a lookup, ready to be written into packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hop {
    /// The Ethernet header.
    pub(crate) ethernet: [u8; 14],
    /// Whether the MAC address of the next hop is known.
    pub(crate) is_complete: bool,
    /// The interface.
    pub(crate) interface: u32,
    /// The longest IP packet that the interface transmits.
    pub(crate) mtu: u32,
}

impl Hop {
    /// No route.
    pub(crate) const NONE: Hop = Hop {
        ethernet: [0; 14],
        is_complete: false,
        interface: NO_INTERFACE,
        mtu: 0,
    };

    /// Bytes 0..8 and 6..14 of the Ethernet header.
    #[inline(always)]
    pub(crate) fn header(&self) -> [u64; 2] {
        let [a, b, c, d, e, f, g, h, ..] = self.ethernet;
        let [.., i, j, k, l, m, n] = self.ethernet;
        [[a, b, c, d, e, f, g, h], [g, h, i, j, k, l, m, n]].map(u64::from_ne_bytes)
    }
}

/// A route of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Route {
    /// Index of the interface.
    pub(crate) interface: u32,
    /// MTU of the interface.
    pub(crate) mtu: u32,
    /// MAC address of the interface.
    pub(crate) source: [u8; 6],
    /// MAC address of the next hop, if the script gives it.
    pub(crate) mac: Option<[u8; 6]>,
    /// Address of the next hop; none: the destination itself.
    pub(crate) via: Option<u32>,
}

impl Route {
    /// The route to a neighbor with this address. It takes the MAC address of its next hop, which is itself, so that another MAC
    /// address makes no other route.
    fn to_neighbor(self, address: u32) -> Route {
        Route {
            mac: None,
            via: Some(address),
            ..self
        }
    }
}

/// Consecutive prefixes of one length, which take routes of a list in turn. A million of them need no memory of their own besides
/// the table's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    first: u32,
    length: u8,
    count: u32,
    routes: Arc<[Route]>,
}

/// The maximum number of prefixes of the runs of a table.
const MOST_IN_RUNS: u32 = 1 << 24;
/// The maximum number of runs of a table: a change of a prefix searches all of them.
const MOST_RUNS: usize = 64;

impl Run {
    /// Prefixes from `first` on.
    pub(crate) fn new(
        (first, length): (u32, u8),
        count: u32,
        routes: Vec<Route>,
    ) -> Result<Run, String> {
        if !(1..=MOST_IN_RUNS).contains(&count) {
            return Err(format!(
                "{count} prefixes: add_many sets 1 to {MOST_IN_RUNS}"
            ));
        }
        if routes.is_empty() {
            return Err("the prefixes have no route: give a list of routes".to_owned());
        }
        let run = Run {
            first,
            length,
            count,
            routes: routes.into(),
        };
        let last = u64::from(first >> run.shift()) + u64::from(count) - 1;
        match length > 0 && last >> length == 0 {
            true => Ok(run),
            false => Err(format!(
                "{count} prefixes of /{length} from this address on end behind 255.255.255.255: set fewer"
            )),
        }
    }

    fn shift(&self) -> u32 {
        32 - u32::from(self.length).clamp(1, 32)
    }

    /// The prefixes with their routes.
    fn prefixes(&self) -> impl Iterator<Item = ((u32, u8), Route)> + '_ {
        let start = self.first >> self.shift();
        let routes = self.routes.iter().cycle();
        (0..self.count)
            .zip(routes)
            .map(move |(n, route)| (((start + n) << self.shift(), self.length), *route))
    }

    /// The route of a prefix of the run.
    fn find(&self, (address, length): (u32, u8)) -> Option<Route> {
        let at = (address >> self.shift()).checked_sub(self.first >> self.shift())?;
        let is_in = length == self.length && at < self.count;
        is_in.then(|| self.routes[at as usize % self.routes.len()])
    }
}

/// Refuse runs that need too much memory or time.
fn check_runs(runs: &[Run]) -> Result<(), String> {
    let prefixes: u64 = runs.iter().map(|run| u64::from(run.count)).sum();
    match runs.len() <= MOST_RUNS && prefixes <= u64::from(MOST_IN_RUNS) {
        true => Ok(()),
        false => Err(format!(
            "{prefixes} prefixes by {} calls of add_many: a table has at most {MOST_IN_RUNS} by {MOST_RUNS} calls",
            runs.len()
        )),
    }
}

/// A change of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Set the route of a prefix.
    Add(u32, u8, Route),
    /// Set the routes of consecutive prefixes, while the script is loaded.
    Run(Run),
    /// Remove a prefix.
    Remove(u32, u8),
    /// A neighbor: a route to its address, and the MAC address of routes via it.
    Neighbor(u32, Route),
}

/// An IPv4 prefix as numbers.
pub(crate) fn prefix(text: &str) -> Result<(u32, u8), String> {
    let wrong = |why: String| format!("'{text}' is no IPv4 prefix: {why}");
    let prefix: Prefix = match text.contains('/') {
        true => text.parse().map_err(|why| wrong(format!("{why}")))?,
        false => Prefix::host(IpAddr::V4(address(text)?.into())),
    };
    match prefix.addr() {
        IpAddr::V4(address) => Ok((address.to_bits(), prefix.len())),
        IpAddr::V6(_) => Err(wrong("write an address such as 10.0.0.0/24".to_owned())),
    }
}

/// An IPv4 address as a number.
pub(crate) fn address(text: &str) -> Result<u32, String> {
    let parsed: Result<Ipv4Addr, _> = text.parse();
    parsed
        .map(Ipv4Addr::to_bits)
        .map_err(|_| format!("'{text}' is no IPv4 address: write an address such as 10.0.0.1"))
}

/// The workers' side of a table, and the queue of changes.
#[derive(Clone)]
pub(crate) struct Shared {
    lpm: Lpm4Snap,
    hops: Snap<Vec<Hop>>,
    routes: Snap<Vec<Route>>,
    changes: Arc<ArrayQueue<Change>>,
}

impl Shared {
    /// Look at the table as it is now: `look` gets the prefixes, the hops and the routes by the numbers of leaves less one.
    pub(crate) fn read<T>(
        &self,
        reader: &mut Reader,
        look: impl FnOnce(&volley_sdk::tables::lpm4::Lpm4View, &[Hop], &[Route]) -> T,
    ) -> T {
        let guard = reader.guard();
        // The leaves are read first: hops and routes are published before the leaves that name them.
        let view = self.lpm.read(guard);
        let seen = look(view, self.hops.read(guard), self.routes.read(guard));
        reader.offline();
        seen
    }

    /// Request a change; false: too many changes wait.
    pub(crate) fn ask(&self, change: Change) -> bool {
        self.changes.push(change).is_ok()
    }
}

/// The routes of a prefix.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Entry {
    /// By the script when it was loaded.
    fixed: Option<Route>,
    /// By the script while it runs.
    learned: Option<Route>,
}

impl Entry {
    fn route(self) -> Option<Route> {
        self.fixed.or(self.learned)
    }
}

/// The route that runs give a prefix: of several runs the last one.
fn of_runs(runs: &[Run], key: (u32, u8)) -> Option<Route> {
    runs.iter().rev().find_map(|run| run.find(key))
}

/// A load of a table that is not effective yet.
pub(crate) struct Load {
    runs: Vec<Run>,
    entries: BTreeMap<(u32, u8), Entry>,
    neighbors: Vec<(u32, Route)>,
    /// Routes that the table does not know, and their leaves.
    routes: Vec<Route>,
    leaves: HashMap<Route, u32>,
    removed: Vec<(u32, u8)>,
    added: Vec<(u32, u8, u32)>,
}

impl Load {
    /// The leaf of a route; none if there are too many routes.
    fn leaf(&mut self, table: &Table, route: Route) -> Option<u32> {
        let known = table.leaves.get(&route).map(|at| at + 1);
        if let Some(leaf) = known.or(self.leaves.get(&route).copied()) {
            return Some(leaf);
        }
        let at = table.known.len() + self.routes.len();
        if at >= MOST_ROUTES {
            return None;
        }
        let leaf = at as u32 + 1;
        self.leaves.insert(route, leaf);
        self.routes.push(route);
        Some(leaf)
    }

    fn add(&mut self, table: &Table, key: (u32, u8), route: Route) -> Result<(), String> {
        let leaf = self.leaf(table, route).ok_or_else(full)?;
        self.added.push((key.0, key.1, leaf));
        Ok(())
    }
}

/// The control thread's side of a table.
pub(crate) struct Table {
    lpm: Lpm4,
    hops: Publisher<Vec<Hop>>,
    routes: Publisher<Vec<Route>>,
    /// The leaf of a route, less one.
    leaves: HashMap<Route, u32>,
    /// Routes, by leaf less one, that are not published yet.
    known: Vec<Route>,
    is_changed: bool,
    neighbors: BTreeMap<u32, [u8; 6]>,
    entries: BTreeMap<(u32, u8), Entry>,
    /// Prefixes without an entry that the script has set when it was loaded.
    runs: Vec<Run>,
    learned: usize,
    changes: Arc<ArrayQueue<Change>>,
}

impl Table {
    /// An empty table.
    pub(crate) fn new(domain: &Arc<Domain>) -> Self {
        Table {
            lpm: Lpm4::new(domain),
            hops: Publisher::new(domain, Vec::new()),
            routes: Publisher::new(domain, Vec::new()),
            leaves: HashMap::new(),
            known: Vec::new(),
            is_changed: false,
            neighbors: BTreeMap::new(),
            entries: BTreeMap::new(),
            runs: Vec::new(),
            learned: 0,
            changes: Arc::new(ArrayQueue::new(WAITING)),
        }
    }

    /// The workers' side.
    pub(crate) fn shared(&self) -> Shared {
        Shared {
            lpm: self.lpm.snap(),
            hops: self.hops.snap(),
            routes: self.routes.snap(),
            changes: self.changes.clone(),
        }
    }

    /// What makes these the routes that the script has set when it was loaded. What it has learned stays. Nothing changes before
    /// [`Table::commit`], and an error means that the table has no room for the routes.
    pub(crate) fn prepare(&self, changes: &[Change]) -> Result<Load, String> {
        let mut load = Load {
            runs: Vec::new(),
            entries: self.entries.clone(),
            neighbors: Vec::new(),
            routes: Vec::new(),
            leaves: HashMap::new(),
            removed: Vec::new(),
            added: Vec::new(),
        };
        let mut fixed = BTreeMap::new();
        for change in changes {
            match change {
                Change::Add(address, length, route) => {
                    fixed.insert((*address, *length), *route);
                }
                Change::Run(run) => load.runs.push(run.clone()),
                Change::Remove(address, length) => {
                    fixed.remove(&(*address, *length));
                }
                Change::Neighbor(address, route) => {
                    fixed.insert((*address, 32), route.to_neighbor(*address));
                    load.neighbors.push((*address, *route));
                }
            }
        }
        check_runs(&load.runs)?;
        load.entries.values_mut().for_each(|it| it.fixed = None);
        for (key, route) in fixed {
            load.entries.entry(key).or_default().fixed = Some(route);
        }
        load.entries.retain(|_, entry| entry.route().is_some());
        self.compare_runs(&mut load)?;
        self.compare_entries(&mut load)?;
        let checked = self.lpm.check_bulk(&load.removed, &load.added);
        checked.map_err(|why| why.to_string())?;
        Ok(load)
    }

    /// Adds the prefixes of runs that no entry has, and removes those of the last version of the script, if the runs differ.
    fn compare_runs(&self, load: &mut Load) -> Result<(), String> {
        if load.runs == self.runs {
            return Ok(());
        }
        for (key, _) in self.runs.iter().flat_map(Run::prefixes) {
            if of_runs(&load.runs, key).is_none() && !load.entries.contains_key(&key) {
                load.removed.push(key);
            }
        }
        for run in load.runs.clone() {
            let leaves = run.routes.iter().map(|route| load.leaf(self, *route));
            let leaves: Option<Vec<u32>> = leaves.collect();
            let leaves = leaves.ok_or_else(full)?;
            for ((key, _), leaf) in run.prefixes().zip(leaves.iter().cycle()) {
                if !load.entries.contains_key(&key) {
                    load.added.push((key.0, key.1, *leaf));
                }
            }
        }
        Ok(())
    }

    /// Adds and removes the single prefixes that differ.
    fn compare_entries(&self, load: &mut Load) -> Result<(), String> {
        let before = self.entries.keys().copied();
        let gone = before.filter(|key| !load.entries.contains_key(key));
        for key in gone.collect::<Vec<_>>() {
            match of_runs(&load.runs, key) {
                Some(route) => load.add(self, key, route)?,
                None => load.removed.push(key),
            }
        }
        let had = |key| self.entries.get(key).copied().and_then(Entry::route);
        let after = load.entries.iter();
        let fresh = after.filter_map(|(key, entry)| {
            let route = entry.route()?;
            (had(key) != Some(route)).then_some((*key, route))
        });
        for (key, route) in fresh.collect::<Vec<_>>() {
            load.add(self, key, route)?;
        }
        Ok(())
    }

    /// Make the changes of a load that was prepared for the table as it is: workers see all prefixes of it or none.
    pub(crate) fn commit(&mut self, load: Load) -> Result<(), String> {
        for (route, leaf) in load.leaves {
            self.leaves.insert(route, leaf - 1);
        }
        self.is_changed |= !load.routes.is_empty();
        self.known.extend(load.routes);
        for (address, route) in load.neighbors {
            self.learn(address, route);
        }
        (self.runs, self.entries) = (load.runs, load.entries);
        self.publish();
        if load.removed.is_empty() && load.added.is_empty() {
            return Ok(());
        }
        let done = self.lpm.exchange_bulk(&load.removed, &load.added);
        done.map_err(|why| why.to_string())
    }

    /// Carry out the changes that workers have requested. Those for which the table has no room are left out.
    pub(crate) fn collect(&mut self) -> Result<(), String> {
        let mut edits = Vec::new();
        while let Some(change) = self.changes.pop() {
            edits.push(match change {
                Change::Add(address, length, route) => ((address, length), Some(route)),
                Change::Remove(address, length) => ((address, length), None),
                // Runs are set while the script is loaded.
                Change::Run(_) => continue,
                Change::Neighbor(address, route) => {
                    let itself = route.to_neighbor(address);
                    let entry = self.entries.get(&(address, 32));
                    // What the script has set when it was loaded stays.
                    if entry.and_then(|entry| entry.fixed) != Some(itself) {
                        self.learn(address, route);
                    }
                    ((address, 32), Some(itself))
                }
            });
        }
        edits.retain(|(_, route)| route.is_none_or(|route| self.leaf(route).is_some()));
        self.publish();
        edits
            .into_iter()
            .try_for_each(|(key, route)| self.edit(key, |entry| entry.learned = route))
    }

    /// Set the MAC address of a neighbor.
    fn learn(&mut self, address: u32, route: Route) {
        let is_known = self.neighbors.contains_key(&address);
        if let Some(mac) = route.mac
            && (is_known || self.neighbors.len() < MOST_LEARNED)
            && self.neighbors.insert(address, mac) != Some(mac)
        {
            self.is_changed = true;
        }
    }

    fn edit(&mut self, key: (u32, u8), body: impl FnOnce(&mut Entry)) -> Result<(), String> {
        let mut entry = self.entries.get(&key).copied().unwrap_or_default();
        let before = entry;
        body(&mut entry);
        let more = usize::from(entry.learned.is_some());
        let learned = self.learned + more - usize::from(before.learned.is_some());
        if learned > MOST_LEARNED && more > 0 && before.learned.is_none() {
            return Ok(());
        }
        self.learned = learned;
        match entry.route() {
            None => {
                self.entries.remove(&key);
                match of_runs(&self.runs, key) {
                    Some(route) => {
                        let leaf = self.leaf(route).ok_or_else(full)?;
                        self.publish();
                        let done = self.lpm.insert(key.0, key.1, leaf);
                        done.map_err(|why| why.to_string())?;
                    }
                    None => _ = self.lpm.remove(key.0, key.1),
                }
            }
            Some(route) => {
                let leaf = self.leaf(route).ok_or_else(full)?;
                self.entries.insert(key, entry);
                if before.route() != Some(route) {
                    self.publish();
                    let done = self.lpm.insert(key.0, key.1, leaf);
                    done.map_err(|why| why.to_string())?;
                }
            }
        }
        Ok(())
    }

    /// The leaf of a route; none if there are too many routes.
    fn leaf(&mut self, route: Route) -> Option<u32> {
        let next = self.known.len() as u32;
        if let Some(at) = self.leaves.get(&route) {
            return Some(at + 1);
        }
        if self.known.len() >= MOST_ROUTES {
            return None;
        }
        self.leaves.insert(route, next);
        self.known.push(route);
        self.is_changed = true;
        Some(next + 1)
    }

    /// Let the workers see new routes and MAC addresses.
    fn publish(&mut self) {
        if !std::mem::take(&mut self.is_changed) {
            return;
        }
        let hops = self.known.iter().map(|route| self.hop(route)).collect();
        self.routes.publish(self.known.clone());
        self.hops.publish(hops);
    }

    fn hop(&self, route: &Route) -> Hop {
        let of_via = || self.neighbors.get(&route.via?).copied();
        let mac = route.mac.or_else(of_via);
        let header = EthHeader {
            dst: MacAddr(mac.unwrap_or_default()),
            src: MacAddr(route.source),
            ether_type: EtherType::IP4,
        };
        let mut ethernet = [0; 14];
        ethernet.copy_from_slice(header.as_bytes());
        Hop {
            ethernet,
            is_complete: mac.is_some(),
            interface: route.interface,
            mtu: route.mtu,
        }
    }
}

#[cfg(test)]
impl Table {
    /// [`Table::prepare`] and [`Table::commit`].
    pub(crate) fn load(&mut self, changes: &[Change]) -> Result<(), String> {
        let load = self.prepare(changes)?;
        self.commit(load)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(interface: u32, mac: Option<[u8; 6]>, via: Option<u32>) -> Route {
        Route {
            interface,
            mtu: 1500,
            source: [2, 0, 0, 0, 0, 1],
            mac,
            via,
        }
    }

    fn found(table: &Table, reader: &mut Reader, address: u32) -> Hop {
        table.shared().read(reader, |view, hops, _| {
            let leaf = view.lookup(address) as usize;
            leaf.checked_sub(1).map_or(Hop::NONE, |at| hops[at])
        })
    }

    const HOST: u32 = 0x0a00_0102;

    #[test]
    fn a_worker_learns_and_the_control_thread_publishes() {
        let domain = Domain::new();
        let mut reader = domain.register();
        let mut table = Table::new(&domain);
        let subnet = Change::Add(0x0a00_0100, 24, route(1, None, None));
        let gateway = Change::Add(0, 0, route(1, None, Some(HOST)));
        table.load(&[subnet, gateway]).unwrap();
        assert!(!found(&table, &mut reader, HOST).is_complete);
        assert!(!found(&table, &mut reader, 1 << 30).is_complete);
        let mac = [2, 0, 0, 0, 0, 9];
        let asked = Change::Neighbor(HOST, route(1, Some(mac), None));
        assert!(table.shared().ask(asked));
        table.collect().unwrap();
        for address in [HOST, 1 << 30] {
            let hop = found(&table, &mut reader, address);
            assert!(hop.is_complete && hop.ethernet[..6] == mac, "{address:x}");
        }
        assert!(!found(&table, &mut reader, HOST + 1).is_complete);
    }

    #[test]
    fn a_load_replaces_what_a_load_has_set_and_keeps_what_was_learned() {
        let domain = Domain::new();
        let mut reader = domain.register();
        let mut table = Table::new(&domain);
        let add =
            |address, interface| Change::Add(address, 32, route(interface, Some([2; 6]), None));
        table.load(&[add(1, 1), add(2, 1)]).unwrap();
        table.shared().ask(add(3, 3));
        table.collect().unwrap();
        table.load(&[add(2, 2)]).unwrap();
        let seen = [1, 2, 3].map(|address| found(&table, &mut reader, address).interface);
        assert_eq!(seen, [NO_INTERFACE, 2, 3]);
        table.shared().ask(Change::Remove(3, 32));
        table.collect().unwrap();
        assert_eq!(found(&table, &mut reader, 3), Hop::NONE);
    }

    #[test]
    fn a_run_takes_routes_in_turn_and_single_routes_take_precedence() {
        let domain = Domain::new();
        let mut reader = domain.register();
        let mut table = Table::new(&domain);
        let to = |interface| route(interface, Some([2; 6]), None);
        let run = |first, count, routes| Change::Run(Run::new(first, count, routes).unwrap());
        let first = run((0x4000_0000, 24), 1000, vec![to(1), to(2), to(3)]);
        let single = Change::Add(0x4000_0300, 24, to(9));
        table.load(&[first.clone(), single]).unwrap();
        let seen = |table: &Table, reader: &mut Reader, n: u32| {
            found(table, reader, 0x4000_0000 + n * 256 + 7).interface
        };
        for n in 0..1000 {
            let expected = if n == 3 { 9 } else { n % 3 + 1 };
            assert_eq!(seen(&table, &mut reader, n), expected, "{n}");
        }
        assert_eq!(seen(&table, &mut reader, 1000), NO_INTERFACE);
        // Without the single route the run's is back; a learned one hides it for as long as it is there.
        table.load(std::slice::from_ref(&first)).unwrap();
        assert_eq!(seen(&table, &mut reader, 3), 1);
        table.shared().ask(Change::Add(0x4000_0400, 24, to(8)));
        table.collect().unwrap();
        assert_eq!(seen(&table, &mut reader, 4), 8);
        table.shared().ask(Change::Remove(0x4000_0400, 24));
        table.collect().unwrap();
        assert_eq!(seen(&table, &mut reader, 4), 2);
        // The next version has fewer prefixes, and others.
        table
            .load(&[run((0x4000_0000, 24), 10, vec![to(5)])])
            .unwrap();
        assert_eq!(seen(&table, &mut reader, 9), 5);
        assert_eq!(seen(&table, &mut reader, 10), NO_INTERFACE);
        let wrong = |first, count| Run::new(first, count, vec![to(1)]).is_err();
        assert!(wrong((0xffff_ff00, 24), 2) && wrong((0, 24), 0) && wrong((0, 0), 1));
        // All calls of a script together have a limit.
        let many = run((0, 24), 1 << 24, vec![to(1)]);
        let why = table.load(&[many, first]).unwrap_err();
        assert!(why.contains("at most 16777216"), "{why}");
        assert_eq!(seen(&table, &mut reader, 9), 5);
    }

    /// Refused: too many prefixes by `add_many`, too many different routes, too many networks with long prefixes.
    #[test]
    fn a_load_that_is_refused_changes_nothing() {
        let domain = Domain::new();
        let mut reader = domain.register();
        let mut table = Table::new(&domain);
        let to = |interface| route(interface, Some([2; 6]), None);
        let run = |first, count, to| Change::Run(Run::new(first, count, vec![to]).unwrap());
        let neighbor = |last| Change::Neighbor(HOST, route(1, Some([2, 0, 0, 0, 0, last]), None));
        let loaded = [
            Change::Add(7 << 24, 8, to(1)),
            run((0x4000_0000, 24), 300, to(2)),
            neighbor(9),
        ];
        table.load(&loaded).unwrap();
        table.shared().ask(Change::Add(9 << 24, 8, to(3)));
        table.collect().unwrap();
        let looked_at = [7 << 24, 0x4000_0000, 0x4001_2b00, 9 << 24, HOST, 8 << 24];
        let mut seen = |table: &Table| {
            let hops = looked_at.map(|it| found(table, &mut reader, it));
            (hops, table.known.clone(), table.lpm.len())
        };
        let before = seen(&table);
        let other = |n: u32| route(n, Some([4; 6]), None);
        let changed = [Change::Add(8 << 24, 8, other(0)), neighbor(4)];
        let refused: [Vec<Change>; 3] = [
            vec![run((0, 24), MOST_IN_RUNS, to(5)), run((0, 25), 1, to(5))],
            (0..=MOST_ROUTES as u32)
                .map(|n| Change::Add(n << 8, 24, other(n)))
                .collect(),
            vec![run((0, 25), (1 << 21) + 1, to(5))],
        ];
        for refused in refused {
            let all = [&changed[..], &refused].concat();
            assert!(table.load(&all).is_err());
            assert_eq!(seen(&table), before);
        }
        table.load(&changed).unwrap();
        let interfaces = seen(&table).0.map(|it| it.interface);
        assert_eq!(
            interfaces,
            [NO_INTERFACE, NO_INTERFACE, NO_INTERFACE, 3, 1, 0]
        );
        assert_eq!(seen(&table).0[4].ethernet[5], 4);
    }

    #[test]
    fn a_neighbor_that_changes_its_mac_address_takes_no_memory() {
        let domain = Domain::new();
        let mut reader = domain.register();
        let mut table = Table::new(&domain);
        for n in 1..=10_000u32 {
            let [_, _, high, low] = n.to_be_bytes();
            let mac = [2, 0, 0, 0, high, low];
            let asked = Change::Neighbor(HOST, route(1, Some(mac), None));
            assert!(table.shared().ask(asked));
            table.collect().unwrap();
            assert_eq!(found(&table, &mut reader, HOST).ethernet[..6], mac);
        }
        assert_eq!((table.known.len(), table.neighbors.len()), (1, 1));
    }

    #[test]
    fn a_neighbor_of_the_script_keeps_its_mac_address() {
        let domain = Domain::new();
        let mut reader = domain.register();
        let mut table = Table::new(&domain);
        let of = |mac| Change::Neighbor(HOST, route(1, Some(mac), None));
        table.load(&[of([2; 6])]).unwrap();
        table.shared().ask(of([4; 6]));
        table.collect().unwrap();
        assert_eq!(found(&table, &mut reader, HOST).ethernet[..6], [2; 6]);
        // The next version of the script has another one.
        table.load(&[of([6; 6])]).unwrap();
        assert_eq!(found(&table, &mut reader, HOST).ethernet[..6], [6; 6]);
    }

    #[test]
    fn different_routes_are_bounded() {
        let domain = Domain::new();
        let mut table = Table::new(&domain);
        let shared = table.shared();
        for n in 0..(MOST_ROUTES + 2 * WAITING) as u32 {
            let [a, b, c, d] = n.to_be_bytes();
            let add = Change::Add(1, 32, route(1, Some([2, 0, a, b, c, d]), None));
            if !shared.ask(add.clone()) {
                table.collect().unwrap();
                assert!(shared.ask(add));
            }
        }
        table.collect().unwrap();
        assert_eq!((table.known.len(), table.learned), (MOST_ROUTES, 1));
    }

    #[test]
    fn changes_and_learned_prefixes_are_bounded() {
        let domain = Domain::new();
        let mut table = Table::new(&domain);
        let shared = table.shared();
        let mut address = 0;
        while table.learned < MOST_LEARNED {
            while shared.ask(Change::Add(address, 32, route(1, Some([2; 6]), None))) {
                address += 1;
            }
            table.collect().unwrap();
        }
        shared.ask(Change::Add(u32::MAX, 32, route(1, Some([2; 6]), None)));
        table.collect().unwrap();
        assert_eq!(
            (table.learned, table.lpm.len()),
            (MOST_LEARNED, MOST_LEARNED)
        );
    }
}
