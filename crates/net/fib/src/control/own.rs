//! Active routes of the router's own sources (static, file, dynamic), with their current neighbours and interfaces: for another
//! routing table, such as the kernel's, that has neither recursion nor preferences.

use crate::path;
use crate::path::PathTarget;
use crate::route_batch::RouteSet;
use hashbrown::HashMap;
use volley_model::{self as model, ModelError};

use crate::dataplane::{Dpo, DpoKind};
use crate::error::FibError;
use crate::family::{Af, V4, V6};
use crate::source::{Fib, Side, Via};

/// Largest weight of a path: the limit of the kernel's next hops.
const MOST: u64 = 255;

impl Fib {
    /// A number that changes whenever [`Fib::own_routes`] may change.
    pub fn own_version(&self) -> u64 {
        self.res.own
    }

    /// Prefixes of a table whose active route has an own source. Each has the neighbours and interfaces that it leads to now,
    /// with their weights. A route without a usable path, a local route, and one that looks in another table are left out.
    pub fn own_routes(&self, af: Af, table: u32) -> Result<RouteSet, ModelError> {
        let routes = match af {
            Af::V4 => self.own_in::<V4>(table),
            Af::V6 => self.own_in::<V6>(table),
        };
        self.model_result(routes)
    }

    fn own_in<F: Side>(&self, number: u32) -> Result<RouteSet, FibError> {
        let index = self.table_index(F::AF, number)?;
        let (mut set, mut places) = (RouteSet::default(), HashMap::new());
        let Some(table) = self.table::<F>(index) else {
            return Ok(set);
        };
        for (prefix, list) in table.routes.iter() {
            let list = self.res.leaves.root(list);
            let at = *places.entry(list).or_insert_with(|| {
                let own = self.res.source_of(list).is_some_and(|s| s.is_own());
                let ways = own.then(|| self.ways(list)).filter(|w| !w.is_empty())?;
                set.sets.push(ways);
                Some(set.sets.len() as u32 - 1)
            });
            let prefix = model::Prefix::masked(F::ip(prefix.addr()), prefix.len());
            set.routes.extend(prefix.ok().zip(at));
        }
        Ok(set)
    }

    /// The current paths of a list, without duplicates.
    fn ways(&self, list: u32) -> Vec<path::Path> {
        let Some(entry) = self.res.list(list) else {
            return Vec::new();
        };
        let paths = entry.key.paths.iter().zip(&entry.shares);
        let usable: Vec<_> = paths.filter_map(|(p, s)| s.ok().map(|d| (p, d))).collect();
        let Some(best) = usable.iter().map(|(p, _)| p.preference).min() else {
            let drops = |p: &crate::source::Path| matches!(p.via, Via::Drop(_));
            let meant = entry.key.paths.iter().any(drops);
            let drop = meant.then(|| path::Path::to(PathTarget::Drop));
            return drop.into_iter().collect();
        };
        let chosen = usable.into_iter().filter(|(p, _)| p.preference == best);
        let groups: Vec<(u64, Vec<Dpo>)> = chosen
            .map(|(path, dpo)| (path.weight.into(), self.members(dpo)))
            .collect();
        self.shared(&groups)
    }

    fn members(&self, dpo: Dpo) -> Vec<Dpo> {
        match dpo.kind() {
            DpoKind::Multi => self.res.lbs.group(dpo.index()),
            _ => vec![dpo],
        }
    }

    /// Paths of several groups: the weight of a group is divided evenly among its members.
    fn shared(&self, groups: &[(u64, Vec<Dpo>)]) -> Vec<path::Path> {
        let parts = groups.iter().map(|(_, g)| g.len() as u64);
        let whole = parts.fold(1, |all, n| all / gcd(all, n.max(1)) * n.max(1));
        let mut ways: Vec<(PathTarget, u64)> = Vec::new();
        for (weight, group) in groups {
            for target in group.iter().filter_map(|dpo| self.way_of(*dpo)) {
                let share = weight * (whole / group.len() as u64);
                match ways.iter_mut().find(|w| w.0 == target) {
                    Some(way) => way.1 += share,
                    None => ways.push((target, share)),
                }
            }
        }
        let common = ways.iter().fold(0, |all, w| gcd(all, w.1)).max(1);
        let most = ways.iter().map(|w| w.1 / common).max().unwrap_or(1);
        let scaled = |share: u64| match most > MOST {
            true => (share / common * MOST / most).max(1),
            false => share / common,
        };
        let path = |(target, share): (PathTarget, u64)| path::Path {
            weight: scaled(share) as u32,
            ..path::Path::to(target)
        };
        ways.into_iter().map(path).collect()
    }

    fn way_of(&self, dpo: Dpo) -> Option<PathTarget> {
        match dpo.kind() {
            DpoKind::Adj | DpoKind::Incomplete => {
                let key = self.res.adjs.by_slot(dpo.index())?.key;
                Some(PathTarget::Via {
                    addr: key.addr,
                    interface: Some(self.iface_name(key.iface)),
                    table: None,
                })
            }
            DpoKind::Glean => Some(PathTarget::Interface(self.iface_name(dpo.index()))),
            DpoKind::Unreachable => Some(PathTarget::Unreachable),
            DpoKind::Prohibit => Some(PathTarget::Prohibit),
            DpoKind::Drop
            | DpoKind::Broadcast
            | DpoKind::Local
            | DpoKind::LookupIn
            | DpoKind::Multi => None,
        }
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::family::Prefix;
    use crate::path::RouteSource;
    use crate::source::{IfInfo, Path};
    use std::collections::BTreeMap;
    use std::net::IpAddr;
    use volley_tables::Domain;

    fn info(index: u32, up: bool) -> IfInfo {
        IfInfo {
            index,
            name: ["a", "b", "c"][index as usize].into(),
            mac: [2, 0, 0, 0, 0, index as u8],
            mtu: 1500,
            up,
        }
    }

    fn fib() -> Fib {
        let mut fib = Fib::new(&Domain::new());
        (0..3).for_each(|i| fib.set_interface(info(i, true)).unwrap());
        fib
    }

    fn prefix(third: u32) -> Prefix<V4> {
        Prefix::around(0x0a00_0000 + third * 256, 24)
    }

    fn addr(host: u8) -> IpAddr {
        [192, 0, 2, host].into()
    }

    fn hop(host: u8, iface: u32, weight: u8) -> Path {
        Path {
            weight,
            ..Via::NextHop {
                addr: addr(host),
                iface,
            }
            .into()
        }
    }

    fn far(host: u8) -> Path {
        Via::Recursive {
            addr: addr(host),
            table: 0,
        }
        .into()
    }

    fn put(fib: &mut Fib, third: u32, source: RouteSource, paths: &[Path]) {
        fib.set_route(0, prefix(third), source, paths).unwrap();
    }

    /// The reported routes as text, by the third byte of the prefix.
    fn reported(fib: &Fib) -> BTreeMap<u8, Vec<String>> {
        let set = fib.own_routes(Af::V4, 0).unwrap();
        let words = |at: u32| {
            let mut all: Vec<String> = (set.sets[at as usize].iter())
                .map(|p| p.to_string())
                .collect();
            all.sort();
            all
        };
        let third = |p: &model::Prefix| match p.addr() {
            IpAddr::V4(a) => a.octets()[2],
            IpAddr::V6(_) => unreachable!("only IPv4 was requested"),
        };
        set.routes
            .iter()
            .map(|(p, at)| (third(p), words(*at)))
            .collect()
    }

    #[test]
    fn only_what_forwards_and_is_the_routers_own_is_told() {
        let mut fib = fib();
        put(&mut fib, 1, RouteSource::Static, &[hop(1, 0, 1)]);
        put(&mut fib, 2, RouteSource::LcpRt, &[hop(1, 0, 1)]);
        put(&mut fib, 3, RouteSource::Dynamic, &[Via::Prohibit.into()]);
        put(
            &mut fib,
            4,
            RouteSource::File,
            &[Via::Attached { iface: 1 }.into()],
        );
        put(
            &mut fib,
            5,
            RouteSource::Static,
            &[Via::Local { iface: None }.into()],
        );
        put(&mut fib, 6, RouteSource::Static, &[hop(1, 0, 1)]);
        put(
            &mut fib,
            6,
            RouteSource::Interface,
            &[Via::Attached { iface: 1 }.into()],
        );
        put(
            &mut fib,
            7,
            RouteSource::Static,
            &[Via::Drop(crate::dataplane::DropWhy::Blackhole).into()],
        );
        let all = reported(&fib);
        assert_eq!(
            all.keys().copied().collect::<Vec<_>>(),
            [1, 3, 4, 7],
            "{all:?}"
        );
        assert_eq!(all[&1], [path::Path::via(addr(1), Some("a")).to_string()]);
        assert_eq!(
            all[&4],
            [path::Path::to(PathTarget::Interface("b".into())).to_string()]
        );
        assert_eq!(all[&7], [path::Path::to(PathTarget::Drop).to_string()]);
    }

    #[test]
    fn recursion_and_preference_are_gone_from_what_is_told_and_shares_stay() {
        let mut fib = fib();
        // 192.0.2.0/24 has two paths, one of three times the weight: four buckets.
        let cover = Prefix::<V4>::around(0xc000_0200, 24);
        let ways = [hop(1, 0, 1), hop(2, 1, 3)];
        fib.set_route(0, cover, RouteSource::LcpRt, &ways).unwrap();
        put(&mut fib, 1, RouteSource::Static, &[far(9)]);
        let later = Path {
            preference: 1,
            ..hop(7, 2, 1)
        };
        put(&mut fib, 2, RouteSource::Static, &[hop(3, 2, 1), later]);
        let way = |host, name: &str, weight| {
            let path = path::Path {
                weight,
                ..path::Path::via(addr(host), Some(name))
            };
            path.to_string()
        };
        let all = reported(&fib);
        assert_eq!(all[&1], [way(1, "a", 1), way(2, "b", 3)]);
        assert_eq!(all[&2], [way(3, "c", 1)]);
        let before = fib.own_version();
        fib.set_route(0, cover, RouteSource::LcpRt, &[hop(5, 1, 1)])
            .unwrap();
        assert_ne!(fib.own_version(), before, "the way there has changed");
        assert_eq!(reported(&fib)[&1], [way(5, "b", 1)]);
        let before = fib.own_version();
        fib.set_interface(info(2, false)).unwrap();
        assert_ne!(fib.own_version(), before, "an interface went down");
        assert!(!reported(&fib).contains_key(&2), "it leads nowhere now");
    }

    #[test]
    fn the_version_changes_with_own_routes_alone() {
        let mut fib = fib();
        put(&mut fib, 1, RouteSource::Static, &[hop(1, 0, 1)]);
        let start = fib.own_version();
        put(&mut fib, 2, RouteSource::LcpRt, &[hop(1, 0, 1)]);
        put(&mut fib, 1, RouteSource::LcpRt, &[hop(2, 0, 1)]);
        fib.remove_route(0, prefix(2), RouteSource::LcpRt).unwrap();
        assert_eq!(fib.own_version(), start);
        for (third, source) in [(2, RouteSource::Static), (1, RouteSource::Interface)] {
            let before = fib.own_version();
            put(&mut fib, third, source, &[hop(1, 0, 1)]);
            assert_ne!(fib.own_version(), before, "{source:?}");
        }
        let before = fib.own_version();
        fib.remove_route(0, prefix(1), RouteSource::Interface)
            .unwrap();
        assert_ne!(fib.own_version(), before, "the operator's route is back");
    }
}
