//! Autoconfigured state of interfaces: configured state takes precedence, and the state is removed with the interface.

use std::net::{IpAddr, Ipv6Addr};
use volley_fib::{Af, Fib, IfInfo, Path, Prefix, Source, V6, Via};
use volley_model::{IfAddress, ModelError};
use volley_tables::Domain;

const LEFT: u32 = 0;
const RIGHT: u32 = 1;

fn info(index: u32, up: bool) -> IfInfo {
    IfInfo {
        index,
        name: ["left", "right"][index as usize].into(),
        mac: [2, 0, 0, 0, 0, 1],
        mtu: 1500,
        up,
    }
}

fn lab() -> (std::sync::Arc<Domain>, Fib) {
    let domain = Domain::new();
    let mut fib = Fib::new(&domain);
    for index in [LEFT, RIGHT] {
        fib.set_interface(info(index, true)).unwrap();
    }
    (domain, fib)
}

fn address(text: &str) -> IfAddress {
    text.parse().unwrap()
}

fn prefix(text: &str) -> Prefix<V6> {
    let it: volley_model::Prefix = text.parse().unwrap();
    let IpAddr::V6(addr) = it.addr() else {
        panic!("{text}")
    };
    Prefix::around(addr.into(), it.len())
}

/// Sources of a prefix, best first, and the targets of the best one.
fn shown(fib: &Fib, text: &str) -> (Vec<Source>, Vec<Via>) {
    let Some(route) = fib.show::<V6>(0, prefix(text)) else {
        return (Vec::new(), Vec::new());
    };
    let vias = route.paths.iter().map(|p| p.path.via).collect();
    (route.sources, vias)
}

fn router(n: u16) -> Ipv6Addr {
    Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, n)
}

fn hop(n: u16, iface: u32) -> Via {
    let addr = router(n).into();
    Via::NextHop { addr, iface }
}

#[test]
fn an_address_has_no_network_and_gives_way_to_one_that_is_configured() {
    let (_domain, mut fib) = lab();
    let own = address("2001:db8:1::5/64");
    fib.add_automatic(LEFT, own).unwrap();
    fib.add_automatic(LEFT, own).unwrap();
    assert_eq!(fib.automatic_addresses(LEFT), [own]);
    let local = Via::Local { iface: Some(LEFT) };
    assert_eq!(shown(&fib, "2001:db8:1::5/128").1, [local]);
    assert!(shown(&fib, "2001:db8:1::/64").0.is_empty(), "RFC 5942");
    let refused = fib.configured_address("left", own, false).unwrap_err();
    assert!(matches!(refused, ModelError::Unsupported { .. }));
    assert!(refused.to_string().contains("autoconfig left disable"));
    // The same address is configured: with another length, then on another interface.
    for interface in ["left", "right"] {
        fib.add_automatic(LEFT, own).unwrap();
        let by_hand = address("2001:db8:1::5/60");
        fib.configured_address(interface, by_hand, true).unwrap();
        assert!(fib.automatic_addresses(LEFT).is_empty());
        assert_eq!(shown(&fib, "2001:db8:1::/60").0, [Source::Interface]);
        assert!(fib.add_automatic(LEFT, own).is_err(), "{interface}");
        assert!(fib.automatic_addresses(LEFT).is_empty());
        let index = fib.interface_index(interface).unwrap();
        fib.del_address(index, by_hand).unwrap();
    }
}

#[test]
fn networks_and_routers_go_behind_all_that_is_configured() {
    let (_domain, mut fib) = lab();
    let network = "2001:db8:1::/64";
    let left = Via::Attached { iface: LEFT };
    let right = Via::Attached { iface: RIGHT };
    for iface in [RIGHT, LEFT] {
        fib.set_on_link(iface, &[network.parse().unwrap()]).unwrap();
    }
    assert_eq!(
        shown(&fib, network),
        (vec![Source::Autoconf], vec![left]),
        "the name that sorts first"
    );
    fib.set_on_link(LEFT, &[]).unwrap();
    assert_eq!(shown(&fib, network).1, [right]);
    fib.add_address(LEFT, address("2001:db8:1::1/64")).unwrap();
    assert_eq!(
        shown(&fib, network),
        (vec![Source::Interface, Source::Autoconf], vec![left])
    );
    fib.set_default_routers(LEFT, &[(router(1), 1), (router(2), 1)])
        .unwrap();
    fib.set_default_routers(RIGHT, &[(router(1), 2)]).unwrap();
    let all = vec![hop(1, LEFT), hop(2, LEFT), hop(1, RIGHT)];
    let sources = vec![Source::Autoconf, Source::Default];
    assert_eq!(shown(&fib, "::/0"), (sources, all));
    let by_hand: Path = hop(9, RIGHT).into();
    fib.set_route(0, prefix("::/0"), Source::Static, &[by_hand])
        .unwrap();
    assert_eq!(shown(&fib, "::/0").1, [hop(9, RIGHT)]);
    fib.remove_route(0, prefix("::/0"), Source::Static).unwrap();
    fib.set_default_routers(LEFT, &[]).unwrap();
    assert_eq!(shown(&fib, "::/0").1, [hop(1, RIGHT)]);
}

#[test]
fn everything_goes_with_the_interface_its_state_and_its_table() {
    let (_domain, mut fib) = lab();
    fib.add_table(Af::V6, 7).unwrap();
    let give = |fib: &mut Fib| {
        fib.add_automatic(LEFT, address("fe80::5/64")).unwrap();
        fib.add_automatic(LEFT, address("2001:db8:1::5/64"))
            .unwrap();
        fib.set_on_link(LEFT, &["2001:db8:1::/64".parse().unwrap()])
            .unwrap();
        fib.set_default_routers(LEFT, &[(router(1), 1)]).unwrap();
        assert_eq!(shown(fib, "::/0").0.len(), 2);
    };
    let gone = |fib: &Fib| {
        assert!(fib.addresses(LEFT).is_empty() && fib.on_link(LEFT).is_empty());
        for prefix in ["2001:db8:1::/64", "2001:db8:1::5/128", "fe80::5/128"] {
            assert!(shown(fib, prefix).0.is_empty(), "{prefix}");
        }
        assert_eq!(shown(fib, "::/0").0, [Source::Default]);
    };
    give(&mut fib);
    fib.set_interface(info(LEFT, false)).unwrap();
    gone(&fib);
    fib.set_interface(info(LEFT, true)).unwrap();
    give(&mut fib);
    fib.bind_interface(LEFT, Af::V6, 7).unwrap();
    gone(&fib);
    fib.bind_interface(LEFT, Af::V6, 0).unwrap();
    give(&mut fib);
    fib.add_address(RIGHT, address("2001:db8:9::1/64")).unwrap();
    fib.set_unnumbered(LEFT, Some(RIGHT)).unwrap();
    gone(&fib);
    fib.set_unnumbered(LEFT, None).unwrap();
    give(&mut fib);
    // Autoconfigured routes do not count as users of the interface.
    assert_eq!(fib.user_of(LEFT), None);
    fib.remove_interface(LEFT).unwrap();
    assert_eq!(shown(&fib, "::/0").0, [Source::Default]);
}

#[test]
fn a_deprecated_address_stands_last() {
    let (_domain, mut fib) = lab();
    for text in ["2001:db8:1::5/64", "2001:db8:2::5/64"] {
        fib.add_automatic(LEFT, address(text)).unwrap();
    }
    fib.stand_last(LEFT, address("2001:db8:1::5/64"));
    let all: Vec<IfAddress> = fib.used_addresses(LEFT).collect();
    assert_eq!(all[0], address("2001:db8:2::5/64"));
    assert_eq!(all.len(), 2);
}
