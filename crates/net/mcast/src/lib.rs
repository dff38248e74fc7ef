//! Multicast forwarding of IPv4 and IPv6: (S,G), (*,G) and (*,G/len), in separate tables (RFC 1812, 5.3.10; RFC 4291, 2.7).
//!
//! - [`table`]: the routes. Workers read one published value without locks.
//! - [`node`]: route lookup, reverse-path check, replication, rewrite.
//!
//! Section 20 of `docs/forwarding-rules.md` states what is dropped and why; `docs/multicast.md` is the operator's page.
#![forbid(unsafe_code)]

mod family;
mod handler;
pub mod members;
mod model;
mod mroute;
pub mod node;
mod show;
pub mod table;
mod trace;

pub use family::Mcast;

use handler::{Control, MrouteHandler};
pub use members::show::{GroupRow, GroupsReply, GroupsRow, ShowGroups, SourceRow};
pub use model::{GroupQuerier, classes};
pub use mroute::{Groups, Mroute, Source};
pub use show::{MrouteRow, MroutesReply, RouteOfGroup, ShowMroutes};

use members::lane::ControlQueue;
use members::packet::MembershipProtocol;
use members::{Members, MembersHandler};
use node::igmp_input::GroupInput;
use node::ip_mfib_forward_lookup::Lookup;
use node::ip_mfib_forward_rpf::Rpf;
use node::ip_replicate::Replicate;
use node::ip_rewrite_mcast::RewriteMcast;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use table::Plane;
use volley_fib::dataplane::DataPlane;
use volley_fib::{Fib, V4, V6};
use volley_graph::{Engine, GraphError, Node, ProcessInfo, Watch};
use volley_iface::{IfTable, LinkLocalSender, Registry};
use volley_tables::Snap;

/// Multicast of a daemon. Dropping the value ends the querier process.
pub struct Multicast {
    _turns: Watch,
}

/// Registers the nodes of both families and the owners of multicast routes and queriers.
pub fn register(
    registry: &mut Registry,
    fib: Rc<RefCell<Fib>>,
    sender: Rc<dyn LinkLocalSender>,
) -> Result<Multicast, GraphError> {
    let table = registry.table();
    let control = {
        let mut engine = registry.engine.borrow_mut();
        let (domain, workers) = (engine.domain().clone(), engine.settings().workers);
        let control = Control::new(&domain, workers, table.clone());
        let (snaps, planes) = (control.snaps(), fib.borrow());
        family::<V4>(&mut engine, planes.dataplane4(), snaps.0, &table)?;
        family::<V6>(&mut engine, planes.dataplane6(), snaps.1, &table)?;
        Rc::new(RefCell::new(control))
    };
    let handler = MrouteHandler::new(control.clone(), fib.clone(), registry.interfaces.clone());
    handler.own(registry);
    let _turns = members(registry, (control, fib), sender)?;
    Ok(Multicast { _turns })
}

/// Registers the nodes that receive IGMP and MLD messages, and the querier process.
fn members(
    registry: &mut Registry,
    routes: (Rc<RefCell<Control>>, Rc<RefCell<Fib>>),
    sender: Rc<dyn LinkLocalSender>,
) -> Result<Watch, GraphError> {
    let table = registry.table();
    let (lanes, clock) = {
        let mut engine = registry.engine.borrow_mut();
        let workers = engine.settings().workers;
        let lanes: Vec<Arc<ControlQueue>> = (0..workers).map(|_| Arc::default()).collect();
        hears::<V4>(&mut engine, &lanes, &table)?;
        hears::<V6>(&mut engine, &lanes, &table)?;
        (lanes, engine.settings().clock.clone())
    };
    let members = Members::new(routes, sender, lanes, (table, clock));
    let members = Rc::new(RefCell::new(members));
    let handler = MembersHandler::new(members.clone(), registry.interfaces.clone());
    handler.own(registry);
    let info = ProcessInfo {
        name: "group-members",
        text: "Queries hosts for the groups that they listen to, and removes groups without a listener.",
    };
    let turn = move || Some(members.borrow_mut().turn());
    Ok(registry.processes.every(info, turn))
}

fn hears<F: MembershipProtocol>(
    engine: &mut Engine,
    lanes: &[Arc<ControlQueue>],
    table: &Arc<IfTable>,
) -> Result<(), GraphError> {
    let (lanes, table) = (lanes.to_vec(), table.clone());
    let make = move |worker: usize| GroupInput::<F>::new(lanes[worker].clone(), table.clone());
    engine.add(GroupInput::<F>::NAME, make).map(drop)
}

fn family<F: Mcast>(
    engine: &mut Engine,
    fib: DataPlane<F>,
    plane: Snap<Plane<F>>,
    table: &Arc<IfTable>,
) -> Result<(), GraphError> {
    let (snap, interfaces) = (plane.clone(), table.clone());
    engine.add(Lookup::<F>::NAME, move |_| {
        Lookup::new(fib.clone(), snap.clone(), interfaces.clone())
    })?;
    let snap = plane.clone();
    engine.add(Rpf::<F>::NAME, move |worker| Rpf::new(snap.clone(), worker))?;
    let interfaces = table.clone();
    engine.add(Replicate::<F>::NAME, move |_| {
        Replicate::new(plane.clone(), interfaces.clone())
    })?;
    let interfaces = table.clone();
    engine.add(RewriteMcast::<F>::NAME, move |_| {
        RewriteMcast::<F>::new(interfaces.clone())
    })?;
    Ok(())
}
