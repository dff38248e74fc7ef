//! Neighbours: who has which MAC address on the other end of a link (ARP: RFC 826, 1122, 5227; ND: RFC 4861, whose states
//! are those of both).
//!
//! - Workers judge ARP and ND packets, answer those that ask for our addresses, and take packets out of the graph whose next hop is
//!   unknown. What teaches something goes over a bounded queue to the control thread.
//! - The control thread owns the table ([`table`], [`entry`]: no clock and no packets of their own), asks, and tells the FIB,
//!   which gives a neighbour its adjacency and host route. Packets that waited then look for their way again, in order.
//!
//! What each node drops and why is `docs/forwarding-rules.md`, rule 6.6, sections 14 and 15; the whole is `docs/neighbors.md`.
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

/// The neighbours of a daemon. Dropping it ends the process that keeps them.
pub struct Neighbors {
    control: Rc<RefCell<Control>>,
    _turns: Watch,
}

impl Neighbors {
    /// Take over at once what has changed of interfaces and their addresses; the process does so within milliseconds.
    pub fn refresh(&self) {
        self.control.borrow_mut().refresh();
    }

    /// Tell `listener` what an operator should know: an interface, and a sentence about it.
    pub fn listen(&self, listener: impl Fn(&str, &str) + 'static) {
        self.control.borrow_mut().listener = Some(Box::new(listener));
    }

    /// Tell the links that nobody is their router any more, for everything is about to end. True when there was something
    /// to tell: [`Neighbors::is_sending`] says when workers have it.
    pub fn farewell(&self) -> bool {
        self.control.borrow_mut().farewell()
    }

    /// Whether workers have not yet sent all that they were given.
    pub fn is_sending(&self) -> bool {
        let control = self.control.borrow();
        control.lanes.iter().any(|lane| lane.is_waiting())
    }

    /// What the table counted, and what else was counted.
    pub fn counts(&self) -> (Counts, NeighborCounters) {
        let control = self.control.borrow();
        (control.table.counts, control.tally)
    }

    /// What others that speak on links need.
    pub fn speaker(&self) -> Rc<dyn LinkLocalSender> {
        Rc::new(LinkLocalSenderImpl(self.control.clone()))
    }

    /// Buffers of packets that wait, as workers count them.
    pub fn held(&self) -> usize {
        let control = self.control.borrow();
        control.lanes.iter().map(|lane| lane.away()).sum()
    }
}

/// What others have sent goes out as neighbours' own messages do.
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

/// Sixteenths of the buffers that packets may take that wait for a neighbour.
const SHARE: usize = 1;

/// Bring in the nodes of neighbours and the process that keeps them.
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
        text: "Asks for neighbours, remembers what they say, and forgets them.",
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
