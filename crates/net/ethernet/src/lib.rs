//! Ethernet: classification of received frames.
#![forbid(unsafe_code)]

mod link;
pub mod node;

use volley_graph::{GraphError, Node};
use volley_iface::Registry;

pub use node::ethernet_input::EthernetInput;

/// Registers `ethernet-input` as the receiver: the node at the end of the receive arc.
pub fn register(registry: &mut Registry) -> Result<(), GraphError> {
    let table = registry.table();
    let mut engine = registry.engine.borrow_mut();
    let size = engine.settings().vector_size;
    engine.add(EthernetInput::NAME, move |_| {
        EthernetInput::new(table.clone(), size)
    })?;
    engine.set_receiver(EthernetInput::NAME)
}
