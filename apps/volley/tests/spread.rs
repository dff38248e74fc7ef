//! One busy queue and several workers: packets that software RSS or a node with one worker hands off to other workers are
//! unchanged, each flow in order.
//!
//! The captures are those of the shared data; the oracle judges the result of one worker (`replay.rs`). Without them the tests
//! say so and pass.

mod support;

use std::collections::BTreeMap;
use support::replay::{self, BURST, CONFIG, Outcome, flow, packets, shared};
use support::{Daemon, oracle};
use volley_pcap::Packet;

/// Sends a burst by one stream on worker 0, and waits until every packet is in a capture.
fn burst(daemon: &mut Daemon, n: usize, burst: &[Packet], sent: usize) {
    let file = daemon.folder.file(&format!("burst{n}.pcap"));
    oracle::write(&file, burst);
    daemon.ok(&format!(
        "packet-generator new name b interface pg0 worker 0 limit {} pcap {}",
        burst.len(),
        file.display()
    ));
    daemon.ok("packet-generator enable");
    daemon.wait_for("every packet in a capture", |d| {
        let generator = d.json("show packet-generator");
        let left = generator["captures"][0]["packets"].as_u64().unwrap_or(0);
        let made = generator["streams"][0]["enabled"] == false;
        let trace = d.json("show pcap trace");
        assert_eq!(trace["lost"], 0);
        made && left + trace["packets"].as_u64().unwrap_or(0) >= sent as u64
    });
    daemon.ok("packet-generator delete b");
}

/// The flow of a frame as software RSS defines it, with ports if it has some. None for fragments and tunnels.
fn flow_of(frame: &[u8]) -> Option<Vec<u8>> {
    match frame.get(12..14)? {
        [8, 0] | [0x86, 0xdd] => flow_of_packet(frame.get(14..)?),
        _ => None,
    }
}

/// An ICMP error belongs to the flow of the packet that it quotes.
fn flow_of_packet(packet: &[u8]) -> Option<Vec<u8>> {
    let (protocol, at) = match packet.first()? >> 4 {
        4 if *packet.get(6)? & 0x3f != 0 || packet.get(7) != Some(&0) => return None,
        4 => (*packet.get(9)?, usize::from(packet[0] & 15) * 4),
        _ => (*packet.get(6)?, 40),
    };
    let kind = packet.get(at);
    let more = match (protocol, kind) {
        (6 | 17, _) => packet.get(at..at + 4).unwrap_or_default().to_vec(),
        (1, Some(3 | 11 | 12)) | (58, Some(1..=4)) => flow_of_packet(packet.get(at + 8..)?)?,
        // A tunnel may contain many flows.
        (4 | 41 | 44 | 47, _) => return None,
        _ => Vec::new(),
    };
    Some([flow(packet), more].concat())
}

fn flows(frames: Vec<Vec<u8>>) -> BTreeMap<Vec<u8>, Vec<Vec<u8>>> {
    let mut flows: BTreeMap<Vec<u8>, Vec<Vec<u8>>> = BTreeMap::new();
    for frame in frames {
        if let Some(key) = flow_of(&frame) {
            flows.entry(key).or_default().push(frame);
        }
    }
    flows
}

/// The number of packets that workers have handed off.
fn handed(daemon: &Daemon) -> u64 {
    let shown = daemon.json("show rss");
    let links = shown["handoffs"].as_array().unwrap().iter();
    let others = links.filter(|link| link["from"] != link["to"]);
    others.map(|link| link["packets"].as_u64().unwrap()).sum()
}

struct Run {
    outcome: Outcome,
    flows: BTreeMap<Vec<u8>, Vec<Vec<u8>>>,
    handed: u64,
}

fn run(packets: &[Packet], workers: usize, commands: &[&str]) -> Run {
    let mut daemon = Daemon::start(CONFIG, &["--workers", &workers.to_string()]);
    let drops = daemon.folder.file("drops.pcapng");
    daemon.ok(&format!(
        "pcap trace drop max 1000000 file {}",
        drops.display()
    ));
    commands.iter().for_each(|command| _ = daemon.ok(command));
    if commands.iter().any(|c| c.contains(" rss ")) {
        daemon.wait_for("packets to be spread", |d| {
            d.json("show rss")["interfaces"][0]["state"] == "spread"
        });
    }
    let mut sent = 0;
    for (n, share) in packets.chunks(BURST).enumerate() {
        sent += share.len();
        burst(&mut daemon, n, share, sent);
    }
    daemon.wait_for("every buffer back", |d| {
        d.json("show buffers")["arenas"][0]["used"] == 0
    });
    let handed = handed(&daemon);
    daemon.stop("TERM");
    Run {
        outcome: Outcome::of(&daemon),
        flows: flows(replay::sent(&daemon)),
        handed,
    }
}

/// The modes with several workers.
const WAYS: [(usize, &[&str]); 4] = [
    (2, &["set interface rss pg0 on"]),
    (
        3,
        &["set interface rss pg0 crc32c symmetric inner workers 1,2 on"],
    ),
    (
        4,
        &[
            "set interface rss pg0 on",
            "set interface path-batcher on pg0",
        ],
    ),
    (
        4,
        &[
            "set node worker ip4-lookup 1",
            "set node worker ip6-lookup 2",
            "set node worker interface-output 3",
        ],
    ),
];

#[test]
fn one_queue_over_many_workers_gives_the_same_packets() {
    for name in ["valid", "mix4k-snabb", "odd", "malformed", "jumbo"] {
        let Some(path) = shared(name) else {
            println!("SKIP {name}: the shared data is not there");
            continue;
        };
        let packets = packets(name, &path);
        let one = run(&packets, 1, &[]);
        assert_eq!(one.handed, 0);
        for (workers, commands) in WAYS {
            let some = run(&packets, workers, commands);
            assert!(
                some.outcome == one.outcome,
                "{name}: {commands:?} does something else"
            );
            assert!(some.handed > 0, "{name}: {commands:?} hands nothing over");
            // For malformed packets both sides may compute different flows.
            for (flow, frames) in one
                .flows
                .iter()
                .filter(|_| matches!(name, "valid" | "mix4k-snabb"))
            {
                let out = some.flows.get(flow);
                assert_eq!(
                    out,
                    Some(frames),
                    "{name}: {commands:?}, out of order: {flow:02x?}"
                );
            }
        }
        println!("{name}: {} packets", packets.len());
    }
}

/// All settings of RSS change while packets flow: each received packet has left or is counted as dropped.
#[test]
fn changes_of_spreading_lose_nothing_that_is_not_counted() {
    let config = "[engine]\nworkers = 3\n\
        [[interface]]\nname = \"pg0\"\nkind = \"pg\"\nrss = { inner = true }\n\
        [[interface]]\nname = \"pg1\"\nkind = \"pg\"\n\
        [[node_worker]]\nnode = \"interface-output\"\nworker = 1\n\
        [[l2patch]]\nrx = \"pg0\"\ntx = \"pg1\"\n";
    let mut daemon = Daemon::start(config, &[]);
    let shown = daemon.json("show rss");
    assert_eq!(shown["interfaces"][0]["settings"]["inner"], true);
    assert_eq!(shown["nodes"][0]["node"], "interface-output");
    daemon.ok(
        "packet-generator new name s interface pg0 limit 200000 rate 100000 template \
         { eth / ip4 dst 10.0.0.1 / udp / payload 20 } edit udp.sport random 1024 60000",
    );
    daemon.ok("packet-generator enable");
    let commands = [
        "set interface rss pg0 crc32c workers 0,2 on",
        "set node worker interface-output 2",
        "set interface rss pg0 off",
        "set node worker interface-tx 0",
        "set interface rss pg0 auto",
        "set interface rss pg0 symmetric on",
        "set node worker interface-output default",
        "set node worker interface-tx default",
    ];
    for command in commands.iter().cycle().take(80) {
        daemon.ok(command);
    }
    daemon.wait_for("the last packet", |d| {
        let shown = d.json("show packet-generator");
        shown["streams"][0]["enabled"] == false
    });
    daemon.wait_for("every buffer back", |d| {
        d.json("show buffers")["arenas"][0]["used"] == 0
    });
    let shown = daemon.json("show interface");
    let count = |at: usize, way: &str| shown["interfaces"][at][way]["packets"].as_u64().unwrap();
    let drops = daemon.json("show drops");
    let dropped = drops["total"].as_u64().unwrap_or(0);
    // Packets without a buffer were dropped before they were counted as received.
    assert!(count(0, "rx") <= 200_000);
    assert_eq!(count(1, "tx") + dropped, 200_000, "{drops}");
    daemon.stop("TERM");
}

#[test]
fn what_cannot_be_spread_is_said() {
    let mut daemon = Daemon::start("[[interface]]\nname = \"pg0\"\nkind = \"pg\"\n", &[]);
    assert_eq!(
        daemon.refused("set interface rss pg0 workers 0,5 on"),
        "volley: rss on pg0 is not valid: there is no worker 5: `show workers` lists them\n"
    );
    assert_eq!(
        daemon.refused("set node worker pg-input 0"),
        "volley: worker of pg-input is not valid: node `pg-input` runs where its packets come: \
         name a node between ethernet-input and interface-tx\n"
    );
    assert!(
        daemon
            .refused("set node worker ip4-look 0")
            .contains("ip4-look")
    );
    daemon.stop("TERM");
}
