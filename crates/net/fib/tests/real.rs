//! Real tables of the shared data, if present: the counts of their README, and the next hop of every route.

use std::path::PathBuf;

use volley_fib::dataplane::DpoKind;
use volley_fib::load::{
    ReadOptions, UpdateKind, V4_PREFIXES, V6_PREFIXES, read_routes, read_updates,
};
use volley_fib::{Family, Fib, IfInfo, Neighbor, Path, Prefix, Side, Source, V4, V6, Via};
use volley_tables::Domain;

const HOPS: u32 = 4096;

fn shared(name: &str) -> Option<PathBuf> {
    let here = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../../shared");
    let root = std::env::var("VOLLEY_SHARED").unwrap_or_else(|_| here.into());
    let path = PathBuf::from(root).join("data").join(name);
    if !path.exists() {
        eprintln!("skipped: {} is not there", path.display());
    }
    path.exists().then_some(path)
}

fn hop<F: Family>(n: u32) -> Path {
    let base: u128 = if F::BITS == 32 {
        0x0a00_0000
    } else {
        0xfd << 120
    };
    Via::NextHop {
        addr: F::ip(F::from_wide(base + 1 + u128::from(n))),
        iface: 0,
    }
    .into()
}

fn fib<F: Side>() -> Fib {
    let mut fib = Fib::new(&Domain::new());
    let info = IfInfo {
        index: 0,
        name: "pg0".into(),
        mac: [2; 6],
        mtu: 1500,
        up: true,
    };
    fib.set_interface(info).unwrap();
    for n in 0..HOPS {
        let Via::NextHop { addr, iface } = hop::<F>(n).via else {
            unreachable!()
        };
        let mac = [6, 0, 0, 0, (n >> 8) as u8, n as u8];
        fib.set_neighbor(iface, addr, Neighbor::new(mac)).unwrap();
    }
    fib
}

/// Loads rows and looks up, for each, the first address that no longer prefix covers.
fn load<F: Side>(rows: &[(F::Addr, u8, u32)]) -> Fib {
    let mut fib = fib::<F>();
    let fresh = fib.stats().prefixes;
    let hops: Vec<_> = (0..HOPS).map(|n| vec![hop::<F>(n)]).collect();
    let new = fib.load::<F>(0, Source::File, &hops, rows).unwrap();
    assert!(
        rows.len() - new <= 2,
        "only 0.0.0.0/0 and 0.0.0.0/32 can be there already"
    );
    assert_eq!(fib.stats().prefixes, fresh + new);
    let set: std::collections::HashMap<_, _> = rows
        .iter()
        .map(|r| (Prefix::<F>::around(r.0, r.1), r.2))
        .collect();
    for &(addr, len, _) in rows.iter().skip(96).step_by(97) {
        let last = F::last(addr, len);
        let want = (0..=F::BITS)
            .rev()
            .find_map(|l| set.get(&Prefix::around(last, l)))
            .unwrap();
        let shown = fib.show_match::<F>(0, last).unwrap();
        assert_eq!(shown.buckets[0].dpo.kind(), DpoKind::Adj);
        assert_eq!(shown.paths[0].path, hop::<F>(*want), "{}", F::ip(last));
    }
    fib
}

#[test]
fn the_full_ipv4_table_of_2026_and_a_day_of_updates() {
    let Some(path) = shared("rib4-ris3333-20260511-nhmodel.txt.xz") else {
        return;
    };
    let routes = read_routes(&path, ReadOptions::default()).unwrap();
    assert_eq!((routes.v4.len(), routes.v6.len()), (V4_PREFIXES, 0));
    let mut fib = load::<V4>(&routes.v4);
    let Some(path) = shared("update4-ris3333-20260511.txt.xz") else {
        return;
    };
    let updates = read_updates::<V4>(&path).unwrap();
    assert_eq!(updates.len(), 1_393_421);
    let before = fib.stats().prefixes;
    for (i, u) in updates.iter().enumerate() {
        let prefix = Prefix::<V4>::around(u.addr, u.len);
        match u.kind {
            UpdateKind::Announce => {
                fib.set_route(0, prefix, Source::File, &[hop::<V4>(i as u32 % HOPS)])
                    .unwrap();
            }
            UpdateKind::Withdraw => {
                let _absent = fib.remove_route(0, prefix, Source::File);
            }
        }
    }
    assert_eq!(
        fib.stats().prefixes - before,
        1_043_392 - V4_PREFIXES,
        "as the data's README counts"
    );
}

#[test]
fn the_full_ipv6_table_of_2026() {
    let Some(path) = shared("rib6-ris3333-20260511-nhmodel.txt.xz") else {
        return;
    };
    let routes = read_routes(&path, ReadOptions::default()).unwrap();
    assert_eq!((routes.v4.len(), routes.v6.len()), (0, V6_PREFIXES));
    load::<V6>(&routes.v6);
}

#[test]
fn the_ipv4_table_of_2015_with_a_default_route_and_host_routes() {
    let Some(path) = shared("rib4-pch3856-20151023.txt.xz") else {
        return;
    };
    let routes = read_routes(&path, ReadOptions::default()).unwrap();
    assert_eq!((routes.v4.len(), routes.hops.count()), (577_703, 3_771));
    assert_eq!(routes.v4.iter().filter(|r| r.1 == 32).count(), 3_651);
    load::<V4>(&routes.v4);
}
