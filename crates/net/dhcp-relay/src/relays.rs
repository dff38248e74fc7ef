//! The relays of all interfaces: the control thread publishes them, workers read them.

use crate::model::{DhcpRelay, Option82};
use crate::port;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use volley_fib::Fib;
use volley_graph::{Domain, NodeId};
use volley_iface::{Change, IfIdx, IfTable, Interface, ListenError, Registry};
use volley_model::{Applied, Family, ModelError, key_value};
use volley_object::ObjectKey;
use volley_tables::{Publisher, Snap};

/// The relay of an interface for one IP version; `A` is an address of that version as a number.
#[derive(Clone, Debug)]
pub struct Relay<A> {
    /// The interface of the clients.
    pub iface: u32,
    /// Name of the interface: the circuit ID or interface ID.
    pub name: String,
    /// The servers.
    pub servers: Vec<A>,
    /// Index of the table in which the servers are reached.
    pub table: u32,
    /// Address that the servers reply to, in place of the interface's.
    pub source: Option<A>,
}

/// The relay of an interface for IPv4.
#[derive(Clone, Debug)]
pub struct Relay4 {
    /// What both IP versions have.
    pub common: Relay<u32>,
    /// The remote ID, in place of the MAC address.
    pub remote_id: Option<String>,
    /// Handling of requests that have option 82.
    pub option_82: Option82,
}

/// The relay of an interface for IPv6.
pub type Relay6 = Relay<u128>;

/// All relays, in order of their interfaces.
#[derive(Clone, Debug, Default)]
pub struct Relays {
    /// IPv4 relays.
    pub four: Vec<Relay4>,
    /// IPv6 relays.
    pub six: Vec<Relay6>,
}

impl Relays {
    /// The IPv4 relay of an interface.
    pub fn of4(&self, iface: u32) -> Option<&Relay4> {
        let at = self.four.binary_search_by_key(&iface, |it| it.common.iface);
        at.ok().map(|at| &self.four[at])
    }

    /// The IPv6 relay of an interface.
    pub fn of6(&self, iface: u32) -> Option<&Relay6> {
        let at = self.six.binary_search_by_key(&iface, |it| it.iface);
        at.ok().map(|at| &self.six[at])
    }
}

/// A configured relay, with the index of its table.
struct Entry {
    relay: DhcpRelay,
    table: u32,
}

/// Relays on the control thread.
pub(crate) struct Control {
    entries: BTreeMap<(Family, IfIdx), Entry>,
    names: BTreeMap<IfIdx, String>,
    published: Publisher<Relays>,
    table: Arc<IfTable>,
    fib: Rc<RefCell<Fib>>,
    /// Nodes of IPv4 and IPv6.
    nodes: [NodeId; 2],
}

impl Control {
    /// An empty published table, and the snapshot for workers.
    pub fn publisher(domain: &Arc<Domain>) -> (Publisher<Relays>, Snap<Relays>) {
        let published = Publisher::new(domain, Relays::default());
        let snap = published.snap();
        (published, snap)
    }

    pub fn new(
        published: Publisher<Relays>,
        table: Arc<IfTable>,
        fib: Rc<RefCell<Fib>>,
        nodes: [NodeId; 2],
    ) -> Self {
        Control {
            entries: BTreeMap::new(),
            names: BTreeMap::new(),
            published,
            table,
            fib,
            nodes,
        }
    }

    /// Sets or removes the relay of an interface.
    pub fn set(
        &mut self,
        index: IfIdx,
        key: &ObjectKey,
        family: Family,
        now: Option<DhcpRelay>,
    ) -> Result<Applied, ModelError> {
        let invalid = |e: &dyn std::fmt::Display| ModelError::invalid(key, e.to_string());
        let entry = match now {
            Some(relay) => {
                let table = self.fib.borrow().table_index(family, relay.server_table);
                let table = table.map_err(|e| invalid(&e))?;
                self.listen(family, true).map_err(|e| invalid(&e))?;
                self.names.insert(index, relay.interface.clone());
                Some(Entry { relay, table })
            }
            None => None,
        };
        match entry {
            Some(entry) => self.entries.insert((family, index), entry),
            None => self.entries.remove(&(family, index)),
        };
        self.publish();
        let on = self.entries.contains_key(&(family, index));
        self.table
            .hear_link(index, family, port::of_agents(family), on);
        if !self.entries.keys().any(|(it, _)| *it == family) {
            self.listen(family, false).map_err(|e| invalid(&e))?;
        }
        Ok(Applied::one())
    }

    fn listen(&self, family: Family, on: bool) -> Result<(), ListenError> {
        let node = match family {
            Family::V4 => self.nodes[0],
            Family::V6 => self.nodes[1],
        };
        self.table
            .listen_udp(family, port::of_agents(family), node, on)
    }

    /// Follows a change of an interface: the circuit ID is its name.
    pub fn interface_changed(&mut self, change: &Change) {
        let (Change::Created(Interface { index, name, .. })
        | Change::Updated(Interface { index, name, .. })) = change
        else {
            return;
        };
        let known = self.names.get_mut(index).filter(|known| *known != name);
        if let Some(known) = known {
            known.clone_from(name);
            self.publish();
        }
    }

    fn publish(&mut self) {
        let mut all = Relays::default();
        for ((family, index), Entry { relay, table }) in &self.entries {
            let (iface, table) = (index.0, *table);
            let name = self.names.get(index).unwrap_or(&relay.interface).clone();
            match family {
                Family::V4 => all.four.push(Relay4 {
                    common: common((iface, name, table), relay, four),
                    remote_id: relay.remote_id.clone(),
                    option_82: relay.option_82,
                }),
                Family::V6 => all.six.push(common((iface, name, table), relay, six)),
            }
        }
        self.published.publish(all);
    }
}

/// Registers the relays as the owner of their class.
pub(crate) fn own(registry: &mut Registry, control: &Rc<RefCell<Control>>) {
    let control = control.clone();
    registry.own_setting(move |index, key, now: Option<DhcpRelay>| {
        control.borrow_mut().set(index, key, key_value(key, 1), now)
    });
}

fn common<A>(
    (iface, name, table): (u32, String, u32),
    relay: &DhcpRelay,
    bits: fn(IpAddr) -> Option<A>,
) -> Relay<A> {
    Relay {
        iface,
        name,
        servers: relay.server.iter().copied().filter_map(bits).collect(),
        table,
        source: relay.source.and_then(bits),
    }
}

fn four(addr: IpAddr) -> Option<u32> {
    match addr {
        IpAddr::V4(addr) => Some(addr.to_bits()),
        IpAddr::V6(_) => None,
    }
}

fn six(addr: IpAddr) -> Option<u128> {
    match addr {
        IpAddr::V6(addr) => Some(addr.to_bits()),
        IpAddr::V4(_) => None,
    }
}
