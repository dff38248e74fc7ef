//! The source of truth: routes by prefix and source, and their resolution down to adjacencies. Control thread only.

mod adjacency;
mod autoconf;
mod buckets;
mod counted;
mod down;
mod facts;
mod fib;
mod interface;
mod leaf;
mod neighbor;
mod path;
mod resolver;
mod route_counters;
mod routes;
mod scc;
mod show;
mod table;
mod tables;
mod unnumbered;

/// Source of a route; of several sources for one prefix the smallest forwards.
pub use crate::path::RouteSource as Source;
pub use facts::{IfInfo, Neighbor};
pub use fib::{Fib, FibStats};
pub use path::{Path, Via};
pub use show::{Bucket, PathState, Shown};
pub use tables::Side;
