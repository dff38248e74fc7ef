//! Measures the FIB: loads a table file, replays an update file, moves all routes of a neighbour.
//!
//! `cargo run --release -p volley-fib --example fib-load -- TABLE [UPDATES]` (IPv4 or IPv6, plain or compressed).

use std::path::Path as FsPath;
use std::time::Instant;

use volley_fib::load::{
    ReadOptions, Routes, UpdateKind, V4_PREFIXES, read_routes, read_updates, synthetic4,
};
use volley_fib::{Family, Fib, IfInfo, Neighbor, Path, Prefix, Side, Source, V4, V6, Via};
use volley_model::IfAddress;
use volley_tables::Domain;

const HOPS: u32 = 3362;

fn hop<F: Family>(n: u32) -> Path {
    let base: u128 = if F::BITS == 32 {
        0x0a00_0100
    } else {
        (0x2001_0db8 << 96) + 256
    };
    Via::NextHop {
        addr: F::ip(F::from_wide(base + u128::from(n))),
        iface: 0,
    }
    .into()
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let start = Instant::now();
    let routes = match args.first() {
        Some(path) => read_routes(FsPath::new(path), ReadOptions::default()).expect("table"),
        None => Routes::made(synthetic4(V4_PREFIXES, 1), Vec::new()),
    };
    let read = start.elapsed().as_secs_f64();
    if routes.v4.is_empty() {
        run::<V6>(routes.v6, read, args.get(1));
    } else {
        run::<V4>(routes.v4, read, args.get(1));
    }
}

fn run<F: Side>(mut rows: Vec<(F::Addr, u8, u32)>, read: f64, updates: Option<&String>) {
    let domain = Domain::new();
    let mut fib = Fib::new(&domain);
    let info = IfInfo {
        index: 0,
        name: "pg0".into(),
        mac: [2; 6],
        mtu: 9000,
        up: true,
    };
    fib.set_interface(info).expect("interface");
    let net = if F::BITS == 32 {
        "10.0.0.1/16"
    } else {
        "2001:db8::1/64"
    };
    fib.add_address(0, net.parse::<IfAddress>().expect("address"))
        .expect("address");
    for n in 0..HOPS {
        let Via::NextHop { addr, iface } = hop::<F>(n).via else {
            continue;
        };
        fib.set_neighbor(
            iface,
            addr,
            Neighbor::new([6, 0, 0, 0, (n >> 8) as u8, n as u8]),
        )
        .expect("neighbor");
    }
    let hops: Vec<Vec<Path>> = (0..HOPS).map(|n| vec![hop::<F>(n)]).collect();
    rows.iter_mut().for_each(|r| r.2 %= HOPS);
    let start = Instant::now();
    fib.load::<F>(0, Source::File, &hops, &rows).expect("load");
    let load = start.elapsed().as_secs_f64();
    let s = fib.stats();
    println!(
        "{} prefixes: read {read:.3} s + load {load:.3} s = {:.3} s",
        rows.len(),
        read + load
    );
    println!(
        "lists {}, adjacencies {}, lpm {:.2} MiB, prefix map {:.2} MiB",
        s.lists,
        s.adjacencies,
        s.lpm_bytes as f64 / 1048576.0,
        s.control_bytes as f64 / 1048576.0
    );
    neighbor::<F>(&mut fib);
    if let Some(path) = updates {
        replay::<F>(&mut fib, path);
    }
}

fn neighbor<F: Side>(fib: &mut Fib) {
    let Via::NextHop { addr, iface } = hop::<F>(0).via else {
        return;
    };
    let before = fib.stats().writes;
    let start = Instant::now();
    fib.set_neighbor(iface, addr, Neighbor::new([8; 6]))
        .expect("neighbor");
    let us = start.elapsed().as_secs_f64() * 1e6;
    println!(
        "new MAC of the most used next hop: {} stores, {us:.1} us",
        fib.stats().writes - before
    );
}

fn replay<F: Side>(fib: &mut Fib, path: &str) {
    let updates = read_updates::<F>(FsPath::new(path)).expect("updates");
    let start = Instant::now();
    for (i, u) in updates.iter().enumerate() {
        let prefix = Prefix::<F>::around(u.addr, u.len);
        match u.kind {
            UpdateKind::Announce => {
                let path = hop::<F>(i as u32 % HOPS);
                fib.set_route(0, prefix, Source::File, &[path])
                    .expect("route");
            }
            UpdateKind::Withdraw => {
                let _absent = fib.remove_route(0, prefix, Source::File);
            }
        }
    }
    let secs = start.elapsed().as_secs_f64();
    let rate = updates.len() as f64 / secs;
    println!(
        "{} updates in {secs:.3} s: {rate:.0} a second, {} prefixes after",
        updates.len(),
        fib.stats().prefixes
    );
}
