//! Shared code of the drivers of Linux interfaces (tap, af-packet, af-xdp).
//!
//! - [`netns`] and [`links`]: the kernel's interfaces, over netlink and in any namespace, for the control thread.
//! - [`driver`] and [`bound`]: Volley's interface over one of the kernel's, which may be missing, appear or vanish.
//! - [`vnet`]: the header that carries checksum and segmentation offload between kernel and user space.
//! - [`node`]: the receive and transmit nodes, generic over how a queue is read and written.
//! - [`status`]: what workers report about their queues.
//! - [`testbed`]: test environment of the drivers.
//! - [`sys`]: system calls; the only unsafe code.
//!
//! Contract: nothing here panics, whatever the kernel or the owner of a namespace does. An interface may vanish, go down
//! or refuse packets at any time: that is counted and reported, and other interfaces keep working.
#![deny(unsafe_code)]

pub mod bound;
pub mod driver;
pub mod error;
pub mod links;
pub mod netns;
pub mod node;
pub mod status;
pub mod sys;
pub mod testbed;
pub mod vnet;

pub use bound::{Opened, Opener, Sharers, check_present};
pub use driver::{Driver, KernelInterface};
pub use error::LinuxError;
pub use links::{KernelLink, KernelLinks};
pub use netns::Namespace;
pub use node::input::{Input, RxQueue, Taken};
pub use node::transmit::{Transmit, TxQueue};
pub use status::Status;
