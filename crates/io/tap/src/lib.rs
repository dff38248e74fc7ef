//! Taps and tuns: Volley creates an interface in the Linux kernel and exchanges packets with it.
//!
//! - Others may reconfigure, move or delete the kernel's end at any time.
//! - When an interface is deleted, or Volley ends, nothing is left in the kernel.
//! - Packets have a `virtio_net_hdr`, so that checksums and segmentation are completed only where necessary.
//! - If the kernel has vhost-net, it carries the packets through rings ([`volley_vhost::kernel`]); otherwise each is
//!   read or written by a system call ([`TapRx`], [`TapTx`]).
#![deny(unsafe_code)]

mod control;
pub mod model;
mod queue;
mod served;
pub mod sys;

pub use control::{KIND, TapHandler};
pub use model::classes;
pub use queue::{TapRx, TapTx};

use volley_graph::GraphError;
use volley_iface::Registry;

/// Register `tap-input` and `vhost-net-input`, the interface type `tap` and its requests.
pub fn register(registry: &mut Registry) -> Result<(), GraphError> {
    let handler = TapHandler::new(registry)?;
    registry.handlers.push(Box::new(handler));
    Ok(())
}
