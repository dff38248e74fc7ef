//! Packets through Volley and back: both roles, all sizes, chains, several queues, wrap-around, and two Volleys.

mod support;

use std::cell::RefCell;
use std::collections::BTreeMap;
use support::{Peer, Router, master, offer, packet, slave};
use volley_iface::AdminState;
use volley_memif::model::Memif;
use volley_memif::session::Offer;
use volley_memif::socket::{Address, Listener};

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

/// Send `packets` by the peer's queues in rotation, and expect each back once.
fn echo(router: &mut Router, peer: &mut Peer, packets: &[Vec<u8>]) {
    let queues = peer.link.tx().len();
    let (mut sent, mut got) = (0, Vec::new());
    let mut idle = 0;
    while got.len() < packets.len() {
        let batch = &packets[sent..packets.len().min(sent + 32)];
        sent += peer.send(sent / 32 % queues, batch);
        router.step();
        let back = peer.receive_all();
        idle = if back.is_empty() { idle + 1 } else { 0 };
        assert!(
            idle < 10_000,
            "{} of {} came back",
            got.len(),
            packets.len()
        );
        got.extend(back);
    }
    assert_eq!(got.len(), packets.len());
    if queues > 1 {
        let (mut got, mut want) = (got, packets.to_vec());
        got.sort();
        want.sort();
        assert!(got == want);
    } else {
        assert!(got == packets, "the same packets in the same order");
    }
}

fn sizes() -> Vec<Vec<u8>> {
    let all = (60..2200).step_by(7).chain([63, 64, 65, 2047, 2048, 2049]);
    let jumbo = (2200..9001).step_by(97).chain([4095, 4096, 4097, 9000]);
    let mut number = 0;
    let sized = |len| {
        number += 1;
        packet(number, len)
    };
    all.chain(jumbo).map(sized).collect()
}

fn as_master(offer: Offer) -> (tempfile::TempDir, Router, Peer, String) {
    let folder = folder();
    let socket = folder.path().join("m.sock");
    let mut router = Router::new(&socket, 1);
    let name = router.memif(master(offer.id));
    router.patch(&name, &name);
    let peer = {
        let router = RefCell::new(&mut router);
        Peer::join(&socket, offer, || router.borrow_mut().step()).unwrap()
    };
    router.until("link", |r| r.row("memif0/0").connected);
    (folder, router, peer, name)
}

fn as_slave(spec: Memif) -> (tempfile::TempDir, Router, Peer, String) {
    let folder = folder();
    let socket = folder.path().join("s.sock");
    let listener = Listener::bind(&Address(socket.clone())).unwrap();
    let mut router = Router::new(&socket, 1);
    let name = router.memif(spec);
    router.patch(&name, &name);
    let peer = {
        let router = RefCell::new(&mut router);
        Peer::serve(&listener, || router.borrow_mut().step())
    };
    router.until("link", |r| r.row("memif0/0").connected);
    (folder, router, peer, name)
}

#[test]
fn a_master_returns_every_size() {
    let (_folder, mut router, mut peer, name) = as_master(offer(0));
    let packets = sizes();
    echo(&mut router, &mut peer, &packets);
    let counts = router.counts(&name);
    let bytes: usize = packets.iter().map(Vec::len).sum();
    assert_eq!(counts.rx_packets, packets.len() as u64);
    assert_eq!(
        (counts.rx_bytes, counts.tx_bytes),
        (bytes as u64, bytes as u64)
    );
    assert_eq!(
        (counts.rx_errors, counts.tx_errors, counts.drops),
        (0, 0, 0)
    );
    assert_eq!(router.in_use(), 0);
}

#[test]
fn a_slave_returns_every_size() {
    let (_folder, mut router, mut peer, name) = as_slave(slave(0, 0));
    echo(&mut router, &mut peer, &sizes());
    assert_eq!(router.counts(&name).tx_errors, 0);
    assert_eq!(router.in_use(), 0);
}

#[test]
fn small_buffers_make_chains_both_ways() {
    for size in [64, 100, 128, 512] {
        let spec = Memif {
            buffer_size: size,
            ..slave(0, 0)
        };
        let (_folder, mut router, mut peer, _) = as_slave(spec);
        echo(&mut router, &mut peer, &sizes());
        let small = Offer {
            buffer_size: size,
            log2: 10,
            ..offer(0)
        };
        let (_folder, mut router, mut peer, _) = as_master(small);
        echo(&mut router, &mut peer, &sizes());
    }
}

#[test]
fn indices_wrap_around() {
    // 200,000 packets: the 16-bit indices wrap three times, the ring of 2 descriptors 100,000 times.
    let small = cfg!(debug_assertions) && std::env::var_os("VOLLEY_SMALL").is_some();
    let many = if small { 70_000 } else { 200_000 };
    let packets: Vec<_> = (0..many)
        .map(|n| packet(n, 60 + (n % 5) as usize))
        .collect();
    for log2 in [1, 8, 14] {
        let (_folder, mut router, mut peer, _) = as_master(Offer { log2, ..offer(0) });
        echo(
            &mut router,
            &mut peer,
            &packets[..if log2 == 1 { 70_000 } else { many as usize }],
        );
    }
    let spec = Memif {
        ring_size: 16,
        ..slave(0, 0)
    };
    let (_folder, mut router, mut peer, _) = as_slave(spec);
    echo(&mut router, &mut peer, &packets);
}

#[test]
fn several_queues_share_the_packets() {
    let many: Vec<_> = (0..4000)
        .map(|n| packet(n, 60 + (n % 1400) as usize))
        .collect();
    let queues = Offer {
        rx_queues: 4,
        tx_queues: 3,
        ..offer(0)
    };
    let (_folder, mut router, mut peer, _) = as_master(queues);
    echo(&mut router, &mut peer, &many);
    let row = router.row("memif0/0");
    assert_eq!((row.rx_rings.len(), row.tx_rings.len()), (3, 4));
    let spec = Memif {
        rx_queues: 2,
        tx_queues: 5,
        ..slave(0, 0)
    };
    let (_folder, mut router, mut peer, _) = as_slave(spec);
    echo(&mut router, &mut peer, &many);
}

#[test]
fn a_flow_stays_on_its_queue_and_flows_spread() {
    let queues = Offer {
        rx_queues: 4,
        ..offer(0)
    };
    let (_folder, mut router, mut peer, _) = as_master(queues);
    let flow = |flow: u32, number: u32| {
        let mut bytes = packet(number, 80);
        bytes[26..38].fill(0);
        bytes[26..30].copy_from_slice(&flow.to_be_bytes());
        bytes
    };
    let mut homes: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for round in 0..8 {
        let batch: Vec<_> = (0..64).map(|f| flow(f, round * 64 + f)).collect();
        assert_eq!(peer.send(0, &batch), 64);
        router.step();
        for queue in 0..4 {
            for packet in peer.receive(queue) {
                let flow = u32::from_be_bytes(packet[26..30].try_into().unwrap());
                homes.entry(flow).or_default().push(queue);
            }
        }
    }
    assert!(
        homes
            .values()
            .all(|h| h.len() == 8 && h.iter().all(|q| *q == h[0]))
    );
    for queue in 0..4 {
        let flows = homes.values().filter(|h| h[0] == queue).count();
        assert!(
            (4..40).contains(&flows),
            "{flows} of 64 flows on queue {queue}"
        );
    }
}

#[test]
fn two_volleys_and_two_workers() {
    let folder = folder();
    let (outer, inner) = (folder.path().join("o.sock"), folder.path().join("i.sock"));
    let mut a = Router::new(&outer, 2);
    let mut b = Router::new(&inner, 1);
    a.socket(1, inner.clone()).unwrap();
    let (front, back) = (a.memif(master(0)), a.memif(slave(7, 1)));
    a.patch(&front, &back);
    a.patch(&back, &front);
    let end = b.memif(master(7));
    b.patch(&end, &end);
    let both = RefCell::new((&mut a, &mut b));
    let step = || {
        let mut both = both.borrow_mut();
        both.0.step();
        both.1.step();
    };
    let mut peer = Peer::join(&outer, offer(0), step).unwrap();
    for _ in 0..100 {
        step();
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let packets = sizes();
    let (mut sent, mut got) = (0, Vec::new());
    for _ in 0..200_000 {
        sent += peer.send(0, &packets[sent..packets.len().min(sent + 16)]);
        let mut both = both.borrow_mut();
        both.0.step();
        both.1.step();
        got.extend(peer.receive(0));
        if got.len() == packets.len() {
            break;
        }
    }
    assert_eq!(got.len(), packets.len());
    assert!(got == packets);
    assert_eq!((a.in_use(), b.in_use()), (0, 0));
}

#[test]
fn a_full_ring_drops_whole_packets_by_name() {
    let (_folder, mut router, mut peer, name) = as_master(Offer {
        log2: 6,
        ..offer(0)
    });
    // 64 descriptors, chains of five: 12 packets fit, 4 descriptors remain.
    let packets: Vec<_> = (0..12).map(|n| packet(n, 9000)).collect();
    assert_eq!(peer.send(0, &packets), 12);
    router.step();
    let more: Vec<_> = (12..15).map(|n| packet(n, 9000)).collect();
    assert_eq!(peer.send(0, &more), 3);
    router.step();
    assert_eq!(router.errors("memif0/0-tx", "no-tx-slots"), 3);
    assert_eq!(router.counts(&name).tx_errors, 3);
    assert!(peer.receive(0) == packets, "what went out is whole");
    // The remaining descriptors still work.
    echo(&mut router, &mut peer, &sizes());
    assert_eq!(router.in_use(), 0);
}

#[test]
fn down_is_told_to_the_peer_and_up_connects_again() {
    let (_folder, mut router, peer, name) = as_master(offer(0));
    router.state(&name, AdminState::Down);
    router.until("the link to go", |r| r.link_reason("memif0/0").is_some());
    let message = peer.channel.receive().unwrap().unwrap().0;
    assert!(
        format!("{message:?}").contains("the interface is down"),
        "{message:?}"
    );
    let socket = std::path::PathBuf::from(router.report().sockets[0].filename.clone());
    let again = {
        let router = RefCell::new(&mut router);
        Peer::join(&socket, offer(0), || router.borrow_mut().step())
    };
    assert_eq!(
        again.err().unwrap(),
        "the peer disconnected: the interface is down"
    );
    router.state(&name, AdminState::Up);
    let router = RefCell::new(&mut router);
    assert!(Peer::join(&socket, offer(0), || router.borrow_mut().step()).is_ok());
}

#[test]
fn a_worker_sleeps_until_the_peer_rings() {
    let (_folder, mut router, mut peer, _) = as_master(offer(0));
    router.start(&[]);
    router.pass(std::time::Duration::from_millis(50));
    let slept = router.engine.borrow().sleeps(0);
    assert!(slept > 0, "an idle worker sleeps");
    let mut longest = std::time::Duration::ZERO;
    for n in 0..50 {
        std::thread::sleep(std::time::Duration::from_millis(2));
        let start = std::time::Instant::now();
        let turn = peer.link.tx()[0].turn().unwrap();
        let mut leaving = turn.tx().leaving(&mut peer.scratch, 1).unwrap();
        leaving.put(&packet(n, 100)).unwrap();
        if leaving.publish() {
            peer.link.ring_wakeup(0);
        }
        drop(turn);
        while peer.receive(0).is_empty() {
            assert!(start.elapsed().as_secs() < 5, "packet {n} is not answered");
            std::thread::yield_now();
        }
        longest = longest.max(start.elapsed());
    }
    assert!(
        peer.link.wakeups_sent() > 25,
        "{} of 50 had to ring",
        peer.link.wakeups_sent()
    );
    println!("longest answer {longest:?}");
}

#[test]
fn nothing_is_left_behind() {
    let (folder, router, peer, _) = as_master(offer(0));
    let socket = folder.path().join("m.sock");
    assert!(socket.exists());
    drop(router);
    assert!(!socket.exists(), "the socket goes with the daemon");
    let message = peer.channel.receive().unwrap().unwrap().0;
    assert!(
        format!("{message:?}").contains("Volley ends"),
        "{message:?}"
    );
}

#[test]
fn bad_requests_leave_nothing_half_made() {
    let folder = folder();
    let mut router = Router::new(&folder.path().join("m.sock"), 1);
    let error = |r: Result<(), volley_model::ModelError>| r.unwrap_err().to_string();
    let message = error(router.create(slave(0, 5)));
    assert!(message.contains("create memif socket id 5"), "{message}");
    let taken = folder.path().join("taken.sock");
    let _other = Listener::bind(&Address(taken.clone())).unwrap();
    router.socket(1, taken.clone()).unwrap();
    let on_1 = Memif {
        socket: 1,
        ..master(0)
    };
    let message = error(router.create(on_1));
    assert!(
        message.ends_with(
            "a running program listens there already: stop it or choose another filename"
        ),
        "{message}"
    );
    assert!(router.interfaces.borrow().iter().next().is_none());
    assert!(error(router.socket(2, taken)).contains("memif socket 1 has it"));
    router.create(master(0)).unwrap();
    let message = error(router.create(slave(1, 0)));
    assert!(message.contains("a socket serves one role"), "{message}");
    assert!(error(router.create(master(0))).contains("memif0/0"));
    router.no_socket(1).unwrap();
    router.delete("memif0/0").unwrap();
    assert!(
        !folder.path().join("m.sock").exists(),
        "nobody listens any more"
    );
}
