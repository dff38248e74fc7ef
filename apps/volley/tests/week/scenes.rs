//! A scene for each type of interface: how one is created, what is at its other end, and how the test sees that it works.

use super::bench::Bench;
use super::support::Daemon;
use super::support::bed::must;
use super::support::oracle;
use volley_pcap::Packet;

/// How the test sees that an interface works.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Works {
    /// Host .2 of its network replies to a ping, and pings the router all the time.
    Answers(Far),
    /// The interface receives packets for which the router sends replies, and transmits these.
    Replies,
    /// The interface transmits packets of the router (neighbour discovery, MLD).
    Transmits,
    /// The command is refused, because this Volley was built without the driver.
    Refused,
}

/// The host .2.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Far {
    Kernel,
    Volley,
}

/// One interface of a scene. Its network is 10.90.NET.0/24, and the router is .1.
pub struct End {
    pub name: &'static str,
    pub net: u8,
    pub works: Works,
}

const fn kernel(name: &'static str, net: u8) -> End {
    let works = Works::Answers(Far::Kernel);
    End { name, net, works }
}

const fn volley(name: &'static str, net: u8) -> End {
    let works = Works::Answers(Far::Volley);
    End { name, net, works }
}

pub struct Scene {
    /// The type of interface, as in the API.
    pub kind: &'static str,
    pub ends: Vec<End>,
    /// Commands that create the interfaces and what they need.
    pub create: Vec<String>,
    /// Commands that delete what deleting the interfaces leaves.
    pub delete: Vec<String>,
}

impl Scene {
    fn new(kind: &'static str, ends: Vec<End>, create: &[String]) -> Scene {
        let (create, delete) = (create.to_vec(), Vec::new());
        Scene {
            kind,
            ends,
            create,
            delete,
        }
    }
}

/// An echo request to the router's address of a network, in a frame to the MAC address of [`mac`].
fn echo_request(net: u8) -> Vec<u8> {
    let mut ip = vec![0x45, 0, 0, 36, 0, 0, 0, 0, 64, 1, 0, 0];
    ip.extend([10, 90, net, 77, 10, 90, net, 1]);
    let mut icmp = vec![8, 0, 0, 0, 0, 7, 0, 1];
    icmp.extend([0x5a; 8]);
    for (part, at) in [(&mut ip, 10), (&mut icmp, 2)] {
        let sum = volley_wire::checksum::checksum(part);
        part[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    }
    let head = [2, 0, 0, 0, 0x90, net, 2, 0, 0, 0, 0, 0x77, 8, 0];
    [head.as_slice(), &ip, &icmp].concat()
}

/// The MAC address of the router's interface in a network.
fn mac(net: u8) -> String {
    format!("02:00:00:00:90:{net:02x}")
}

/// A capture of two echo requests, 50 ms apart.
fn requests(bench: &Bench, net: u8) -> String {
    let file = bench.folder.file(&format!("requests-{net}.pcap"));
    let packet = |ns| Packet::ethernet(ns, echo_request(net));
    oracle::write(&file, &[packet(0), packet(50_000_000)]);
    file.display().to_string()
}

fn generator(bench: &Bench) -> Scene {
    let ends = vec![End {
        name: "week-pg",
        net: 1,
        works: Works::Replies,
    }];
    let create = [
        format!(
            "create packet-generator interface week-pg mac {} mtu 1500",
            mac(1)
        ),
        format!(
            "packet-generator new name week interface week-pg limit 1000000 rate 20 pcap {}",
            requests(bench, 1)
        ),
        "packet-generator enable week".into(),
    ];
    let mut scene = Scene::new("pg", ends, &create);
    scene.delete = vec!["packet-generator delete week".into()];
    scene
}

fn pcap(bench: &Bench) -> Scene {
    let ends = vec![End {
        name: "week-pcap",
        net: 2,
        works: Works::Replies,
    }];
    let (rx, tx) = (
        requests(bench, 2),
        bench.folder.file("answers.pcap").display().to_string(),
    );
    let create = format!(
        "create pcap interface week-pcap rx {rx} tx {tx} loop forever pace recorded mac {}",
        mac(2)
    );
    Scene::new("pcap", ends, &[create])
}

fn tap(bench: &Bench) -> Scene {
    let space = &bench.peers.0;
    let create = [
        format!("create tap name week-tap host-ns {space} host-ip4-addr 10.90.3.2/24"),
        format!("create tap name week-tun tun host-ns {space} host-ip4-addr 10.90.4.2/24"),
        // A tun has no neighbour discovery.
        "set ip neighbor week-tun 10.90.4.2 02:00:00:00:00:44".into(),
        format!(
            "create tap name week-two num-rx-queues 2 vhost off host-ns {space} host-ip4-addr 10.90.5.2/24"
        ),
    ];
    let ends = vec![
        kernel("week-tap", 3),
        kernel("week-tun", 4),
        kernel("week-two", 5),
    ];
    Scene::new("tap", ends, &create)
}

fn host_interface(bench: &Bench) -> Scene {
    let space = bench.cable("week-host", 6);
    let create = format!("create host-interface name week-host as week-host netns {space}");
    Scene::new("host-interface", vec![kernel("week-host", 6)], &[create])
}

fn xdp(bench: &Bench) -> Scene {
    let space = bench.cable("week-xdp", 7);
    let create = format!("create interface af_xdp host-if week-xdp name week-xdp netns {space}");
    Scene::new("af-xdp", vec![kernel("week-xdp", 7)], &[create])
}

/// Sets the address of the peer's end of a network, and sets it up.
fn meet(peer: &Daemon, name: &str, net: u8) {
    peer.ok(&format!("set interface ip address {name} 10.90.{net}.2/24"));
    peer.ok(&format!("set interface state {name} up"));
}

fn memif(bench: &Bench) -> Scene {
    let ends = [("week-master", 8, "master"), ("week-slave", 9, "slave")];
    let mut scene = Scene::new("memif", Vec::new(), &[]);
    for (name, net, role) in ends {
        let file = bench.folder.file(&format!("memif-{net}"));
        let socket = format!("create memif socket id {net} filename {}", file.display());
        let other = if role == "master" { "slave" } else { "master" };
        bench.peer.ok(&socket);
        bench.peer.ok(&format!(
            "create interface memif id 0 socket-id {net} {other} name {name}"
        ));
        meet(&bench.peer, name, net);
        scene.create.push(socket);
        scene.create.push(format!(
            "create interface memif id 0 socket-id {net} {role} name {name}"
        ));
        scene.delete.push(format!("delete memif socket id {net}"));
        scene.ends.push(volley(name, net));
    }
    scene
}

/// Two interfaces of one side of vhost-user, one for each side that listens at the socket; the peer has the other side.
fn vhost_side(bench: &Bench, kind: &'static str, ends: [(&'static str, u8, &str); 2]) -> Scene {
    let line = |kind: &str, name: &str, net: u8, role: &str| {
        let socket = bench.folder.file(&format!("vhost-{net}"));
        let interface = if kind == "virtio-user" {
            "interface "
        } else {
            ""
        };
        let line = format!(
            "create {interface}{kind} socket {} {role}",
            socket.display()
        );
        format!("{} name {name}", line.trim())
    };
    let theirs = if kind == "vhost-user" {
        "virtio-user"
    } else {
        "vhost-user"
    };
    let mut scene = Scene::new(kind, Vec::new(), &[]);
    for (name, net, role) in ends {
        let other = if role == "server" { "" } else { "server" };
        bench.peer.ok(&line(theirs, name, net, other));
        meet(&bench.peer, name, net);
        scene.create.push(line(kind, name, net, role));
        scene.ends.push(volley(name, net));
    }
    scene
}

fn vhost_user(bench: &Bench) -> Scene {
    let ends = [("week-device", 10, "server"), ("week-guest", 11, "")];
    vhost_side(bench, "vhost-user", ends)
}

fn virtio_user(bench: &Bench) -> Scene {
    let ends = [("week-driver", 12, "server"), ("week-front", 13, "")];
    vhost_side(bench, "virtio-user", ends)
}

fn dpdk(_: &Bench) -> Scene {
    let works = if cfg!(feature = "dpdk") {
        Works::Transmits
    } else {
        println!("dpdk: this Volley was built without it; its refusal is tested");
        Works::Refused
    };
    let end = End {
        name: "week-dpdk",
        net: 14,
        works,
    };
    let create = "create dpdk interface week-dpdk vdev net_null0,no-rx=1";
    Scene::new("dpdk", vec![end], &[create.into()])
}

/// Sub-interfaces with one tag and with two, on an interface that stays.
fn sub_interface(bench: &Bench) -> Scene {
    let (ours, theirs) = (bench.wires.0.as_str(), bench.peers.0.as_str());
    must(&format!(
        "ip -n {ours} link add week-sub type veth peer name week-sub netns {theirs}"
    ));
    let ends = [
        (7, 15, ""),
        (8, 16, " dot1ad 100 inner-dot1q 8 exact-match"),
    ];
    let names = ["week-sub.7", "week-sub.8"];
    for (daemon, space) in [(&bench.daemon, ours), (&bench.peer, theirs)] {
        must(&format!("ip -n {space} link set week-sub up"));
        daemon.ok(&format!(
            "create host-interface name week-sub as week-sub netns {space}"
        ));
        daemon.ok("set interface state week-sub up");
    }
    let mut scene = Scene::new("sub-interface", Vec::new(), &[]);
    for ((number, net, tags), name) in ends.into_iter().zip(names) {
        let create = format!("create sub-interfaces week-sub {number}{tags}");
        bench.peer.ok(&create);
        meet(&bench.peer, name, net);
        scene.create.push(create);
        scene.ends.push(volley(name, net));
    }
    scene
}

/// The constructor of a scene. Constructors are in a table by type, so that a type without a scene is found before anything
/// runs.
type Make = fn(&Bench) -> Scene;

/// The scenes.
const ALL: [(&str, Make); 10] = [
    ("pg", generator),
    ("pcap", pcap),
    ("tap", tap),
    ("host-interface", host_interface),
    ("af-xdp", xdp),
    ("memif", memif),
    ("vhost-user", vhost_user),
    ("virtio-user", virtio_user),
    ("dpdk", dpdk),
    ("sub-interface", sub_interface),
];

/// The scenes of these types. Each type must have one, and each scene must be of one of these types.
pub fn of(bench: &Bench, kinds: &[String]) -> Vec<Scene> {
    for (kind, _) in ALL {
        assert!(
            kinds.iter().any(|k| k == kind),
            "the scene `{kind}` of apps/volley/tests/week/scenes.rs is of no kind of interface; there are: {kinds:?}"
        );
    }
    let scene = |kind: &String| {
        let found = ALL.iter().find(|(name, _)| name == kind);
        let (_, make) = found.unwrap_or_else(|| {
            panic!("interfaces of kind `{kind}` have no scene: add one to apps/volley/tests/week/scenes.rs")
        });
        make(bench)
    };
    kinds.iter().map(scene).collect()
}
