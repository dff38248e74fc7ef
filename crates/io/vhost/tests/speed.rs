//! Port to port at 64 bytes, compared with testpmd: the same generator (testpmd with two `net_virtio_user` ports that
//! send each other what they receive) runs on core 0, alternately through Volley and through testpmd with `net_vhost`
//! ports, each on core 1.
//!
//! Two effects of a shared machine are excluded from the ratio, for both sides alike. Other processes take the cores for
//! milliseconds: a rate is the upper decile of many short samples. The two cores of a virtual machine are sometimes near
//! each other and sometimes far apart, which changes the cost of a cache line fivefold: the round-trip time of a word is
//! measured before and after each run, and only runs with the same distance are compared.
//!
//! `cargo test --release -p volley-vhost --test speed -- --ignored --nocapture`

mod support;

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};
use support::testpmd::{self, TestPmd, stat};
use support::{Bench, back_end, spec};
use volley_graph::WorkerThreads;
use volley_vhost::model::{SocketRole, VirtioUser};

/// Pairs of runs that count, and the maximum number of attempts.
const ROUNDS: usize = 3;
const TRIES: usize = 8;
const SAMPLES: usize = 24;
const SAMPLE: Duration = Duration::from_millis(100);
/// Cores are near each other if a word's round trip takes fewer nanoseconds.
const NEAR_NS: f64 = 150.0;

#[derive(Clone, Copy, PartialEq, Debug)]
enum Distance {
    Near,
    Far,
}

fn pin(core: usize) {
    assert!(core_affinity::set_for_current(core_affinity::CoreId {
        id: core
    }));
}

/// The present distance of cores 0 and 1: the shortest of some hundred times for 100 round trips.
fn distance() -> Distance {
    let (word, over) = (AtomicU32::new(0), AtomicBool::new(false));
    let best = std::thread::scope(|scope| {
        scope.spawn(|| {
            pin(1);
            while !over.load(Ordering::Relaxed) {
                let seen = word.load(Ordering::Acquire);
                if seen % 2 == 1 {
                    word.store(seen.wrapping_add(1), Ordering::Release);
                }
            }
        });
        let pinger = scope.spawn(|| {
            pin(0);
            let mut best = f64::INFINITY;
            for _ in 0..300 {
                let start = Instant::now();
                for _ in 0..100 {
                    let next = word.load(Ordering::Relaxed).wrapping_add(2);
                    word.store(next.wrapping_sub(1), Ordering::Release);
                    while word.load(Ordering::Acquire) != next {}
                }
                best = best.min(start.elapsed().as_nanos() as f64 / 100.0);
            }
            best
        });
        let best = pinger.join().unwrap();
        over.store(true, Ordering::Relaxed);
        best
    });
    if best < NEAR_NS {
        Distance::Near
    } else {
        Distance::Far
    }
}

fn generator(sockets: &[std::path::PathBuf; 2], options: &str) -> TestPmd {
    let vdev = |i: usize| format!("net_virtio_user{i},path={},{options}", sockets[i].display());
    TestPmd::on(
        "0",
        "0@0,1@0",
        &[vdev(0), vdev(1)],
        &["--port-topology=paired", "--txd=1024", "--rxd=1024"],
    )
}

/// Packets per second that return to the generator on both ports, once it runs.
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
    let mut rates = Vec::new();
    let mut last = sample(generator);
    for _ in 0..SAMPLES {
        std::thread::sleep(SAMPLE);
        let now = sample(generator);
        rates.push((now.0 - last.0) as f64 / (now.1 - last.1).as_secs_f64());
        last = now;
    }
    rates.sort_by(f64::total_cmp);
    rates[SAMPLES * 9 / 10]
}

fn volley(dir: &Path, packed: bool, options: &str) -> f64 {
    let sockets = [dir.join("v0"), dir.join("v1")];
    let mut bench = Bench::new();
    for (name, socket) in [("v0", &sockets[0]), ("v1", &sockets[1])] {
        let ours = VirtioUser {
            packed,
            ..spec(socket, SocketRole::Server)
        };
        bench.create(name, back_end(ours)).unwrap();
    }
    bench.patch("v0", "v1");
    bench.patch("v1", "v0");
    let mut peer = generator(&sockets, options);
    assert!(bench.until(60, |b| b.is_up("v0") && b.is_up("v1")));
    let running = WorkerThreads::start(std::mem::take(&mut bench.workers), &[1]).unwrap();
    let pps = rate(&mut peer, || bench.registry.processes.run_manual());
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

fn dpdk(dir: &Path, options: &str) -> f64 {
    let sockets = [dir.join("d0"), dir.join("d1")];
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
        let mut pairs: Vec<(f64, f64, bool)> = Vec::new();
        while pairs.iter().filter(|p| p.2).count() < ROUNDS && pairs.len() < TRIES {
            let dir = tempfile::tempdir().unwrap();
            let before = distance();
            let ours = volley(dir.path(), packed, options) / 1e6;
            let between = distance();
            let theirs = dpdk(dir.path(), options) / 1e6;
            let all = [before, between, distance()];
            println!("  {name}: volley {ours:.2} Mpps, testpmd {theirs:.2} Mpps, cores {all:?}");
            pairs.push((ours, theirs, all == [before; 3]));
        }
        // All pairs if the cores moved in every pair.
        let still = pairs.iter().filter(|p| p.2).count();
        pairs.retain(|p| p.2 || still == 0);
        let of = |figure: fn(&(f64, f64, bool)) -> f64| median(pairs.iter().map(figure).collect());
        println!(
            "{name}: volley {:.2} Mpps, testpmd {:.2} Mpps, ratio {:.2} (bar 1.0), {still} pairs on cores that stayed",
            of(|p| p.0),
            of(|p| p.1),
            of(|p| p.0 / p.1)
        );
    }
}
