//! Interfaces of the Linux kernel through XDP sockets (AF_XDP).
//!
//! - True on entry: nothing; the kernel's interface may go down, change or vanish at any time.
//! - True on exit: a deleted interface, or one whose Volley died, leaves no XDP program behind: it hangs on a link that
//!   the kernel drops with its descriptor.
//! - Packets lie in Volley's own buffers from the moment the kernel hands them over.
//! - Needs nothing but the kernel: no libxdp, no clang. The program is six instructions, see [`sys`].
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

/// Bring in `af-xdp-input`, the interface kind `af_xdp` and its requests.
pub fn register(registry: &mut Registry) -> Result<(), GraphError> {
    let handler = XdpHandler::new(registry)?;
    registry.handlers.push(Box::new(handler));
    Ok(())
}
