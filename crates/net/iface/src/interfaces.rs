//! State of interfaces on the control thread.

use crate::driver::{Caps, NewInterface, Port};
use crate::queue_assignment::QueueAssignment;
use crate::rates::Rates;
use crate::states::{AdminState, RxMode};
use crate::{
    Direction, Flag, IfCounts, IfError, IfIdx, IfTable, MAX_INTERFACE_INDEXES, MAX_INTERFACES,
    MAX_QUEUES, Sub,
};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use volley_graph::NodeId;
use volley_model::{ModelError, ObjectKind};

/// One interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Index of the interface.
    pub index: IfIdx,
    /// Name of the interface.
    pub name: String,
    /// Type of the interface.
    pub kind: &'static str,
    /// MAC address of the interface.
    pub mac: [u8; 6],
    /// Largest IP packet, in bytes.
    pub mtu: u32,
    /// Administrative state.
    pub state: AdminState,
    /// State of the link.
    pub link: Link,
    /// Offloads of the transmit node.
    pub caps: Caps,
    /// Mode of the receive queues.
    pub rx_mode: RxMode,
    /// Whether the interface receives frames for any MAC address.
    pub promiscuous: bool,
    /// Source node that receives for the interface, for `show interface rx-placement`; may be empty.
    pub rx_node: &'static str,
    /// The worker of each receive queue.
    pub rx_queues: Vec<usize>,
    /// Number of transmit queues.
    pub tx_queues: u32,
    /// Constant lines of `show hardware` from the driver.
    pub details: Vec<String>,
    /// Parent and tags of a sub-interface; none for an interface with a driver.
    pub sub: Option<Sub>,
    /// The configured MTU.
    configured_mtu: Option<u32>,
    /// The MTU of the kernel's interface behind this one: an upper limit of the effective MTU.
    device_mtu: Option<u32>,
    /// The MTU of the interface without a configured one.
    default_mtu: u32,
    cleared: IfCounts,
    /// Values of the receive queues, then of the transmit queues, at the last clear.
    cleared_queues: Vec<(u64, u64)>,
}

impl Interface {
    /// Whether packets pass: the administrative state and the link are up.
    pub fn is_up(&self) -> bool {
        self.state == AdminState::Up && self.link == Link::Up
    }

    /// The configured MTU, if there is one. The effective MTU may be lower.
    pub fn configured_mtu(&self) -> Option<u32> {
        self.configured_mtu
    }

    /// The MTU of the kernel's interface behind this one.
    pub fn device_mtu(&self) -> Option<u32> {
        self.device_mtu
    }

    /// Configures an MTU. The effective MTU is at most that of the parent and that of the kernel's interface.
    pub(crate) fn set_mtu(&mut self, mtu: u32) {
        self.configured_mtu = Some(mtu);
        self.mtu = mtu.min(self.device_mtu.unwrap_or(mtu));
    }

    /// The MTU without a configured one and without a device that has one.
    pub(crate) fn default_mtu(&self) -> u32 {
        self.default_mtu
    }

    /// Removes the configured MTU: `mtu` is the default.
    pub(crate) fn unset_mtu(&mut self, mtu: u32) {
        self.configured_mtu = None;
        self.mtu = mtu.min(self.device_mtu.unwrap_or(mtu));
    }

    /// Sets the MTU of the kernel's interface: the effective MTU without a configured one.
    fn set_device_mtu(&mut self, mtu: u32) {
        self.device_mtu = Some(mtu);
        self.mtu = self.configured_mtu.unwrap_or(mtu).min(mtu);
    }

    /// Copies the properties that a sub-interface has from its parent.
    fn inherit(&mut self, parent: &Interface) {
        self.mac = parent.mac;
        self.caps = parent.caps;
        self.promiscuous = parent.promiscuous;
        self.mtu = self.configured_mtu.unwrap_or(parent.mtu).min(parent.mtu);
        self.link = if parent.is_up() {
            Link::Up
        } else {
            Link::down(format!("its parent {} is down", parent.name))
        };
    }
}

/// State of the link of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Link {
    /// Packets can pass.
    Up,
    /// Packets cannot pass; the reason as a clause ("the peer has closed the socket").
    Down(String),
    /// Packets cannot pass because the device of the interface is missing; it is used as soon as it appears. A clause ("waiting
    /// for eth7").
    Waiting(String),
}

impl Link {
    /// Link down with a reason.
    pub fn down(why: impl std::fmt::Display) -> Self {
        Link::Down(why.to_string())
    }

    /// The reason, if the link is down.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Link::Up => None,
            Link::Down(why) | Link::Waiting(why) => Some(why),
        }
    }
}

/// A change that listeners (the FIB, for example) follow.
#[derive(Clone, Debug)]
pub enum Change {
    /// An interface was created.
    Created(Interface),
    /// An interface is deleted.
    Deleted(Interface),
    /// Name, state, link, MAC address or MTU of an interface has changed.
    Updated(Interface),
}

type Listener = Rc<dyn Fn(&Change)>;

/// All interfaces.
pub struct Interfaces {
    table: Arc<IfTable>,
    by_index: BTreeMap<IfIdx, Interface>,
    names: HashMap<String, IfIdx>,
    /// Sub-interfaces of each interface that has any.
    subs: BTreeMap<IfIdx, BTreeSet<IfIdx>>,
    ports: BTreeMap<IfIdx, Rc<RefCell<Box<dyn Port>>>>,
    listeners: Vec<Listener>,
    mac_seed: u64,
    pub(crate) rates: Rates,
    /// Descriptions of interfaces by operators.
    pub(crate) descriptions: BTreeMap<IfIdx, String>,
    pub(crate) steering: QueueAssignment,
}

impl Interfaces {
    /// An empty set of interfaces.
    pub fn new(table: Arc<IfTable>) -> Self {
        Interfaces {
            table,
            by_index: BTreeMap::new(),
            names: HashMap::new(),
            subs: BTreeMap::new(),
            ports: BTreeMap::new(),
            listeners: Vec::new(),
            mac_seed: 1,
            rates: Rates::default(),
            descriptions: BTreeMap::new(),
            steering: QueueAssignment::default(),
        }
    }

    /// The table for workers.
    pub fn table(&self) -> &Arc<IfTable> {
        &self.table
    }

    /// Sets the seed of generated MAC addresses. Two routers must not have the same one.
    pub fn set_mac_seed(&mut self, seed: u64) {
        self.mac_seed = seed;
    }

    /// Calls `listener` for every later change.
    pub fn listen(&mut self, listener: impl Fn(&Change) + 'static) {
        self.listeners.push(Rc::new(listener));
    }

    fn tell(&self, change: &Change) {
        self.listeners.iter().for_each(|l| l(change));
    }

    /// The index of the next interface, if the name is not in use.
    pub(crate) fn require_free(&self, name: &str) -> Result<IfIdx, IfError> {
        self.vacant_in(name, 0..MAX_INTERFACES as u32)
    }

    fn vacant_in(&self, name: &str, numbers: Range<u32>) -> Result<IfIdx, IfError> {
        if self.by_name(name).is_some() {
            return Err(IfError::Exists(name.to_owned()));
        }
        let limit = numbers.len();
        let range = IfIdx(numbers.start)..IfIdx(numbers.end);
        let mut taken = self.by_index.range(range).map(|(index, _)| index.0);
        let mut all = numbers;
        all.find(|number| taken.next() != Some(*number))
            .map(IfIdx)
            .ok_or(IfError::Full(limit))
    }

    /// Creates an interface, down, with the transmit node `tx_node`. Drivers use [`crate::driver::DriverHost::attach`].
    pub fn create(&mut self, new: NewInterface, tx_node: NodeId) -> Result<IfIdx, IfError> {
        let index = self.require_free(&new.name)?;
        self.table.allocate_queue_counters(index);
        let queues = self.queues_now(index);
        self.enter(index, new, tx_node, queues, None)
    }

    /// Creates a sub-interface, down, with the transmit node `tx_node`.
    pub fn create_sub(
        &mut self,
        new: NewInterface,
        mtu: Option<u32>,
        sub: Sub,
        tx_node: NodeId,
    ) -> Result<IfIdx, IfError> {
        let index = self.vacant_in(
            &new.name,
            MAX_INTERFACES as u32..MAX_INTERFACE_INDEXES as u32,
        )?;
        self.enter(index, new, tx_node, Vec::new(), Some((sub, mtu)))
    }

    fn enter(
        &mut self,
        index: IfIdx,
        new: NewInterface,
        tx_node: NodeId,
        cleared_queues: Vec<(u64, u64)>,
        sub: Option<(Sub, Option<u32>)>,
    ) -> Result<IfIdx, IfError> {
        let seed = self.mac_seed;
        let mac = new.mac.unwrap_or_else(|| made_up_mac(seed, &new.name));
        let mut interface = Interface {
            index,
            name: new.name,
            kind: new.kind,
            mac,
            mtu: new.mtu,
            state: AdminState::Down,
            link: new.link,
            caps: new.caps,
            rx_mode: RxMode::default(),
            promiscuous: false,
            rx_node: new.rx_node,
            rx_queues: new.rx_queues,
            tx_queues: new.tx_queues,
            details: new.details,
            sub: sub.map(|(sub, _)| sub),
            configured_mtu: sub.map_or(new.configured_mtu, |(_, mtu)| mtu),
            device_mtu: None,
            default_mtu: new.default_mtu,
            cleared: self.table.counts(index),
            cleared_queues,
        };
        if let Some((sub, _)) = sub {
            let parent = self.by_index.get(&sub.parent);
            let none = || IfError::Missing(format!("number {}", sub.parent.0));
            interface.inherit(parent.ok_or_else(none)?);
            self.subs.entry(sub.parent).or_default().insert(index);
            self.table.set(sub.parent, Flag::HasSubInterfaces, true);
        }
        for flag in [
            Flag::Up,
            Flag::Promiscuous,
            Flag::Ip4,
            Flag::Ip6,
            Flag::ResolveNeighbors,
            Flag::HasSubInterfaces,
            Flag::Multicast,
            Flag::Slaac,
            Flag::IsLcpTap,
        ] {
            self.table.set(index, flag, false);
        }
        self.table
            .set(index, Flag::Promiscuous, interface.promiscuous);
        self.table.set_sub(index, interface.sub);
        self.table.set_lcp_tap(index, None);
        self.table.set_mac(index, interface.mac);
        self.table.set_mtu(index, interface.mtu);
        self.table.set_tx_node(index, tx_node);
        self.table.set_caps(index, interface.caps.bits());
        self.table.set_rx_mode(index, interface.rx_mode);
        self.by_index.insert(index, interface.clone());
        self.names.insert(interface.name.clone(), index);
        self.ports.insert(index, Rc::new(RefCell::new(new.port)));
        self.tell(&Change::Created(interface));
        Ok(index)
    }

    /// Deletes an interface, its sub-interfaces first. The driver removes its nodes.
    pub fn delete(&mut self, name: &str) -> Result<Interface, IfError> {
        let index = self.index(name)?;
        for sub in self.subs_of(index) {
            let name = self.name(sub.0);
            self.delete(&name)?;
        }
        let gone = self
            .by_index
            .remove(&index)
            .ok_or_else(|| IfError::Missing(name.to_owned()))?;
        self.names.remove(name);
        self.ports.remove(&index);
        self.steering.remove_interface(index);
        self.rates.forget(index);
        self.descriptions.remove(&index);
        self.table.set(index, Flag::Up, false);
        // Another node may soon have the identifier of this transmit node.
        self.table.set_tx_node(index, NodeId::DROP);
        if let Some(sub) = gone.sub {
            self.part(index, sub.parent);
        }
        self.tell(&Change::Deleted(gone.clone()));
        Ok(gone)
    }

    /// Removes a sub-interface from its parent.
    fn part(&mut self, index: IfIdx, parent: IfIdx) {
        self.table.set_sub(index, None);
        let Some(left) = self.subs.get_mut(&parent) else {
            return;
        };
        left.remove(&index);
        if left.is_empty() {
            self.subs.remove(&parent);
            self.table.set(parent, Flag::HasSubInterfaces, false);
        }
    }

    /// The sub-interfaces of an interface.
    pub fn subs_of(&self, parent: IfIdx) -> Vec<IfIdx> {
        let subs = self.subs.get(&parent);
        subs.map_or(Vec::new(), |subs| subs.iter().copied().collect())
    }

    /// Driver type of an interface, or of its parent.
    pub fn driver_kind(&self, index: IfIdx) -> &'static str {
        let Some(interface) = self.get(index) else {
            return "";
        };
        match interface.sub {
            Some(sub) => self.get(sub.parent).map_or("", |parent| parent.kind),
            None => interface.kind,
        }
    }

    /// An error if an interface has sub-interfaces, for features that consume its tagged frames: the sub-interfaces would
    /// receive none.
    pub fn refuse_sub_interfaces(&self, index: IfIdx) -> Result<(), ModelError> {
        let Some(sub) = self.subs.get(&index).and_then(|subs| subs.first()) else {
            return Ok(());
        };
        let by = format!("sub-interface {}", self.name(sub.0));
        let name = self.name(index.0);
        Err(ModelError::in_use(ObjectKind::Interface, name, by))
    }

    /// An interface by name.
    pub fn by_name(&self, name: &str) -> Option<&Interface> {
        self.names.get(name).and_then(|index| self.get(*index))
    }

    /// An interface by index.
    pub fn get(&self, index: IfIdx) -> Option<&Interface> {
        self.by_index.get(&index)
    }

    /// The index of an interface.
    pub fn index(&self, name: &str) -> Result<IfIdx, IfError> {
        self.by_name(name)
            .map(|i| i.index)
            .ok_or_else(|| IfError::Missing(name.to_owned()))
    }

    /// A name for messages, also for unused indexes.
    pub fn name(&self, index: u32) -> String {
        self.get(IfIdx(index))
            .map_or_else(|| format!("interface {index}"), |i| i.name.clone())
    }

    /// All interfaces, by index.
    pub fn iter(&self) -> impl Iterator<Item = &Interface> {
        self.by_index.values()
    }

    /// Changes an interface, and notifies workers and listeners.
    pub fn update(
        &mut self,
        name: &str,
        change: impl FnOnce(&mut Interface),
    ) -> Result<(), IfError> {
        let index = self.index(name)?;
        self.alter(index, change);
        Ok(())
    }

    fn alter(&mut self, index: IfIdx, change: impl FnOnce(&mut Interface)) {
        let Some(mut after) = self.by_index.get(&index).cloned() else {
            return;
        };
        change(&mut after);
        self.renew(index, after);
    }

    /// Replaces the state of an interface, and updates its sub-interfaces.
    fn renew(&mut self, index: IfIdx, mut after: Interface) {
        let parent = after.sub.and_then(|sub| self.by_index.get(&sub.parent));
        if let Some(parent) = parent {
            after.inherit(parent);
        }
        self.by_index.insert(index, after.clone());
        self.table.set_mac(index, after.mac);
        self.table.set_mtu(index, after.mtu);
        self.table.set(index, Flag::Up, after.is_up());
        self.table.set(index, Flag::Promiscuous, after.promiscuous);
        self.table.set_rx_mode(index, after.rx_mode);
        self.table.set_caps(index, after.caps.bits());
        self.tell(&Change::Updated(after.clone()));
        for sub in self.subs_of(index) {
            let Some(now) = self.get(sub).cloned() else {
                continue;
            };
            let mut heir = now.clone();
            heir.inherit(&after);
            if heir != now {
                self.renew(sub, heir);
            }
        }
    }

    /// Renames an interface. The caller renames the driver's node.
    pub(crate) fn rename(&mut self, index: IfIdx, name: &str) -> Result<(), IfError> {
        if self.by_name(name).is_some_and(|i| i.index != index) {
            return Err(IfError::Exists(name.to_owned()));
        }
        self.names.retain(|_, known| *known != index);
        self.names.insert(name.to_owned(), index);
        self.alter(index, |i| i.name = name.to_owned());
        Ok(())
    }

    /// Sets the link state of an interface; unused indexes are ignored.
    pub fn set_link(&mut self, index: IfIdx, link: Link) {
        if self.get(index).is_some_and(|i| i.link != link) {
            self.alter(index, |i| i.link = link);
        }
    }

    /// A generated MAC address, for an interface without one from a device or the configuration.
    pub(crate) fn made_up_mac(&self, name: &str) -> [u8; 6] {
        made_up_mac(self.mac_seed, name)
    }

    /// Sets the MAC address of the device of an interface.
    pub fn set_mac(&mut self, index: IfIdx, mac: [u8; 6]) {
        if self.get(index).is_some_and(|i| i.mac != mac) {
            self.alter(index, |i| i.mac = mac);
        }
    }

    /// Sets the MTU of the kernel's interface behind an interface.
    pub fn set_device_mtu(&mut self, index: IfIdx, mtu: u32) {
        if self.get(index).is_some_and(|i| i.device_mtu != Some(mtu)) {
            self.alter(index, |i| i.set_device_mtu(mtu));
        }
    }

    /// Sets the offloads of an interface's transmit node.
    pub fn set_caps(&mut self, index: IfIdx, caps: Caps) {
        if let Some(entry) = self.by_index.get_mut(&index) {
            entry.caps = caps;
            self.table.set_caps(index, caps.bits());
        }
        for sub in self.subs_of(index) {
            self.set_caps(sub, caps);
        }
    }

    /// Counters of a queue since the last clear.
    pub fn queue_counts(&self, index: IfIdx, direction: Direction, queue: usize) -> (u64, u64) {
        let now = self.table.queue_counts(index, direction, queue);
        let base = self.get(index).map(|i| &i.cleared_queues);
        let base = base.and_then(|b| b.get(direction as usize * MAX_QUEUES + queue));
        let (packets, bytes) = base.copied().unwrap_or_default();
        (now.0 - packets, now.1 - bytes)
    }

    fn queues_now(&self, index: IfIdx) -> Vec<(u64, u64)> {
        let of = |direction| {
            (0..MAX_QUEUES).map(move |queue| self.table.queue_counts(index, direction, queue))
        };
        of(Direction::Rx).chain(of(Direction::Tx)).collect()
    }

    /// Records that a queue is assigned to another worker.
    pub(crate) fn put_queue(&mut self, index: IfIdx, queue: usize, worker: usize) {
        let entry = self.by_index.get_mut(&index);
        if let Some(place) = entry.and_then(|i| i.rx_queues.get_mut(queue)) {
            *place = worker;
        }
    }

    /// Sets the worker of each receive queue of an interface, and the number of transmit queues.
    pub fn set_queues(&mut self, index: IfIdx, rx: Vec<usize>, tx: u32) {
        if let Some(entry) = self.by_index.get_mut(&index) {
            (entry.rx_queues, entry.tx_queues) = (rx, tx);
        }
    }

    /// The driver's side of an interface.
    pub fn port(&self, index: IfIdx) -> Option<Rc<RefCell<Box<dyn Port>>>> {
        self.ports.get(&index).cloned()
    }

    /// Counters since the last clear.
    pub fn counts(&self, interface: &Interface) -> IfCounts {
        let (now, base) = (self.table.counts(interface.index), interface.cleared);
        IfCounts {
            rx_packets: now.rx_packets - base.rx_packets,
            rx_bytes: now.rx_bytes - base.rx_bytes,
            tx_packets: now.tx_packets - base.tx_packets,
            tx_bytes: now.tx_bytes - base.tx_bytes,
            drops: now.drops - base.drops,
            rx_errors: now.rx_errors - base.rx_errors,
            tx_errors: now.tx_errors - base.tx_errors,
            missed: now.missed - base.missed,
        }
    }

    /// Samples the counters of all interfaces, for their rates.
    pub fn look(&mut self, at: std::time::Instant) {
        for index in self.by_index.keys() {
            self.rates.add(*index, self.table.counts(*index), at);
        }
    }

    /// Clears all counters.
    pub fn clear(&mut self) {
        let all: Vec<IfIdx> = self.by_index.keys().copied().collect();
        for index in all {
            let (counts, queues) = (self.table.counts(index), self.queues_now(index));
            if let Some(interface) = self.by_index.get_mut(&index) {
                (interface.cleared, interface.cleared_queues) = (counts, queues);
            }
        }
    }
}

/// A locally administered unicast address that depends on seed and name only (FNV-1a), so that it is the same in every run.
fn made_up_mac(seed: u64, name: &str) -> [u8; 6] {
    let basis = 0xcbf2_9ce4_8422_2325u64.wrapping_mul(seed);
    let hash = name.bytes().fold(basis, |h, b| {
        (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3)
    });
    let [a, b, c, d, ..] = hash.to_be_bytes();
    [0x02, 0xfe, a, b, c, d]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    fn new(name: &str) -> NewInterface {
        NewInterface::new(name, "test")
    }

    #[test]
    fn life_of_an_interface() {
        let table = IfTable::new(1);
        let mut all = Interfaces::new(table.clone());
        let reported = Rc::new(RefCell::new(Vec::new()));
        let sink = reported.clone();
        all.listen(move |change| {
            sink.borrow_mut()
                .push(format!("{change:?}").chars().take(7).collect::<String>())
        });
        let index = all.create(new("pg0"), NodeId(7)).unwrap();
        assert_eq!(
            all.create(new("pg0"), NodeId(7)),
            Err(IfError::Exists("pg0".into()))
        );
        assert!(!table.has(index.0, Flag::Up));
        all.update("pg0", |i| i.state = AdminState::Up).unwrap();
        assert!(table.has(index.0, Flag::Up) && table.tx_node(index.0) == NodeId(7));
        table.count(0, index.0, Direction::Rx, 3, 180);
        all.clear();
        table.count(0, index.0, Direction::Rx, 1, 60);
        let counts = all.counts(all.by_name("pg0").unwrap());
        assert_eq!((counts.rx_packets, counts.rx_bytes), (1, 60));
        all.set_link(index, Link::down("the peer is gone"));
        assert!(!table.has(index.0, Flag::Up) && !all.get(index).unwrap().is_up());
        all.set_link(index, Link::down("the peer is gone"));
        all.set_link(index, Link::Up);
        assert!(table.has(index.0, Flag::Up));
        all.delete("pg0").unwrap();
        assert_eq!(all.index("pg0"), Err(IfError::Missing("pg0".into())));
        assert_eq!(
            *reported.borrow(),
            ["Created", "Updated", "Updated", "Updated", "Deleted"],
            "a link that stays as it is is told to nobody"
        );
        let again = all.create(new("pg1"), NodeId(7)).unwrap();
        assert_eq!(again, index, "numbers are used again");
        assert_eq!(all.counts(all.get(again).unwrap()), IfCounts::default());
    }

    #[test]
    fn a_sub_interface_has_what_its_parent_has() {
        let table = IfTable::new(1);
        let mut all = Interfaces::new(table.clone());
        let parent = all.create(new("pg0"), NodeId(7)).unwrap();
        let tags = |vlan| crate::Tags {
            kind: crate::TagKind::Dot1q,
            vlan,
            inner: None,
        };
        let sub = |vlan| Sub {
            parent,
            tags: tags(vlan),
        };
        let mut make = |name: &str, vlan, mtu| {
            let new = NewInterface::new(name, "sub-interface");
            all.create_sub(new, mtu, sub(vlan), NodeId(8)).unwrap()
        };
        let (a, b) = (make("pg0.1", 1, None), make("pg0.2", 2, Some(1400)));
        assert_eq!((a.0, b.0), (1024, 1025), "numbers of their own");
        assert!(table.has(parent.0, Flag::HasSubInterfaces) && table.sub(a.0) == Some(sub(1)));
        for name in ["pg0.1", "pg0.2"] {
            all.update(name, |i| i.state = AdminState::Up).unwrap();
        }
        let up = || [a, b].map(|i| table.has(i.0, Flag::Up));
        assert_eq!(up(), [false; 2], "the parent is down");
        let message = all.get(a).unwrap().link.reason().map(str::to_owned);
        assert_eq!(message.as_deref(), Some("its parent pg0 is down"));
        all.update("pg0", |i| i.state = AdminState::Up).unwrap();
        assert_eq!(up(), [true; 2]);
        all.set_link(parent, Link::down("no cable"));
        assert_eq!(up(), [false; 2]);
        all.set_link(parent, Link::Up);
        all.update("pg0", |i| i.mac = [2, 0, 0, 0, 0, 5]).unwrap();
        assert_eq!(
            (table.mac(a.0), table.mac(b.0)),
            (0x0200_0000_0005, 0x0200_0000_0005)
        );
        let mtus = |all: &Interfaces| [a, b].map(|i| all.get(i).unwrap().mtu);
        assert_eq!(mtus(&all), [1500, 1400]);
        all.update("pg0", |i| i.set_mtu(1300)).unwrap();
        assert_eq!(mtus(&all), [1300, 1300]);
        all.update("pg0", |i| i.set_mtu(9000)).unwrap();
        assert_eq!(mtus(&all), [9000, 1400]);
        all.set_caps(
            parent,
            Caps {
                checksum: true,
                ..Caps::NONE
            },
        );
        assert_eq!(table.caps(b.0), 1);
        assert!(all.refuse_sub_interfaces(parent).is_err() && all.refuse_sub_interfaces(a).is_ok());
        all.delete("pg0.1").unwrap();
        assert!(table.has(parent.0, Flag::HasSubInterfaces) && table.sub(a.0).is_none());
        all.delete("pg0").unwrap();
        assert!(all.get(b).is_none() && !table.has(parent.0, Flag::HasSubInterfaces));
    }

    #[test]
    fn made_up_addresses_are_local_unicast_and_differ() {
        let (a, b) = (made_up_mac(1, "pg0"), made_up_mac(1, "pg1"));
        assert!(a != b && a[0] & 3 == 2);
        let other = made_up_mac(2, "pg0");
        assert!(
            other != a && other[0] & 3 == 2,
            "another router has another one"
        );
    }

    #[test]
    fn the_mtu_is_never_above_the_one_of_the_device() {
        let mut all = Interfaces::new(IfTable::new(1));
        let index = all.create(new("eth0"), NodeId(7)).unwrap();
        let mtu = |all: &Interfaces| all.get(index).unwrap().mtu;
        all.set_device_mtu(index, 9000);
        assert_eq!(mtu(&all), 9000, "without one of its own it follows");
        all.set_device_mtu(index, 1500);
        assert_eq!(mtu(&all), 1500);
        all.update("eth0", |i| i.set_mtu(9000)).unwrap();
        assert_eq!((mtu(&all), all.table.mtu(index.0)), (1500, 1500));
        all.set_device_mtu(index, 9216);
        assert_eq!((mtu(&all), all.table.mtu(index.0)), (9000, 9000));
        let i = all.get(index).unwrap();
        assert_eq!(
            (i.configured_mtu(), i.device_mtu()),
            (Some(9000), Some(9216))
        );
    }
}
