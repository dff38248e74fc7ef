//! The source of truth: who says what of each prefix, and how it is resolved down to adjacencies. Control thread only.

mod adjacency;
mod autoconf;
mod buckets;
mod down;
mod facts;
mod fib;
mod interface;
mod neighbor;
mod path;
mod resolver;
mod routes;
mod scc;
mod show;
mod table;
mod tables;
mod unnumbered;

/// Who a route comes from; of several sources for one prefix the smallest wins.
pub use crate::path::RouteSource as Source;
pub use facts::{IfInfo, Neighbor};
pub use fib::{Fib, FibStats};
pub use path::{Path, Via};
pub use show::{Bucket, PathState, Shown};
pub use tables::Side;
