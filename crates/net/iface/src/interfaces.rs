//! The control thread's account of interfaces.

use crate::driver::{Caps, NewInterface, Port};
use crate::steering::Steering;
use crate::{Direction, Flag, IfCounts, IfError, IfIdx, IfTable, MAX_INTERFACES, MAX_QUEUES};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use volley_graph::NodeId;
use volley_model::{AdminState, RxMode};

/// One interface.
#[derive(Clone, Debug)]
pub struct Interface {
    /// Its number.
    pub index: IfIdx,
    /// Its name.
    pub name: String,
    /// What kind of driver it has.
    pub kind: &'static str,
    /// Its MAC address.
    pub mac: [u8; 6],
    /// The largest IP packet it takes, in bytes.
    pub mtu: u32,
    /// Whether it is meant to be up.
    pub state: AdminState,
    /// Its link.
    pub link: Link,
    /// What its transmit node does by itself.
    pub caps: Caps,
    /// How its receive queues are watched.
    pub rx_mode: RxMode,
    /// Whether it takes frames for any MAC address.
    pub promiscuous: bool,
    /// The node that receives for it; empty where that is nobody's business.
    pub rx_node: &'static str,
    /// The worker of each receive queue.
    pub rx_queues: Vec<usize>,
    /// Transmit queues.
    pub tx_queues: u32,
    /// What the driver has to say.
    pub details: Vec<String>,
    cleared: IfCounts,
    /// Receive queues, then transmit queues.
    cleared_queues: Vec<(u64, u64)>,
}

impl Interface {
    /// Whether packets pass: it is meant to be up, and there is link.
    pub fn is_up(&self) -> bool {
        self.state == AdminState::Up && self.link == Link::Up
    }
}

/// Whether packets can pass what stands behind an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Link {
    /// They can.
    Up,
    /// They cannot: why, as a clause ("the peer has closed the socket").
    Down(String),
}

impl Link {
    /// Down for a reason.
    pub fn down(why: impl std::fmt::Display) -> Self {
        Link::Down(why.to_string())
    }

    /// Why it is down, when it is.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Link::Up => None,
            Link::Down(why) => Some(why),
        }
    }
}

/// A change that others (the FIB, for example) follow.
#[derive(Clone, Debug)]
pub enum Change {
    /// It has come.
    Created(Interface),
    /// It goes.
    Deleted(Interface),
    /// Its name, state, link, MAC address or MTU is new.
    Updated(Interface),
}

type Listener = Rc<dyn Fn(&Change)>;

/// All interfaces.
pub struct Interfaces {
    table: Arc<IfTable>,
    by_index: BTreeMap<IfIdx, Interface>,
    ports: BTreeMap<IfIdx, Rc<RefCell<Box<dyn Port>>>>,
    default_rx_node: NodeId,
    listeners: Vec<Listener>,
    pub(crate) steering: Steering,
}

impl Interfaces {
    /// No interfaces yet.
    pub fn new(table: Arc<IfTable>) -> Self {
        Interfaces {
            table,
            by_index: BTreeMap::new(),
            ports: BTreeMap::new(),
            default_rx_node: NodeId(0),
            listeners: Vec::new(),
            steering: Steering::default(),
        }
    }

    /// The workers' side.
    pub fn table(&self) -> &Arc<IfTable> {
        &self.table
    }

    /// Where packets of new interfaces go first (`ethernet-input`).
    pub fn set_default_rx_node(&mut self, node: NodeId) {
        self.default_rx_node = node;
    }

    /// Where packets of an interface go first that has nothing special.
    pub fn default_rx_node(&self) -> NodeId {
        self.default_rx_node
    }

    /// Tell `listener` of every change from now on.
    pub fn listen(&mut self, listener: impl Fn(&Change) + 'static) {
        self.listeners.push(Rc::new(listener));
    }

    fn tell(&self, change: &Change) {
        self.listeners.iter().for_each(|l| l(change));
    }

    /// The number that the next interface gets, if it may be called `name`.
    pub(crate) fn vacant(&self, name: &str) -> Result<IfIdx, IfError> {
        if self.by_name(name).is_some() {
            return Err(IfError::Exists(name.to_owned()));
        }
        let mut all = (0..MAX_INTERFACES as u32).map(IfIdx);
        all.find(|i| !self.by_index.contains_key(i))
            .ok_or(IfError::Full)
    }

    /// Make an interface, down, that transmits by node `tx_node`. Drivers use [`crate::driver::Host::attach`].
    pub fn create(&mut self, new: NewInterface, tx_node: NodeId) -> Result<IfIdx, IfError> {
        let index = self.vacant(&new.name)?;
        self.table.open_queues(index);
        let mac = new.mac.unwrap_or_else(|| made_up_mac(&new.name));
        let interface = Interface {
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
            cleared: self.table.counts(index),
            cleared_queues: self.queues_now(index),
        };
        for flag in [
            Flag::Up,
            Flag::L2,
            Flag::Promiscuous,
            Flag::Ip4,
            Flag::Ip6,
            Flag::Learn,
        ] {
            self.table.set(index, flag, false);
        }
        self.table.set_twin(index, None);
        self.table.set_mac(index, mac);
        self.table.set_tx_node(index, tx_node);
        self.table.set_caps(index, interface.caps.bits());
        self.table.set_rx_mode(index, interface.rx_mode);
        self.table.set_rx_node(index, self.default_rx_node);
        self.by_index.insert(index, interface.clone());
        self.ports.insert(index, Rc::new(RefCell::new(new.port)));
        self.tell(&Change::Created(interface));
        Ok(index)
    }

    /// Take an interface away. Its driver removes its nodes.
    pub fn delete(&mut self, name: &str) -> Result<Interface, IfError> {
        let index = self.index(name)?;
        let gone = self
            .by_index
            .remove(&index)
            .ok_or_else(|| IfError::Missing(name.to_owned()))?;
        self.ports.remove(&index);
        self.steering.forget(index);
        self.table.set(index, Flag::Up, false);
        // The number of its node is another's soon.
        self.table.set_tx_node(index, NodeId::DROP);
        self.tell(&Change::Deleted(gone.clone()));
        Ok(gone)
    }

    /// An interface by name.
    pub fn by_name(&self, name: &str) -> Option<&Interface> {
        self.by_index.values().find(|i| i.name == name)
    }

    /// An interface by number.
    pub fn get(&self, index: IfIdx) -> Option<&Interface> {
        self.by_index.get(&index)
    }

    /// An interface's number.
    pub fn index(&self, name: &str) -> Result<IfIdx, IfError> {
        self.by_name(name)
            .map(|i| i.index)
            .ok_or_else(|| IfError::Missing(name.to_owned()))
    }

    /// A name for messages, also for numbers that nobody has.
    pub fn name(&self, index: u32) -> String {
        self.get(IfIdx(index))
            .map_or_else(|| format!("interface {index}"), |i| i.name.clone())
    }

    /// All of them, by number.
    pub fn iter(&self) -> impl Iterator<Item = &Interface> {
        self.by_index.values()
    }

    /// Change an interface and let workers and listeners know.
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
        let Some(entry) = self.by_index.get_mut(&index) else {
            return;
        };
        change(entry);
        let after = entry.clone();
        self.table.set_mac(index, after.mac);
        self.table.set(index, Flag::Up, after.is_up());
        self.table.set(index, Flag::Promiscuous, after.promiscuous);
        self.table.set_rx_mode(index, after.rx_mode);
        self.tell(&Change::Updated(after));
    }

    /// Give an interface another name. Its driver's node is renamed by whoever asks.
    pub(crate) fn rename(&mut self, index: IfIdx, name: &str) -> Result<(), IfError> {
        if self.by_name(name).is_some_and(|i| i.index != index) {
            return Err(IfError::Exists(name.to_owned()));
        }
        self.alter(index, |i| i.name = name.to_owned());
        Ok(())
    }

    /// An interface's link comes or goes; a number that nobody has is nothing.
    pub fn set_link(&mut self, index: IfIdx, link: Link) {
        if self.get(index).is_some_and(|i| i.link != link) {
            self.alter(index, |i| i.link = link);
        }
    }

    /// What an interface's transmit node does by itself.
    pub fn set_caps(&mut self, index: IfIdx, caps: Caps) {
        if let Some(entry) = self.by_index.get_mut(&index) {
            entry.caps = caps;
            self.table.set_caps(index, caps.bits());
        }
    }

    /// What passed a queue since the last clear.
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

    /// A queue is on another worker from now on.
    pub(crate) fn put_queue(&mut self, index: IfIdx, queue: usize, worker: usize) {
        let entry = self.by_index.get_mut(&index);
        if let Some(place) = entry.and_then(|i| i.rx_queues.get_mut(queue)) {
            *place = worker;
        }
    }

    /// The worker of each receive queue of an interface, and how many transmit queues it has.
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
        }
    }

    /// Start all counters from zero.
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

/// A locally administered unicast address that depends on the name only (FNV-1a), so that runs repeat.
fn made_up_mac(name: &str) -> [u8; 6] {
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325u64, |h, b| {
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
        let told = Rc::new(RefCell::new(Vec::new()));
        let sink = told.clone();
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
            *told.borrow(),
            ["Created", "Updated", "Updated", "Updated", "Deleted"],
            "a link that stays as it is is told to nobody"
        );
        let again = all.create(new("pg1"), NodeId(7)).unwrap();
        assert_eq!(again, index, "numbers are used again");
        assert_eq!(all.counts(all.get(again).unwrap()), IfCounts::default());
    }

    #[test]
    fn made_up_addresses_are_local_unicast_and_differ() {
        let (a, b) = (made_up_mac("pg0"), made_up_mac("pg1"));
        assert!(a != b && a[0] & 3 == 2);
    }
}
