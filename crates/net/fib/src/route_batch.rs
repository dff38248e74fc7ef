//! Many routes of one source at once: a program that has a routing table hands it over in few requests.

use crate::path::{Path, RouteSource};
use volley_model::{Family, Prefix};

/// Routes of one source in one table, many at once. The routes name their paths by number, so that paths which many routes
/// have are there once.
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
    /// Prefixes, each with the number of the set of paths that its route has from now on.
    pub put: Vec<(Prefix, u32)>,
    /// Prefixes whose route is removed.
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
