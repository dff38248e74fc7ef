//! DPDK's `net_virtio_user` against our back end, and its `net_vhost` against our front end.

mod support;

use support::testpmd::{self, TestPmd, stat};
use support::{Bench, frame, has, spec};
use volley_model::{InterfaceKind, SocketRole, VhostSpec};
use std::path::Path;

/// Send frames; testpmd sends each back. All come, once each, with the same bytes.
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
    assert!(got == missing, "{} of {} came back: {:?}", got.len(), missing.len(), (bench.show(name), bench.drops()));
    arrived
}

/// Testpmd takes its time after the rings are there: send until something comes back, and let all of it come.
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

const LONG: [&str; 3] = ["--mbuf-size=9728", "--max-pkt-len=9018", "--port-topology=loop"];

fn sizes() -> Vec<usize> {
    let many = (60..200).chain((200..9000).step_by(61));
    many.chain([1514, 2035, 2036, 2037, 2048, 2049, 9000]).collect()
}

/// Every size, both directions; testpmd's counters agree.
fn converse(bench: &mut Bench, name: &str, peer: TestPmd) {
    for (round, some) in sizes().chunks(20).enumerate() {
        let frames: Vec<_> = some.iter().enumerate().map(|(i, len)| frame(*len, (round * 50 + i) as u32)).collect();
        echo(bench, name, frames);
    }
    for round in 0..50 {
        echo(bench, name, (0..100).map(|i| frame(64, round * 100 + i)).collect());
    }
    let output = peer.quit();
    let counts = bench.counts(name);
    assert_eq!(counts.rx_packets, counts.tx_packets);
    let theirs = ["RX-packets:", "TX-packets:"].map(|key| stat(&output, 0, key));
    assert_eq!(theirs, [Some(counts.tx_packets); 2], "{output}");
}

fn virtio_user(path: &Path, options: &str) -> Vec<String> {
    vec![format!("net_virtio_user0,path={},{options}", path.display())]
}

fn peers_of_the_back_end(server: SocketRole, options: &[&str], ours: VhostSpec) {
    for options in options {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("v.sock");
        let mut bench = Bench::new();
        let ours = VhostSpec { socket: path.clone(), role: server, ..ours.clone() };
        bench.create("dev", InterfaceKind::VhostUser(ours)).unwrap();
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
    if !has(testpmd::PROGRAM) {
        return;
    }
    let options = ["queue_size=256,mrg_rxbuf=1", "queue_size=512,mrg_rxbuf=0,in_order=0", "queue_size=256,mrg_rxbuf=1,vectorized=0,in_order=0"];
    peers_of_the_back_end(SocketRole::Server, &options, spec(Path::new(""), SocketRole::Server));
}

#[test]
fn virtio_user_packed_rings_and_server_mode() {
    if !has(testpmd::PROGRAM) {
        return;
    }
    let ours = VhostSpec { packed: true, event_idx: true, ..spec(Path::new(""), SocketRole::Server) };
    let options = ["queue_size=256,packed_vq=1,mrg_rxbuf=1", "queue_size=200,packed_vq=1,mrg_rxbuf=0,in_order=0"];
    peers_of_the_back_end(SocketRole::Server, &options, ours.clone());
    peers_of_the_back_end(SocketRole::Client, &["queue_size=256,packed_vq=1,server=1"], ours);
}
