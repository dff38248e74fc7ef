//! Unnumbered interfaces: the addresses published to workers, and their possible neighbours.

use std::net::IpAddr;
use volley_fib::dataplane::{Dpo, DpoKind, DropWhy};
use volley_fib::{Af, Fib, FibError, IfInfo, Neighbor, Prefix, Source, V4, Via};
use volley_model::IfAddress;
use volley_tables::Domain;

const LEFT: u32 = 0;
const RIGHT: u32 = 1;
const LOOP: u32 = 2;
const HOST: u32 = 0x0a01_0005;

/// Interfaces left and right use the addresses of loop0, which is 10.99.0.1/24 and 2001:db8:99::1/64.
fn lab() -> (std::sync::Arc<Domain>, Fib) {
    let domain = Domain::new();
    let mut fib = Fib::new(&domain);
    for (index, name) in [(LEFT, "left"), (RIGHT, "right"), (LOOP, "loop0")] {
        let info = IfInfo {
            index,
            name: name.into(),
            mac: [2, 0, 0, 0, 0, 1],
            mtu: 1500,
            up: true,
        };
        fib.set_interface(info).unwrap();
    }
    for address in ["10.99.0.1/24", "2001:db8:99::1/64", "fe80::1/64"] {
        fib.add_address(LOOP, address.parse().unwrap()).unwrap();
    }
    for borrower in [LEFT, RIGHT] {
        assert!(fib.set_unnumbered(borrower, Some(LOOP)).unwrap());
        assert!(!fib.set_unnumbered(borrower, Some(LOOP)).unwrap());
    }
    (domain, fib)
}

fn used(fib: &Fib, iface: u32) -> Vec<String> {
    let all = fib.used_addresses(iface);
    all.map(|a: IfAddress| a.to_string()).collect()
}

#[test]
fn borrowed_addresses_are_those_of_hosts_and_follow_the_numbered() {
    let (domain, mut fib) = lab();
    assert_eq!(used(&fib, LEFT), ["10.99.0.1/32", "2001:db8:99::1/128"]);
    let (plane, reader) = (fib.dataplane4(), domain.register());
    let own = |iface| plane.read(reader.guard()).own(iface).to_vec();
    assert_eq!(own(LEFT), [(0x0a63_0001, 32)]);
    fib.take_touched();
    fib.add_address(LOOP, "10.99.0.2/32".parse().unwrap())
        .unwrap();
    assert_eq!(own(RIGHT), [(0x0a63_0001, 32), (0x0a63_0002, 32)]);
    assert!(fib.take_touched().contains(&RIGHT), "who follows is told");
    // An address has one route, which belongs to the interface that lends it.
    let here = plane.read(reader.guard()).forward(0, 0x0a63_0001, 0);
    assert_eq!(here, Dpo::new(DpoKind::Local, LOOP));
    fib.remove_interface(LOOP).unwrap();
    assert!(used(&fib, LEFT).is_empty() && own(LEFT).is_empty());
    assert_eq!(fib.numbered(LEFT), None);
}

#[test]
fn who_cannot_borrow_is_told_why() {
    let (_domain, mut fib) = lab();
    let why = |done: Result<bool, FibError>| done.unwrap_err().to_string();
    let message = why(fib.set_unnumbered(LEFT, Some(RIGHT)));
    assert!(message.contains("has no addresses"), "{message}");
    let message = why(fib.set_unnumbered(LOOP, Some(LEFT)));
    assert!(message.contains("it has addresses"), "{message}");
    let address = "10.1.0.1/24".parse().unwrap();
    let message = fib.add_address(LEFT, address).unwrap_err().to_string();
    assert!(message.contains("another's addresses"), "{message}");
    fib.add_table(Af::V4, 7).unwrap();
    for iface in [LEFT, RIGHT] {
        let message = fib.bind_interface(iface, Af::V4, 7).unwrap_err();
        assert!(message.to_string().contains("share"), "{message}");
    }
    fib.set_unnumbered(LEFT, None).unwrap();
    fib.bind_interface(LEFT, Af::V4, 7).unwrap();
    let message = why(fib.set_unnumbered(LEFT, Some(LOOP)));
    assert!(message.contains("different tables"), "{message}");
    assert_eq!(
        fib.numbered(LEFT),
        None,
        "a refused change has changed nothing"
    );
}

#[test]
fn a_neighbour_has_a_host_route_where_no_other_route_leads() {
    let (domain, mut fib) = lab();
    let (plane, reader) = (fib.dataplane4(), domain.register());
    let to = |host| plane.read(reader.guard()).forward(0, host, 0);
    let host = IpAddr::from([10, 1, 0, 5]);
    assert!(fib.may_be_on(LEFT, host) && fib.may_be_on(RIGHT, host));
    fib.set_neighbor(LEFT, host, Neighbor::learned([6; 6]))
        .unwrap();
    assert!(to(HOST).is_adj());
    // The host is on one interface: it cannot be on another.
    assert!(fib.may_be_on(LEFT, host) && !fib.may_be_on(RIGHT, host));
    // Another route determines the interface for its packets.
    let (all, via) = (
        Prefix::<V4>::around(0, 0),
        Via::NextHop {
            addr: [10, 2, 0, 1].into(),
            iface: RIGHT,
        },
    );
    fib.set_route(0, all, Source::Static, &[via.into()])
        .unwrap();
    assert_eq!(to(HOST), to(HOST + 1));
    assert!(fib.may_be_on(RIGHT, [10, 2, 0, 1].into()), "a next hop");
    assert!(!fib.may_be_on(LEFT, host));
    fib.remove_route(0, all, Source::Static).unwrap();
    assert!(to(HOST).is_adj());
    // On an interface that is no longer unnumbered a neighbour must be in a network.
    fib.set_unnumbered(LEFT, None).unwrap();
    assert_eq!(to(HOST), Dpo::drop(DropWhy::NoRoute));
    fib.set_unnumbered(LEFT, Some(LOOP)).unwrap();
    assert!(to(HOST).is_adj());
    assert!(fib.forget_neighbor(LEFT, host));
    assert_eq!(to(HOST), Dpo::drop(DropWhy::NoRoute));
}

#[test]
fn a_host_route_by_an_interface_asks_for_the_host_itself() {
    let (domain, mut fib) = lab();
    let (plane, reader) = (fib.dataplane4(), domain.register());
    let to = |host| plane.read(reader.guard()).forward(0, host, 0).kind();
    let (host, attached) = (
        Prefix::<V4>::host(HOST),
        Via::Attached { iface: LEFT }.into(),
    );
    fib.set_route(0, host, Source::Static, &[attached]).unwrap();
    assert_eq!(to(HOST), DpoKind::Incomplete);
    let address = [10, 1, 0, 5].into();
    fib.set_neighbor(LEFT, address, Neighbor::learned([6; 6]))
        .unwrap();
    assert_eq!(to(HOST), DpoKind::Adj);
    fib.remove_paths(0, host, Source::Static, &[attached])
        .unwrap();
    assert_eq!(
        to(HOST),
        DpoKind::Adj,
        "its neighbour entry still leads there"
    );
    // A network attached to the interface: each host is resolved when it is needed.
    let net = Prefix::<V4>::around(0x0a02_0000, 16);
    fib.set_route(0, net, Source::Static, &[attached]).unwrap();
    assert_eq!(to(0x0a02_0007), DpoKind::Glean);
    fib.set_neighbor(LEFT, [10, 2, 0, 7].into(), Neighbor::learned([6; 6]))
        .unwrap();
    assert_eq!(to(0x0a02_0007), DpoKind::Adj);
}
