//! DPDK's peer is killed and restarted under traffic, in both roles: Volley reconnects, leaks nothing, and keeps
//! forwarding on other interfaces.
//!
//! `VOLLEY_RESTARTS` is the number of restarts (default 3; 20 in the long run).

mod support;

use std::cell::RefCell;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use support::testpmd::{Testpmd, is_there, port};
use support::{Peer, Router, master, offer, packet, slave};
use volley_memif::model::Memif;
use volley_memif::session::Offer;

fn restarts() -> usize {
    let wanted = std::env::var("VOLLEY_RESTARTS").ok();
    wanted.and_then(|n| n.parse().ok()).unwrap_or(3)
}

/// Resources that could leak: open files, and mappings of shared memory.
fn held() -> (usize, usize) {
    let files = std::fs::read_dir("/proc/self/fd").unwrap().count();
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    (files, maps.lines().filter(|l| l.contains("memif")).count())
}

fn join(router: &mut Router, socket: &Path, id: u32) -> Peer {
    let router = RefCell::new(router);
    let offer = Offer {
        log2: 10,
        ..offer(id)
    };
    Peer::join(socket, offer, || router.borrow_mut().step()).unwrap()
}

struct Scene {
    router: Router,
    name: String,
    /// Sends to testpmd's interface.
    driver: Peer,
    /// Two peers that exchange packets throughout the test.
    left: Peer,
    right: Peer,
    sent: u32,
    got: u64,
    last: Instant,
    gap: Duration,
    returned: u64,
}

impl Scene {
    fn step(&mut self) {
        let packets: Vec<_> = (0..8).map(|n| packet(self.sent + n, 100)).collect();
        self.sent += self.left.send(0, &packets) as u32;
        self.driver.send(0, &packets);
        self.router.step();
        self.returned += self.driver.receive_all().len() as u64;
        let got = self.right.receive_all().len() as u64;
        if got > 0 {
            self.gap = self.gap.max(self.last.elapsed());
            self.last = Instant::now();
            self.got += got;
        }
    }
}

/// One test at a time, because the resources are counted for the whole process.
static ONE: Mutex<()> = Mutex::new(());

fn run(spec: Memif, theirs: &str) {
    let _one = ONE.lock().unwrap_or_else(|e| e.into_inner());
    let folder = tempfile::tempdir().unwrap();
    let (own, shared) = (
        folder.path().join("own.sock"),
        folder.path().join("pmd.sock"),
    );
    let mut router = Router::new(&own, 1);
    router.socket(1, shared.clone()).unwrap();
    let name = router.memif(Memif { socket: 1, ..spec });
    let names: Vec<String> = (7..10).map(|id| router.memif(master(id))).collect();
    router.patch(&names[0], &name);
    router.patch(&name, &names[0]);
    router.patch(&names[1], &names[2]);
    router.patch(&names[2], &names[1]);
    let [driver, left, right] = [7, 8, 9].map(|id| join(&mut router, &own, id));
    router.start(&[]);
    router.pass(Duration::from_millis(50));
    let before = held();
    let now = Instant::now();
    let mut scene = Scene {
        router,
        name,
        driver,
        left,
        right,
        sent: 0,
        got: 0,
        last: now,
        gap: Duration::ZERO,
        returned: 0,
    };
    for round in 0..restarts() {
        one_life(&mut scene, theirs, &shared, round);
    }
    for _ in 0..1000 {
        scene.step();
    }
    let slots = scene
        .router
        .errors(&format!("{}-tx", names[2]), "no-tx-slots");
    scene.router.pass(Duration::from_millis(100));
    let row = scene.router.row(&scene.name);
    assert_eq!(row.connections, restarts() as u64);
    loop {
        let more = scene.right.receive_all().len() as u64;
        scene.got += more;
        scene.router.pass(Duration::from_millis(2));
        if more == 0 {
            break;
        }
    }
    let sent = u64::from(scene.sent);
    assert_eq!(scene.got + slots, sent, "the others lost nothing");
    assert!(
        slots < sent / 100,
        "{slots} of {sent} found no room at their reader"
    );
    say_longest(&scene);
    assert_eq!(held(), before, "files and mappings");
    scene.router.stop();
    assert_eq!(scene.router.in_use(), 0, "buffers");
}

fn say_longest(scene: &Scene) {
    let round = scene.router.engine.borrow().longest_round_us(0);
    println!("longest round of the worker: {round:.0} us");
    println!(
        "longest gap elsewhere: {:?} ({} packets)",
        scene.gap, scene.got
    );
}

fn one_life(scene: &mut Scene, theirs: &str, shared: &Path, round: usize) {
    let ports = [port(0, theirs, 3, shared, "")];
    let args = ["--forward-mode=io", "--port-topology=loop", "--auto-start"];
    let mut pmd = Testpmd::start(&ports, &args, || scene.step());
    // Testpmd is connected at its prompt at the latest; auto-start comes before that.
    pmd.say("");
    let before = scene.returned;
    let end = Instant::now() + Duration::from_secs(20);
    while scene.returned < before + 1000 {
        assert!(Instant::now() < end, "life {round}: nothing comes back");
        scene.step();
    }
    pmd.kill();
    if theirs == "server" {
        // DPDK's server does not start if the socket file exists.
        std::fs::remove_file(shared).unwrap();
    }
    let end = Instant::now() + Duration::from_secs(5);
    while scene.router.row(&scene.name).connected {
        assert!(Instant::now() < end, "the death is not noticed");
        scene.step();
    }
    assert_eq!(
        scene.router.link_reason(&scene.name).as_deref(),
        Some("the peer has gone")
    );
}

#[test]
fn a_client_dies_again_and_again() {
    if is_there() {
        run(master(3), "client");
    }
}

#[test]
fn a_server_dies_again_and_again() {
    if is_there() {
        run(slave(3, 1), "server");
    }
}
