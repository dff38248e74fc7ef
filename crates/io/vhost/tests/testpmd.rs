//! DPDK's `net_virtio_user` against the back end, and its `net_vhost` against the front end.

mod support;

use std::path::Path;
use support::process::resources;
use support::testpmd::{self, TestPmd, stat};
use support::{Bench, back_end, frame, front_end, has, spec};
use volley_object::Instance;
use volley_vhost::model::{SocketRole, VirtioUser};

/// Send frames, which testpmd returns. Each arrives once, with the same bytes.
fn echo(bench: &mut Bench, name: &str, frames: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let mut missing: Vec<_> = frames.clone();
    missing.sort();
    bench.send(name, frames);
    let mut got: Vec<Vec<u8>> = Vec::new();
    bench.until(10, |b| {
        got.extend(b.got().into_iter().map(|(_, bytes)| bytes));
        got.len() >= missing.len()
    });
    let arrived = got.clone();
    got.sort();
    assert!(
        got == missing,
        "{} of {} came back: {:?}",
        got.len(),
        missing.len(),
        (bench.show(name), bench.drops())
    );
    arrived
}

/// Testpmd needs time after the rings are up: send until a frame returns, and let all of them arrive.
fn wait_for_echo(bench: &mut Bench, name: &str) {
    let begun = (0..200).any(|_| {
        bench.send(name, [frame(60, 0)]);
        bench.until(1, |b| b.step_worker() == 0);
        std::thread::sleep(std::time::Duration::from_millis(50));
        bench.until(1, |b| b.step_worker() == 0);
        !bench.got().is_empty()
    });
    assert!(begun, "no echo: {:?}", (bench.show(name), bench.drops()));
    std::thread::sleep(std::time::Duration::from_millis(100));
    bench.until(1, |b| b.step_worker() == 0);
    bench.got();
}

const LONG: [&str; 3] = [
    "--mbuf-size=9728",
    "--max-pkt-len=9018",
    "--port-topology=loop",
];

fn sizes() -> Vec<usize> {
    let many = (60..200).chain((200..9000).step_by(61));
    many.chain([1514, 2035, 2036, 2037, 2048, 2049, 9000])
        .collect()
}

/// Every size, both directions; testpmd's counters agree.
fn converse(bench: &mut Bench, name: &str, peer: TestPmd) {
    for (round, some) in sizes().chunks(20).enumerate() {
        let frames: Vec<_> = some
            .iter()
            .enumerate()
            .map(|(i, len)| frame(*len, (round * 50 + i) as u32))
            .collect();
        echo(bench, name, frames);
    }
    for round in 0..10 {
        echo(
            bench,
            name,
            (0..100).map(|i| frame(64, round * 100 + i)).collect(),
        );
    }
    let output = peer.quit(|| _ = bench.until(1, |_| true));
    let counts = bench.counts(name);
    assert_eq!(counts.rx_packets, counts.tx_packets);
    let theirs = ["RX-packets:", "TX-packets:"].map(|key| stat(&output, 0, key));
    assert_eq!(theirs, [Some(counts.tx_packets); 2], "{output}");
}

fn virtio_user(path: &Path, options: &str) -> Vec<String> {
    vec![format!(
        "net_virtio_user0,path={},{options}",
        path.display()
    )]
}

fn peers_of_the_back_end(server: SocketRole, options: &[&str], ours: VirtioUser) {
    for options in options {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("v.sock");
        let mut bench = Bench::new();
        let ours = VirtioUser {
            socket: path.clone(),
            role: server,
            ..ours.clone()
        };
        bench.create("dev", back_end(ours)).unwrap();
        let peer = TestPmd::start(&virtio_user(&path, options), &LONG);
        let up = bench.until(20, |b| b.is_up("dev"));
        assert!(up, "{options}: {:?}\n{}", bench.show("dev"), peer.output());
        wait_for_echo(&mut bench, "dev");
        converse(&mut bench, "dev", peer);
        assert!(bench.until(5, |b| !b.is_up("dev")));
        assert_eq!(bench.show("dev").faults, 0, "{:?}", bench.show("dev"));
        assert_eq!(bench.pool.report().in_use(), 0);
    }
}

#[test]
fn virtio_user_split_rings() {
    let _alone = support::alone();
    if !has(testpmd::PROGRAM) {
        return;
    }
    let options = [
        "queue_size=256,mrg_rxbuf=1",
        "queue_size=512,mrg_rxbuf=0,in_order=0",
        "queue_size=256,mrg_rxbuf=1,vectorized=0,in_order=0",
    ];
    peers_of_the_back_end(
        SocketRole::Server,
        &options,
        spec(Path::new(""), SocketRole::Server),
    );
}

#[test]
fn virtio_user_packed_rings_and_server_mode() {
    let _alone = support::alone();
    if !has(testpmd::PROGRAM) {
        return;
    }
    let ours = VirtioUser {
        packed: true,
        event_idx: true,
        ..spec(Path::new(""), SocketRole::Server)
    };
    let options = [
        "queue_size=256,packed_vq=1,mrg_rxbuf=1",
        "queue_size=200,packed_vq=1,mrg_rxbuf=0,in_order=0",
    ];
    peers_of_the_back_end(SocketRole::Server, &options, ours.clone());
    peers_of_the_back_end(
        SocketRole::Client,
        &["queue_size=256,packed_vq=1,server=1"],
        ours,
    );
}

#[test]
fn net_vhost_serves_our_front_end() {
    let _alone = support::alone();
    if !has(testpmd::PROGRAM) {
        return;
    }
    for (packed, event_idx, role) in [
        (false, false, SocketRole::Client),
        (true, true, SocketRole::Client),
        (false, true, SocketRole::Server),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("v.sock");
        let mut bench = Bench::new();
        let ours = VirtioUser {
            packed,
            event_idx,
            ..spec(&path, role)
        };
        bench.create("drv", front_end(ours)).unwrap();
        let client = u8::from(role == SocketRole::Server);
        let vdev = format!(
            "net_vhost0,iface={},queues=1,client={client}",
            path.display()
        );
        let peer = TestPmd::start(&[vdev], &LONG);
        let up = bench.until(20, |b| b.is_up("drv"));
        assert!(up, "{:?}\n{}", bench.show("drv"), peer.output());
        let features = bench.show("drv").features;
        assert_eq!(features.contains("ring-packed"), packed, "{features}");
        wait_for_echo(&mut bench, "drv");
        converse(&mut bench, "drv", peer);
        assert!(bench.until(5, |b| !b.is_up("drv")));
        assert_eq!(bench.show("drv").faults, 0);
        assert_eq!(bench.pool.report().in_use(), 0);
    }
}

/// Several queues: each is used in both directions, and nothing is lost.
#[test]
fn several_queues_with_testpmd() {
    let _alone = support::alone();
    if !has(testpmd::PROGRAM) {
        return;
    }
    let queues = ["--rxq=4", "--txq=4", "--nb-cores=1", "--port-topology=loop"];
    for back in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("v.sock");
        let mut bench = Bench::new();
        let (kind, vdev) = if back {
            let ours = back_end(spec(&path, SocketRole::Server));
            (
                ours,
                format!(
                    "net_virtio_user0,path={},queues=4,queue_size=256",
                    path.display()
                ),
            )
        } else {
            let ours = VirtioUser {
                queues: 4,
                ..spec(&path, SocketRole::Client)
            };
            (
                front_end(ours),
                format!("net_vhost0,iface={},queues=4", path.display()),
            )
        };
        bench.create("x", kind).unwrap();
        let peer = TestPmd::start(&[vdev], &queues);
        let up = bench.until(20, |b| b.show("x").rings.len() == 8);
        assert!(up, "{:?}\n{}", bench.show("x"), peer.output());
        wait_for_echo(&mut bench, "x");
        for round in 0..10 {
            echo(
                &mut bench,
                "x",
                (0..100)
                    .map(|i| frame(64 + i as usize, round * 100 + i))
                    .collect(),
            );
        }
        let row = bench.show("x");
        assert!(row.rings.iter().all(|r| r.packets > 100), "{row:?}");
        let output = peer.quit(|| _ = bench.until(1, |_| true));
        let sent = bench.counts("x").tx_packets;
        let theirs = ["RX-packets:", "TX-packets:"].map(|key| stat(&output, 0, key));
        assert_eq!(theirs, [Some(sent); 2], "{output}");
    }
}

/// A peer is killed twenty times under traffic and reconnects each time; another interface keeps working; nothing leaks.
fn killed(kind: Instance, vdev: String) {
    let dir = tempfile::tempdir().unwrap();
    let mut bench = Bench::new();
    let other = dir.path().join("other");
    bench
        .create("a", back_end(spec(&other, SocketRole::Server)))
        .unwrap();
    bench
        .create("b", front_end(spec(&other, SocketRole::Client)))
        .unwrap();
    bench.create("x", kind).unwrap();
    assert!(bench.until(5, |b| b.is_up("a") && b.is_up("b")));
    let (x, b) = (bench.index("x"), bench.index("b"));
    let mut before = None;
    for round in 0..20 {
        let peer = TestPmd::start(
            std::slice::from_ref(&vdev),
            &["--port-topology=loop", "--total-num-mbufs=4096"],
        );
        let (mut back, mut passed, mut sent) = (0, 0, 0);
        let served = bench.until(60, |bench| {
            if bench.is_up("x") {
                bench.send("x", (0..32).map(|i| frame(64 + i as usize, i)));
            }
            bench.send("a", (0..32).map(|i| frame(64, i)));
            sent += 32;
            std::thread::sleep(std::time::Duration::from_micros(200));
            for (interface, _) in bench.got() {
                back += usize::from(interface == x);
                passed += usize::from(interface == b);
            }
            back > 200
        });
        assert!(
            served,
            "round {round}: {:?} {:?}\n{}",
            bench.show("x"),
            bench.drops(),
            peer.output()
        );
        peer.kill();
        // The other interface keeps working while the peer is found dead.
        assert!(bench.until(5, |bench| {
            bench.send("a", (0..32).map(|i| frame(64, i)));
            sent += 32;
            passed += bench.got().iter().filter(|(i, _)| *i == b).count();
            !bench.is_up("x")
        }));
        bench.until(1, |bench| bench.step_worker() == 0);
        passed += bench.got().iter().filter(|(i, _)| *i == b).count();
        assert_eq!(passed, sent, "round {round}");
        assert_eq!(bench.pool.report().in_use(), 0);
        let now = resources();
        assert_eq!(
            *before.get_or_insert(now),
            now,
            "files and maps after round {round}"
        );
    }
    let row = bench.show("x");
    assert_eq!((row.faults, row.connections >= 20), (0, true), "{row:?}");
}

#[test]
fn a_virtio_user_peer_is_killed_twenty_times() {
    let _alone = support::alone();
    if has(testpmd::PROGRAM) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("v.sock");
        let vdev = format!("net_virtio_user0,path={},queue_size=256", path.display());
        killed(back_end(spec(&path, SocketRole::Server)), vdev);
    }
}

#[test]
fn a_vhost_peer_is_killed_twenty_times() {
    let _alone = support::alone();
    if has(testpmd::PROGRAM) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("v.sock");
        // The peer is the client: a killed server leaves its socket behind and DPDK does not replace it.
        let vdev = format!("net_vhost0,iface={},client=1", path.display());
        killed(front_end(spec(&path, SocketRole::Server)), vdev);
    }
}
