//! Ports of DPDK: network cards bound to a user-space driver, and DPDK's virtual ports, over Volley's packet buffers.
//!
//! - Compiled with feature `dpdk` only, which needs libdpdk and a C compiler. Without it [`register`] registers a handler
//!   that replies to every request about DPDK with a sentence that says how to get it.
//! - True on entry: nothing. libdpdk itself is trusted: it runs in Volley's address space.
//! - True on exit: a deleted interface has returned every buffer, and its device is free again.
//! - Packets are received and sent in place: each slot of the arena has one mbuf, and slot and mbuf always have the same
//!   owner (`ring.rs`).
#![deny(unsafe_code)]

#[cfg(not(feature = "dpdk"))]
mod absent;
#[cfg(feature = "dpdk")]
mod control;
#[cfg(feature = "dpdk")]
mod eal;
pub mod model;
#[cfg(feature = "dpdk")]
pub mod node;
#[cfg(feature = "dpdk")]
mod place;
#[cfg(feature = "dpdk")]
pub mod ring;
#[cfg(feature = "dpdk")]
mod send;
#[cfg(feature = "dpdk")]
mod show;
#[cfg(feature = "dpdk")]
pub mod sys;

#[cfg(not(feature = "dpdk"))]
pub use absent::DpdkHandler;
#[cfg(feature = "dpdk")]
pub use control::DpdkHandler;
pub use model::classes;

use volley_graph::GraphError;
use volley_iface::Registry;

/// Name of the kind.
pub const KIND: &str = "dpdk";

/// Whether ports can be created: whether the feature is compiled in.
pub const IS_COMPILED_IN: bool = cfg!(feature = "dpdk");

/// Register the interface kind `dpdk` and its requests, and `dpdk-input` with the feature.
pub fn register(registry: &mut Registry) -> Result<(), GraphError> {
    let handler = DpdkHandler::new(registry)?;
    handler.own(registry);
    registry.handlers.push(Box::new(handler));
    Ok(())
}
