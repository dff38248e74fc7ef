//! Many routes of one source at once, as programs that mirror a routing table hand them to the FIB.

use crate::addr::{Family, Prefix};
use crate::route::{Path, RouteSource};

/// What becomes of many routes of one source at once. For programs: the command line has no words for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteBatch {
    /// IP version.
    pub family: Family,
    /// IP table.
    pub table: u32,
    /// Whose routes they are.
    pub source: RouteSource,
    /// Sets of paths that the routes name.
    pub sets: Vec<Vec<Path>>,
    /// Prefixes that have the paths of a set from now on; a prefix is named once.
    pub put: Vec<(Prefix, u32)>,
    /// Prefixes whose route goes.
    pub gone: Vec<Prefix>,
}

/// All routes of one source in a table.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct RouteSet {
    /// Sets of paths that the routes name.
    pub sets: Vec<Vec<Path>>,
    /// Prefixes in no order, each with its set.
    pub routes: Vec<(Prefix, u32)>,
}
