//! Packets per second and core at 64 bytes: Volley (two masters, patched) and testpmd (two servers, `io`), one after the
//! other, on the same core, with the same generator on another core. Run it in release mode on an idle machine:
//!
//! `cargo test --release -p volley-memif --test speed -- --ignored --nocapture`

mod support;

use std::cell::RefCell;
use std::path::Path;
use std::time::{Duration, Instant};
use support::testpmd::{Testpmd, is_there, last_core, port};
use support::{Peer, Router, master, offer};
use volley_memif::ring::Sent;
use volley_memif::session::Offer;

const SPAN: Duration = Duration::from_millis(300);
const ROUNDS: usize = 3;
const BURST: usize = 64;

/// Packets that passed in [`SPAN`], and the percentage of attempts that found the ring full: if that is high, the device
/// under test and not the generator limits the rate.
#[derive(Clone, Copy, Debug)]
struct Figure {
    mpps: f64,
    full: f64,
}

fn generate(from: &mut Peer, to: &mut Peer, packet: &[u8], span: Duration) -> Figure {
    let (mut got, mut tries, mut full) = (0u64, 0u64, 0u64);
    let start = Instant::now();
    while start.elapsed() < span {
        for _ in 0..16 {
            let turn = from.link.tx()[0].turn().unwrap();
            let mut leaving = turn.tx().leaving(&mut from.scratch, BURST).unwrap();
            let sent = (0..BURST).take_while(|_| leaving.put(packet).unwrap() == Sent::Whole);
            full += u64::from(sent.count() < BURST);
            tries += 1;
            let ring = leaving.publish();
            drop(turn);
            if ring {
                from.link.ring_wakeup(0);
            }
            let arrived = to.link.rx()[0].rx.arrived(&mut to.scratch, 256).unwrap();
            got += arrived.packets() as u64;
            arrived.release();
        }
    }
    Figure {
        mpps: got as f64 / start.elapsed().as_secs_f64() / 1e6,
        full: full as f64 * 100.0 / tries as f64,
    }
}

fn wide(id: u32) -> Offer {
    Offer {
        log2: 10,
        ..offer(id)
    }
}

fn volley(folder: &Path, packet: &[u8]) -> Figure {
    let socket = folder.join("v.sock");
    let mut router = Router::new(&socket, 1);
    let (a, b) = (router.memif(master(0)), router.memif(master(1)));
    router.patch(&a, &b);
    router.patch(&b, &a);
    let [mut from, mut to] = [0, 1].map(|id| {
        let router = RefCell::new(&mut router);
        Peer::join(&socket, wide(id), || router.borrow_mut().step()).unwrap()
    });
    router.until("link", |r| r.row(&a).connected && r.row(&b).connected);
    router.start(&[last_core()]);
    generate(&mut from, &mut to, packet, SPAN / 5);
    let figure = generate(&mut from, &mut to, packet, SPAN);
    router.stop();
    if std::env::var_os("VOLLEY_NODES").is_some() {
        for node in router.engine.borrow().runtime(0) {
            if node.vectors > 0 {
                let clocks = node.clocks as f64 / node.vectors as f64;
                let size = node.vectors as f64 / node.calls as f64;
                println!(
                    "  {:20} {clocks:7.1} clocks a packet, {size:6.1} packets a call",
                    node.name
                );
            }
        }
    }
    figure
}

fn testpmd(folder: &Path, packet: &[u8]) -> Figure {
    let socket = folder.join("t.sock");
    // The killed predecessor leaves its socket file, and DPDK does not start then.
    let _ = std::fs::remove_file(&socket);
    let ports = [
        port(0, "server", 0, &socket, ""),
        port(1, "server", 1, &socket, ""),
    ];
    let mut pmd = Testpmd::start(&ports, &["--forward-mode=io"], || {
        std::thread::sleep(Duration::from_millis(2));
    });
    let [mut from, mut to] = [0, 1].map(|id| Peer::join(&socket, wide(id), || ()).unwrap());
    pmd.forward(|| std::thread::sleep(Duration::from_millis(2)));
    generate(&mut from, &mut to, packet, SPAN / 5);
    let figure = generate(&mut from, &mut to, packet, SPAN);
    drop((from, to));
    figure
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

#[test]
#[ignore = "a measurement: in release, on a quiet machine"]
fn sixty_four_bytes_from_port_to_port() {
    if !is_there() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // Before this thread is pinned to one core.
    assert!(last_core() > 0, "two cores are needed");
    core_affinity::set_for_current(core_affinity::CoreId { id: 0 });
    let packet = support::packet(1, 64);
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (v, t) = (
            volley(folder.path(), &packet),
            testpmd(folder.path(), &packet),
        );
        println!(
            "volley {:6.2} Mpps (ring full {:2.0} %)   testpmd {:6.2} Mpps (ring full {:2.0} %)",
            v.mpps, v.full, t.mpps, t.full
        );
        ours.push(v.mpps);
        theirs.push(t.mpps);
    }
    let ratios = ours.iter().zip(&theirs).map(|(v, t)| v / t).collect();
    println!(
        "median {:.2} and {:.2} Mpps, ratio {:.2}",
        median(ours),
        median(theirs),
        median(ratios)
    );
}
