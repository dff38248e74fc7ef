//! Forwarding information base: from configured and learned routes to the forwarding decision for a destination.
//!
//! - [`Fib`] is the source of truth (control thread): tables, routes of several sources, recursive next hops, neighbours,
//!   interface addresses.
//! - [`dataplane`] is the part that nodes read: leaf of the longest-prefix match -> load balance -> adjacency, all in 32-bit
//!   words.
//! - [`load`] reads whole tables from text and MRT files, and generates synthetic ones.
//!
//! Invariants, with their tests: the data plane gives the results of a linear search over all routes (`tests/reference.rs`);
//! one change of a neighbour or covering route is one store per path list, however many prefixes use it (`tests/fib.rs`); a bad
//! file or request changes nothing (`load`, `control`).
#![forbid(unsafe_code)]

pub mod columns;
mod control;
pub mod dataplane;
mod error;
mod family;
pub mod load;
mod model;
pub mod path;
mod path_text;
mod route;
mod route_batch;
mod route_file;
mod show;
mod source;
mod upgrade;

pub use control::{CounterList, Listing, RouteList};
pub use error::FibError;
pub use family::{Af, Family, Prefix, V4, V6};
pub use model::{
    Address, DirectedBroadcast, InterfaceTable, IpTable, Multipath, RouteCounter, StaticNeighbor,
    Unnumbered, classes, own,
};
pub use route::Route;
pub use route_batch::{RouteBatch, RouteSet};
pub use route_file::{Fold, RouteFamily, RouteFile, RouteFormat};
pub use show::{
    AbsentPrefix, FibBucket, FibCounters, FibPath, FibReply, FibRoute, FibTable, LengthCount,
    RouteCounterRow, RouteCountersReply, ShowFib, ShowRouteCounters, ShowTables, TableRow,
    TablesReply,
};
pub use source::*;
