//! Neighbours: resolution of IP addresses to MAC addresses (ARP: RFC 826, 1122, 5227; ND: RFC 4861, whose states both use).
//!
//! - Workers check ARP and ND packets, answer requests for the router's addresses, and take packets with an unresolved next hop
//!   out of the graph. Messages with new information are sent over bounded queues to the control thread.
//! - The control thread owns the table ([`table`], [`entry`]: without clock and packets), sends requests and updates the FIB,
//!   which creates the adjacency and host route of a neighbour. Packets that waited are then looked up again, in order.
//!
//! `docs/forwarding-rules.md`, rule 6.6 and sections 14 and 15, states what each node drops and why; the overview is
//! `docs/neighbors.md`.
#![forbid(unsafe_code)]

mod advertised;
mod arping;
mod claim;
mod conflicts;
mod control;
mod dad;
mod discovery;
pub mod entry;
#[cfg(fuzzing)]
pub mod fuzzing;
mod handler;
mod lane;
mod message;
mod model;
mod nd_link;
pub mod node;
mod owners;
pub mod proxy;
mod routers;
mod show;
pub mod table;
mod trace;
mod way;

pub use arping::query::{Arping, ArpingAnswer, ArpingReply};
pub use control::NeighborCounters;
pub use model::{Dad, NeighborClear, Proxy, classes};
pub use show::{
    AddressRow, InterfaceProtocolReply, InterfaceProtocolRow, NeighborEvent, NeighborRow,
    NeighborsReply, ShowDiscovery, ShowNeighbors,
};
pub use table::Counts;
pub use trace::ArpTrace;

use arping::ArpingRun;
use control::Control;
use handler::NeighborHandler;
use lane::ControlQueues;
use node::arp_input::ArpInput;
use node::arp_reply::ArpReply;
use node::ip_glean::{Glean, Gleans};
use node::nd_input::NdInput;
use node::nd_reply::NdReply;
use node::neighbor_output::NeighborOutput;
use proxy::Proxies;
use std::cell::RefCell;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use volley_fib::dataplane::DataPlane;
use volley_fib::{Fib, V4, V6};
use volley_graph::{Engine, GraphError, Node, ProcessInfo, Source, Watch};
use volley_iface::{IfTable, LinkLocalSender, LinkSource, Registry};
use volley_tables::{Publisher, Snap};
use volley_wire::ethertype;

/// The neighbour process of a daemon. Dropping the value ends the process.
pub struct Neighbors {
    control: Rc<RefCell<Control>>,
    _turns: Watch,
}

impl Neighbors {
    /// Applies changes of interfaces and their addresses at once; the process does so within milliseconds.
    pub fn refresh(&self) {
        self.control.borrow_mut().refresh();
    }

    /// Sets the callback for events that an operator should know: an interface, and a sentence about it.
    pub fn listen(&self, listener: impl Fn(&str, &str) + 'static) {
        self.control.borrow_mut().listener = Some(Box::new(listener));
    }

    /// Sends the final router advertisements (lifetime 0) before the daemon ends. True if there are any: wait until
    /// [`Neighbors::is_sending`] is false.
    pub fn farewell(&self) -> bool {
        self.control.borrow_mut().farewell()
    }

    /// Whether workers have frames that they have not sent yet.
    pub fn is_sending(&self) -> bool {
        let control = self.control.borrow();
        control.lanes.iter().any(|lane| lane.is_waiting())
    }

    /// Counters of the table and of the control thread.
    pub fn counts(&self) -> (Counts, NeighborCounters) {
        let control = self.control.borrow();
        (control.table.counts, control.tally)
    }

    /// The link-local sender, for other protocols.
    pub fn sender(&self) -> Rc<dyn LinkLocalSender> {
        Rc::new(LinkLocalSenderImpl(self.control.clone()))
    }

    /// Buffers of waiting packets, as workers count them.
    pub fn held(&self) -> usize {
        let control = self.control.borrow();
        control.lanes.iter().map(|lane| lane.away()).sum()
    }
}

/// Sends frames of other protocols through the queues of the neighbour process.
struct LinkLocalSenderImpl(Rc<RefCell<Control>>);

impl LinkLocalSender for LinkLocalSenderImpl {
    fn link_source(&self, iface: u32) -> Option<LinkSource> {
        let control = self.0.borrow();
        let link = control.links.get(&iface).filter(|link| link.up)?;
        let four = |addr| match addr {
            IpAddr::V4(addr) => Some(addr),
            IpAddr::V6(_) => None,
        };
        Some(LinkSource {
            mac: link.mac,
            ip4: link.addresses.iter().find_map(|a| four(a.addr())),
            ip6: control.link_local(iface),
        })
    }

    fn send(&self, iface: u32, frame: &[u8]) {
        let mut control = self.0.borrow_mut();
        control.send_long(lane::Frame::new(iface, frame));
        control.engine.borrow().wake();
    }
}

/// Sixteenths of the buffers that packets waiting for resolution may use.
const SHARE: usize = 1;

/// Registers the nodes of neighbours and the neighbour process.
pub fn register(registry: &mut Registry, fib: Rc<RefCell<Fib>>) -> Result<Neighbors, GraphError> {
    let table = registry.table();
    let proxies = Publisher::new(registry.engine.borrow().domain(), Proxies::default());
    let lanes: Vec<Arc<ControlQueues>> = {
        let mut engine = registry.engine.borrow_mut();
        let workers = engine.settings().workers;
        let share = engine.add_share("neighbors", SHARE)?;
        let lane = |worker| Arc::new(ControlQueues::new(share.clone(), worker));
        let lanes: Vec<Arc<ControlQueues>> = (0..workers).map(lane).collect();
        let (fib4, fib6) = (fib.borrow().dataplane4(), fib.borrow().dataplane6());
        glean(&mut engine, fib4.clone(), &table, &lanes)?;
        glean(&mut engine, fib6.clone(), &table, &lanes)?;
        arp(&mut engine, fib4, (&table, &proxies.snap()), &lanes)?;
        nd(&mut engine, fib6, (&table, &proxies.snap()), &lanes)?;
        let size = engine.settings().vector_size;
        let queues = lanes.clone();
        engine.add_source(NeighborOutput::NAME, move |worker| {
            NeighborOutput::new(queues[worker].clone(), size)
        })?;
        lanes
    };
    let groups = volley_router_discovery::register(registry)?;
    let (engine, interfaces) = (registry.engine.clone(), registry.interfaces.clone());
    let control = Rc::new(RefCell::new(Control::new(
        engine,
        interfaces,
        fib,
        (lanes, groups),
        proxies,
    )));
    let shown = NeighborHandler(control.clone());
    registry.answer(move |query: ShowDiscovery| shown.show(query.interface.as_deref()));
    let shown = NeighborHandler(control.clone());
    registry.answer(move |query: ShowNeighbors| shown.neighbors(&query));
    let asked = control.clone();
    registry.stream(move |query: Arping| ArpingRun::begin(&asked, &query));
    let cleared = NeighborHandler(control.clone());
    registry.perform(move |clear: NeighborClear| cleared.clear(&clear));
    let handler = NeighborHandler(control.clone());
    registry.interface_notes.push(move |row| handler.note(row));
    owners::own(registry, &control);
    let info = ProcessInfo {
        name: "neighbors",
        text: "Resolves neighbours, stores what they answer, and removes old entries.",
    };
    let kept = Rc::downgrade(&control);
    let turns = registry.processes.every(info, move || {
        kept.upgrade().map(|control| control.borrow_mut().turn())
    });
    Ok(Neighbors {
        control,
        _turns: turns,
    })
}

fn glean<F: Gleans>(
    engine: &mut Engine,
    fib: DataPlane<F>,
    table: &Arc<IfTable>,
    lanes: &[Arc<ControlQueues>],
) -> Result<(), GraphError> {
    let (table, lanes) = (table.clone(), lanes.to_vec());
    let make = move |worker: usize| Glean::new(fib.clone(), table.clone(), lanes[worker].clone());
    engine.add(<Glean<F> as Node>::NAME, make).map(drop)
}

fn arp(
    engine: &mut Engine,
    fib: DataPlane<V4>,
    (table, proxies): (&Arc<IfTable>, &Snap<Proxies>),
    lanes: &[Arc<ControlQueues>],
) -> Result<(), GraphError> {
    let size = engine.settings().vector_size;
    let (t, p, lanes) = (table.clone(), proxies.clone(), lanes.to_vec());
    let input = engine.add(ArpInput::NAME, move |worker| {
        ArpInput::new(fib.clone(), (t.clone(), p.clone()), lanes[worker].clone())
    })?;
    let listens = table.listen_ethertype(ethertype::ARP, input, true);
    listens.map_err(|error| GraphError::NotRegistered {
        node: ArpInput::NAME,
        why: error.to_string(),
    })?;
    let table = table.clone();
    engine.add(ArpReply::NAME, move |_| ArpReply::new(table.clone(), size))?;
    Ok(())
}

fn nd(
    engine: &mut Engine,
    fib: DataPlane<V6>,
    (table, proxies): (&Arc<IfTable>, &Snap<Proxies>),
    lanes: &[Arc<ControlQueues>],
) -> Result<(), GraphError> {
    let (t, p, lanes) = (table.clone(), proxies.clone(), lanes.to_vec());
    engine.add(NdInput::NAME, move |worker| {
        NdInput::new(fib.clone(), (t.clone(), p.clone()), lanes[worker].clone())
    })?;
    let table = table.clone();
    engine.add(NdReply::NAME, move |_| NdReply::new(table.clone()))?;
    Ok(())
}
