//! vhost-user and virtio-user: packets through memory shared with a guest, a container or a DPDK program.
//!
//! Two interface kinds. `vhost-user` is the back end: the peer (QEMU, DPDK's `net_virtio_user`) has a virtio driver and
//! shares its memory, and Volley is the device. `virtio-user` is the front end: the peer (DPDK's `net_vhost`, another
//! Volley) is the device, and Volley is the driver and shares its own memory.
//!
//! Contract: a peer is hostile. Whatever it writes into memory or sends on the socket, nothing outside the shared memory
//! is read or written and no thread blocks on the peer. A fault takes down the peer's interface with a name ([`fault`]);
//! the interface recovers when a well-behaved peer connects. The reading order:
//!
//! - [`sys`]: memory maps and checked access; [`memory`]: regions and addresses; [`batch`]: received packets, reserved
//!   buffers.
//! - [`device`] and [`driver`]: the two ends of split and packed rings, in safe code.
//! - [`wire`]: slots for ring ends, shared by control thread and workers; [`mod@ring`]: the claim on a slot.
//! - [`protocol`], [`backend`], [`frontend`], [`control`]: the control channel; [`volley_shm::calls`]: its system calls.
//! - [`kernel`]: driver rings served by the kernel (vhost-net), for taps.
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
use std::rc::Rc;
use volley_graph::{GraphError, NodeId, Source};
use volley_iface::Registry;
use volley_shm::calls::{Calls, Kernel};
use wire::List;

/// Register both sources, both interface kinds and their requests.
pub fn register(registry: &mut Registry) -> Result<(), GraphError> {
    register_with(registry, Rc::new(Kernel))
}

/// Like [`register`], with system calls that may fail.
pub fn register_with(registry: &mut Registry, calls: Rc<dyn Calls>) -> Result<(), GraphError> {
    let vhost = source(registry, VhostInput::NAME)?;
    let virtio = source(registry, VIRTIO_NAME)?;
    let ports = Ports::new(registry.host(), vhost, virtio, calls);
    let shown = ports.clone();
    registry.answer(move |query: ShowVhostUser| shown.borrow().show(query.name.as_deref()));
    registry.handlers.push(Box::new(VhostHandler(ports)));
    Ok(())
}

/// Register a source that receives from its own list of interfaces.
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
