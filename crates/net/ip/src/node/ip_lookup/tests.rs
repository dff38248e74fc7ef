use super::*;
use crate::Ip;
use crate::testing::fib::with_interfaces;
use std::sync::Arc;
use volley_fib::dataplane::RouteCount;
use volley_fib::{Af, Fib, Path, Prefix, Side, Source, V4, V6, Via};
use volley_graph::Domain;
use volley_graph::Level;
use volley_graph::harness::{In, LENGTHS, run_once};

/// Where the plane of a FIB is.
type Plane<F> = fn(&Fib) -> DataPlane<F>;

/// A packet of `len` bytes to a destination.
fn packet<F: Ip>(destination: &str, len: usize) -> In {
    let mut bytes = vec![0; len];
    let at = F::HEADER - if F::HEADER == 20 { 4 } else { 16 };
    match destination.parse().unwrap() {
        std::net::IpAddr::V4(to) => bytes[at..at + 4].copy_from_slice(&to.octets()),
        std::net::IpAddr::V6(to) => bytes[at..at + 16].copy_from_slice(&to.octets()),
    }
    In::new(&bytes)
}

/// A prefix of table 0 or 7 with one path.
fn route<F: Side>(
    fib: &mut Fib,
    table: u32,
    (addr, len): (&str, u8),
    via: Via,
) -> (u32, Prefix<F>) {
    let prefix = Prefix::around(F::number(addr.parse().unwrap()).unwrap(), len);
    fib.set_route(table, prefix, Source::Static, &[Path::from(via)])
        .unwrap();
    (fib.table_index(F::AF, table).unwrap(), prefix)
}

/// Has all packets counted: a prefix without a route is marked.
fn count_all<F: Side>(fib: &mut Fib) {
    let any = F::number("192.0.2.0".parse().unwrap());
    let any = any.or(F::number("2001:db8:ffff::".parse().unwrap()));
    let prefix = Prefix::<F>::around(any.unwrap(), 24);
    fib.count_route(0, prefix, Some(false)).unwrap();
}

/// Each packet is counted once on each route that it follows, with its length, however the vectors are cut.
fn each_is_counted<F: Icmp + Side>(plane: Plane<F>, addrs: [&str; 4], len: u8, add: fn(&mut Fib)) {
    let domain = Domain::new();
    let mut fib = with_interfaces(&domain, 2, 1500);
    add(&mut fib);
    let seven = fib.table_index(F::AF, 7).unwrap();
    let [a, b, c, _] = addrs;
    let routes = [
        route::<F>(&mut fib, 0, (a, len), Via::Unreachable),
        route(&mut fib, 0, (b, len), Via::Drop(DropWhy::Blackhole)),
        route(&mut fib, 0, (c, len), Via::LookupIn { table: seven }),
        route(&mut fib, 7, (c, len), Via::Prohibit),
    ];
    // Each with the routes that it follows.
    let all: Vec<(In, &[usize])> = vec![
        (packet::<F>(a, 60), &[0]),
        (packet::<F>(b, 100), &[1]),
        (packet::<F>(a, 61), &[0]),
        (packet::<F>(c, 1000), &[2, 3]),
        (packet::<F>(addrs[3], 70), &[]),
    ];
    let count = |fib: &Fib, at: usize| {
        let (index, prefix) = routes[at];
        fib.show::<F>(index, prefix).unwrap().count
    };
    assert_eq!(count(&fib, 0), None);
    count_all::<F>(&mut fib);
    let count = |fib: &Fib, at: usize| count(fib, at).unwrap().0;
    for (level, size) in Level::available().flat_map(|level| LENGTHS.map(|size| (level, size))) {
        // All alike, or varied.
        for packets in [&all[..1], &all[..]] {
            let before = [0, 1, 2, 3].map(|at| count(&fib, at));
            let many = packets.iter().map(|(packet, _)| packet.clone()).cycle();
            let many: Vec<In> = many.take(2 * size + 3).collect();
            let (plane, in_all) = (plane(&fib), many.len());
            run_once(level, size, &many, &domain, move |worker| {
                Lookup::<F>::new(plane.clone(), worker, 256)
            })
            .unwrap();
            let mut want = before;
            for (packet, follows) in packets.iter().cycle().take(in_all) {
                for &at in *follows {
                    let bytes = packet.bytes.len() as u64;
                    want[at] = want[at] + RouteCount { packets: 1, bytes };
                }
            }
            let got = [0, 1, 2, 3].map(|at| count(&fib, at));
            assert_eq!(got, want, "{level}, vectors of {size}");
        }
    }
}

#[test]
fn each_packet_is_counted_on_the_routes_that_it_follows() {
    let four = ["10.0.0.1", "10.1.0.1", "10.2.0.1", "11.0.0.1"];
    each_is_counted::<V4>(Fib::dataplane4, four, 16, |fib| {
        fib.add_table(Af::V4, 7).unwrap();
    });
    let six = [
        "2001:db8::1",
        "2001:db8:1::1",
        "2001:db8:2::1",
        "2001:db9::1",
    ];
    each_is_counted::<V6>(Fib::dataplane6, six, 48, |fib| {
        fib.add_table(Af::V6, 7).unwrap();
    });
}

#[test]
fn a_worker_that_the_fib_was_not_made_for_forwards_and_counts_nothing() {
    let domain: Arc<Domain> = Domain::new();
    let mut fib = with_interfaces(&domain, 1, 1500);
    let (index, prefix) = route::<V4>(&mut fib, 0, ("10.0.0.0", 8), Via::Unreachable);
    count_all::<V4>(&mut fib);
    let plane = fib.dataplane4();
    let many: Vec<In> = (0..40).map(|_| packet::<V4>("10.0.0.1", 60)).collect();
    let level = Level::available().last().unwrap();
    let out = run_once(level, 32, &many, &domain, move |_| {
        Lookup::<V4>::new(plane.clone(), 1, 256)
    });
    assert_eq!(out.unwrap().len(), 40);
    assert_eq!(
        fib.show(index, prefix).unwrap().count,
        Some((RouteCount::default(), 1))
    );
}
