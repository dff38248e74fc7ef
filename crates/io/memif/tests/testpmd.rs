//! Volley and DPDK's memif driver, in both roles: every packet that one sent, the other received.

mod support;

use std::cell::RefCell;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use support::testpmd::{Testpmd, is_there, port};
use support::{Peer, Router, master, offer, packet, slave};
use volley_memif::model::Memif;

/// Volley with an interface to testpmd, and one to the test (id 9 on socket 0).
struct Bench {
    _folder: tempfile::TempDir,
    socket: PathBuf,
    router: Router,
    name: String,
    pmd: Testpmd,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Role {
    Master,
    Slave,
}

fn bench(role: Role, queues: u32, more: &str, args: &[&str]) -> Bench {
    let folder = tempfile::tempdir().unwrap();
    let (own, shared) = (
        folder.path().join("own.sock"),
        folder.path().join("pmd.sock"),
    );
    let mut router = Router::new(&own, 1);
    router.socket(1, shared.clone()).unwrap();
    let spec = match role {
        Role::Master => master(3),
        Role::Slave => slave(3, 1),
    };
    let secret = more.contains("secret").then(|| "psst".to_owned());
    let name = router.memif(Memif {
        socket: 1,
        rx_queues: queues,
        tx_queues: queues,
        secret,
        ..spec
    });
    let theirs = if role == Role::Master {
        "client"
    } else {
        "server"
    };
    let ports = [port(0, theirs, 3, &shared, more)];
    let queues = [format!("--rxq={queues}"), format!("--txq={queues}")];
    let mut all: Vec<&str> = queues.iter().map(String::as_str).collect();
    all.extend(["--port-topology=loop"]);
    all.extend(args);
    let pmd = Testpmd::start(&ports, &all, || router.pass(Duration::from_millis(2)));
    router.until("testpmd to connect", |r| {
        std::thread::sleep(Duration::from_millis(1));
        r.row(&name).connected
    });
    router.start(&[]);
    Bench {
        _folder: folder,
        socket: own,
        router,
        name,
        pmd,
    }
}

fn run_txonly(role: Role, size: u32, queues: u32) {
    let txpkts = format!("--txpkts={size}");
    let mut b = bench(role, queues, "", &["--forward-mode=txonly", &txpkts]);
    b.pmd.say("start");
    b.router.pass(Duration::from_millis(300));
    let stats = b.pmd.stop(|| b.router.pass(Duration::from_millis(1)));
    b.router.pass(Duration::from_millis(50));
    let counts = b.router.counts(&b.name);
    assert!(stats[0].tx > 1000, "{stats:?} {:?}", b.router.report());
    assert_eq!(counts.rx_packets, stats[0].tx, "{role:?} {size} {queues}");
    assert_eq!(counts.rx_bytes, stats[0].tx * u64::from(size));
    assert_eq!(counts.rx_errors, 0);
    b.router.stop();
    assert_eq!(b.router.in_use(), 0);
}

#[test]
fn what_testpmd_sends_arrives() {
    if !is_there() {
        return;
    }
    for (role, size, queues) in [
        (Role::Master, 64, 1),
        (Role::Master, 1500, 2),
        (Role::Slave, 64, 2),
        (Role::Slave, 512, 1),
    ] {
        run_txonly(role, size, queues);
    }
}

/// A peer of the test on the second interface, patched both ways to testpmd's.
fn join(b: &mut Bench) -> Peer {
    let own = b.router.memif(master(9));
    b.router.patch(&own, &b.name);
    b.router.patch(&b.name, &own);
    let router = RefCell::new(&mut b.router);
    Peer::join(&b.socket, support::offer(9), || router.borrow_mut().step()).unwrap()
}

#[test]
fn what_volley_sends_arrives() {
    if !is_there() {
        return;
    }
    for (role, size, queues) in [
        (Role::Master, 64, 2),
        (Role::Master, 512, 1),
        (Role::Slave, 60, 1),
        (Role::Slave, 1500, 2),
    ] {
        let mut b = bench(role, queues, "", &["--forward-mode=rxonly"]);
        let mut peer = join(&mut b);
        b.pmd.forward(|| b.router.step());
        let packets: Vec<_> = (0..32).map(|n| packet(n, size)).collect();
        let (mut sent, end) = (0, Instant::now() + Duration::from_millis(300));
        while Instant::now() < end {
            sent += peer.send(0, &packets) as u64;
            b.router.step();
        }
        b.router.pass(Duration::from_millis(50));
        let stats = b.pmd.stop(|| b.router.pass(Duration::from_millis(1)));
        let counts = b.router.counts(&b.name);
        assert!(sent > 1000, "{sent}");
        assert_eq!(counts.tx_packets, stats[0].rx, "{role:?} {size} {queues}");
        assert_eq!(counts.tx_packets + counts.tx_errors, sent);
        b.router.stop();
        assert_eq!(b.router.in_use(), 0);
    }
}

#[test]
fn what_testpmd_returns_is_unchanged() {
    if !is_there() {
        return;
    }
    for (role, queues, more) in [
        (Role::Master, 1, ",secret=psst"),
        (Role::Slave, 1, ",secret=psst"),
        (Role::Master, 2, ",rsize=8"),
        (Role::Slave, 2, ",rsize=8"),
    ] {
        let mut b = bench(role, queues, more, &["--forward-mode=io"]);
        let mut peer = join(&mut b);
        b.pmd.forward(|| b.router.step());
        let mut got = Vec::new();
        let mut all = Vec::new();
        for (round, size) in [60, 64, 65, 128, 512, 1024, 1500, 1518]
            .into_iter()
            .enumerate()
        {
            let first = round as u32 * 200;
            let packets: Vec<_> = (first..first + 200).map(|n| packet(n, size)).collect();
            let (mut sent, end) = (0, Instant::now() + Duration::from_secs(10));
            let wanted = all.len() + packets.len();
            while got.len() < wanted {
                assert!(
                    Instant::now() < end,
                    "{role:?}: {} of {wanted}; {sent} sent, {:?} {:?} {:?} {:?}",
                    got.len(),
                    b.router.counts(&b.name),
                    b.router.counts("memif0/9"),
                    b.router.report(),
                    b.pmd.stop(|| ()),
                );
                let batch = &packets[sent..packets.len().min(sent + 32)];
                sent += peer.send(0, batch);
                b.router.step();
                got.extend(peer.receive_all());
            }
            all.extend(packets);
        }
        if queues > 1 {
            got.sort();
            all.sort();
        }
        assert!(got == all, "{role:?} with {queues} queues");
        let stats = b.pmd.stop(|| b.router.pass(Duration::from_millis(1)));
        assert_eq!((stats[0].rx, stats[0].tx), (1600, 1600));
        b.router.stop();
        assert_eq!(b.router.in_use(), 0);
    }
}

#[test]
fn a_wrong_secret_is_told() {
    if !is_there() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("m.sock");
    let mut router = Router::new(&socket, 1);
    let name = router.memif(Memif {
        secret: Some("right".into()),
        ..master(0)
    });
    let ports = [port(0, "client", 0, &socket, ",secret=wrong")];
    let _pmd = Testpmd::start(&ports, &[], || router.pass(Duration::from_millis(2)));
    router.pass(Duration::from_millis(50));
    assert!(!router.row(&name).connected);
    let refused = Peer::join(&socket, offer(0), || router.step())
        .err()
        .unwrap();
    assert_eq!(refused, "the peer disconnected: secret required");
}
