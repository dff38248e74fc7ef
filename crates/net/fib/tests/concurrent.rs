//! A worker forwards while the control thread changes the FIB: each packet is forwarded by the old or the new state.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use volley_fib::dataplane::{ADJ_COMPLETE, DataPlane, DpoKind};
use volley_fib::{Fib, IfInfo, Neighbor, Path, Prefix, Source, V4, V6, Via};
use volley_tables::Domain;

/// The source MAC address and the neighbour's MAC address of one state match; a mixture would be detected.
fn mac(tag: u8) -> [u8; 6] {
    [6, tag, tag, tag, tag, tag]
}

fn hop(n: u8) -> Path {
    Via::NextHop {
        addr: [10, 0, 0, n].into(),
        iface: 0,
    }
    .into()
}

fn via(addr: [u8; 4]) -> Path {
    Via::Recursive {
        addr: addr.into(),
        table: 0,
    }
    .into()
}

fn change(fib: &mut Fib, round: u32) {
    let tag = (round % 200) as u8 + 1;
    fib.set_neighbor(0, [10, 0, 0, 1].into(), Neighbor::new(mac(tag)))
        .unwrap();
    // One, two or three paths: single load balances and groups of changing sizes.
    let paths: Vec<Path> = (0..=round % 3).map(|n| hop(n as u8 + 1)).collect();
    let covering = Prefix::<V4>::around(0x3200_0000, 8);
    fib.set_route(0, covering, Source::Static, &paths).unwrap();
    let other = [via([50, 0, 0, 1]), hop(2)];
    let recursive = Prefix::<V4>::around(0x3c00_0000, 8);
    fib.set_route(
        0,
        recursive,
        Source::Static,
        &other[..1 + round as usize % 2],
    )
    .unwrap();
    // New path lists make the arrays grow, and their removal frees leaves and slots.
    let fresh = Via::NextHop {
        addr: (0x0b00_0000 + round).to_be_bytes().into(),
        iface: 0,
    };
    let host = Prefix::<V4>::host(0x5000_0000 + round);
    fib.set_route(0, host, Source::Static, &[fresh.into()])
        .unwrap();
    if round >= 3000 {
        let old = Prefix::<V4>::host(0x5000_0000 + round - 3000);
        fib.remove_route(0, old, Source::Static).unwrap();
    }
    fib.reclaim();
}

#[test]
fn no_packet_is_dropped_or_torn_while_routes_and_neighbors_change() {
    let domain = Domain::new();
    let mut fib = Fib::new(&domain);
    let info = IfInfo {
        index: 0,
        name: "pg0".into(),
        mac: [2; 6],
        mtu: 1500,
        up: true,
    };
    fib.set_interface(info).unwrap();
    for n in 1..4 {
        fib.set_neighbor(0, [10, 0, 0, n].into(), Neighbor::new(mac(n)))
            .unwrap();
    }
    change(&mut fib, 0);
    let plane = fib.dataplane4();
    let mut reader = domain.register();
    let stop = AtomicBool::new(false);
    let looked = thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let mut looked = 0u64;
            while !stop.load(Ordering::Relaxed) || looked == 0 {
                {
                    let view = plane.read(reader.guard());
                    for (dst, hash) in [(0x3201_0203, 0), (0x3c01_0203, 1), (0x3c01_0203, 6)] {
                        let dpo = view.forward(0, dst, hash + looked as u32);
                        assert_eq!(dpo.kind(), DpoKind::Adj, "{dpo:?}");
                        let adj = view.adj(dpo.index());
                        assert_eq!((adj.flags & ADJ_COMPLETE, adj.bytes().len()), (1, 14));
                        assert_eq!(adj.bytes()[..6], mac(adj.bytes()[5]), "a whole rewrite");
                        assert_eq!(adj.bytes()[6..], [2, 2, 2, 2, 2, 2, 8, 0]);
                    }
                    looked += 1;
                }
                reader.quiescent();
            }
            looked
        });
        for round in 1..6000 {
            change(&mut fib, round);
        }
        stop.store(true, Ordering::Relaxed);
        worker.join().unwrap()
    });
    assert!(looked > 0);
    assert!(fib.stats().adjacencies < 3100, "old adjacencies are gone");
}

#[test]
fn handles_cross_threads() {
    fn send<T: Send>() {}
    fn sync<T: Sync>() {}
    send::<Fib>();
    send::<DataPlane<V4>>();
    sync::<DataPlane<V4>>();
    sync::<DataPlane<V6>>();
}
