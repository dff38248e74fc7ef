//! Interfaces of the Linux kernel through packet sockets (AF_PACKET).
//!
//! - True on entry: nothing; the kernel's interface may go down, change or vanish at any time.
//! - True on exit: after the deletion of an interface or the death of Volley the kernel's interface is unchanged: the
//!   sockets close, and with them promiscuous mode ends.
//! - Only received packets are visible, not those that the host sends. Frames arrive in a mapped ring, one slot each,
//!   with the kernel's offload header; VLAN tags that the kernel removed are restored. Frames are sent in batches
//!   directly from buffers.
#![deny(unsafe_code)]

mod control;
pub mod model;
mod queue;
pub mod ring;
pub mod sys;

pub use control::{KIND, PacketHandler};
pub use model::classes;
pub use queue::{PacketRx, PacketTx};

use volley_graph::GraphError;
use volley_iface::Registry;

/// Register `af-packet-input`, the interface kind `host-interface` and its requests.
pub fn register(registry: &mut Registry) -> Result<(), GraphError> {
    let handler = PacketHandler::new(registry)?;
    registry.handlers.push(Box::new(handler));
    Ok(())
}
