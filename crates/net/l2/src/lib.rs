//! Layer 2: patches and cross-connects between two interfaces, and bridge domains.
//!
//! Workers look MAC addresses up in a table of `volley-tables` that only the control thread writes; they report new and moved
//! addresses to it over a bounded queue per worker ([`stations`]). The overview is `docs/bridge.md`.
#![forbid(unsafe_code)]

mod bridge;
mod columns;
mod control;
mod handler;
mod lane;
pub mod model;
pub mod node;
mod plane;
mod show;
pub mod stations;
#[cfg(test)]
mod testbed;

pub use control::L2Handler;
pub use handler::BridgeHandler;
pub use model::classes;
pub use node::l2_flood::L2Flood;
pub use node::l2_fwd::L2Fwd;
pub use node::l2_learn::L2Learn;
pub use node::l2_patch::L2Patch;
pub use node::l2_xconnect::L2Xconnect;
pub use show::{
    BridgeCounts, BridgeDomainRow, BridgeDomainsReply, BridgePortRow, L2FibReply, L2FibRow, L2Mode,
    L2Reply, L2Row, ShowBridgeDomains, ShowL2, ShowL2Fib,
};

use bridge::Control;
use control::Features;
use lane::LearnQueue;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use volley_graph::{GraphError, Node, ProcessInfo};
use volley_iface::{ReceiveFeature, Registry};

/// Registers `l2-patch`, `l2-xconnect`, the bridge nodes, and the owners of their classes.
pub fn register(registry: &mut Registry) -> Result<(), GraphError> {
    let bridges = bridges(registry)?;
    let (patch_table, xconnect_table) = (registry.table(), registry.table());
    {
        let mut engine = registry.engine.borrow_mut();
        let size = engine.settings().vector_size;
        engine.add(L2Patch::NAME, move |_| L2Patch::new(patch_table.clone()))?;
        engine.add(L2Xconnect::NAME, move |_| {
            L2Xconnect::new(xconnect_table.clone(), size)
        })?;
    }
    let features = Features {
        patch: ReceiveFeature::consumer(&registry.engine, L2Patch::NAME)?,
        xconnect: ReceiveFeature::consumer(&registry.engine, L2Xconnect::NAME)?,
    };
    let handler = L2Handler::new(registry.interfaces.clone(), features, bridges);
    handler.own(registry);
    Ok(())
}

fn bridges(registry: &mut Registry) -> Result<Rc<RefCell<Control>>, GraphError> {
    let table = registry.table();
    let learn = ReceiveFeature::consumer(&registry.engine, L2Learn::NAME)?;
    let control = {
        let mut engine = registry.engine.borrow_mut();
        let settings = engine.settings().clone();
        let lanes: Vec<Arc<LearnQueue>> = (0..settings.workers).map(|_| Arc::default()).collect();
        let domain = engine.domain().clone();
        let clock = settings.clock;
        let control = Control::new(&domain, (table.clone(), learn), lanes.clone(), clock);
        let (snaps, size) = (control.snaps(), settings.vector_size);
        let of = snaps.clone();
        engine.add(L2Learn::NAME, move |worker| {
            L2Learn::new(of.clone(), worker, lanes[worker].clone(), size)
        })?;
        let of = snaps.clone();
        engine.add(L2Fwd::NAME, move |worker| {
            L2Fwd::new(of.clone(), worker, size)
        })?;
        engine.add(L2Flood::NAME, move |_| {
            L2Flood::new(snaps.0.clone(), table.clone())
        })?;
        Rc::new(RefCell::new(control))
    };
    let info = ProcessInfo {
        name: "l2fib",
        text: "Learns which station is behind which port, and forgets the silent ones.",
    };
    let kept = Rc::downgrade(&control);
    let turns = registry.processes.every(info, move || {
        kept.upgrade().map(|control| control.borrow_mut().turn())
    });
    BridgeHandler::new(control.clone(), registry.interfaces.clone(), turns).own(registry);
    Ok(control)
}
