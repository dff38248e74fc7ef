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

    /// Make these the routes that the script has set when it was loaded. What it has learned stays.
    pub(crate) fn load(&mut self, changes: &[Change]) -> Result<(), String> {
        let mut fixed = BTreeMap::new();
        let of_run = |change: &Change| match change {
            Change::Run(run) => Some(run.clone()),
            _ => None,
        };
        let runs: Vec<Run> = changes.iter().filter_map(of_run).collect();
        check_runs(&runs)?;
        for change in changes {
            match *change {
                Change::Add(address, length, route) => {
                    fixed.insert((address, length), route);
                }
                Change::Run(_) => {}
                Change::Remove(address, length) => {
                    fixed.remove(&(address, length));
                }
                Change::Neighbor(address, route) => {
                    fixed.insert((address, 32), route.to_neighbor(address));
                    self.learn(address, route);
                }
            }
        }
        let gone = std::mem::replace(&mut self.runs, runs);
        let done = self.load_all(fixed, &gone);
        match done.is_ok() {
            true => self.remove_runs(&gone),
            // Their prefixes are still in the table: the next version removes them.
            false => self.runs = gone,
        }
        done
    }

    /// Load the runs and these routes; `gone` are the runs of the last version.
    fn load_all(&mut self, fixed: BTreeMap<(u32, u8), Route>, gone: &[Run]) -> Result<(), String> {
        let mut fresh = self.load_runs(gone)?;
        let before: Vec<(u32, u8)> = self.entries.keys().copied().collect();
        for key in before.into_iter().filter(|key| !fixed.contains_key(key)) {
            self.edit(key, |entry| entry.fixed = None)?;
        }
        for (key, route) in fixed {
            let entry = self.entries.entry(key).or_default();
            if entry.fixed != Some(route) {
                entry.fixed = Some(route);
                let leaf = self.leaf(route).ok_or_else(full)?;
                fresh.push((key.0, key.1, leaf));
            }
        }
        self.publish();
        let done = self.lpm.load_bulk(fresh);
        done.map_err(|why| why.to_string())
    }

    /// The leaves of prefixes of runs that no entry has, if the runs are other ones than before.
    fn load_runs(&mut self, before: &[Run]) -> Result<Vec<(u32, u8, u32)>, String> {
        let mut fresh = Vec::new();
        if self.runs == before {
            return Ok(fresh);
        }
        let runs = std::mem::take(&mut self.runs);
        for run in &runs {
            let leaves = run.routes.iter().map(|route| self.leaf(*route));
            let leaves: Option<Vec<u32>> = leaves.collect();
            let leaves = leaves.ok_or_else(full)?;
            for ((key, _), leaf) in run.prefixes().zip(leaves.iter().cycle()) {
                if !self.entries.contains_key(&key) {
                    fresh.push((key.0, key.1, *leaf));
                }
            }
        }
        self.runs = runs;
        Ok(fresh)
    }

    /// Remove prefixes of runs of the last version of the script that the new one does not have.
    fn remove_runs(&mut self, before: &[Run]) {
        if self.runs == before {
            return;
        }
        for (key, _) in before.iter().flat_map(Run::prefixes) {
            if self.of_runs(key).is_none() && !self.entries.contains_key(&key) {
                self.lpm.remove(key.0, key.1);
            }
        }
    }

    /// The route that a run gives a prefix: of several runs the last one.
    fn of_runs(&self, key: (u32, u8)) -> Option<Route> {
        self.runs.iter().rev().find_map(|run| run.find(key))
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
                match self.of_runs(key) {
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
