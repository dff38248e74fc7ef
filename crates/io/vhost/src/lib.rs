//! vhost-user and virtio-user: packets through memory shared with a guest, a container or a DPDK program.
//!
//! Two interface kinds. `vhost-user` is the back end: the peer (QEMU, DPDK's `net_virtio_user`) has a virtio driver and
//! hands over its memory, and we are the device. `virtio-user` is the front end: the peer (DPDK's `net_vhost`, another
//! Volley) is the device, and we are the driver with memory of our own.
//!
//! Contract: a peer is hostile. Whatever it writes into memory or says on the socket, nothing outside the memory that it
//! shared is read or written, nothing waits for it, and a fault takes down its own interface with a name
//! ([`fault`]), from which it comes back when a peer connects that behaves. The reading order:
//!
//! - [`sys`]: memory maps and checked access; [`memory`]: regions and addresses; [`batch`]: packets found, room taken.
//! - [`device`] and [`driver`]: the two ends of split and packed rings, in safe code.
//! - [`wire`]: ring ends in lanes, between control thread and workers; [`mod@ring`]: how a lane is claimed.
//! - [`protocol`], [`backend`], [`frontend`], [`control`]: the control channel.
//! - [`kernel`]: our own rings served by the kernel (vhost-net), for taps.
//! - [`node`]: `vhost-user-input`, `virtio-user-input`, `vhost-net-input` and the transmit node of each interface.
#![deny(unsafe_code)]

pub mod backend;
pub mod batch;
pub mod control;
pub mod device;
pub mod driver;
pub mod fault;
pub mod feature;
pub mod frontend;
pub mod header;
pub mod kernel;
pub mod memory;
pub mod model;
pub mod node;
pub mod protocol;
#[allow(unsafe_code)]
pub mod ring;
pub mod show;
#[allow(unsafe_code)]
pub mod sys;
pub mod wire;

pub use model::classes;

use control::{Ports, VhostHandler};
use node::vhost_user_input::{VIRTIO_NAME, VhostInput};
use show::ShowVhostUser;
use volley_graph::{GraphError, NodeId, Source};
use volley_iface::Registry;
use wire::List;

/// Bring in both sources, both interface kinds and their requests.
pub fn register(registry: &mut Registry) -> Result<(), GraphError> {
    let vhost = source(registry, VhostInput::NAME)?;
    let virtio = source(registry, VIRTIO_NAME)?;
    let ports = Ports::new(registry.host(), vhost, virtio);
    let shown = ports.clone();
    registry.answer(move |query: ShowVhostUser| shown.borrow().show(query.name.as_deref()));
    registry.handlers.push(Box::new(VhostHandler(ports)));
    Ok(())
}

/// Bring in a source that receives from the interfaces of a list of its own.
fn source(registry: &Registry, name: &'static str) -> Result<List, GraphError> {
    let (table, list) = (registry.table(), List::default());
    let mut engine = registry.engine.borrow_mut();
    let drop = engine.node(volley_graph::DROP_NODE).unwrap_or(NodeId(0));
    let (mine, size) = (list.clone(), engine.settings().vector_size);
    engine.add_source(name, move |worker| {
        VhostInput::new(worker, table.clone(), mine.clone(), drop, size)
    })?;
    Ok(list)
}
