//! Types of interfaces for tests.

use volley_model::Prefix;
use volley_object::Object;

/// Interface.
#[derive(Object)]
#[object(class = "test_pg", interface = "test-pg")]
#[object(set = "create packet-generator interface <name> {mac <+mac> | mtu <+mtu>}")]
pub(super) struct Pg {
    /// Name.
    #[object(key)]
    pub(super) name: String,
}

/// Interface that is a part of another one.
#[derive(Object)]
#[object(class = "test_sub", interface = "test-sub")]
#[object(set = "create sub <parent> <name> inner <inner>")]
pub(super) struct Sub {
    /// Name.
    #[object(key)]
    pub(super) name: String,
    /// Parent.
    #[object(part_of = "interface")]
    pub(super) parent: String,
    /// Second tag.
    pub(super) inner: u16,
}

/// Route.
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "route", bulk, normal = Route::normal)]
#[object(
    add = "ip route add <prefix> {table <table> | by <by> | count <count> | metric <metric> | via <via>}"
)]
#[object(
    set = "ip route replace <prefix> {table <table> | by <by> | count <count> | metric <metric> | via <via>}"
)]
#[object(take = "ip route del <prefix> {table <table> | by <by> | count <count> | via <via>}")]
pub(crate) struct Route {
    /// Prefix.
    #[object(key)]
    pub(crate) prefix: Prefix,
    /// Table.
    #[object(key, default = 0, needs = "table")]
    pub(crate) table: u32,
    /// Source.
    #[object(key, default = "static".to_owned(), unsaved = "dynamic".to_owned())]
    pub(crate) by: String,
    /// Consecutive prefixes.
    #[object(default = 1, range = 1u64..=100_000, repeats)]
    pub(crate) count: u64,
    /// Metric.
    #[object(default = 0)]
    pub(crate) metric: u32,
    /// Interfaces.
    #[object(joined, needs = "interface")]
    pub(crate) via: Vec<String>,
}

impl Route {
    /// A static route in table 0.
    pub(crate) fn new(prefix: Prefix, metric: u32) -> Route {
        Route {
            prefix,
            table: 0,
            by: "static".to_owned(),
            count: 1,
            metric,
            via: Vec::new(),
        }
    }

    fn normal(&self) -> Option<Route> {
        let mut via = self.via.clone();
        via.sort();
        via.dedup();
        let it = self.clone();
        (via != self.via).then_some(Route { via, ..it })
    }
}
