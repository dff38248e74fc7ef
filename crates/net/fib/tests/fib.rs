//! Properties of the FIB one by one: contents of a new table, sources, recursion, buckets, convergence, tables.

use std::net::IpAddr;

use volley_fib::dataplane::{Dpo, DpoKind, DropWhy, Fib4Snap};
use volley_fib::{Af, Family, Fib, FibError, IfInfo, Neighbor, Path, Prefix, Source, V4, V6, Via};
use volley_model::IfAddress;
use volley_tables::{Domain, Reader};

struct Bench {
    fib: Fib,
    plane: Fib4Snap,
    reader: Reader,
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn p4(text: &str) -> Prefix<V4> {
    let (a, len) = text.split_once('/').unwrap();
    Prefix::exact(V4::number(ip(a)).unwrap(), len.parse().unwrap()).unwrap()
}

fn hop(addr: &str, iface: u32) -> Path {
    Via::NextHop {
        addr: ip(addr),
        iface,
    }
    .into()
}

fn recursive(addr: &str) -> Path {
    Via::Recursive {
        addr: ip(addr),
        table: 0,
    }
    .into()
}

fn weighted(path: Path, weight: u8) -> Path {
    Path { weight, ..path }
}

impl Bench {
    /// pg0 10.0.0.1/24 and pg1 10.1.0.1/24, up, with neighbour .9 on each.
    fn new() -> Self {
        let domain = Domain::new();
        let mut fib = Fib::new(&domain);
        for i in 0..2u32 {
            let mac = [2, 0, 0, 0, 0, i as u8];
            let info = IfInfo {
                index: i,
                name: format!("pg{i}"),
                mac,
                mtu: 9000,
                up: true,
            };
            fib.set_interface(info).unwrap();
            let addr: IfAddress = format!("10.{i}.0.1/24").parse().unwrap();
            fib.add_address(i, addr).unwrap();
            fib.set_neighbor(
                i,
                ip(&format!("10.{i}.0.9")),
                Neighbor::new([6, 0, 0, 0, i as u8, 9]),
            )
            .unwrap();
        }
        let plane = fib.dataplane4();
        Self {
            fib,
            plane,
            reader: domain.register(),
        }
    }

    fn set(&mut self, prefix: &str, paths: &[Path]) {
        self.fib
            .set_route(0, p4(prefix), Source::Static, paths)
            .unwrap();
    }

    fn dpo(&self, table: u32, dst: &str, hash: u32) -> Dpo {
        let view = self.plane.read(self.reader.guard());
        view.forward(table, V4::number(ip(dst)).unwrap(), hash)
    }

    /// MAC address that packets to a destination are sent to.
    fn mac(&self, dst: &str, hash: u32) -> [u8; 6] {
        let dpo = self.dpo(0, dst, hash);
        assert_eq!(dpo.kind(), DpoKind::Adj, "{dst}: {dpo:?}");
        let adj = self.plane.read(self.reader.guard()).adj(dpo.index());
        adj.bytes()[..6].try_into().unwrap()
    }

    fn prefixes(&self) -> Vec<String> {
        self.fib
            .prefixes::<V4>(0)
            .iter()
            .map(ToString::to_string)
            .collect()
    }
}

#[test]
fn a_fresh_table_has_exactly_the_special_routes() {
    let fib = Fib::new(&Domain::new());
    let v4: Vec<_> = fib
        .prefixes::<V4>(0)
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        v4,
        [
            "0.0.0.0/0",
            "0.0.0.0/32",
            "224.0.0.0/4",
            "240.0.0.0/4",
            "255.255.255.255/32"
        ]
    );
    let v6: Vec<_> = fib
        .prefixes::<V6>(0)
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(v6, ["::/0", "fe80::/10"]);
}

#[test]
fn an_address_brings_its_network_and_goes_with_the_interface() {
    let mut b = Bench::new();
    let with = [
        "0.0.0.0/0",
        "0.0.0.0/32",
        "10.0.0.0/24",
        "10.0.0.0/32",
        "10.0.0.1/32",
        "10.0.0.9/32",
        "10.0.0.255/32",
        "10.1.0.0/24",
        "10.1.0.0/32",
        "10.1.0.1/32",
        "10.1.0.9/32",
        "10.1.0.255/32",
        "224.0.0.0/4",
        "240.0.0.0/4",
        "255.255.255.255/32",
    ];
    assert_eq!(b.prefixes(), with);
    assert_eq!(b.dpo(0, "10.0.0.1", 0), Dpo::new(DpoKind::Local, 0));
    assert_eq!(b.dpo(0, "10.0.0.77", 0), Dpo::new(DpoKind::Glean, 0));
    assert_eq!(
        b.dpo(0, "10.0.0.255", 0),
        Dpo::drop(DropWhy::SubnetBroadcast)
    );
    let info = b.fib.interface(0).unwrap().clone();
    b.fib
        .set_interface(IfInfo {
            up: false,
            ..info.clone()
        })
        .unwrap();
    assert_eq!(b.prefixes().len(), with.len() - 5);
    b.fib.set_interface(info).unwrap();
    assert_eq!(b.prefixes(), with);
    b.fib
        .add_address(0, "10.2.0.0/31".parse().unwrap())
        .unwrap();
    assert_eq!(
        b.prefixes().len(),
        with.len() + 2,
        "a /31 has no network or broadcast address"
    );
}

#[test]
fn the_best_source_forwards_and_the_next_one_takes_over() {
    let mut b = Bench::new();
    let sources = [
        (Source::Dynamic, "10.1.0.9", 1),
        (Source::Static, "10.0.0.9", 0),
        (Source::File, "10.1.0.9", 1),
    ];
    for (source, addr, iface) in sources {
        b.fib
            .set_route(0, p4("50.0.0.0/8"), source, &[hop(addr, iface)])
            .unwrap();
    }
    assert_eq!(b.mac("50.1.1.1", 0)[4], 0);
    let shown = b.fib.show(0, p4("50.0.0.0/8")).unwrap();
    assert_eq!(
        shown.sources,
        [Source::Static, Source::File, Source::Dynamic]
    );
    b.fib
        .remove_route(0, p4("50.0.0.0/8"), Source::Static)
        .unwrap();
    assert_eq!(b.mac("50.1.1.1", 0)[4], 1);
    b.fib
        .set_route(0, p4("10.0.0.9/32"), Source::Static, &[hop("10.1.0.9", 1)])
        .unwrap();
    assert_eq!(
        b.mac("10.0.0.9", 0)[4],
        1,
        "a configured route beats the neighbour's own"
    );
    b.fib
        .remove_route(0, p4("10.0.0.9/32"), Source::Static)
        .unwrap();
    assert_eq!(b.mac("10.0.0.9", 0)[4], 0);
}

#[test]
fn recursion_goes_down_to_the_adjacency_and_follows_the_covering_route() {
    let mut b = Bench::new();
    b.set("60.0.0.0/8", &[recursive("50.0.0.1")]);
    assert_eq!(b.dpo(0, "60.1.1.1", 0), Dpo::drop(DropWhy::Unresolved));
    b.set("50.0.0.0/8", &[recursive("10.0.0.9")]);
    assert_eq!(b.mac("60.1.1.1", 0)[4], 0);
    b.set("50.0.0.0/24", &[hop("10.1.0.9", 1)]);
    assert_eq!(
        b.mac("60.1.1.1", 0)[4],
        1,
        "a longer cover takes the next hop over"
    );
    let text = &b.fib.show(0, p4("60.0.0.0/8")).unwrap().buckets[0].text;
    assert_eq!(
        text,
        "50.0.0.1 by 50.0.0.0/24 -> via 10.1.0.9 pg1 06:00:00:00:01:09"
    );
    b.fib
        .remove_route(0, p4("50.0.0.0/24"), Source::Static)
        .unwrap();
    let text = &b.fib.show(0, p4("60.0.0.0/8")).unwrap().buckets[0].text;
    assert_eq!(
        text,
        "50.0.0.1 by 50.0.0.0/8 -> 10.0.0.9 by 10.0.0.9/32 -> via 10.0.0.9 pg0 06:00:00:00:00:09"
    );
    b.set("50.0.0.0/8", &[recursive("60.0.0.1")]);
    assert_eq!(b.dpo(0, "60.1.1.1", 0), Dpo::drop(DropWhy::RecursionLoop));
    b.set("50.0.0.0/8", &[recursive("60.0.0.1"), hop("10.0.0.9", 0)]);
    assert_eq!(
        b.mac("50.1.1.1", 0)[4],
        0,
        "the looped path carries nothing, the other one does"
    );
    assert_eq!(b.dpo(0, "60.1.1.1", 0), Dpo::drop(DropWhy::RecursionLoop));
}

#[test]
fn a_next_hop_on_a_connected_network_asks_for_itself_not_for_the_destination() {
    let mut b = Bench::new();
    b.set("60.0.0.0/8", &[recursive("10.0.0.50")]);
    let dpo = b.dpo(0, "60.1.1.1", 0);
    assert_eq!(dpo.kind(), DpoKind::Incomplete);
    let adj = b.plane.read(b.reader.guard()).adj(dpo.index());
    let octets: [u8; 16] = adj.bytes().try_into().unwrap();
    assert_eq!(
        std::net::Ipv6Addr::from(octets).to_canonical(),
        ip("10.0.0.50")
    );
    b.fib
        .set_neighbor(0, ip("10.0.0.50"), Neighbor::new([8; 6]))
        .unwrap();
    assert_eq!(b.mac("60.1.1.1", 0), [8; 6]);
    assert_eq!(b.mac("10.0.0.50", 0), [8; 6]);
}

#[test]
fn weights_and_order_decide_the_buckets() {
    let mut b = Bench::new();
    b.set("70.0.0.0/8", &[hop("10.1.0.9", 1), hop("10.0.0.9", 0)]);
    let member = |b: &Bench, n: u32| (0..n).map(|h| b.mac("70.0.0.1", h)[4]).collect::<Vec<_>>();
    assert_eq!(
        member(&b, 2),
        [0, 1],
        "sorted by next hop, not by the order given"
    );
    b.set(
        "70.0.0.0/8",
        &[hop("10.1.0.9", 1), weighted(hop("10.0.0.9", 0), 3)],
    );
    assert_eq!(member(&b, 4), [1, 0, 0, 0], "ascending weight");
    b.set(
        "70.0.0.0/8",
        &[
            hop("10.1.0.9", 1),
            Path {
                preference: 1,
                ..hop("10.0.0.9", 0)
            },
        ],
    );
    assert_eq!(member(&b, 4), [1; 4], "a worse preference waits");
    let info = b.fib.interface(1).unwrap().clone();
    b.fib.set_interface(IfInfo { up: false, ..info }).unwrap();
    assert_eq!(member(&b, 4), [0; 4], "until the better one is down");
}

#[test]
fn a_recursive_route_over_two_next_hops_is_balanced_twice_with_the_hash_shifted() {
    let mut b = Bench::new();
    b.set("50.0.0.0/8", &[hop("10.0.0.9", 0), hop("10.1.0.9", 1)]);
    b.set("60.0.0.0/8", &[recursive("50.0.0.1"), hop("10.1.0.9", 1)]);
    // Sorted: the attached next hop first (even hashes), then the recursive one, split by the second bit.
    let macs: Vec<u8> = (0..4).map(|h| b.mac("60.0.0.1", h)[4]).collect();
    assert_eq!(macs, [1, 0, 1, 1]);
}

#[test]
fn one_neighbor_moves_a_hundred_thousand_prefixes_with_one_store() {
    let mut b = Bench::new();
    b.set("50.0.0.0/8", &[hop("10.0.0.9", 0)]);
    let rows: Vec<_> = (0..100_000u32)
        .map(|i| (0x6400_0000 + (i << 8), 24, i % 2))
        .collect();
    let hops = [vec![recursive("50.0.0.1")], vec![hop("10.0.0.9", 0)]];
    assert_eq!(b.fib.load::<V4>(0, Source::File, &hops, &rows), Ok(100_000));
    assert_eq!(b.mac("100.0.1.1", 0), [6, 0, 0, 0, 0, 9]);
    let before = b.fib.stats();
    b.fib
        .set_neighbor(0, ip("10.0.0.9"), Neighbor::new([8; 6]))
        .unwrap();
    // The load balances of the neighbour's own /32, of 50/8, and of the two path lists of the hundred thousand routes.
    assert_eq!(b.fib.stats().writes - before.writes, 4);
    for dst in [
        "100.0.0.1",
        "100.0.1.1",
        "101.134.159.1",
        "50.1.1.1",
        "10.0.0.9",
    ] {
        assert_eq!(b.mac(dst, 0), [8; 6]);
    }
    b.fib.remove_neighbor(0, ip("10.0.0.9")).unwrap();
    assert_eq!(b.dpo(0, "100.0.1.1", 0).kind(), DpoKind::Incomplete);
    assert_eq!(b.dpo(0, "10.0.0.9", 0), Dpo::new(DpoKind::Glean, 0));
}

#[test]
fn a_bulk_load_replaces_its_own_source_and_leaves_better_ones() {
    let mut b = Bench::new();
    b.set("80.0.0.0/8", &[hop("10.0.0.9", 0)]);
    b.fib
        .set_route(0, p4("81.0.0.0/8"), Source::File, &[hop("10.0.0.9", 0)])
        .unwrap();
    let rows = [
        (80 << 24, 8, 0),
        (81 << 24, 8, 0),
        (82 << 24, 8, 1),
        (82 << 24, 8, 0),
    ];
    let hops = [vec![hop("10.1.0.9", 1)], vec![Via::Prohibit.into()]];
    assert_eq!(b.fib.load::<V4>(0, Source::File, &hops, &rows), Ok(1));
    let macs = ["80.0.0.1", "81.0.0.1", "82.0.0.1"].map(|d| b.mac(d, 0)[4]);
    assert_eq!(
        macs,
        [0, 1, 1],
        "static wins, the file's old route is replaced, the later row counts"
    );
    let bad = [vec![hop("10.1.0.9", 7)]];
    let e = b
        .fib
        .load::<V4>(0, Source::File, &bad, &[(83 << 24, 8, 0)])
        .unwrap_err();
    assert_eq!(e, FibError::NoInterface { iface: 7 });
    assert_eq!(b.dpo(0, "83.0.0.1", 0), Dpo::NO_ROUTE);
}

#[test]
fn a_small_load_into_a_large_table_gives_what_one_load_of_all_gives() {
    let hops = [vec![hop("10.0.0.9", 0)], vec![hop("10.1.0.9", 1)]];
    let large = (0..8192u32).map(|n| (100 << 24 | n << 11, 21 + (n % 4) as u8, n % 2));
    let large: Vec<(u32, u8, u32)> = large.collect();
    // Shorter, longer and equal prefixes, some of them already in the table.
    let lens = [12, 20, 22, 24, 26, 32];
    let small = (0..120u32).map(|n| ((100 << 24) | (n * 70_001), lens[n as usize % 6], 1 - n % 2));
    let small: Vec<(u32, u8, u32)> = small.chain(large[..30].iter().copied()).collect();
    let both = [large.clone(), small.clone()].concat();
    let (mut parts, mut whole) = (Bench::new(), Bench::new());
    let load = |b: &mut Bench, rows: &[_]| b.fib.load::<V4>(0, Source::File, &hops, rows).unwrap();
    let new = [load(&mut parts, &large), load(&mut parts, &small)];
    assert_eq!(new.iter().sum::<usize>(), load(&mut whole, &both));
    assert!(new[1] > 60 && new[1] < 8192 / 32, "{new:?}");
    for n in 0..100_000u32 {
        let dst = std::net::Ipv4Addr::from_bits((100 << 24) | (n * 167)).to_string();
        assert_eq!(parts.dpo(0, &dst, 0).kind(), whole.dpo(0, &dst, 0).kind());
        if parts.dpo(0, &dst, 0).kind() == DpoKind::Adj {
            assert_eq!(parts.mac(&dst, 0), whole.mac(&dst, 0), "{dst}");
        }
    }
}

#[test]
fn tables_are_separate_and_go_only_when_nothing_needs_them() {
    let mut b = Bench::new();
    b.fib.add_table(Af::V4, 7).unwrap();
    assert_eq!(
        b.fib.add_table(Af::V4, 7),
        Err(FibError::TableExists {
            af: Af::V4,
            table: 7
        })
    );
    let index = b.fib.table_index(Af::V4, 7).unwrap();
    b.set("90.0.0.0/8", &[Via::LookupIn { table: index }.into()]);
    b.fib
        .set_route(7, p4("90.0.0.0/8"), Source::Static, &[hop("10.1.0.9", 1)])
        .unwrap();
    assert_eq!(b.dpo(0, "90.0.0.1", 0), Dpo::new(DpoKind::LookupIn, index));
    assert_eq!(b.dpo(index, "90.0.0.1", 0).kind(), DpoKind::Adj);
    assert_eq!(b.dpo(index, "10.0.0.1", 0), Dpo::NO_ROUTE);
    let user = |b: &mut Bench| match b.fib.del_table(Af::V4, 7) {
        Err(FibError::TableInUse { by, .. }) => by,
        other => panic!("{other:?}"),
    };
    assert!(
        b.fib.bind_interface(1, Af::V4, 7).is_err(),
        "it has an address"
    );
    b.fib
        .del_address(1, "10.1.0.1/24".parse().unwrap())
        .unwrap();
    b.fib.bind_interface(1, Af::V4, 7).unwrap();
    assert_eq!(b.plane.read(b.reader.guard()).table_of(1), index);
    assert_eq!(user(&mut b), "interface pg1");
    b.fib.bind_interface(1, Af::V4, 0).unwrap();
    assert_eq!(user(&mut b), "route 90.0.0.0/8");
    b.fib
        .remove_route(7, p4("90.0.0.0/8"), Source::Static)
        .unwrap();
    assert_eq!(user(&mut b), "routes of other tables that look in it");
    b.fib
        .remove_route(0, p4("90.0.0.0/8"), Source::Static)
        .unwrap();
    b.fib.del_table(Af::V4, 7).unwrap();
    assert_eq!(b.dpo(index, "90.0.0.1", 0), Dpo::NO_ROUTE);
    assert_eq!(
        b.fib.del_table(Af::V4, 7),
        Err(FibError::NoTable {
            af: Af::V4,
            table: 7
        })
    );
    assert!(b.fib.del_table(Af::V4, 0).is_err());
}

#[test]
fn neighbors_follow_their_interface_into_another_table() {
    let mut b = Bench::new();
    b.fib
        .del_address(1, "10.1.0.1/24".parse().unwrap())
        .unwrap();
    b.fib.add_table(Af::V4, 7).unwrap();
    b.fib.bind_interface(1, Af::V4, 7).unwrap();
    b.fib
        .add_address(1, "10.1.0.1/24".parse().unwrap())
        .unwrap();
    let index = b.fib.table_index(Af::V4, 7).unwrap();
    assert_eq!(b.dpo(index, "10.1.0.9", 0).kind(), DpoKind::Adj);
    assert_eq!(b.dpo(0, "10.1.0.9", 0), Dpo::NO_ROUTE);
}

#[test]
fn what_cannot_be_is_refused_and_changes_nothing() {
    let mut b = Bench::new();
    let before = b.prefixes();
    let set = |b: &mut Bench, path: Path| {
        b.fib
            .set_route(0, p4("90.0.0.0/8"), Source::Static, &[path])
    };
    assert_eq!(
        set(&mut b, hop("10.0.0.9", 5)),
        Err(FibError::NoInterface { iface: 5 })
    );
    for path in [
        hop("224.0.0.1", 0),
        recursive("::1"),
        weighted(hop("10.0.0.9", 0), 0),
        Via::LookupIn { table: 0 }.into(),
        Via::LookupIn { table: 9 }.into(),
        Via::Recursive {
            addr: ip("10.0.0.9"),
            table: 9,
        }
        .into(),
    ] {
        assert!(
            matches!(set(&mut b, path), Err(FibError::Path { .. })),
            "{path:?}"
        );
    }
    assert!(
        b.fib
            .set_route(0, p4("90.0.0.0/8"), Source::Static, &[])
            .is_err()
    );
    assert!(
        b.fib
            .set_route(3, p4("90.0.0.0/8"), Source::Static, &[hop("10.0.0.9", 0)])
            .is_err()
    );
    for addr in [
        "0.0.0.0/24",
        "224.0.0.1/24",
        "255.255.255.255/32",
        "10.1.0.1/16",
    ] {
        assert!(
            b.fib.add_address(0, addr.parse().unwrap()).is_err(),
            "{addr}"
        );
    }
    b.set("90.0.0.0/8", &[hop("10.0.0.9", 0)]);
    assert!(matches!(
        b.fib.remove_interface(0),
        Err(FibError::InterfaceInUse { .. })
    ));
    b.fib
        .remove_route(0, p4("90.0.0.0/8"), Source::Static)
        .unwrap();
    assert_eq!(b.prefixes(), before);
}

#[test]
fn ipv4_over_an_ipv6_next_hop_has_an_ipv4_header_type() {
    let mut b = Bench::new();
    b.set("90.0.0.0/8", &[hop("fe80::9", 0)]);
    b.fib
        .set_neighbor(0, ip("fe80::9"), Neighbor::new([8; 6]))
        .unwrap();
    let dpo = b.dpo(0, "90.0.0.1", 0);
    let adj = b.plane.read(b.reader.guard()).adj(dpo.index());
    assert_eq!(adj.bytes(), [8, 8, 8, 8, 8, 8, 2, 0, 0, 0, 0, 0, 8, 0]);
}

#[test]
fn of_two_interfaces_on_one_network_the_first_by_name_has_it_whoever_came_first() {
    let mut bench = Bench::new();
    let shared = |host: u8| format!("10.7.0.{host}/24").parse::<IfAddress>().unwrap();
    let glean = |bench: &Bench| {
        let dpo = bench.dpo(0, "10.7.0.77", 0);
        assert_eq!(dpo.kind(), DpoKind::Glean);
        let text = bench.fib.show::<V4>(0, p4("10.7.0.0/24"));
        format!("{text:?}")
    };
    bench.fib.add_address(1, shared(2)).unwrap();
    assert!(glean(&bench).contains("pg1"));
    bench.fib.add_address(0, shared(1)).unwrap();
    assert!(glean(&bench).contains("pg0"));
    // A new name changes the position in the order.
    let mut info = bench.fib.interface(0).unwrap().clone();
    info.name = "wan".into();
    bench.fib.set_interface(info).unwrap();
    assert!(glean(&bench).contains("pg1"));
    bench.fib.del_address(1, shared(2)).unwrap();
    assert!(glean(&bench).contains("wan"));
    bench.fib.del_address(0, shared(1)).unwrap();
    assert_ne!(bench.dpo(0, "10.7.0.77", 0).kind(), DpoKind::Glean);
}
