//! Interfaces of the Linux kernel through packet sockets (AF_PACKET).
//!
//! - True on entry: nothing; the kernel's interface may go down, change or vanish at any time.
//! - True on exit: a deleted interface, or one whose Volley died, leaves the kernel's interface as any other could use it:
//!   the sockets close, and with them promiscuity ends.
//! - We see what the interface receives, never what is sent on it. Frames come through a mapped ring, a slot each, with
//!   the kernel's offload header; tags that the kernel took out are put back. Frames go by batches straight from buffers.
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

/// Bring in `af-packet-input`, the interface kind `host-interface` and its requests.
pub fn register(registry: &mut Registry) -> Result<(), GraphError> {
    let handler = PacketHandler::new(registry)?;
    registry.handlers.push(Box::new(handler));
    Ok(())
}
