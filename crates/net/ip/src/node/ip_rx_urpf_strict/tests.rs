use super::*;
use crate::testing::fib::{address, neighbor, with_interfaces};
use std::collections::BTreeMap;
use std::sync::Arc;
use volley_fib::dataplane::DropWhy;
use volley_fib::{Af, Fib, Path, Prefix, Side, Source, V4, V6, Via};
use volley_graph::harness::{In, LENGTHS, run_once};
use volley_graph::{Domain, Level};

/// Interfaces 0 and 1 with a network each; interface 2 is bound to table 7.
fn fib(domain: &Arc<Domain>) -> Fib {
    let mut fib = with_interfaces(domain, 3, 1400);
    for (interface, own) in [
        (0, "10.0.0.1/24"),
        (1, "10.0.1.1/24"),
        (0, "2001:db8::1/64"),
        (1, "2001:db8:1::1/64"),
    ] {
        address(&mut fib, interface, own);
    }
    for (interface, near) in [(0, "10.0.0.2"), (1, "10.0.1.2"), (0, "2001:db8::2")] {
        neighbor(&mut fib, interface, near, [1, interface as u8]);
    }
    fib
}

fn next_hop(addr: &str, iface: u32) -> Path {
    let addr = addr.parse().unwrap();
    Via::NextHop { addr, iface }.into()
}

fn recursive(addr: &str) -> Path {
    let addr = addr.parse().unwrap();
    Via::Recursive { addr, table: 0 }.into()
}

/// A route of table 0; `prefix` is an address and a length.
fn route<F: Side>(fib: &mut Fib, (addr, len): (&str, u8), paths: &[Path]) {
    let addr = F::number(addr.parse().unwrap()).unwrap();
    let prefix = Prefix::<F>::around(addr, len);
    fib.set_route(0, prefix, Source::Static, paths).unwrap();
}

fn ip4(source: &str, destination: &str) -> Vec<u8> {
    let octets = |text: &str| text.parse::<std::net::Ipv4Addr>().unwrap().octets();
    let mut p = vec![0x45, 0, 0, 28, 0, 0, 0, 0, 9, 17, 0, 0];
    p.extend(octets(source));
    p.extend(octets(destination));
    p.extend([0; 8]);
    p
}

fn ip6(source: &str) -> Vec<u8> {
    let octets = |text: &str| text.parse::<std::net::Ipv6Addr>().unwrap().octets();
    let mut p = vec![0x60, 0, 0, 0, 0, 0, 59, 9];
    p.extend(octets(source));
    p.extend(octets("2001:db8:9::9"));
    p
}

/// The drop reasons of packets, each alone and all in one vector; none for those that pass.
fn reasons<F: Ip, M: Mode>(
    packets: &[(Vec<u8>, u32)],
    domain: &Arc<Domain>,
    fib: &DataPlane<F>,
) -> Vec<Option<&'static str>> {
    // The output of a dropped packet lacks the receiving interface: the second byte of the packet has it.
    let marked = |(p, rx): &(Vec<u8>, u32)| {
        let mut p = p.clone();
        p[1] = *rx as u8;
        In::new(&p).rx(*rx)
    };
    let packets: Vec<In> = packets.iter().map(marked).collect();
    // Both edges of the node lead to the drop node here, so the order has no meaning.
    let known = |name: &str| Count::INFO.iter().find(|it| it.name == name).unwrap().name;
    let judge = |packets: &[In]| {
        let mut all = Vec::new();
        for (level, size) in Level::available().flat_map(|level| LENGTHS.map(|size| (level, size)))
        {
            let fib = fib.clone();
            let make = move |_| Urpf::<F, M>::new(fib.clone(), 256);
            let out = run_once(level, size, packets, domain, make).unwrap();
            let mut by: BTreeMap<Vec<u8>, Vec<_>> = BTreeMap::new();
            for it in out {
                let reason = it.reason.as_deref().map(known);
                by.entry(it.bytes).or_default().push(reason);
            }
            all.push(by);
        }
        assert!(all.iter().all(|by| *by == all[0]));
        all.remove(0)
    };
    let together = judge(&packets);
    let mut all = Vec::new();
    for packet in &packets {
        let alone = judge(std::slice::from_ref(packet));
        let (alone, together) = (&alone[&packet.bytes], &together[&packet.bytes]);
        assert_eq!(alone, together, "{packet:02x?}");
        all.push(alone[0]);
    }
    all
}

const NO_ROUTE: Option<&str> = Some("urpf-no-route");
const OTHER: Option<&str> = Some("urpf-other-interface");

#[test]
fn a_source_has_to_be_where_its_routes_lead() {
    let domain = Domain::new();
    let mut fib = fib(&domain);
    route::<V4>(&mut fib, ("192.0.2.0", 24), &[next_hop("10.0.0.2", 0)]);
    let two = [next_hop("10.0.0.2", 0), next_hop("10.0.1.2", 1)];
    route::<V4>(&mut fib, ("192.0.3.0", 24), &two);
    route::<V4>(&mut fib, ("192.0.4.0", 24), &[recursive("192.0.3.9")]);
    route::<V4>(
        &mut fib,
        ("192.0.5.0", 24),
        &[Via::Drop(DropWhy::Blackhole).into()],
    );
    route::<V4>(&mut fib, ("192.0.6.0", 24), &[Via::Unreachable.into()]);
    route::<V4>(&mut fib, ("192.0.7.0", 24), &[next_hop("10.0.0.77", 0)]);
    let cases = [
        ("10.0.0.2", 0, None, None),
        ("10.0.0.2", 1, OTHER, None),
        // A neighbour that is not resolved.
        ("10.0.0.99", 0, None, None),
        ("10.0.0.99", 1, OTHER, None),
        ("192.0.2.5", 0, None, None),
        ("192.0.2.5", 1, OTHER, None),
        ("192.0.7.5", 0, None, None),
        ("192.0.7.5", 1, OTHER, None),
        // One of several paths, and nested groups of paths.
        ("192.0.3.5", 0, None, None),
        ("192.0.3.5", 1, None, None),
        ("192.0.4.5", 0, None, None),
        ("192.0.4.5", 1, None, None),
        // Routes that drop, own addresses, unassigned addresses, and addresses of several hosts.
        ("192.0.5.5", 0, NO_ROUTE, NO_ROUTE),
        ("192.0.6.5", 0, NO_ROUTE, NO_ROUTE),
        ("10.0.0.1", 0, NO_ROUTE, NO_ROUTE),
        ("10.0.0.255", 0, NO_ROUTE, NO_ROUTE),
        ("172.16.0.1", 0, NO_ROUTE, NO_ROUTE),
        ("0.0.0.0", 0, NO_ROUTE, NO_ROUTE),
        // Another table, which is empty.
        ("10.0.0.2", 2, OTHER, None),
    ];
    let packets = cases.map(|(source, rx, ..)| (ip4(source, "198.51.100.1"), rx));
    let plane = fib.dataplane4();
    let strict = reasons::<V4, Strict>(&packets, &domain, &plane);
    let loose = reasons::<V4, Loose>(&packets, &domain, &plane);
    for ((case, strict), loose) in cases.into_iter().zip(strict).zip(loose) {
        assert_eq!((strict, loose), (case.2, case.3), "{case:?}");
    }
}

#[test]
fn the_receiving_interfaces_table_is_asked() {
    let domain = Domain::new();
    let mut fib = fib(&domain);
    fib.add_table(Af::V4, 7).unwrap();
    fib.bind_interface(2, Af::V4, 7).unwrap();
    let packets = [(ip4("10.0.0.2", "198.51.100.1"), 2)];
    let plane = fib.dataplane4();
    assert_eq!(reasons::<V4, Loose>(&packets, &domain, &plane), [NO_ROUTE]);
    let there = Prefix::<V4>::around(0x0a00_0000, 24);
    let lookup = Via::LookupIn { table: 0 }.into();
    fib.set_route(7, there, Source::Static, &[lookup]).unwrap();
    assert_eq!(reasons::<V4, Loose>(&packets, &domain, &plane), [None]);
    assert_eq!(reasons::<V4, Strict>(&packets, &domain, &plane), [OTHER]);
}

#[test]
fn who_asks_for_an_address_has_none() {
    let domain = Domain::new();
    let fib = fib(&domain);
    let dhcp = [(ip4("0.0.0.0", "255.255.255.255"), 0)];
    assert_eq!(
        reasons::<V4, Strict>(&dhcp, &domain, &fib.dataplane4()),
        [None]
    );
    assert_eq!(
        reasons::<V4, Loose>(&dhcp, &domain, &fib.dataplane4()),
        [None]
    );
    let link = [(ip6("fe80::1"), 1), (ip6("::"), 1)];
    let plane = fib.dataplane6();
    assert_eq!(reasons::<V6, Strict>(&link, &domain, &plane), [None; 2]);
    assert_eq!(reasons::<V6, Loose>(&link, &domain, &plane), [None; 2]);
}

#[test]
fn ip6_sources_are_looked_up_whole() {
    let domain = Domain::new();
    let mut fib = fib(&domain);
    let via = [next_hop("2001:db8::2", 0)];
    route::<V6>(&mut fib, ("2001:db8:5::7", 128), &via);
    let sources = [
        ("2001:db8::2", 0, None, None),
        ("2001:db8::2", 1, OTHER, None),
        ("2001:db8:1::77", 1, None, None),
        ("2001:db8:5::7", 0, None, None),
        ("2001:db8:5::7", 1, OTHER, None),
        ("2001:db8:5::8", 0, NO_ROUTE, NO_ROUTE),
        ("2001:db8::1", 0, NO_ROUTE, NO_ROUTE),
    ];
    let packets = sources.map(|(source, rx, ..)| (ip6(source), rx));
    let plane = fib.dataplane6();
    let strict = reasons::<V6, Strict>(&packets, &domain, &plane);
    let loose = reasons::<V6, Loose>(&packets, &domain, &plane);
    for ((case, strict), loose) in sources.into_iter().zip(strict).zip(loose) {
        assert_eq!((strict, loose), (case.2, case.3), "{case:?}");
    }
}
