//! Peers of memif, vhost-user and virtio-user that attack the daemon by shared resources, in a separate process: event counters
//! that block, memory that disappears, memory that costs. Forwarding between other interfaces continues, the control thread
//! replies, and the daemon ends on SIGTERM.

mod support;

use std::cell::Cell;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};
use support::cgroup::Cgroup;
use support::peers::{Device, Guest, Master, Slave, block, until};
use support::{Daemon, Folder};

/// pg0 sends to the interface `x`, which each test creates; pg1 sends to pg2.
const CONFIG: &str = r#"
[[interface]]
name = "pg0"
kind = "pg"
[[interface]]
name = "pg1"
kind = "pg"
[[interface]]
name = "pg2"
kind = "pg"
[[l2patch]]
rx = "pg1"
tx = "pg2"
"#;

/// A daemon, and a folder for sockets.
struct Scene {
    daemon: Daemon,
    folder: Folder,
    /// Fewest packets that were forwarded within 300 ms.
    fewest: Cell<u64>,
    /// Only one daemon forwards at a time, because each needs a core.
    _alone: MutexGuard<'static, ()>,
}

fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(|e| e.into_inner())
}

impl Scene {
    fn new(engine: &str) -> Scene {
        let config = format!("[engine]\n{engine}\n{CONFIG}");
        let _alone = alone();
        Scene {
            daemon: Daemon::start(&config, &[]),
            folder: Folder::new(),
            fewest: Cell::new(u64::MAX),
            _alone,
        }
    }

    fn socket(&self, name: &str) -> PathBuf {
        self.folder.file(name)
    }

    fn up(&self, name: &str) {
        self.daemon.ok(&format!("set interface state {name} up"));
    }

    fn vhost(&self, name: &str) -> PathBuf {
        let socket = self.socket(name);
        let path = socket.display();
        self.daemon.ok(&format!(
            "create vhost-user socket {path} server name {name}"
        ));
        self.up(name);
        socket
    }

    /// Creates memif masters with these ids, named `m` and the id.
    fn memif(&self, ids: std::ops::Range<u32>) -> PathBuf {
        let socket = self.socket("memif");
        let path = socket.display();
        self.daemon
            .ok(&format!("create memif socket id 1 filename {path}"));
        for id in ids {
            let name = format!("m{id}");
            let line = format!("create interface memif id {id} socket-id 1 master name {name}");
            self.daemon.ok(&line);
            self.up(&name);
        }
        socket
    }

    fn wait_up(&mut self, name: &str) {
        let name = name.to_owned();
        self.daemon
            .wait_for("a link", move |d| link(d, &name).is_none());
    }

    /// Sends packets from pg0 to an interface, and from pg1 to pg2.
    fn traffic(&self, to: &str) {
        self.daemon.ok(&format!("test l2patch rx pg0 tx {to}"));
        for pg in ["pg0", "pg1"] {
            self.daemon.ok(&format!(
                "packet-generator new name s-{pg} interface {pg} rate 20000 template {{ \
                 eth dst 02:fe:00:00:00:00 / ip4 src 198.18.0.2 dst 10.1.2.3 ttl 64 / udp / payload 20 }}"
            ));
        }
        self.daemon.ok("packet-generator enable");
    }

    /// Checks that packets from pg1 to pg2 are forwarded.
    fn assert_forwards(&self) {
        for _ in 0..3 {
            let before = sent(&self.daemon, "pg2");
            std::thread::sleep(Duration::from_millis(300));
            let now = sent(&self.daemon, "pg2");
            assert!(now > before + 100, "forwarding stands still at {now}");
            self.fewest.set(self.fewest.get().min(now - before));
        }
    }

    /// Checks that the control thread replies and the daemon ends.
    fn end(mut self) {
        let start = Instant::now();
        self.daemon.ok("show version");
        let answer = start.elapsed();
        assert!(
            answer < Duration::from_secs(5),
            "an answer takes {answer:?}"
        );
        let start = Instant::now();
        self.daemon.stop("TERM");
        let end = start.elapsed();
        assert!(end < Duration::from_secs(10), "its end takes {end:?}");
        if self.fewest.get() < u64::MAX {
            println!(
                "forwarding beside the attack {} packets in 300 ms, at least 100; answer {} ms, at most 5000; end {} ms, at most 10000",
                self.fewest.get(),
                answer.as_millis(),
                end.as_millis()
            );
        }
    }
}

fn row(daemon: &Daemon, name: &str) -> serde_json::Value {
    let shown = daemon.json("show interface");
    let rows = shown["interfaces"].as_array().unwrap();
    rows.iter().find(|row| row["name"] == name).unwrap().clone()
}

fn sent(daemon: &Daemon, name: &str) -> u64 {
    row(daemon, name)["tx"]["packets"].as_u64().unwrap()
}

/// Why an interface has no link; none if it has one.
fn link(daemon: &Daemon, name: &str) -> Option<String> {
    let text = daemon.ok("show interface");
    let prefix = format!("{name}: no link: ");
    let line = text
        .lines()
        .find_map(|line| line.trim().strip_prefix(&prefix));
    line.map(str::to_owned)
}

/// Attacks with an event counter that blocks; the peer lives until the end of the attack.
fn blocked<P>(make: impl FnOnce(&mut Scene) -> P, attack: impl FnOnce(&P), name: &str) {
    let mut scene = Scene::new("");
    let peer = make(&mut scene);
    scene.wait_up(name);
    attack(&peer);
    scene.traffic(name);
    until("packets to the peer", || {
        (sent(&scene.daemon, name) > 0).then_some(())
    });
    scene.assert_forwards();
    drop(peer);
    scene.assert_forwards();
    scene
        .daemon
        .wait_for("the end of the link", |d| link(d, name).is_some());
    scene.end();
}

#[test]
fn a_vhost_user_peer_that_blocks_its_call_blocks_nothing() {
    blocked(
        |scene| Guest::new(&scene.vhost("x"), 16 << 20),
        |guest| {
            block(guest.call.as_fd());
            guest.offer();
        },
        "x",
    );
}

#[test]
fn a_virtio_user_peer_that_blocks_its_kick_blocks_nothing() {
    blocked(
        |scene| {
            let socket = scene.socket("x");
            let listener = volley_vhost::protocol::Listener::bind(&socket).unwrap();
            let path = socket.display();
            scene.daemon.ok(&format!(
                "create interface virtio-user socket {path} name x"
            ));
            scene.up("x");
            let device = Device::new(&listener);
            (device, listener)
        },
        |(device, _)| device.block(),
        "x",
    );
}

#[test]
fn a_memif_slave_that_blocks_its_interrupt_blocks_nothing() {
    blocked(
        |scene| Slave::new(&scene.memif(0..1), 0, 16 << 20),
        |slave| {
            block(slave.interrupt.as_fd());
            slave.offer();
        },
        "m0",
    );
}

#[test]
fn a_memif_master_that_blocks_its_interrupt_blocks_nothing() {
    blocked(
        |scene| {
            let socket = scene.socket("memif");
            let address = volley_memif::socket::Address(socket.clone());
            let listener = volley_memif::socket::Listener::bind(&address).unwrap();
            let path = socket.display();
            let daemon = &scene.daemon;
            daemon.ok(&format!("create memif socket id 1 filename {path}"));
            daemon.ok("create interface memif id 0 socket-id 1 slave name x");
            scene.up("x");
            let master = Master::new(&listener);
            (master, listener)
        },
        |(master, _)| master.block(),
        "x",
    );
}

const MANY: u32 = 5;

/// Peers of one type, connected and polled.
enum Peers {
    Memif(Vec<Slave>),
    Vhost(Vec<Guest>),
}

impl Peers {
    fn new(scene: &mut Scene, is_memif: bool) -> Peers {
        let peers = match is_memif {
            true => {
                let socket = scene.memif(0..MANY);
                let peers = (0..MANY).map(|id| Slave::new(&socket, id, 1 << 20));
                Peers::Memif(peers.collect())
            }
            false => {
                let peers =
                    (0..MANY).map(|id| Guest::new(&scene.vhost(&format!("v{id}")), 1 << 21));
                Peers::Vhost(peers.collect())
            }
        };
        for name in peers.names() {
            scene.wait_up(&name);
        }
        peers
    }

    fn names(&self) -> Vec<String> {
        let letter = match self {
            Peers::Memif(_) => 'm',
            Peers::Vhost(_) => 'v',
        };
        (0..MANY).map(|id| format!("{letter}{id}")).collect()
    }

    /// Shrinks the shared memory; each interface must report it.
    fn shrink(&self, scene: &mut Scene) {
        let none = |file| rustix::fs::ftruncate(file, 0).unwrap();
        let reason = match self {
            Peers::Memif(peers) => {
                peers.iter().for_each(|peer| none(&peer.file));
                "region 0 was truncated"
            }
            Peers::Vhost(peers) => {
                peers.iter().for_each(|peer| none(&peer.file));
                "memory-shrunk"
            }
        };
        // A disconnected peer does not reconnect, so that the reason stays.
        for name in self.names() {
            scene.daemon.wait_for(&format!("the fault of {name}"), |d| {
                link(d, &name).is_some_and(|text| text.contains(reason))
            });
        }
    }
}

#[test]
fn memory_of_many_peers_shrinks_in_either_order() {
    for (mapped_first, shrunk_first) in [(true, true), (true, false), (false, true), (false, false)]
    {
        let mut scene = Scene::new("workers = 2");
        let first = Peers::new(&mut scene, mapped_first);
        let second = Peers::new(&mut scene, !mapped_first);
        scene.traffic(&first.names()[0]);
        let order = match mapped_first == shrunk_first {
            true => [&first, &second],
            false => [&second, &first],
        };
        order.iter().for_each(|peers| peers.shrink(&mut scene));
        scene.assert_forwards();
        // Correct peers can connect again.
        drop((first, second));
        let again = Slave::new(&scene.socket("memif"), 1, 1 << 20);
        let guest = Guest::new(&scene.socket("v1"), 1 << 21);
        scene.wait_up("m1");
        scene.wait_up("v1");
        drop((again, guest));
        scene.end();
    }
}

const GIB: u64 = 1 << 30;

/// Sends packets on new pages of a sparse file until the daemon accepts no more; returns how many pages were sent.
fn spend(mut send: impl FnMut(u64) -> bool) -> u64 {
    let pages = (4 * GIB - (2 << 20)) / 4096;
    let mut from = 0;
    while from + 256 <= pages && send(from) {
        from += 256;
    }
    from
}

/// The bytes of a file that have pages.
fn allocated(file: impl AsFd) -> u64 {
    rustix::fs::fstat(file).unwrap().st_blocks as u64 * 512
}

#[test]
fn pages_that_peers_left_out_cost_no_more_than_the_limit() {
    let mut scene = Scene::new("peer_charge_mb = 64");
    let mut guest = Guest::new(&scene.vhost("x"), 4 * GIB);
    let mut slave = Slave::new(&scene.memif(0..1), 0, 4 * GIB - 4096);
    scene.wait_up("x");
    scene.wait_up("m0");
    scene.traffic("x");
    let pages = spend(|from| guest.send_pages(from));
    let text = |scene: &Scene, name| link(&scene.daemon, name).unwrap_or_default();
    until("the fault", || {
        text(&scene, "x")
            .contains("memory-charge-limit")
            .then_some(())
    });
    let cost = allocated(&guest.file);
    println!(
        "vhost-user: {pages} pages taken, {} MB allocated, at most 34",
        cost >> 20
    );
    assert!(cost < 34 << 20 && cost > 30 << 20, "{cost} bytes");
    let pages = spend(|from| slave.send_pages(from));
    until("the fault", || {
        text(&scene, "m0").contains("peer_charge_mb").then_some(())
    });
    let cost = allocated(&slave.file);
    println!(
        "memif: {pages} pages taken, {} MB allocated, at most 34",
        cost >> 20
    );
    assert!(cost < 34 << 20 && cost > 30 << 20, "{cost} bytes");
    scene.assert_forwards();
    scene.end();
}

#[test]
fn regions_larger_than_the_limit_are_refused() {
    let mut scene = Scene::new("peer_memory_mb = 1024");
    let socket = scene.vhost("x");
    let guest = Guest::new(&socket, 2 * GIB);
    scene.daemon.wait_for("the fault", |d| {
        link(d, "x").is_some_and(|text| text.contains("memory-limit"))
    });
    drop(guest);
    let good = Guest::new(&socket, GIB);
    scene.wait_up("x");
    let slave = Slave::new(&scene.memif(0..1), 0, 2 * GIB);
    let reason = until("the reason", || slave.reason());
    assert!(reason.contains("peer_memory_mb"), "{reason}");
    drop(good);
    scene.end();
}

#[test]
fn a_sparse_file_of_4_gb_does_not_end_a_daemon_with_600_mb() {
    let Some(group) = Cgroup::new("600M") else {
        println!("SKIP no memory cgroup can be made here");
        return;
    };
    let procs = group.0.join("cgroup.procs").display().to_string();
    let config = format!("[engine]\n{CONFIG}");
    let _alone = alone();
    let mut scene = Scene {
        daemon: Daemon::start_in(&procs, &config),
        folder: Folder::new(),
        fewest: Cell::new(u64::MAX),
        _alone,
    };
    let mut guest = Guest::new(&scene.vhost("x"), 4 * GIB);
    scene.wait_up("x");
    scene.traffic("x");
    let pages = spend(|from| guest.send_pages(from));
    until("the fault", || {
        let text = link(&scene.daemon, "x").unwrap_or_default();
        text.contains("memory-charge-limit").then_some(())
    });
    println!(
        "600 MB cgroup: {pages} pages taken, {} MB allocated, at most 160",
        allocated(&guest.file) >> 20
    );
    assert!(allocated(&guest.file) < 160 << 20);
    scene.assert_forwards();
    scene.end();
}
