//! Class of routes.

use crate::path::{PATHS, Path, PathTarget, RouteSource};
use std::collections::HashSet;
use volley_model::Prefix;
use volley_object::{FieldError, Object, at_most, refuse};

/// Routes that one request is about.
const ROUTE_COUNT: std::ops::RangeInclusive<u64> = 1..=16_777_216;

/// Route: a prefix of an IP table, and the paths that lead there. Of several sources of a prefix the one with the smallest
/// preference forwards.
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "route", file = "[[route]]", bulk)]
#[object(check = Route::check, normal = Route::normal)]
#[object(
    set = "(ip | ip6) route replace {table <table> | count <count> | source <source>} <prefix> \
           {table <table> | source <source> | count <count> | <paths>}"
)]
#[object(
    add = "(ip | ip6) route add {table <table> | count <count> | source <source>} <prefix> \
           {table <table> | source <source> | count <count> | <paths>}"
)]
#[object(
    take = "(ip | ip6) route del~ete {table <table> | count <count> | source <source>} <prefix> \
            {table <table> | source <source> | count <count> | <paths>}"
)]
#[object(example = "ip route replace 10.0.0.0/24 count 1000 via 192.0.2.1 pg1 weight 2")]
#[object(removed_with = "route_file.table source=file")]
#[object(upgrade = crate::upgrade::route, formerly_bulk = "routes family=")]
#[object(group("ip", "IPv4: routes, tables, multicast routes."))]
#[object(group("ip6", "IPv6: routes, tables, multicast routes, neighbour discovery."))]
#[object(group("show ip", "IPv4: routes, neighbours, tables, multicast routes."))]
#[object(group(
    "show ip6",
    "IPv6: routes, neighbours, tables, multicast routes, neighbour discovery."
))]
#[object(instead(
    "show bgp",
    "routing protocols run in FRR: ask `vtysh`; `show ip fib` has the routes that forward"
))]
#[object(instead(
    "show ospf",
    "routing protocols run in FRR: ask `vtysh`; `show ip fib` has the routes that forward"
))]
#[object(group("ip route", "Add, replace, remove and load IPv4 routes."))]
#[object(group("ip6 route", "Add, replace, remove and load IPv6 routes."))]
pub struct Route {
    /// Prefix, or the first of several.
    #[object(key, example = "10.0.0.0/8")]
    pub prefix: Prefix,
    /// IP table (VRF) of the IP version of the prefix.
    #[object(key, default = 0, needs = "table", example = "7")]
    pub table: u32,
    /// Source of the route.
    #[object(key, default = RouteSource::Static, unsaved = RouteSource::Dynamic, example = "static")]
    pub source: RouteSource,
    /// Number of consecutive prefixes of this length, the first one included.
    #[object(default = 1, range = ROUTE_COUNT, repeats)]
    pub count: u64,
    /// Paths, each to another target.
    #[object(joined, inline, example = "via 192.0.2.1 pg0")]
    pub paths: Vec<Path>,
}

impl Route {
    /// A static route in table 0.
    pub fn new(prefix: Prefix, paths: Vec<Path>) -> Route {
        Route {
            prefix,
            table: 0,
            source: RouteSource::Static,
            count: 1,
            paths,
        }
    }

    fn check(&self) -> Result<(), FieldError> {
        if !self.source.is_own() {
            let name = self.source.name();
            let why = format!("must not be {name}: the FIB makes these routes itself; use static");
            return refuse("source", why);
        }
        if self.paths.is_empty() {
            let why = "is missing, the route leads nowhere: give a path such as 'via 192.0.2.1' or 'via drop'";
            return refuse("paths", why);
        }
        at_most("paths", self.paths.len(), PATHS)?;
        if self.prefix.step(self.count.saturating_sub(1)).is_none() {
            let why = format!(
                "must be smaller: {} has fewer prefixes behind it",
                self.prefix
            );
            return refuse("count", why);
        }
        for path in &self.paths {
            if let Err(error) = path.validate(Some(self.prefix.family())) {
                return refuse("paths", format!("have a fault: {error}"));
            }
        }
        Ok(())
    }

    /// Paths in order; of two with the same target the later one is kept; the name of the route's own table is removed.
    fn normal(&self) -> Option<Route> {
        let is_own = |path: &Path| match &path.target {
            PathTarget::Via { table, .. } => *table == Some(self.table),
            _ => false,
        };
        if self.paths.len() < 2 && !self.paths.iter().any(is_own) {
            return None;
        }
        let mut paths = self.paths.clone();
        for path in paths.iter_mut().filter(|path| is_own(path)) {
            if let PathTarget::Via { table, .. } = &mut path.target {
                *table = None;
            }
        }
        let mut known = HashSet::new();
        paths.reverse();
        paths.retain(|path| known.insert(path.target.clone()));
        paths.sort();
        let it = self.clone();
        (paths != self.paths).then_some(Route { paths, ..it })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(change: impl FnOnce(&mut Route)) -> String {
        crate::classes().unwrap();
        let path = Path::via("192.0.2.1".parse().unwrap(), None);
        let mut route = Route::new("10.0.0.0/24".parse().unwrap(), vec![path]);
        change(&mut route);
        route.instance().unwrap_err().to_string()
    }

    #[test]
    fn what_leads_nowhere_is_refused() {
        for (reported, why) in [
            (refused(|it| it.paths.clear()), "paths is missing"),
            (refused(|it| it.source = RouteSource::Special), "use static"),
            (refused(|it| it.count = 0), "count must be a number from 1"),
            (
                refused(|it| it.count = 16_777_216),
                "fewer prefixes behind it",
            ),
            (
                refused(|it| it.prefix = "2001:db8::/32".parse().unwrap()),
                "next hop 192.0.2.1 for IPv6",
            ),
            (
                refused(|it| {
                    let hops = 1..=65;
                    let path = |n: u8| Path::via([192, 0, 2, n].into(), None);
                    it.paths = hops.map(path).collect();
                }),
                "64",
            ),
        ] {
            assert!(reported.contains(why), "{reported}");
        }
    }

    #[test]
    fn paths_are_sorted_and_each_target_is_there_once() {
        crate::classes().unwrap();
        let paths = [
            "via 192.0.2.10",
            "via 192.0.2.9 next-hop-table 7 weight 2",
            "via drop",
            "via 192.0.2.10 weight 3",
        ];
        let paths = paths.map(|text| text.parse().unwrap()).to_vec();
        let route = Route {
            table: 7,
            ..Route::new("10.0.0.0/24".parse().unwrap(), paths)
        };
        let object = route.instance().unwrap();
        assert_eq!(
            object.set_command(),
            "ip route replace 10.0.0.0/24 table 7 via 192.0.2.9 weight 2 via 192.0.2.10 weight 3 via drop"
        );
    }
}
