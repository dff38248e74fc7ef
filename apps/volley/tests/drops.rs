//! Reasons for drops, with interface and last packet; traces of chosen packets; captures that other programs read.

mod support;

use support::traffic::run_out;
use support::{Daemon, oracle, text};

const CONFIG: &str = r#"
[icmp]
errors = false

[[interface]]
name = "pg0"
kind = "pg"
mac = "02:fe:00:00:00:01"
addresses = ["192.0.2.1/24"]

[[interface]]
name = "pg1"
kind = "pg"
mac = "02:fe:00:00:00:02"
addresses = ["198.51.100.1/24"]

[[route]]
prefix = "10.0.0.0/8"
action = "drop"
"#;

/// Injects `count` packets `ip4 ...` into an interface.
fn send(daemon: &mut Daemon, name: &str, interface: &str, count: u32, packet: &str) {
    let mac = if interface == "pg0" { 1 } else { 2 };
    daemon.ok(&format!(
        "packet-generator new name {name} interface {interface} limit {count} template {{ eth dst 02:fe:00:00:00:0{mac} / {packet} }}"
    ));
    run_out(daemon, name, count);
}

#[test]
fn drops_are_told_by_interface_with_the_last_packet() {
    let mut daemon = Daemon::start(CONFIG, &[]);
    let unrouted = "ip4 src 192.0.2.9 dst 203.0.113.7 / udp sport 7 dport 9 / payload 900";
    send(&mut daemon, "a", "pg0", 30, unrouted);
    let expired = "ip4 src 192.0.2.9 dst 10.0.0.1 ttl 1 / tcp sport 5 dport 80";
    send(&mut daemon, "b", "pg0", 7, expired);
    let unrouted = "ip4 src 198.51.100.9 dst 203.0.113.8 / udp sport 1 dport 2";
    send(&mut daemon, "c", "pg1", 5, unrouted);
    let reply = daemon.json("show drops");
    let rows: Vec<(u64, &str, &str, &str)> = reply["drops"]
        .as_array()
        .unwrap()
        .iter()
        .map(|d| {
            let text = |key: &str| d[key].as_str().unwrap_or("-");
            let count = d["count"].as_u64().unwrap();
            (count, text("reason"), text("interface"), text("sample"))
        })
        .collect();
    let reported: Vec<_> = rows.iter().map(|r| (r.0, r.1, r.2)).collect();
    assert_eq!(
        reported,
        [
            (30, "no-route", "pg0"),
            (7, "ttl-expired", "pg0"),
            (5, "no-route", "pg1")
        ]
    );
    assert_eq!(reply["total"], 42);
    // Of 942 bytes the first 128 were kept: the missing bytes are not a fault of the packet.
    assert!(
        rows[0].3.starts_with("942 bytes: IP4: ")
            && rows[0]
                .3
                .ends_with("UDP 192.0.2.9 -> 203.0.113.7 ttl 64 len 928 / ports 7 -> 9"),
        "{}",
        rows[0].3
    );
    assert!(rows[1].3.contains("TCP 192.0.2.9 -> 10.0.0.1 ttl 1 "));
    assert!(rows[2].3.contains("203.0.113.8"));
    let shown = daemon.ok("show drops");
    assert!(
        shown.contains("last no-route at ip4-lookup from pg1:\n  "),
        "{shown}"
    );

    daemon.ok("clear errors");
    assert!(daemon.ok("show drops").contains("no packet was dropped"));
    send(&mut daemon, "d", "pg1", 3, unrouted);
    assert_eq!(daemon.json("show drops")["drops"][0]["count"], 3);
    // A new interface with the index of a deleted one has no drops.
    daemon.ok("packet-generator delete c");
    daemon.ok("packet-generator delete d");
    daemon.ok("delete interface pg1");
    daemon.ok("create packet-generator interface pg9");
    let row = &daemon.json("show drops")["drops"][0];
    assert_eq!(
        (row["count"].as_u64(), row["interface"].as_str()),
        (Some(3), None)
    );
}

#[test]
fn a_trace_begins_with_packets_that_match() {
    let mut daemon = Daemon::start(CONFIG, &[]);
    daemon.ok("trace add pg-input 2 filter ip4.dst == 203.0.113.0/24 and udp.dport == 9");
    let many = "ip4 src 192.0.2.9 dst 10.0.0.1 / udp sport 5 dport 80";
    send(&mut daemon, "many", "pg0", 1000, many);
    assert!(daemon.ok("show trace").contains("No packets"));
    let wanted = "ip4 src 192.0.2.9 dst 203.0.113.7 / udp sport 5 dport 9";
    send(&mut daemon, "wanted", "pg0", 5, wanted);
    let traced = daemon.json("show trace");
    let packets = traced["packets"].as_array().unwrap();
    assert_eq!(packets.len(), 2);
    let last = packets[0]["steps"].as_array().unwrap().last().unwrap();
    assert_eq!(last["node"], "error-drop");
    assert!(last["text"].as_str().unwrap().contains("no-route"));

    // Behind the Ethernet header the filter still matches the packet from its beginning.
    daemon.ok("clear trace");
    daemon.ok("trace add ip4-lookup 9 filter eth.dst == 02:fe:00:00:00:01 and not udp.dport == 80");
    send(&mut daemon, "both", "pg0", 4, wanted);
    assert_eq!(
        daemon.json("show trace")["packets"]
            .as_array()
            .unwrap()
            .len(),
        4
    );
    let error = daemon.refused("trace add ip4-lookup 9 filter udp.dprot == 80");
    assert!(error.contains("udp.dprot"), "{error}");
}

/// Reads `sys.argv[2]` with the oracle's reader (in `sys.argv[1]`), and with scapy's if it is installed: prints a line per
/// packet with length and comment, then which readers were used.
const READERS: &str = r#"
import sys
sys.path.insert(0, sys.argv[1])
import capture
lines = [f"{len(f.data)} {f.comment}" for f in capture.read(sys.argv[2])]
readers = "oracle"
try:
    from scapy.utils import RawPcapNgReader
except ImportError:
    pass
else:
    told = []
    for data, meta in RawPcapNgReader(sys.argv[2]):
        comment = getattr(meta, "comment", None) or (getattr(meta, "comments", None) or [None])[0]
        told.append(f"{len(data)} {comment.decode() if isinstance(comment, bytes) else comment}")
    assert told == lines, (told, lines)
    readers += " scapy"
print("\n".join(lines))
print(readers)
"#;

#[test]
fn others_read_the_reason_in_a_capture_of_drops() {
    let Some(python) = oracle::python() else {
        println!("skipped: there is no python3");
        return;
    };
    let mut daemon = Daemon::start(CONFIG, &[]);
    let file = daemon.folder.file("drops.pcapng");
    daemon.ok(&format!("pcap trace drop max 100 file {}", file.display()));
    let unrouted = "ip4 src 192.0.2.9 dst 203.0.113.7 / udp sport 7 dport 9 / payload 20";
    send(&mut daemon, "a", "pg0", 2, unrouted);
    let expired = "ip4 src 192.0.2.9 dst 10.0.0.1 ttl 1 / udp / payload 18";
    send(&mut daemon, "b", "pg1", 1, expired);
    daemon.ok("pcap trace off");
    let folder = oracle::program();
    let output = std::process::Command::new(python)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .args(["-c", READERS])
        .arg(folder.parent().unwrap())
        .arg(&file)
        .output()
        .unwrap();
    let reported = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let lines: Vec<&str> = reported.lines().collect();
    let unrouted = "62 ip4-lookup: no-route (no prefix covers the destination)";
    let expired = "60 ip4-input: ttl-expired (the time to live is used up)";
    assert_eq!(lines[..3], [unrouted, unrouted, expired]);
    println!("read alike by: {}", lines[3]);
}
