//! Port to port at 64 bytes, beside testpmd: the same generator (testpmd with two `net_virtio_user` ports that send each
//! other what they get) on core 0, in turn through Volley and through testpmd with `net_vhost` ports, each on core 1.
//!
//! `cargo test --release -p volley-vhost --test speed -- --ignored --nocapture`

mod support;

use std::path::Path;
use std::time::{Duration, Instant};
use support::testpmd::{self, TestPmd, stat};
use support::{Bench, spec};
use volley_graph::Running;
use volley_model::{InterfaceKind, SocketRole, VhostSpec};

const ROUNDS: usize = 3;
const SECONDS: f64 = 2.0;

fn generator(sockets: &[std::path::PathBuf; 2], options: &str) -> TestPmd {
    let vdev = |i: usize| format!("net_virtio_user{i},path={},{options}", sockets[i].display());
    TestPmd::on(
        "0",
        "0@0,1@0",
        &[vdev(0), vdev(1)],
        &["--port-topology=paired", "--txd=1024", "--rxd=1024"],
    )
}

/// Packets per second that come back to the generator on both ports, once it runs.
fn rate(generator: &mut TestPmd, mut turn: impl FnMut()) -> f64 {
    generator.say("stop");
    generator.say("start tx_first 16");
    let mut sample = |generator: &mut TestPmd| {
        let before = generator
            .output()
            .matches("NIC statistics for port 1")
            .count();
        generator.say("show port stats all");
        let end = Instant::now() + Duration::from_secs(60);
        loop {
            turn();
            let out = generator.output();
            let rest = out.rfind("NIC statistics for port 1").map(|at| &out[at..]);
            let whole = rest.is_some_and(|r| r.contains("Tx-pps"));
            if out.matches("NIC statistics for port 1").count() > before && whole {
                let rx = [0, 1].map(|port| stat(&out, port, "RX-packets:").unwrap());
                return (rx[0] + rx[1], Instant::now());
            }
            assert!(Instant::now() < end, "no statistics:\n{out}");
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    let warm = sample(generator);
    for _ in 0..100 {
        std::thread::sleep(Duration::from_millis(50));
        let now = sample(generator);
        if now.0 > warm.0 + 100_000 {
            break;
        }
    }
    let first = sample(generator);
    std::thread::sleep(Duration::from_secs_f64(SECONDS));
    let last = sample(generator);
    (last.0 - first.0) as f64 / (last.1 - first.1).as_secs_f64()
}

fn volley(dir: &Path, packed: bool, options: &str) -> f64 {
    let sockets = [dir.join("v0"), dir.join("v1")];
    let mut bench = Bench::new();
    for (name, socket) in [("v0", &sockets[0]), ("v1", &sockets[1])] {
        let ours = VhostSpec {
            packed,
            ..spec(socket, SocketRole::Server)
        };
        bench.create(name, InterfaceKind::VhostUser(ours)).unwrap();
    }
    bench.patch("v0", "v1");
    bench.patch("v1", "v0");
    let mut peer = generator(&sockets, options);
    assert!(bench.until(60, |b| b.is_up("v0") && b.is_up("v1")));
    let running = Running::start(std::mem::take(&mut bench.workers), &[1]).unwrap();
    let pps = rate(&mut peer, || bench.registry.processes.turn());
    bench.workers = running.stop();
    let engine = bench.registry.engine.borrow();
    for node in engine.runtime(0).iter().filter(|n| n.vectors > 1000) {
        let per = node.clocks as f64 / node.vectors as f64;
        let size = node.vectors as f64 / node.calls as f64;
        println!(
            "    {}: {per:.1} cycles a packet, {size:.1} packets a call",
            node.name
        );
    }
    pps
}

fn dpdk(dir: &Path, packed: bool, options: &str) -> f64 {
    let sockets = [dir.join("d0"), dir.join("d1")];
    let _ = packed;
    let vdev = |i: usize| format!("net_vhost{i},iface={},queues=1", sockets[i].display());
    let _dut = TestPmd::on(
        "0",
        "0@0,1@1",
        &[vdev(0), vdev(1)],
        &["--port-topology=paired", "--txd=1024", "--rxd=1024"],
    );
    let there = Instant::now() + Duration::from_secs(60);
    while !sockets.iter().all(|s| s.exists()) {
        assert!(Instant::now() < there);
        std::thread::sleep(Duration::from_millis(50));
    }
    std::thread::sleep(Duration::from_secs(1));
    let mut peer = generator(&sockets, options);
    rate(&mut peer, || ())
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

#[test]
#[ignore = "a measurement: minutes, two cores, a release build"]
fn port_to_port_beside_testpmd() {
    if !support::has(testpmd::PROGRAM) {
        return;
    }
    let cases = [
        ("split", false, "queue_size=1024,mrg_rxbuf=0"),
        ("split, mergeable", false, "queue_size=1024,mrg_rxbuf=1"),
        ("packed", true, "queue_size=1024,packed_vq=1,mrg_rxbuf=0"),
    ];
    for (name, packed, options) in cases {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let dir = tempfile::tempdir().unwrap();
            ours.push(volley(dir.path(), packed, options));
            theirs.push(dpdk(dir.path(), packed, options));
            println!(
                "  {name}: volley {:.2} Mpps, testpmd {:.2} Mpps",
                ours[ours.len() - 1] / 1e6,
                theirs[theirs.len() - 1] / 1e6
            );
        }
        let (ours, theirs) = (median(ours), median(theirs));
        println!(
            "{name}: volley {:.2} Mpps, testpmd {:.2} Mpps, ratio {:.2} (bar 1.0)",
            ours / 1e6,
            theirs / 1e6,
            ours / theirs
        );
    }
}
