//! Bridge domains on the control thread: ports, MAC entries, and the state published to workers.

use crate::lane::LearnQueue;
use crate::model::{BridgeDomain, L2FibEntry};
use crate::plane::{DomainView, FLOOD, FORWARD, LEARN, Member, Plane, UU_FLOOD};
use crate::stations::{FILTERED, MacEntries, MacEntry, Rules, key};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use volley_graph::{Clock, Domain, GraphError};
use volley_iface::{Flag, IfIdx, IfTable, ReceiveFeature};
use volley_model::Mac;
use volley_tables::mac::Full;
use volley_tables::{MacSnap, Publisher, Snap};

/// Interval of the process while MAC addresses are being learned.
const BUSY: Duration = Duration::from_millis(1);
/// Interval of the process otherwise.
const QUIET: Duration = Duration::from_millis(10);
/// The process stays busy for this long after the last reported MAC address.
const BUSY_FOR_NS: u64 = 1_000_000_000;
/// Most reported MAC addresses of a worker that one run of the process reads.
const READ: usize = 4096;
/// Most bridge domains.
pub(crate) const BRIDGE_DOMAINS: usize = 4096;
/// Nanoseconds in a minute.
const MINUTE_NS: u64 = 60_000_000_000;

/// One bridge domain.
pub(crate) struct Bridge {
    pub(crate) spec: BridgeDomain,
    pub(crate) slot: u16,
    /// The split-horizon group of each port.
    pub(crate) ports: BTreeMap<IfIdx, u32>,
}

/// State of bridge domains on the control thread.
pub(crate) struct Control {
    pub(crate) bridges: BTreeMap<u32, Bridge>,
    pub(crate) stations: MacEntries,
    /// Configured MAC entries with their ports; none for an entry whose frames are dropped.
    configured: BTreeMap<(u32, Mac), Option<IfIdx>>,
    /// The bridge domain of each slot, none for a free one. Slot 0 means "in no domain".
    slots: Vec<Option<u32>>,
    /// Start of the search for a free slot, so that a slot is reused as late as possible.
    cursor: usize,
    plane: Publisher<Plane>,
    table: Arc<IfTable>,
    lanes: Vec<Arc<LearnQueue>>,
    /// The feature that consumes the frames of ports.
    learn: ReceiveFeature,
    clock: Clock,
    busy_until: u64,
}

/// Error: the number of bridge domains is at its limit.
pub(crate) struct TooMany;

impl Control {
    pub(crate) fn new(
        domain: &Arc<Domain>,
        (table, learn): (Arc<IfTable>, ReceiveFeature),
        lanes: Vec<Arc<LearnQueue>>,
        clock: Clock,
    ) -> Self {
        Control {
            bridges: BTreeMap::new(),
            stations: MacEntries::new(domain, lanes.len()),
            configured: BTreeMap::new(),
            slots: vec![None; BRIDGE_DOMAINS + 1],
            cursor: 0,
            plane: Publisher::new(domain, Plane::new()),
            table,
            lanes,
            learn,
            clock,
            busy_until: 0,
        }
    }

    /// Snapshots for nodes.
    pub(crate) fn snaps(&self) -> (Snap<Plane>, MacSnap) {
        (self.plane.snap(), self.stations.snap())
    }

    pub(crate) fn now_ns(&self) -> u64 {
        self.clock.now_ns()
    }

    /// Whether a feature consumes all frames of an interface.
    pub(crate) fn is_consumed(&self, interface: IfIdx) -> bool {
        self.learn.is_consumed(interface)
    }

    /// The bridge domain of a port.
    pub(crate) fn bridge_of(&self, port: IfIdx) -> Option<u32> {
        let mut all = self.bridges.iter();
        all.find(|(_, b)| b.ports.contains_key(&port))
            .map(|(id, _)| *id)
    }

    fn publish(&mut self) {
        let mut plane = Plane::new();
        for bridge in self.bridges.values() {
            let it = &bridge.spec;
            let flags = [
                (it.learn, LEARN),
                (it.flood, FLOOD),
                (it.uu_flood, UU_FLOOD),
                (it.forward, FORWARD),
            ];
            let flags = flags
                .iter()
                .filter(|(on, _)| *on)
                .fold(0, |all, (_, flag)| all | flag);
            let member = |(&port, &shg): (&IfIdx, &u32)| Member { port, shg };
            let view = DomainView {
                members: bridge.ports.iter().map(member).collect(),
                group_fwd_mask: it.group_fwd_mask,
            };
            plane.add(bridge.slot.into(), view, flags);
        }
        self.plane.publish(plane);
    }

    fn free_slot(&self) -> Option<usize> {
        let all = self.slots.len();
        let mut slots = (0..all).map(|n| (self.cursor + n) % all);
        slots.find(|&slot| slot > 0 && self.slots[slot].is_none())
    }

    /// Adds or changes a bridge domain.
    pub(crate) fn set(&mut self, spec: &BridgeDomain) -> Result<(), TooMany> {
        let known = self.bridges.get(&spec.id).map(|b| b.slot);
        let slot = match known {
            Some(slot) => slot,
            None => self.free_slot().ok_or(TooMany)? as u16,
        };
        let rules = Rules {
            learn: spec.learn,
            limit: spec.mac_limit,
            age_ns: u64::from(spec.mac_age) * MINUTE_NS,
        };
        self.stations.set_rules(slot, rules);
        match self.bridges.get_mut(&spec.id) {
            Some(bridge) => bridge.spec = spec.clone(),
            None => {
                self.slots[usize::from(slot)] = Some(spec.id);
                self.cursor = usize::from(slot) + 1;
                let (spec, ports) = (spec.clone(), BTreeMap::new());
                self.bridges.insert(spec.id, Bridge { spec, slot, ports });
            }
        }
        self.publish();
        Ok(())
    }

    /// Removes a bridge domain whose ports have left it. False if it does not exist.
    pub(crate) fn remove(&mut self, id: u32) -> bool {
        let Some(bridge) = self.bridges.remove(&id) else {
            return false;
        };
        self.configured.retain(|(domain, _), _| *domain != id);
        self.publish();
        self.stations.drop_domain(bridge.slot);
        self.slots[usize::from(bridge.slot)] = None;
        true
    }

    /// Makes an interface a port of a bridge domain, also if it is a port of another one. After an error it is in no domain.
    pub(crate) fn join(&mut self, port: IfIdx, domain: u32, shg: u32) -> Result<(), GraphError> {
        if self.bridge_of(port).is_some_and(|now| now != domain) {
            self.leave(port);
        }
        let Some(bridge) = self.bridges.get_mut(&domain) else {
            return Ok(());
        };
        bridge.ports.insert(port, shg);
        self.publish();
        let behind = |(at, to): (&(u32, Mac), &Option<IfIdx>)| {
            (at.0 == domain && *to == Some(port)).then_some(at.1)
        };
        let stations: Vec<Mac> = self.configured.iter().filter_map(behind).collect();
        for mac in stations {
            // If the table is full, frames to this address are flooded.
            let _ = self.install(domain, mac, Some(port));
        }
        let enabled = self.learn.set(port, true);
        if enabled.is_err() {
            self.leave(port);
        }
        enabled
    }

    /// Removes an interface from its bridge domain; false if it is in none.
    pub(crate) fn leave(&mut self, port: IfIdx) -> bool {
        let Some(domain) = self.bridge_of(port) else {
            return false;
        };
        self.learn.clear(port);
        if let Some(bridge) = self.bridges.get_mut(&domain) {
            bridge.ports.remove(&port);
        }
        self.publish();
        self.stations.flush(|_, station| station.port == port.0);
        true
    }

    /// Removes a deleted interface and the configured MAC entries on it.
    pub(crate) fn forget(&mut self, port: IfIdx) {
        self.leave(port);
        self.configured.retain(|_, behind| *behind != Some(port));
    }

    /// Flushes the learned MAC entries of a port that went down: the hosts may be reachable through another port.
    pub(crate) fn down(&mut self, port: IfIdx) {
        if self.bridge_of(port).is_some() {
            self.stations
                .flush(|_, station| station.port == port.0 && !station.fixed);
        }
    }

    fn install(&mut self, domain: u32, mac: Mac, behind: Option<IfIdx>) -> Result<(), Full> {
        let Some(bridge) = self.bridges.get(&domain) else {
            return Ok(());
        };
        let key = key(mac.0, bridge.slot);
        match behind {
            None => self.stations.fix(key, FILTERED),
            Some(port) if bridge.ports.contains_key(&port) => self.stations.fix(key, port.0),
            Some(_) => {
                self.stations.unfix(key);
                Ok(())
            }
        }
    }

    /// Adds a configured MAC entry. It is active while its interface is a port of the domain.
    pub(crate) fn fix(&mut self, entry: &L2FibEntry, behind: Option<IfIdx>) -> Result<(), Full> {
        self.install(entry.domain, entry.mac, behind)?;
        self.configured.insert((entry.domain, entry.mac), behind);
        Ok(())
    }

    /// Removes a configured MAC entry; false if there was none.
    pub(crate) fn unfix(&mut self, domain: u32, mac: Mac) -> bool {
        let was = self.configured.remove(&(domain, mac)).is_some();
        if let Some(bridge) = self.bridges.get(&domain) {
            let key = key(mac.0, bridge.slot);
            self.stations.unfix(key);
        }
        was
    }

    /// Flushes learned MAC entries; returns their number.
    pub(crate) fn flush(&mut self, port: Option<IfIdx>, domain: Option<u32>) -> u64 {
        let slot = domain.map(|id| self.bridges.get(&id).map_or(0, |b| b.slot));
        self.stations.flush(|key, station: &MacEntry| {
            !station.fixed
                && port.is_none_or(|p| p.0 == station.port)
                && slot.is_none_or(|s| key as u16 == s)
        })
    }

    /// The bridge domain of an entry's key.
    pub(crate) fn domain_of(&self, key: u64) -> Option<u32> {
        self.slots[usize::from(key as u16)]
    }

    /// One run of the process; returns the time until the next run.
    pub(crate) fn turn(&mut self) -> Duration {
        let (now, mut some) = (self.now_ns(), false);
        for worker in 0..self.lanes.len() {
            let lane = self.lanes[worker].clone();
            for heard in std::iter::from_fn(|| lane.new_macs.pop()).take(READ) {
                some = true;
                // The port may have left the domain since.
                let slot = usize::from(heard.key as u16);
                let domain = self.slots.get(slot).copied().flatten();
                let bridge = domain.and_then(|id| self.bridges.get(&id));
                let is_port = bridge.is_some_and(|b| b.ports.contains_key(&IfIdx(heard.rx)));
                if is_port && self.table.has(heard.rx, Flag::Up) {
                    self.stations.hear(heard.key, heard.rx, now);
                }
            }
        }
        self.stations.sweep(now);
        if some {
            self.busy_until = now + BUSY_FOR_NS;
        }
        if now < self.busy_until { BUSY } else { QUIET }
    }
}
