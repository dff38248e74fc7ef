//! Control side of the Linux control plane: keeps LCP taps and routes of the kernel synchronised with Volley.
//!
//! - On entry: no assumption. Any process may change the kernel's tables at any time, and the kernel drops notifications when
//!   the socket buffer is full. Then everything is read again.
//! - On exit: links, addresses and configured neighbours are equal on both sides; the side with the later change takes
//!   precedence. Every route of the kernel through an LCP tap is in the forwarding table, as source `lcp-rt`. Every own route
//!   of Volley that forwards is in the kernel, behind the kernel's own routes.
//! - The crate builds requests and queries over [`Backend`]; it knows no node, no driver and no table of Volley.
//! - The work is done in slices, between which the control thread does other work.
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

/// A future with the result of a request.
pub type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T, ModelError>> + 'a>>;

/// An interface of Volley.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct InterfaceState {
    /// Name of the interface.
    pub name: String,
    /// Administrative state.
    pub state: AdminState,
    /// MAC address; none if the interface is not Ethernet.
    pub mac: Option<Mac>,
    /// Effective L3 MTU in bytes.
    pub mtu: u32,
    /// Configured addresses.
    pub addresses: Vec<IfAddress>,
    /// Addresses that the interface configured automatically.
    pub automatic: Vec<IfAddress>,
    /// IP tables that the interface is bound to.
    pub tables: InterfaceTables,
    /// Parent and tags of a sub-interface; none = not a sub-interface.
    pub sub_interface: Option<SubInterfaceRow>,
}

/// A neighbour that is configured in Volley.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Neighbor {
    /// Interface of the neighbour.
    pub interface: String,
    /// IP address of the neighbour.
    pub address: IpAddr,
    /// MAC address of the neighbour.
    pub mac: Mac,
}

/// Volley, as seen by the synchronisation with the kernel.
pub trait Backend {
    /// Changes the running configuration; applies all requests or none.
    fn change(&self, requests: Vec<Request>) -> Pending<'_, Applied>;
    /// Tables of both IP versions.
    fn tables(&self) -> Vec<(Family, u32)>;
    /// All interfaces.
    fn interfaces(&self) -> Vec<InterfaceState>;
    /// Configured neighbours.
    fn neighbors(&self) -> Vec<Neighbor>;
    /// Interfaces with an LCP tap.
    fn pairs(&self) -> Vec<LcpRow>;
    /// Applies a batch of routes to the forwarding table.
    fn routes(&self, batch: &RouteBatch) -> Result<(), ModelError>;
    /// Routes of the kernel in the forwarding table.
    fn route_set(&self, family: Family, table: u32) -> Result<RouteSet, ModelError>;
    /// A version number that changes whenever own routes may have changed.
    fn own_version(&self) -> u64;
    /// Own routes that forward, with their current paths.
    fn own_routes(&self, family: Family, table: u32) -> Result<RouteSet, ModelError>;
    /// Adds or removes a link-local address that the kernel generated. Such an address is not configuration.
    fn automatic(&self, interface: &str, address: IfAddress, there: bool)
    -> Result<(), ModelError>;
    /// Gives each LCP tap a carrier while its interface can pass packets.
    fn follow(&self);
    /// Calls [`LcpSync::stir`] whenever `fd` is readable, until the returned value is dropped.
    fn watch(&self, fd: OwnedFd) -> Option<Box<dyn Any>>;
    /// A version number that changes with interfaces, their addresses and neighbours.
    fn version(&self) -> u64;
}

/// Changes of one table for the forwarding table, by set of paths.
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
