//! Front end and back end in one process, with a real socket and real rings between them.

mod support;

use std::time::{Duration, Instant};
use support::process::resources;
use support::{Bench, back_end, frame, front_end, spec};
use volley_graph::WorkerThreads;
use volley_vhost::model::{SocketRole, VirtioUser};

/// A back end `dev` and a front end `drv` on one socket, both with these options.
fn pair(bench: &mut Bench, options: VirtioUser) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("v.sock");
    let with = |role| VirtioUser {
        role,
        socket: path.clone(),
        ..options.clone()
    };
    bench
        .create("dev", back_end(with(SocketRole::Server)))
        .unwrap();
    bench
        .create("drv", front_end(with(SocketRole::Client)))
        .unwrap();
    assert!(
        bench.until(5, |b| b.is_up("dev") && b.is_up("drv")),
        "{} / {}",
        bench.reason("dev"),
        bench.reason("drv")
    );
    dir
}

/// Send frames in one direction; all of them arrive in order.
fn pass(bench: &mut Bench, from: &str, to: &str, frames: Vec<Vec<u8>>) {
    let rx = bench.index(to);
    for some in frames.chunks(100) {
        bench.send(from, some.to_vec());
        let mut got = Vec::new();
        bench.until(5, |b| {
            got.extend(b.got());
            got.len() >= some.len()
        });
        assert_eq!(
            got.len(),
            some.len(),
            "{from} to {to}: {:?}",
            (bench.show(from), bench.show(to))
        );
        for (sent, (interface, bytes)) in some.iter().zip(got) {
            assert_eq!(interface, rx);
            assert!(
                *sent == bytes,
                "{} bytes came as {}",
                sent.len(),
                bytes.len()
            );
        }
    }
}

fn options() -> Vec<VirtioUser> {
    let mut all = Vec::new();
    for packed in [false, true] {
        for event_idx in [false, true] {
            for gso in [false, true] {
                all.push(VirtioUser {
                    packed,
                    event_idx,
                    gso,
                    ring: 64,
                    ..spec(std::path::Path::new("x"), SocketRole::Client)
                });
            }
        }
    }
    all
}

#[test]
fn every_size_passes_both_ways_in_every_ring_format() {
    let _alone = support::alone();
    for options in options() {
        let mut bench = Bench::new();
        let _dir = pair(&mut bench, options);
        for (from, to) in [("dev", "drv"), ("drv", "dev")] {
            let sizes = (60..300)
                .chain((300..9000).step_by(97))
                .chain([1500, 2035, 2036, 2037, 2048, 2049, 4148, 9000]);
            let frames: Vec<_> = sizes
                .enumerate()
                .map(|(i, len)| frame(len, i as u32))
                .collect();
            // In tens, so that the largest fit the ring.
            for some in frames.chunks(10) {
                pass(&mut bench, from, to, some.to_vec());
            }
        }
        assert_eq!(bench.pool.report().in_use(), 0);
    }
}

#[test]
fn rings_wrap_and_full_rings_drop_by_name() {
    let _alone = support::alone();
    for options in options() {
        let mut bench = Bench::new();
        let _dir = pair(&mut bench, options);
        for (from, to) in [("dev", "drv"), ("drv", "dev")] {
            // A prime number, so a burst begins at every position of the ring.
            for round in 0..200 {
                let frames = (0..37)
                    .map(|i| frame(60 + (round * 31 + i * 7) as usize % 1400, round * 100 + i));
                pass(&mut bench, from, to, frames.collect());
            }
            let before = bench.counts(from).tx_errors;
            bench.send(from, (0..500).map(|i| frame(64, i)));
            bench.step_worker();
            bench.until(2, |b| b.step_worker() == 0);
            let lost = bench.counts(from).tx_errors - before;
            assert!(lost > 0, "500 frames do not fit 64 places");
            assert_eq!(bench.got().len() as u64 + lost, 500);
            assert_eq!(bench.counter(&format!("{from}-tx"), "no-tx-slots"), lost);
        }
        assert_eq!(bench.pool.report().in_use(), 0);
    }
}

#[test]
fn several_queues_keep_the_order_of_each_flow() {
    let _alone = support::alone();
    for packed in [false, true] {
        let mut bench = Bench::new();
        let options = VirtioUser {
            packed,
            queues: 4,
            ring: 256,
            ..options()[0].clone()
        };
        let _dir = pair(&mut bench, options);
        assert_eq!(bench.show("dev").rings.len(), 8);
        for from in ["dev", "drv"] {
            let flow = |n: u32, flow: u8| {
                let mut bytes = frame(100, 1);
                bytes[26..38].fill(flow);
                bytes[60..64].copy_from_slice(&n.to_be_bytes());
                bytes
            };
            let mut got = Vec::new();
            for round in 0..20 {
                bench.send(from, (0..100).map(|i| flow(round * 100 + i, i as u8 % 16)));
                let want = (round as usize + 1) * 100;
                bench.until(5, |b| {
                    got.extend(b.got().into_iter().map(|(_, bytes)| bytes));
                    got.len() >= want
                });
            }
            assert_eq!(got.len(), 2000);
            for f in 0..16 {
                let numbers: Vec<_> = got
                    .iter()
                    .filter(|b| b[26] == f)
                    .map(|b| b[60..64].to_vec())
                    .collect();
                assert!(numbers.is_sorted() && numbers.len() >= 100);
            }
            let ways = if from == "dev" { "tx" } else { "rx" };
            let used = bench
                .show("dev")
                .rings
                .iter()
                .filter(|r| r.way == ways && r.packets > 0)
                .count();
            assert!(used >= 3, "{used} queues used {from}");
        }
    }
}

#[test]
fn peers_come_and_go_and_leave_nothing_behind() {
    let _alone = support::alone();
    let mut bench = Bench::new();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("v.sock");
    let (server, client) = (
        spec(&path, SocketRole::Server),
        spec(&path, SocketRole::Client),
    );
    bench.create("drv", front_end(server.clone())).unwrap();
    // The first round opens what the process keeps for all interfaces: `/dev/null` of AIO and the userfaultfd.
    let mut before = None;
    for round in 0..20 {
        let name = format!("dev{round}");
        bench.create(&name, back_end(client.clone())).unwrap();
        assert!(
            bench.until(5, |b| b.is_up(&name) && b.is_up("drv")),
            "{}",
            bench.reason(&name)
        );
        pass(&mut bench, "drv", &name, vec![frame(64, round)]);
        pass(&mut bench, &name, "drv", vec![frame(9000, round)]);
        bench.send("drv", (0..50).map(|i| frame(64, i)));
        bench.delete(&name);
        assert!(bench.until(5, |b| !b.is_up("drv")));
        assert_eq!(bench.reason("drv"), "no peer has connected to its socket");
        bench.got();
        bench.until(1, |_| true);
        let now = resources();
        assert_eq!(now, *before.get_or_insert(now), "files and maps");
    }
    assert_eq!(bench.pool.report().in_use(), 0);
    bench.delete("drv");
    assert!(!path.exists());
}

#[test]
fn names_and_sockets_that_are_taken_are_refused_and_nothing_stays() {
    let _alone = support::alone();
    let mut bench = Bench::new();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("v.sock");
    let server = || back_end(spec(&path, SocketRole::Server));
    bench.create("a", server()).unwrap();
    let before = resources();
    let error = bench.create("b", server()).unwrap_err().to_string();
    assert!(
        error.contains("another program serves it already"),
        "{error}"
    );
    assert!(
        bench
            .create("a", server())
            .unwrap_err()
            .to_string()
            .contains("a")
    );
    let nowhere = back_end(spec(&dir.path().join("no/v"), SocketRole::Server));
    assert!(
        bench
            .create("c", nowhere)
            .unwrap_err()
            .to_string()
            .contains("no/v")
    );
    assert_eq!(resources(), before);
    assert!(bench.registry.interfaces.borrow().by_name("b").is_none());
    let mut unnamed = |role| {
        let other = dir.path().join(format!("{role:?}"));
        let kind = back_end(spec(&other, role));
        let spec = volley_model::InterfaceSpec {
            name: String::new(),
            kind,
            mac: None,
            mtu: None,
        };
        bench
            .apply(&volley_model::Request::InterfaceCreate(spec))
            .unwrap()
            .unwrap()
    };
    assert_eq!(unnamed(SocketRole::Server), "VirtualEthernet0/0/0");
    assert_eq!(unnamed(SocketRole::Client), "VirtualEthernet0/0/1");
}

/// Clock ticks (10 ms) that the workers of this process have used.
fn worker_ticks() -> u64 {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let stats = tasks.filter_map(|t| std::fs::read_to_string(t.unwrap().path().join("stat")).ok());
    let workers = stats.filter(|s| s.contains("(volley-w"));
    let used = |s: String| {
        let fields: Vec<u64> = s
            .split_whitespace()
            .skip(13)
            .take(2)
            .map(|f| f.parse().unwrap())
            .collect();
        fields[0] + fields[1]
    };
    workers.map(used).sum()
}

/// Two daemons, both asleep; the packets of each wake the other.
#[test]
fn workers_sleep_until_the_peer_rings() {
    let _alone = support::alone();
    for (packed, event_idx) in [(false, false), (false, true), (true, false), (true, true)] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("v.sock");
        let (mut a, mut b) = (Bench::new(), Bench::new());
        let with = |role| VirtioUser {
            packed,
            event_idx,
            ..spec(&path, role)
        };
        a.create("dev", back_end(with(SocketRole::Server))).unwrap();
        b.create("drv", front_end(with(SocketRole::Client)))
            .unwrap();
        assert!(a.until(5, |a| {
            b.step();
            a.is_up("dev") && b.is_up("drv")
        }));
        let workers = [&mut a, &mut b].map(|bench| std::mem::take(&mut bench.workers));
        let _running = workers.map(|w| WorkerThreads::start(w, &[]).unwrap());
        let (begin, mut waits) = ((worker_ticks(), Instant::now()), Vec::new());
        for round in 0..20u32 {
            let (from, name, to) = if round % 2 == 0 {
                (&a, "dev", &b)
            } else {
                (&b, "drv", &a)
            };
            std::thread::sleep(Duration::from_millis(25));
            let start = Instant::now();
            from.send(name, [frame(64, round)]);
            while to.got().is_empty() {
                assert!(start.elapsed() < Duration::from_secs(5), "never woken");
                std::thread::sleep(Duration::from_micros(50));
            }
            waits.push(start.elapsed());
        }
        waits.sort();
        // A worker without a notification polls after 20 ms.
        assert!(waits[10] < Duration::from_millis(5), "{waits:?}");
        let (used, passed) = (worker_ticks() - begin.0, begin.1.elapsed());
        assert!(
            u128::from(used) * 10 < passed.as_millis() / 2,
            "{used} ticks in {passed:?}"
        );
    }
}
