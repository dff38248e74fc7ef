//! Real captures, valid and malformed, with every mode of the engine: each packet is forwarded or dropped exactly as the oracle
//! (`tests/oracle`, Python) says, and equally for every vector size and instruction-set level.
//!
//! Needs the shared data and Python; without them the tests say so and pass.

mod support;

use support::replay::{BURST, CONFIG, Outcome, flows, packets, sent, shared};
use support::{Daemon, oracle};
use volley_pcap::Packet;
use volley_simd::Level;

/// The same router for the oracle.
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

/// Runs packets through a daemon; at its end every buffer is free. Its folder contains `out.pcap` and `drops.pcapng`.
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
    (Outcome::of(&daemon), daemon)
}

/// Replays one capture: the oracle judges the first mode, and the others must give the same result.
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
    let message = oracle::judge(
        &python,
        &router_file,
        &[("pg0".to_owned(), input)],
        &outputs,
        &daemon,
    );
    assert!(
        message.contains(&format!("oracle: {} packets", packets.len())),
        "{name}: {message}"
    );
    println!("{name}: {message}");
    drop(daemon);
    for (vector_size, isa) in ways {
        let (outcome, _) = run(&packets, *vector_size, isa);
        assert!(
            outcome == first,
            "{name}: vectors of {vector_size} at {isa} do something else than 256 at auto"
        );
    }
}

/// Rules of the path batcher: both IP versions, a tunnel, a range, a separate queue for some hosts.
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
gather = 2
weight = 4
timeout = 2000
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
        let (before, after) = (flows(sent(&before)), flows(sent(&after)));
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
