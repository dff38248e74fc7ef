//! Golden files: a fixed session, reply by reply and packet by packet, as in `tests/golden/router.txt`, for several vector
//! sizes and instruction sets. `VOLLEY_BLESS=1` writes the file again; read the difference before you commit it.

mod support;

use std::fmt::Write;
use std::path::PathBuf;
use support::bed::counter;
use support::users::Users;
use support::{Daemon, frames};

const CONFIG: &str = r#"
[engine]
vector_size = SIZE
isa = "ISA"

[[table]]
id = 7
family = "ip4"

[[interface]]
name = "left"
kind = "pg"
mac = "02:fe:00:00:00:01"
addresses = ["192.0.2.1/24", "2001:db8::1/64"]

[[interface]]
name = "right"
kind = "pg"
mac = "02:fe:00:00:00:02"
mtu = 576
addresses = ["198.51.100.1/24", "2001:db8:1::1/64"]
capture = "@/right.pcap"

[[interface]]
name = "other"
kind = "pg"
mac = "02:fe:00:00:00:03"
addresses = ["203.0.113.1/24"]
capture = "@/other.pcap"

[[interface]]
name = "wire"
kind = "pg"
mac = "02:fe:00:00:00:04"

[[xconnect]]
rx = "wire"
tx = "other"

[[neighbor]]
interface = "right"
address = "198.51.100.2"
mac = "02:aa:00:00:00:02"

[[neighbor]]
interface = "right"
address = "2001:db8:1::2"
mac = "02:aa:00:00:00:06"

[[neighbor]]
interface = "other"
address = "203.0.113.2"
mac = "02:aa:00:00:00:03"

[[route]]
prefix = "10.0.0.0/8"
via = "198.51.100.2"
interface = "right"

[[route]]
prefix = "10.64.0.0/10"
via = "203.0.113.2"
interface = "other"

[[route]]
prefix = "10.64.9.0/24"
action = "unreachable"

[[route]]
prefix = "2001:db8:8::/48"
via = "2001:db8:1::2"
interface = "right"
"#;

/// Streams: name, interface, number of packets, template.
const STREAMS: &[(&str, &str, u32, &str)] = &[
    (
        "plain",
        "left",
        12,
        "{ eth src 02:00:00:00:00:99 dst 02:fe:00:00:00:01 / ip4 src 192.0.2.9 dst 10.0.0.1 / udp sport 1 dport 2 / payload 18 } edit ip4.dst random 10.0.0.0 10.255.255.255",
    ),
    (
        "six",
        "left",
        6,
        "{ eth dst 02:fe:00:00:00:01 / ip6 src 2001:db8::9 dst 2001:db8:8::1 / tcp sport 7 dport 80 } edit ip6.dst increment 2001:db8:8:: 2001:db8:8::2",
    ),
    (
        "expired",
        "left",
        2,
        "{ eth dst 02:fe:00:00:00:01 / ip4 src 192.0.2.9 dst 10.0.0.1 ttl 1 / udp / payload 18 }",
    ),
    (
        "nowhere",
        "left",
        3,
        "{ eth dst 02:fe:00:00:00:01 / ip4 src 192.0.2.9 dst 172.16.0.1 / udp / payload 18 }",
    ),
    (
        "refused",
        "left",
        2,
        "{ eth dst 02:fe:00:00:00:01 / ip4 src 192.0.2.9 dst 10.64.9.9 / udp / payload 18 }",
    ),
    (
        "long",
        "left",
        2,
        "{ eth dst 02:fe:00:00:00:01 / ip4 src 192.0.2.9 dst 10.0.0.1 / udp / payload 600 }",
    ),
    (
        "stranger",
        "left",
        1,
        "{ eth dst 02:00:00:00:00:77 / ip4 src 192.0.2.9 dst 10.0.0.1 / udp / payload 18 }",
    ),
    (
        "bridged",
        "wire",
        4,
        "{ eth src 02:00:00:00:00:10 dst 02:00:00:00:00:11 / ip4 src 192.0.2.9 dst 10.0.0.1 / udp / payload 18 }",
    ),
];

/// Queries after all packets have been processed.
const QUESTIONS: &[&str] = &[
    "show interfaces detail",
    "show interface address",
    "show errors",
    "show ip fib",
    "show ip fib detail",
    "show ip fib 10.65.1.1",
    "show ip6 fib",
    "show ip neighbors",
    "show ip6 neighbors",
    "show l2",
    "show packet-generator",
    "show trace max 3",
];

fn config(size: u32, isa: &str) -> String {
    let size = size.to_string();
    CONFIG.replace("SIZE", &size).replace("ISA", isa)
}

/// The replies of a session, and the packets that left.
fn session(mut daemon: Daemon) -> String {
    let mut out = String::new();
    for name in ["left", "right", "other", "wire"] {
        daemon.ok(&format!("set interface state {name} up"));
    }
    daemon.ok("trace add pg-input 3");
    let mut sent = 0;
    for (name, interface, packets, template) in STREAMS {
        daemon.ok(&format!(
            "packet-generator new name {name} interface {interface} limit {packets} seed 7 template {template}"
        ));
        daemon.ok(&format!("packet-generator enable {name}"));
        // One stream after the other, because the order of packets is compared.
        sent += u64::from(*packets);
        daemon.wait_for("the stream's packets", |d| {
            let nodes = d.json("show runtime verbose");
            let nodes = nodes["workers"][0]["nodes"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            let through = |name: &str| {
                let node = nodes.iter().find(|n| n["name"] == name);
                node.and_then(|n| n["vectors"].as_u64()).unwrap_or(0)
            };
            // ICMP errors are packets, too, made in addition to the dropped ones.
            let errors = d.json("show errors");
            let reported = errors["errors"].as_array().cloned().unwrap_or_default();
            let reported = reported.iter().filter(|e| {
                let reason = e["reason"].as_str().unwrap_or_default();
                reason.starts_with("sent-")
            });
            let reported: u64 = reported.filter_map(|e| e["count"].as_u64()).sum();
            // Fragmentation makes several packets of one.
            let cut = |what: &str| counter(d, "ip4-frag", what);
            let more = reported + cut("fragments") - cut("fragmented");
            through("right-tx") + through("other-tx") + through("error-drop") == sent + more
        });
    }
    for question in QUESTIONS {
        let _ = writeln!(
            out,
            "> {question}\n{}",
            masked(&daemon.ok(question), &daemon)
        );
    }
    daemon.stop("TERM");
    for name in ["right", "other"] {
        let _ = writeln!(out, "> packets that left by {name}");
        for frame in frames(&daemon.folder.file(&format!("{name}.pcap"))) {
            let hex: String = frame.iter().take(64).map(|b| format!("{b:02x}")).collect();
            let _ = writeln!(out, "{:4} {hex}", frame.len());
        }
    }
    out
}

/// Masks what differs from run to run: times of day, rates, slot numbers, the test's folder, blanks at the ends of lines.
fn masked(answer: &str, daemon: &Daemon) -> String {
    let folder = daemon.folder.0.display().to_string();
    let line = |line: &str| {
        let words = line.split(' ').map(|word| {
            let digits = word.chars().all(|c| c.is_ascii_digit() || c == ':');
            let is_time = digits && word.starts_with("00:");
            if is_time { "TIME" } else { word }
        });
        let words: Vec<&str> = words.collect();
        words
            .join(" ")
            .replace(&folder, "DIR")
            .trim_end()
            .to_owned()
    };
    // Rates depend on the time of the query.
    let lines = answer.lines().filter(|line| !line.contains(" bit/s, "));
    let lines: Vec<String> = lines.map(line).collect();
    ["adjacency ", "Adj(", "load-balance "]
        .into_iter()
        .fold(lines.join("\n"), without_number)
}

/// Slot numbers depend on when workers release old slots.
fn without_number(text: String, label: &str) -> String {
    let mut parts = text.split(label);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |all, part| {
        let part = part.trim_start_matches(|c: char| c.is_ascii_digit());
        all + label + "N" + part
    })
}

#[test]
fn a_session_reads_as_the_golden_file_has_it() {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/router.txt");
    let start = |size, isa| session(Daemon::start(&config(size, isa), &[]));
    let first = start(256, "auto");
    if std::env::var_os("VOLLEY_BLESS").is_some() {
        std::fs::write(&file, &first).unwrap();
    }
    let golden = std::fs::read_to_string(&file).unwrap();
    for (size, isa) in [
        (256, "auto"),
        (4, "auto"),
        (1024, "scalar"),
        (256, "scalar"),
    ] {
        let got = if (size, isa) == (256, "auto") {
            first.clone()
        } else {
            start(size, isa)
        };
        let differs = golden.lines().zip(got.lines()).find(|(a, b)| a != b);
        assert_eq!(differs, None, "vectors of {size}, {isa}: golden, got");
        assert_eq!(golden.lines().count(), got.lines().count());
    }
}

/// Everything in the session is allowed to group `volley`.
#[test]
fn a_user_of_group_volley_has_the_same_session() {
    let Some(users) = Users::new() else { return };
    let daemon = users.daemon_of_the_group(&config(256, "auto"), &[]);
    assert!(daemon.ok("show log").contains("ready"));
    let got = session(daemon);
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/router.txt");
    let golden = std::fs::read_to_string(&file).unwrap();
    let differs = golden.lines().zip(got.lines()).find(|(a, b)| a != b);
    assert_eq!(differs, None, "golden, got");
    assert_eq!(golden.lines().count(), got.lines().count());
}
