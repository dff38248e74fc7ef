//! Interfaces: what they are called, what they may do, what passed through them, and how packets leave by them.
//!
//! Workers see [`IfTable`], plain atomics by interface index; the control thread's [`Interfaces`] owns the truth.
//! A driver crate makes interfaces, each with a transmit node of its own, by [`driver::Host::attach`].

#![forbid(unsafe_code)]

mod control;
pub mod driver;
mod error;
mod interfaces;
mod model;
pub mod node;
mod offload;
mod placement;
mod rates;
mod registry;
mod speaker;
mod steering;
mod sub_interface;
mod table;
mod tap;
mod turns;
pub mod virtio;
mod yard;

pub use control::InterfaceHandler;
pub use driver::NewInterface;
pub use error::IfError;
pub use interfaces::{Change, Interface, Interfaces, Link};
pub use model::{Description, classes};
pub use node::interface_output::InterfaceOutput;
pub use offload::{Fault, Payload, finish as finish_checksum};
pub use placement::RxPlace;
pub use registry::{Registry, register};
pub use speaker::{Speaker, Voice};
pub use steering::Steer;
pub use sub_interface::{Sub, TagKind, Tags, VLAN};
pub use table::{
    ADAPTIVE_NS, Direction, Flag, IfCounts, IfIdx, IfTable, MAX_INTERFACES, MAX_NUMBERS, MAX_QUEUES,
};
pub use tap::{Tap, Tapped};
pub use turns::{Turn, Turns};
pub use yard::{Boxed, Boxes, Way, Yard};
