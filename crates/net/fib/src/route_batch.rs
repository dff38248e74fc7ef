//! Batches of routes of one source: for programs with a routing table that supply it in few requests.

use crate::path::{Path, RouteSource};
use volley_model::{Family, Prefix};

/// Batch of routes of one source in one table. The routes name their path sets by number, so a set that many routes use is sent
/// once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteBatch {
    /// IP version of all prefixes.
    pub family: Family,
    /// IP table (VRF).
    pub table: u32,
    /// Source of the routes.
    pub source: RouteSource,
    /// Sets of paths: set 0 is the first.
    pub sets: Vec<Vec<Path>>,
    /// Prefixes, each with the number of its route's new path set.
    pub put: Vec<(Prefix, u32)>,
    /// Prefixes whose route is removed.
    pub gone: Vec<Prefix>,
}

/// All routes of one source in a table.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct RouteSet {
    /// Path sets that the routes name.
    pub sets: Vec<Vec<Path>>,
    /// Prefixes in no order, each with the number of its path set.
    pub routes: Vec<(Prefix, u32)>,
}

impl RouteBatch {
    /// A batch without routes.
    pub fn new(family: Family, table: u32, source: RouteSource) -> RouteBatch {
        RouteBatch {
            family,
            table,
            source,
            sets: Vec::new(),
            put: Vec::new(),
            gone: Vec::new(),
        }
    }

    /// Number of routes.
    pub fn len(&self) -> usize {
        self.put.len() + self.gone.len()
    }

    /// Whether there is no route.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
