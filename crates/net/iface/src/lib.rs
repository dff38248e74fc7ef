//! Interfaces: names, state, counters, and the nodes that transmit.
//!
//! Workers read [`IfTable`], plain atomics by interface index; [`Interfaces`] on the control thread has the authoritative
//! state. A driver crate creates interfaces, each with its own transmit node, by [`driver::DriverHost::attach`].

#![forbid(unsafe_code)]

mod capture_hook;
mod control;
pub mod driver;
mod error;
mod flow_queue;
mod gso;
mod host_name;
mod interfaces;
mod link_local;
mod listeners;
mod model;
pub mod node;
mod offload;
mod queue_assignment;
mod queue_migration;
mod rates;
mod receive;
mod registry;
mod rx_queue_owner;
mod show;
mod show_queues;
mod states;
mod sub_interface;
mod sub_interface_row;
mod table;
mod tx_queue_pool;
pub mod virtio;

pub use capture_hook::{ActivePoints, CaptureHook, CapturePoint};
pub use control::{InterfaceHandler, sub_interface_row};
pub use driver::NewInterface;
pub use error::IfError;
pub use flow_queue::flow_queue;
pub use gso::{GsoProtocol, GsoType};
pub use host_name::{check_host_name, check_namespace};
pub use interfaces::{Change, Interface, Interfaces, Link};
pub use link_local::{LinkLocalSender, LinkSource};
pub use listeners::{ListenError, Listened};
pub use model::{
    Admin, ArcFeature, Description, InterfacesClear, MacAddress, Mtu, Promiscuous, ReceiveMode,
    RxPlacement, VectorSize, WorkerAdd, WorkerDelete, classes,
};
pub use node::interface_output::InterfaceOutput;
pub use offload::{Fault, Payload, complete_checksum as finish_checksum};
pub use queue_assignment::QueueMover;
pub use queue_migration::{QueueMigration, QueueTarget, WorkerQueue, WorkerQueues};
pub use receive::{ReceiveFeature, is_consumed};
pub use registry::{Gateways, InterfaceNotes, Publishers, Registry, register};
pub use rx_queue_owner::RxQueueOwner;
pub use show::{Counter, InterfaceRate, InterfaceRow, InterfacesReply, NamedValue, ShowInterfaces};
pub use show_queues::{
    ArcRow, FeatureRow, FeaturesReply, HardwareReply, HardwareRow, QueueRow, RxPlacementReply,
    RxPlacementRow, ShowFeatures, ShowHardware, ShowRxPlacement,
};
pub use states::{AdminState, RxMode, Switch};
pub use sub_interface::{Sub, TagKind, Tags, VLAN};
pub use sub_interface_row::{InterfaceTables, SubInterfaceRow, VlanTag};
pub use table::{
    ADAPTIVE_NS, Direction, Flag, IfCounts, IfIdx, IfTable, MAX_INTERFACE_INDEXES, MAX_INTERFACES,
    MAX_QUEUES,
};
pub use tx_queue_pool::{TxQueueLease, TxQueuePool};
