//! Real captures, good and bad ones, through every way the engine can run: each packet is forwarded or dropped exactly
//! as the oracle (`tests/oracle`, Python) says, and the same for every vector size and instruction-set level.
//!
//! Needs the shared data and Python; says so and passes when they are not there.

mod support;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use support::{Daemon, frames, oracle};
use volley_pcap::{Packet, read_packets};
use volley_simd::Level;

/// Packets sent in one go: fewer than a capture can hold back, with those that tell their senders.
const BURST: usize = 500;

/// The router, for Volley ...
const CONFIG: &str = r#"
[icmp]
rate = 0
receiver_rate = 0
[[interface]]
name = "pg0"
kind = "pg"
mac = "02:fe:00:00:00:00"
addresses = ["198.18.0.1/24", "2001:2::1/64"]
[[interface]]
name = "pg1"
kind = "pg"
mac = "02:fe:00:00:00:01"
mtu = 1500
addresses = ["198.18.1.1/24", "2001:2:0:1::1/64"]
capture = "@/out.pcap"
[[neighbor]]
interface = "pg1"
address = "198.18.1.10"
mac = "02:aa:00:00:00:0a"
[[neighbor]]
interface = "pg1"
address = "198.18.1.11"
mac = "02:aa:00:00:00:0b"
[[neighbor]]
interface = "pg1"
address = "2001:2:0:1::a"
mac = "02:aa:00:00:00:0a"
[[neighbor]]
interface = "pg1"
address = "2001:2:0:1::b"
mac = "02:aa:00:00:00:0b"
[[route]]
prefix = "0.0.0.0/0"
via = "198.18.1.10"
interface = "pg1"
[[route]]
prefix = "10.0.0.0/8"
paths = [{ via = "198.18.1.10", interface = "pg1" }, { via = "198.18.1.11", interface = "pg1" }]
[[route]]
prefix = "172.16.0.0/12"
action = "unreachable"
[[route]]
prefix = "192.168.0.0/24"
action = "drop"
[[route]]
prefix = "::/0"
via = "2001:2:0:1::a"
interface = "pg1"
[[route]]
prefix = "2001:db8::/32"
paths = [{ via = "2001:2:0:1::a", interface = "pg1" }, { via = "2001:2:0:1::b", interface = "pg1" }]
[[route]]
prefix = "fd00::/8"
action = "prohibit"
"#;

/// ... and the same for the oracle.
const ROUTER: &str = r#"{
  "interfaces": [
    {"name": "pg0", "mac": "02:fe:00:00:00:00", "mtu": 9000, "source_node": "pg-input",
     "addresses": ["198.18.0.1/24", "2001:2::1/64"]},
    {"name": "pg1", "mac": "02:fe:00:00:00:01", "mtu": 1500, "source_node": "pg-input", "addresses": ["198.18.1.1/24", "2001:2:0:1::1/64"]}],
  "routes": [
    {"prefix": "0.0.0.0/0", "paths": [A4]},
    {"prefix": "10.0.0.0/8", "paths": [A4, B4]},
    {"prefix": "172.16.0.0/12", "kind": "unreachable"},
    {"prefix": "192.168.0.0/24", "kind": "drop"},
    {"prefix": "198.18.0.0/24", "kind": "glean"}, {"prefix": "198.18.1.0/24", "kind": "glean"},
    {"prefix": "198.18.0.0/32", "kind": "subnet-broadcast"}, {"prefix": "198.18.1.0/32", "kind": "subnet-broadcast"},
    {"prefix": "198.18.0.255/32", "kind": "subnet-broadcast"}, {"prefix": "198.18.1.255/32", "kind": "subnet-broadcast"},
    {"prefix": "198.18.0.1/32", "kind": "local"}, {"prefix": "198.18.1.1/32", "kind": "local"},
    {"prefix": "198.18.1.10/32", "paths": [A4]}, {"prefix": "198.18.1.11/32", "paths": [B4]},
    {"prefix": "::/0", "paths": [A6]},
    {"prefix": "2001:db8::/32", "paths": [A6, B6]},
    {"prefix": "fd00::/8", "kind": "prohibit"},
    {"prefix": "2001:2::/64", "kind": "glean"}, {"prefix": "2001:2:0:1::/64", "kind": "glean"},
    {"prefix": "2001:2::1/128", "kind": "local"}, {"prefix": "2001:2:0:1::1/128", "kind": "local"},
    {"prefix": "2001:2:0:1::a/128", "paths": [A6]}, {"prefix": "2001:2:0:1::b/128", "paths": [B6]}]}"#;

fn router() -> String {
    let hops = [
        ("A4", "198.18.1.10", "0a"),
        ("B4", "198.18.1.11", "0b"),
        ("A6", "2001:2:0:1::a", "0a"),
        ("B6", "2001:2:0:1::b", "0b"),
    ];
    hops.iter()
        .fold(ROUTER.to_owned(), |text, (name, hop, mac)| {
            let path =
                format!(r#"{{"next_hop": "{hop}", "mac": "02:aa:00:00:00:{mac}", "tx": "pg1"}}"#);
            text.replace(name, &path)
        })
}

/// A capture of the shared data.
fn shared(name: &str) -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let root = std::env::var_os("VOLLEY_SHARED").map_or(beside, PathBuf::from);
    Some(root.join("data/captures").join(format!("{name}.pcap.xz"))).filter(|path| path.is_file())
}

/// The packets of a capture, sent to the router; those of the tagged mix without their tag.
fn packets(name: &str, path: &Path) -> Vec<Packet> {
    let mut packets = read_packets(path).unwrap().packets;
    for packet in &mut packets {
        let frame = &mut packet.data;
        if name == "mix4k-snabb" && frame[12..14] == [0x81, 0] {
            frame.drain(12..16);
        }
        if let Some(mac) = frame.get_mut(..6) {
            mac.copy_from_slice(&[2, 0xfe, 0, 0, 0, 0]);
        }
        packet.orig_len = packet.data.len() as u32;
    }
    packets
}

/// What came out: how often each frame left, and how often each was dropped for which reason.
#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    sent: BTreeMap<Vec<u8>, usize>,
    dropped: BTreeMap<(String, Vec<u8>), usize>,
}

/// Run packets through a daemon that ends with every buffer back. Its folder holds `out.pcap` and `drops.pcapng`.
fn run(packets: &[Packet], vector_size: usize, isa: &str) -> (Outcome, Daemon) {
    run_with(CONFIG, packets, vector_size, isa)
}

fn run_with(config: &str, packets: &[Packet], vector_size: usize, isa: &str) -> (Outcome, Daemon) {
    let mut daemon = Daemon::start(
        config,
        &["--vector-size", &vector_size.to_string(), "--isa", isa],
    );
    let drops = daemon.folder.file("drops.pcapng");
    daemon.ok(&format!(
        "pcap trace drop max 1000000 file {}",
        drops.display()
    ));
    let mut sent = 0;
    for (n, burst) in packets.chunks(BURST).enumerate() {
        let file = daemon.folder.file(&format!("burst{n}.pcap"));
        oracle::write(&file, burst);
        daemon.ok(&format!(
            "packet-generator new name b{n} interface pg0 limit {} pcap {}",
            burst.len(),
            file.display()
        ));
        daemon.ok(&format!("packet-generator enable b{n}"));
        sent += burst.len();
        daemon.wait_for("every packet in a capture", |d| {
            let generator = d.json("show packet-generator");
            let left = generator["captures"][0]["packets"].as_u64().unwrap_or(0);
            let made = generator["streams"][0]["enabled"] == false;
            let trace = d.json("show pcap trace");
            assert_eq!(trace["lost"], 0);
            made && left + trace["packets"].as_u64().unwrap_or(0) >= sent as u64
        });
        daemon.ok(&format!("packet-generator delete b{n}"));
    }
    daemon.wait_for("every buffer back", |d| {
        d.json("show buffers")["arenas"][0]["used"] == 0
    });
    daemon.stop("TERM");
    let mut outcome = Outcome::default();
    let out = daemon.folder.file("out.pcap");
    if out.exists() {
        frames(&out)
            .into_iter()
            .for_each(|frame| *outcome.sent.entry(frame).or_default() += 1);
    }
    for packet in read_packets(&drops).unwrap().packets {
        *outcome
            .dropped
            .entry((packet.comment.unwrap_or_default(), packet.data))
            .or_default() += 1;
    }
    (outcome, daemon)
}

/// One capture: the first way to run is judged by the oracle, the others must do the same.
fn replay(name: &str, ways: &[(usize, &str)]) {
    let (Some(path), Some(python)) = (shared(name), oracle::python()) else {
        println!("SKIP {name}: the shared data or Python is not there");
        return;
    };
    let packets = packets(name, &path);
    let (first, daemon) = run(&packets, 256, "auto");
    let (input, router_file) = (
        daemon.folder.file("in.pcap"),
        daemon.folder.file("router.json"),
    );
    oracle::write(&input, &packets);
    std::fs::write(&router_file, router()).unwrap();
    let outputs = [("pg1".to_owned(), daemon.folder.file("out.pcap"))];
    let said = oracle::judge(
        &python,
        &router_file,
        &[("pg0".to_owned(), input)],
        &outputs,
        &daemon,
    );
    assert!(
        said.contains(&format!("oracle: {} packets", packets.len())),
        "{name}: {said}"
    );
    println!("{name}: {said}");
    drop(daemon);
    for (vector_size, isa) in ways {
        let (outcome, _) = run(&packets, *vector_size, isa);
        assert!(
            outcome == first,
            "{name}: vectors of {vector_size} at {isa} do something else than 256 at auto"
        );
    }
}

/// Rules of the path batcher: both families, a tunnel, a range, a queue of their own for some hosts.
const BATCHED: &str = r#"
[path_batcher]
batch = 32
[[path_queue]]
id = 1
[[path_queue]]
id = 2
batch = 7
[[path_queue]]
id = 3
weight = 4
timeout_us = 2000
[[path_queue]]
id = 4
strict = 1
[[path_rule]]
name = "four"
queue = 1
match = ["ip4"]
[[path_rule]]
name = "six"
queue = 2
match = ["ip6"]
[[path_rule]]
name = "half"
queue = 3
priority = 5
match = ["ip4.dst=0.0.0.1&0.0.0.1"]
[[path_rule]]
name = "control"
queue = 4
priority = 9
match = ["ip4.dscp=46-63"]
"#;

/// What makes packets one flow: of IPv4 DSCP, protocol and addresses, of IPv6 next header and addresses. An ICMP error is
/// of the flow of the packet that it quotes.
fn flow(packet: &[u8]) -> Vec<u8> {
    let (mut key, error) = match packet.first().map(|b| b >> 4) {
        Some(4) if packet.len() >= 20 => {
            let header = usize::from(packet[0] & 15) * 4;
            let error = packet[9] == 1 && matches!(packet.get(header), Some(3 | 11 | 12));
            let key = [&packet[1..2], &packet[9..10], &packet[12..20]].concat();
            (key, error.then_some(header + 8))
        }
        Some(6) if packet.len() >= 40 => {
            let error = packet[6] == 58 && packet.get(40).is_some_and(|kind| *kind < 128);
            (
                [&packet[6..7], &packet[8..40]].concat(),
                error.then_some(48),
            )
        }
        _ => (Vec::new(), None),
    };
    if let Some(quoted) = error.and_then(|at| packet.get(at..)) {
        key.extend(flow(quoted));
    }
    key
}

/// Packets that left, by flow, each in order.
fn flows(frames: Vec<Vec<u8>>) -> BTreeMap<Vec<u8>, Vec<Vec<u8>>> {
    let mut flows: BTreeMap<Vec<u8>, Vec<Vec<u8>>> = BTreeMap::new();
    for frame in frames {
        let key = match frame.get(12..14) {
            Some([8, 0] | [0x86, 0xdd]) => flow(&frame[14..]),
            _ => Vec::new(),
        };
        flows.entry(key).or_default().push(frame);
    }
    flows
}

#[test]
fn through_the_path_batcher_unchanged_and_in_order() {
    let config =
        CONFIG.replacen("kind = \"pg\"", "kind = \"pg\"\npath_batcher = true", 1) + BATCHED;
    for name in ["valid", "mix4k-snabb", "odd", "malformed", "jumbo"] {
        let Some(path) = shared(name) else {
            println!("SKIP {name}: the shared data is not there");
            continue;
        };
        let packets = packets(name, &path);
        let (plain, before) = run(&packets, 256, "auto");
        let (batched, after) = run_with(&config, &packets, 256, "auto");
        assert!(
            plain == batched,
            "{name}: the batcher changes what comes out"
        );
        let out = |daemon: &Daemon| {
            let file = daemon.folder.file("out.pcap");
            flows(if file.exists() {
                frames(&file)
            } else {
                Vec::new()
            })
        };
        let (before, after) = (out(&before), out(&after));
        for (flow, frames) in &before {
            assert_eq!(
                after.get(flow),
                Some(frames),
                "{name}: a flow is out of order: {flow:02x?}"
            );
        }
        println!("{name}: {} packets", packets.len());
    }
}

const SOME: &[(usize, &str)] = &[(4, "auto"), (7, "scalar"), (1024, "auto")];

#[test]
fn well_formed_packets() {
    replay("valid", SOME);
}

#[test]
fn a_traffic_mix() {
    replay("mix4k-snabb", SOME);
}

#[test]
fn odd_packets() {
    replay("odd", SOME);
}

#[test]
fn malformed_packets() {
    replay("malformed", SOME);
}

#[test]
fn jumbo_packets() {
    replay("jumbo", SOME);
}

#[test]
#[ignore = "takes minutes"]
fn every_capture_at_every_vector_size_and_level() {
    let sizes = [4, 5, 7, 8, 16, 31, 32, 64, 128, 255, 256, 512, 1023, 1024];
    let levels: Vec<String> = Level::available().map(|level| level.to_string()).collect();
    let ways: Vec<_> = levels
        .iter()
        .flat_map(|isa| sizes.map(|size| (size, isa.as_str())))
        .collect();
    for name in ["valid", "mix4k-snabb", "odd", "malformed", "jumbo"] {
        replay(name, &ways);
    }
}
