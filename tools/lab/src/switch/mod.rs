//! Measures a switch that runs as a process: the scenarios of the benchmark of software switches.
//!
//! Generator and sink are in this process. The switch under test and every virtual network function (VNF) are processes of their own,
//! started through an adapter (module `peers`). A VNF may be a virtual machine. Ports are memif, vhost-user or veth pairs; a physical port is a memif port or a
//! veth pair, which the report states.

mod bed;
mod cost;
mod guest;
mod kernel;
mod lines;
mod peers;
mod process;
mod router;
mod spec;
mod topology;
mod wire;

pub use bed::{Beds, LIMITED, measure, memory};
pub use guest::missing as guest_missing;
pub use peers::{ADAPTERS, Adapter, Reach, refusal};
pub use process::{Process, can_make_namespaces, dependent, is_installed};
pub use router::{RouterArgs, main as router};
pub use spec::{Spec, Traffic};
pub use topology::{Kind, Scenario, kinds};
