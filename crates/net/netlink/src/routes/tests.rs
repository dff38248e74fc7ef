use super::*;
use std::collections::BTreeMap;

/// The routes that the forwarding table has received.
type Reported = BTreeMap<(Family, u32, Prefix), Vec<Path>>;

fn routes() -> Routes {
    let mut routes = Routes::default();
    routes.set_links([(3, "a".to_owned()), (4, "b".to_owned())].into());
    let tables = [Family::V4, Family::V6].into_iter();
    routes.set_tables(tables.flat_map(|f| [(f, 0), (f, 7)]).collect());
    routes
}

fn leg(interface: u32, host: u8) -> RouteHop {
    RouteHop {
        interface,
        gateway: Some(format!("192.0.2.{host}").parse().unwrap()),
        weight: 1,
        onlink: false,
    }
}

fn route(prefix: &str, metric: u32, hops: Hops) -> Route {
    Route {
        table: MAIN,
        prefix: prefix.parse().unwrap(),
        metric,
        hops,
        place: Place::First,
        protocol: 11,
    }
}

fn tell(routes: &mut Routes, reported: &mut Reported, most: usize) {
    while routes.waiting() > 0 {
        for batch in routes.batches(most) {
            for (prefix, set) in batch.put {
                let paths = routes.paths(set).unwrap();
                reported.insert((batch.family, batch.table, prefix), paths);
            }
            for prefix in batch.gone {
                reported.remove(&(batch.family, batch.table, prefix));
            }
        }
    }
}

/// The kernel's IPv4 routes as a plain list, in order of metric, later ones in front.
#[derive(Default)]
struct Plain(Vec<Route>);

impl Plain {
    fn add(&mut self, route: Route) {
        let same =
            |r: &Route| (r.table, r.prefix, r.metric) == (route.table, route.prefix, route.metric);
        if route.place == Place::Replace
            && let Some(at) = self.0.iter().position(same)
        {
            self.0[at] = route;
            return;
        }
        if !self.0.iter().any(|r| same(r) && r.hops == route.hops) {
            self.0.insert(0, route);
        }
    }

    fn reported(&self, names: &BTreeMap<u32, &str>) -> Reported {
        let mut reported = Reported::new();
        for route in &self.0 {
            let table = if route.table == MAIN { 0 } else { route.table };
            let best = self
                .0
                .iter()
                .filter(|r| (r.table, r.prefix) == (route.table, route.prefix));
            // Of equal metrics the first is used.
            let best = best.min_by_key(|r| r.metric).unwrap();
            let Hops::Legs(legs) = &best.hops else {
                unreachable!()
            };
            let path = |l: &RouteHop| Some(Path::via(l.gateway?, Some(names.get(&l.interface)?)));
            let mut paths: Vec<Path> = legs.iter().filter_map(path).collect();
            paths.sort();
            if !paths.is_empty() {
                reported.insert((Family::V4, table, route.prefix), paths);
            }
        }
        reported
    }
}

#[test]
fn whatever_comes_in_whatever_order_a_plain_list_says_the_same() {
    let names = BTreeMap::from([(3, "a"), (4, "b")]);
    let mut seed = 7u64;
    let mut rng = |n: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) % n
    };
    let (mut all, mut plain, mut reported) = (routes(), Plain::default(), Reported::new());
    for step in 0..20_000 {
        let legs = match rng(4) {
            0 => vec![leg(3, 1), leg(4, 2)],
            // Over an interface that is not an LCP tap.
            1 => vec![leg(9, 1)],
            n => vec![leg(n as u32 + 1, rng(3) as u8 + 1)],
        };
        let mut it = route(
            &format!("10.{}.0.0/16", rng(12)),
            rng(3) as u32,
            Hops::Legs(legs),
        );
        it.table = if rng(4) == 0 { 7 } else { MAIN };
        if rng(3) == 0 {
            it.place = Place::Replace;
        }
        let there = plain.0.iter().position(|r| {
            (r.table, r.prefix, r.metric, &r.hops) == (it.table, it.prefix, it.metric, &it.hops)
        });
        match there {
            Some(at) if rng(2) == 0 => {
                plain.0.remove(at);
                all.remove(it);
            }
            // The kernel refuses the route and sends no notification.
            Some(_) if it.place == Place::Replace => {}
            _ => {
                plain.add(it.clone());
                all.add(it);
            }
        }
        if step % 50 == 0 {
            // All routes are added again, as in a resynchronisation.
            all.begin();
            for route in plain.0.iter().rev() {
                let place = Place::First;
                all.add(Route {
                    place,
                    ..route.clone()
                });
            }
            all.swept();
        }
        if rng(5) == 0 {
            tell(&mut all, &mut reported, 3);
            assert_eq!(reported, plain.reported(&names), "step {step}");
            let wanted = all.wanted().into_iter();
            let wanted: Reported = wanted
                .map(|(at, set)| (at, all.paths(set).unwrap()))
                .collect();
            assert_eq!(wanted, reported);
        }
    }
    let some = all.sets.all.iter().filter(|s| s.1 > 0).count();
    plain.0.drain(..).for_each(|r| all.remove(r));
    tell(&mut all, &mut reported, 100);
    assert!(some > 0 && reported.is_empty() && all.entries.is_empty());
    assert!(
        all.sets.all.iter().all(|s| s.1 == 0),
        "no set is held for ever"
    );
}

#[test]
fn groups_that_change_take_their_routes_along() {
    let (mut all, mut reported) = (routes(), Reported::new());
    all.next_hop(1, NextHop::One(leg(3, 1)));
    all.next_hop(2, NextHop::One(leg(4, 2)));
    all.next_hop(9, NextHop::Group(vec![(1, 1), (2, 3)]));
    for n in 0..100 {
        all.add(route(&format!("10.0.{n}.0/24"), 0, Hops::Object(9)));
    }
    tell(&mut all, &mut reported, 7);
    let of = |reported: &Reported| {
        reported
            .values()
            .next()
            .unwrap()
            .iter()
            .map(|p| p.weight)
            .collect::<Vec<_>>()
    };
    assert_eq!((reported.len(), of(&reported)), (100, vec![1, 3]));
    all.next_hop(9, NextHop::Group(vec![(1, 1)]));
    assert_eq!(all.waiting(), 100);
    tell(&mut all, &mut reported, 7);
    assert_eq!(of(&reported), [1]);
    all.next_hop(1, NextHop::One(leg(3, 7)));
    tell(&mut all, &mut reported, 1000);
    assert!(
        reported
            .values()
            .all(|p| p[0] == Path::via("192.0.2.7".parse().unwrap(), Some("a")))
    );
    all.no_next_hop(9);
    tell(&mut all, &mut reported, 1000);
    assert!(reported.is_empty());
}

#[test]
fn an_ipv6_route_loses_one_way_and_own_addresses_go_before() {
    let (mut all, mut reported) = (routes(), Reported::new());
    let via = |interface, host: &str| RouteHop {
        interface,
        gateway: Some(host.parse().unwrap()),
        weight: 1,
        onlink: false,
    };
    let (one, two) = (via(3, "2001:db8::1"), via(4, "2001:db8:1::1"));
    all.add(route("2001:db8:9::/48", 1024, Hops::Legs(vec![one, two])));
    all.remove(route("2001:db8:9::/48", 1024, Hops::Legs(vec![two])));
    tell(&mut all, &mut reported, 10);
    let path = Path::via("2001:db8::1".parse().unwrap(), Some("a"));
    assert_eq!(reported.values().next().unwrap(), &[path]);
    all.add(route("10.255.0.1/32", 0, Hops::Legs(vec![leg(3, 1)])));
    let own = |prefix, interface| Route {
        table: LOCAL,
        ..route(prefix, 0, Hops::Local(interface))
    };
    all.add(own("10.255.0.1/32", 1));
    all.add(own("127.0.0.1/32", 1));
    all.add(own("192.0.2.200/32", 3));
    tell(&mut all, &mut reported, 10);
    let at = |text: &str| (Family::V4, 0, text.parse().unwrap());
    assert_eq!(
        reported[&at("10.255.0.1/32")],
        [Path::to(PathTarget::Local)]
    );
    assert!(
        !reported.contains_key(&at("127.0.0.1/32"))
            && !reported.contains_key(&at("192.0.2.200/32"))
    );
    all.remove(own("10.255.0.1/32", 1));
    tell(&mut all, &mut reported, 10);
    assert_eq!(reported[&at("10.255.0.1/32")].len(), 1);
    all.remove(own("192.0.2.200/32", 3));
    all.set_links(HashMap::new());
    tell(&mut all, &mut reported, 10);
    assert!(reported.is_empty(), "{reported:?}");
}
