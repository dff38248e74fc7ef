use super::*;
use crate::message::Place;
use std::net::IpAddr;

fn spot(prefix: &str) -> Spot {
    Spot {
        table: 254,
        prefix: prefix.parse().unwrap(),
    }
}

fn via(host: u8, name: &str, weight: u32) -> Path {
    let addr: IpAddr = [192, 0, 2, host].into();
    Path {
        weight,
        ..Path::via(addr, Some(name))
    }
}

fn leg(host: u8, interface: u32, weight: u8) -> RouteHop {
    RouteHop {
        interface,
        gateway: Some([192, 0, 2, host].into()),
        weight,
        onlink: false,
    }
}

fn own() -> Own {
    let mut own = Own::default();
    assert!(own.set_ways([("a".to_owned(), 3), ("b".to_owned(), 4)].into()));
    own
}

fn want(own: &mut Own, routes: &[(&str, Vec<Path>)]) {
    own.forget();
    for (prefix, paths) in routes {
        let set = RouteSet {
            sets: vec![paths.clone()],
            routes: vec![(prefix.parse().unwrap(), 0)],
        };
        own.want(0, &set);
    }
    own.compare();
}

/// A model of the kernel: carries out steps and notifies of the results.
fn obey(own: &mut Own, steps: &[(Spot, Vec<Step>)]) {
    for (spot, steps) in steps {
        for step in steps {
            let route = |metric, hops: &Hops, place| Route {
                table: spot.table,
                prefix: spot.prefix,
                metric,
                hops: hops.clone(),
                place,
                protocol: PROTOCOL,
            };
            match step {
                Step::Add(hops) => own.there().add(route(METRIC, hops, Place::First)),
                Step::Replace(hops) => own.there().add(route(METRIC, hops, Place::Replace)),
                Step::Remove(metric, hops) => {
                    own.there().remove(route(*metric, hops, Place::First));
                }
            }
        }
    }
}

fn all(own: &mut Own) -> Vec<(Spot, Vec<Step>)> {
    let mut steps = own.steps(usize::MAX);
    steps.sort_by_key(|s| s.0);
    steps
}

#[test]
fn routes_are_made_changed_and_taken_away_and_told_once() {
    let mut own = own();
    let net = "10.1.0.0/16";
    let two = vec![via(2, "b", 3), via(1, "a", 1)];
    want(
        &mut own,
        &[(net, two), ("10.2.0.0/16", vec![via(1, "a", 9)])],
    );
    let legs = Hops::Legs(vec![leg(1, 3, 1), leg(2, 4, 3)]);
    let one = Hops::Legs(vec![leg(1, 3, 1)]);
    let made = [
        (spot(net), vec![Step::Add(legs)]),
        (spot("10.2.0.0/16"), vec![Step::Add(one.clone())]),
    ];
    let steps = all(&mut own);
    assert_eq!(steps, made, "of one way alone the share says nothing");
    obey(&mut own, &steps);
    assert_eq!(all(&mut own), [], "the kernel has said what it has");
    assert_eq!(own.differences(), (2, vec![]));
    want(&mut own, &[(net, vec![via(1, "a", 1)])]);
    let steps = all(&mut own);
    let gone = Step::Remove(METRIC, one.clone());
    let changed = [
        (spot(net), vec![Step::Replace(one)]),
        (spot("10.2.0.0/16"), vec![gone]),
    ];
    assert_eq!(steps, changed);
    obey(&mut own, &steps);
    assert_eq!(own.counts(), [((Family::V4, 0), 1)].into());
}

#[test]
fn what_the_kernel_loses_or_has_from_before_is_mended() {
    let mut own = own();
    let stale = Route {
        table: 254,
        prefix: "10.9.0.0/16".parse().unwrap(),
        metric: 7,
        hops: Hops::Drop,
        place: Place::First,
        protocol: PROTOCOL,
    };
    assert!(
        is_own(&stale)
            && !is_own(&Route {
                protocol: 11,
                ..stale.clone()
            })
    );
    own.there().add(stale.clone());
    assert_eq!(own.lasting().len(), 1);
    want(
        &mut own,
        &[("10.9.0.0/16", vec![Path::to(PathTarget::Prohibit)])],
    );
    let steps = all(&mut own);
    let mended = vec![Step::Remove(7, Hops::Drop), Step::Add(Hops::Prohibit)];
    assert_eq!(steps, [(spot("10.9.0.0/16"), mended)]);
    obey(&mut own, &steps);
    assert_eq!(all(&mut own), []);
    own.there().begin();
    own.there().swept();
    let back = vec![Step::Add(Hops::Prohibit)];
    assert_eq!(all(&mut own), [(spot("10.9.0.0/16"), back)]);
}

#[test]
fn ipv6_routes_of_another_kind_do_not_stand_in_for_each_other() {
    let mut own = own();
    let net = "2001:db8:1::/48";
    let to = |host: &str, name| vec![Path::via(host.parse().unwrap(), Some(name))];
    want(&mut own, &[(net, to("fe80::1", "a"))]);
    let steps = all(&mut own);
    obey(&mut own, &steps);
    want(&mut own, &[(net, to("fe80::2", "b"))]);
    let steps = all(&mut own);
    assert!(matches!(steps[0].1[..], [Step::Replace(_)]), "{steps:?}");
    obey(&mut own, &steps);
    want(&mut own, &[(net, vec![Path::to(PathTarget::Drop)])]);
    let steps = all(&mut own);
    assert!(
        matches!(steps[0].1[..], [Step::Remove(..), Step::Add(Hops::Drop)]),
        "{steps:?}"
    );
}

#[test]
fn what_the_kernel_cannot_carry_is_left_out() {
    let mut own = own();
    let far = Path::via("192.0.2.9".parse().unwrap(), Some("no twin"));
    let mixed = vec![far.clone(), via(1, "a", 1)];
    let routes = [
        ("10.1.0.0/16", vec![far]),
        ("10.2.0.0/16", mixed),
        ("10.3.0.0/16", vec![Path::to(PathTarget::LookupIn(3))]),
        ("192.0.2.1/32", vec![via(1, "a", 1)]),
    ];
    want(&mut own, &routes);
    let attached = RouteHop {
        gateway: None,
        ..leg(1, 3, 1)
    };
    let steps = all(&mut own);
    let expected = [
        (
            spot("10.2.0.0/16"),
            vec![Step::Add(Hops::Legs(vec![leg(1, 3, 1)]))],
        ),
        (
            spot("192.0.2.1/32"),
            vec![Step::Add(Hops::Legs(vec![attached]))],
        ),
    ];
    assert_eq!(steps, expected);
    // The interface goes down: the kernel has no route over it any more, and no step adds one.
    obey(&mut own, &steps);
    assert!(own.set_ways([("b".to_owned(), 4)].into()));
    want(&mut own, &routes);
    assert_eq!(own.differences().0, 0);
    assert!(own.lasting().is_empty(), "they go with their interface");
}
