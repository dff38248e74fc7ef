//! DHCP relay agent for IPv4 (RFC 1542, RFC 2131, RFC 3046) and IPv6 (RFC 8415, 19): per interface, to several servers, in any
//! table. `docs/dhcp-relay.md` is the operator's page.
//!
//! - [`message4`], [`message6`]: changes that a relay agent makes, bytes in and bytes out. No message causes a panic.
//! - [`node`]: one node for each IP version, which listens on the relay agent port. Workers keep no state of clients.
//! - [`relays`]: the relays as the control thread publishes them.
#![forbid(unsafe_code)]

pub mod buffer;
pub mod message4;
pub mod message6;
mod model;
pub mod node;
mod packet;
mod port;
pub mod relays;
#[cfg(test)]
mod testing;
mod trace;

pub use model::{DhcpRelay, Option82, classes};

use node::dhcp4_relay::Dhcp4Relay;
use node::dhcp6_relay::Dhcp6Relay;
use relays::Control;
use std::cell::RefCell;
use std::rc::Rc;
use volley_fib::Fib;
use volley_graph::{GraphError, Node};
use volley_iface::Registry;

/// Registers the nodes and the owner of the class. The registry provides the routes.
pub fn register(registry: &mut Registry) -> Result<(), GraphError> {
    let fib: Rc<RefCell<Fib>> = registry.provided()?;
    let (planes, table) = (fib.borrow(), registry.table());
    let (fib4, fib6) = (planes.dataplane4(), planes.dataplane6());
    drop(planes);
    let (published, nodes) = {
        let mut engine = registry.engine.borrow_mut();
        let (published, relays) = Control::publisher(engine.domain());
        let (snap, interfaces) = (relays.clone(), table.clone());
        let four = engine.add(Dhcp4Relay::NAME, move |_| {
            Dhcp4Relay::new(snap.clone(), fib4.clone(), interfaces.clone())
        })?;
        let interfaces = table.clone();
        let six = engine.add(Dhcp6Relay::NAME, move |_| {
            Dhcp6Relay::new(relays.clone(), fib6.clone(), interfaces.clone())
        })?;
        (published, [four, six])
    };
    let control = Rc::new(RefCell::new(Control::new(published, table, fib, nodes)));
    relays::own(registry, &control);
    let listener = move |change: &_| control.borrow_mut().interface_changed(change);
    registry.interfaces.borrow_mut().listen(listener);
    Ok(())
}
