//! Interfaces of the Linux kernel through XDP sockets (AF_XDP).
//!
//! - True on entry: nothing; the kernel's interface may go down, change or vanish at any time.
//! - True on exit: after the deletion of an interface or the death of Volley no XDP program remains: it is attached by a
//!   BPF link that the kernel removes with its descriptor.
//! - The kernel places packets directly into Volley's buffers.
//! - Needs only the kernel: no libxdp, no clang. The program is six instructions, see [`sys`].
#![deny(unsafe_code)]

mod control;
mod mend;
pub mod model;
mod queue;
pub mod ring;
pub mod sys;

pub use control::{KIND, XdpHandler};
pub use model::classes;
pub use queue::{XdpRx, XdpTx};

use volley_graph::GraphError;
use volley_iface::Registry;

/// Register `af-xdp-input`, the interface kind `af_xdp` and its requests.
pub fn register(registry: &mut Registry) -> Result<(), GraphError> {
    let handler = XdpHandler::new(registry)?;
    registry.handlers.push(Box::new(handler));
    Ok(())
}
