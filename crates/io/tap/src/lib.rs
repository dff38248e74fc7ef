//! Taps and tuns: interfaces whose other end is an interface of the Linux kernel, which Volley makes.
//!
//! - True on entry: nothing; the kernel's end may be reconfigured, moved or deleted by others at any time.
//! - True on exit: an interface that Volley deleted, or whose Volley died, has left nothing behind in the kernel.
//! - Packets cross with a `virtio_net_hdr` in front, so checksums and segmentation are left to whoever needs them done.
//! - Where the kernel has vhost-net it carries the packets, through rings ([`volley_vhost::kernel`]); otherwise each is
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

/// Bring in `tap-input` and `vhost-net-input`, the interface kind `tap` and its requests.
pub fn register(registry: &mut Registry) -> Result<(), GraphError> {
    let handler = TapHandler::new(registry)?;
    registry.handlers.push(Box::new(handler));
    Ok(())
}
