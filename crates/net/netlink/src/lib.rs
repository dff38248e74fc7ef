//! The Linux mirror's control side: what the kernel has on the twins of interfaces, and its routes, in step with Volley.
//!
//! - True on entry: nothing. The kernel's tables are changed by anybody at any time, and it forgets to tell when it is in a
//!   hurry: then everything is read once more.
//! - True on exit: links, addresses and configured neighbours are alike on both sides, the side that changed last goes
//!   before; every route of the kernel that leads by a twin is in the forwarding table, as source `lcp-rt`, and every own
//!   route that Volley forwards by is in the kernel's, behind what the kernel has itself.
//! - It builds requests and asks questions, over [`Backend`], and knows no node, no driver and no table of Volley's.
//! - It works in slices, between which the control thread does other things.
#![forbid(unsafe_code)]

mod audit;
mod devices;
mod error;
#[cfg(fuzzing)]
pub mod fuzzing;
mod kernel_write;
mod links;
mod message;
mod orders;
mod own;
mod routes;
mod socket;
mod sync;

pub use error::LcpSyncError;
pub use sync::LcpSync;

use std::any::Any;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use volley_fib::{RouteBatch, RouteSet};
use volley_iface::AdminState;
use volley_iface::{InterfaceTables, SubInterfaceRow};
use volley_lcp::LcpRow;
use volley_model::{Applied, Family, IfAddress, Mac, ModelError, Prefix, Request};

/// Something that takes a while.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T, ModelError>> + 'a>>;

/// An interface as Volley has it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct InterfaceState {
    /// Its name.
    pub name: String,
    /// Administrative state.
    pub state: AdminState,
    /// MAC address; none where there is no Ethernet.
    pub mac: Option<Mac>,
    /// Effective L3 MTU in bytes.
    pub mtu: u32,
    /// Configured addresses.
    pub addresses: Vec<IfAddress>,
    /// Addresses that it made itself.
    pub automatic: Vec<IfAddress>,
    /// IP tables it is bound to.
    pub tables: InterfaceTables,
    /// Whose frames it takes; none = it is no sub-interface.
    pub sub_interface: Option<SubInterfaceRow>,
}

/// A neighbour that is configured in Volley.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Neighbor {
    /// Its interface.
    pub interface: String,
    /// Its address.
    pub address: IpAddr,
    /// Its MAC address.
    pub mac: Mac,
}

/// Volley, as the mirror sees it.
pub trait Backend {
    /// Changes of the running configuration: all of them or none.
    fn change(&self, requests: Vec<Request>) -> Pending<'_, Applied>;
    /// Tables of both IP versions.
    fn tables(&self) -> Vec<(Family, u32)>;
    /// Interfaces.
    fn interfaces(&self) -> Vec<InterfaceState>;
    /// Neighbours that are configured.
    fn neighbors(&self) -> Vec<Neighbor>;
    /// Interfaces with a twin.
    fn pairs(&self) -> Vec<LcpRow>;
    /// A batch of routes, into the forwarding table.
    fn routes(&self, batch: &RouteBatch) -> Result<(), ModelError>;
    /// The kernel's routes that the forwarding table has.
    fn route_set(&self, family: Family, table: u32) -> Result<RouteSet, ModelError>;
    /// A number that changes when own routes may have.
    fn own_version(&self) -> u64;
    /// Own routes that forward, with the ways they take now.
    fn own_routes(&self, family: Family, table: u32) -> Result<RouteSet, ModelError>;
    /// Use a link-local address that the kernel made itself, or use it no longer. It is no configuration.
    fn automatic(&self, interface: &str, address: IfAddress, there: bool)
    -> Result<(), ModelError>;
    /// Make each twin have a carrier while its interface can pass packets.
    fn follow(&self);
    /// Stir the mirror whenever `fd` can be read, until what is returned is dropped.
    fn watch(&self, fd: OwnedFd) -> Option<Box<dyn Any>>;
    /// A number that changes with interfaces, their addresses and neighbours.
    fn version(&self) -> u64;
}

/// What is to be told of one table, by set.
pub(crate) struct Batch {
    family: Family,
    table: u32,
    put: Vec<(Prefix, u32)>,
    gone: Vec<Prefix>,
}

impl Batch {
    fn new(family: Family, table: u32) -> Self {
        Batch {
            family,
            table,
            put: Vec::new(),
            gone: Vec::new(),
        }
    }
}
