//! Routed sub-interfaces: frames of an interface with the same VLAN tags are received on a separate interface (IEEE 802.1Q,
//! provider bridges included). The operator's page is `docs/sub-interfaces.md`.
//!
//! `vlan-input` removes tags and forwards frames as if a driver had received them on the sub-interface; `vlan-output` is the
//! transmit node of all sub-interfaces and adds tags. All other nodes see untagged frames.
#![forbid(unsafe_code)]

mod control;
pub mod model;
pub mod node;
pub mod table;

pub use model::classes;
pub use node::vlan_input::VlanInput;
pub use node::vlan_output::VlanOutput;

use control::VlanHandler;
use table::TagTable;
use volley_graph::{GraphError, Node};
use volley_iface::Registry;

/// Registers `vlan-input`, `vlan-output`, and the owner of sub-interfaces.
pub fn register(registry: &mut Registry) -> Result<(), GraphError> {
    let table = registry.table();
    let (tags, output) = {
        let mut engine = registry.engine.borrow_mut();
        let (tags, size) = (
            TagTable::new(engine.domain()),
            engine.settings().vector_size,
        );
        let (of, snap) = (table.clone(), tags.snap());
        engine.add(VlanInput::NAME, move |worker| {
            VlanInput::new(of.clone(), snap.clone(), worker, size)
        })?;
        let output = engine.add(VlanOutput::NAME, move |worker| {
            VlanOutput::new(table.clone(), worker, size)
        })?;
        (tags, output)
    };
    let handler = VlanHandler::new(registry, tags, output);
    registry.handlers.push(Box::new(handler));
    Ok(())
}
