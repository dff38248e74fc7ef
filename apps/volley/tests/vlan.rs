//! Sub-interfaces between a trunk and the Linux kernel: on the trunk scapy plays a host (`tests/vlan/probe.py`), since the
//! kernel here has no 802.1Q devices; on the other side is a kernel host without tags.
//!
//! Needs root, `ip`, `ping` and scapy. Without them the tests say so and pass.

mod support;

use std::process::{Child, Command, Stdio};
use support::bed::{Bed, counter, has_scapy};
use support::{Daemon, oracle, text};

const ROUTER: &str = "02:fe:00:00:00:01";

/// Number of the sub-interface, its tags, the third byte of its networks.
const SUBS: [(u32, &str, u32); 4] = [
    (100, "", 100),
    (1, " dot1q 100 inner-dot1q 4094 exact-match", 101),
    (2, " dot1ad 200 inner-dot1q 7 exact-match", 200),
    (300, " dot1ad 300", 201),
];

/// Two hosts and the router between them: on `left` the trunk, on `right` a kernel host, 10.78.0.2.
fn start() -> Option<(Daemon, Bed)> {
    if !has_scapy() {
        println!("SKIP: scapy is not installed");
        return None;
    }
    let bed = Bed::new()?;
    // Space for two tags: the kernel counts all but the first one as payload.
    bed.ip("r", "link set left mtu 1600");
    bed.ip("a", "link set e mtu 1600");
    let mut daemon = Daemon::start("", &[]);
    let space = bed.name("r");
    for end in ["left", "right"] {
        daemon.ok(&format!(
            "create host-interface name {end} as {end} netns {space} mtu 1500"
        ));
        daemon.ok(&format!("set interface state {end} up"));
    }
    daemon.ok(&format!("set interface mac address left {ROUTER}"));
    daemon.ok("set interface ip address right 10.78.0.1/16");
    daemon.ok("set interface ip6 address right 2001:db8:78::1/64");
    for (id, tags, net) in SUBS {
        daemon.ok(&format!("create sub-interfaces left {id}{tags}"));
        daemon.ok(&format!(
            "set interface ip address left.{id} 10.77.{net}.1/24"
        ));
        daemon.ok(&format!(
            "set interface ip6 address left.{id} 2001:db8:{net}::1/64"
        ));
        daemon.ok(&format!("set interface state left.{id} up"));
    }
    bed.ip("b", "addr add 10.78.0.2/16 dev e");
    bed.ip("b", "addr add 2001:db8:78::2/64 dev e nodad");
    bed.ip("b", "route add default via 10.78.0.1");
    bed.ip("b", "-6 route add default via 2001:db8:78::1");
    bed.ip("b", "link set lo up");
    daemon.wait_for("both links", |d| {
        let all = d.json("show interface")["interfaces"].clone();
        all.as_array().unwrap().iter().all(|i| i["link"] == "up")
    });
    Some((daemon, bed))
}

fn program() -> String {
    format!("{}/../../tests/vlan/probe.py", env!("CARGO_MANIFEST_DIR"))
}

/// Runs a command of the probe that must find no fault.
fn probe(daemon: &Daemon, bed: &Bed, command: &str) -> String {
    let python = oracle::python().unwrap().display().to_string();
    let words = [python.as_str(), "-B", &program(), "e", ROUTER, command];
    let output = bed.exec("a", 120, &words);
    let message = text(&output.stdout) + &text(&output.stderr);
    if !output.status.success() {
        let shown = ["show ip neighbors", "show errors", "show drops"].map(|c| daemon.ok(c));
        panic!("{message}{}{}", shown.concat(), daemon.log());
    }
    message
}

/// A host that replies on the trunk; killed on drop.
struct Host(Child);

impl Host {
    fn new(bed: &Bed) -> Host {
        let python = oracle::python().unwrap();
        let mut command = Command::new("timeout");
        command
            .args(["-k", "1", "60", "ip", "netns", "exec", &bed.name("a")])
            .arg(python)
            .args(["-B", &program(), "e", ROUTER, "answer", "55"]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let out = child.stdout.take().unwrap();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(out), &mut line).unwrap();
        assert_eq!(line.trim(), "ready");
        Host(child)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = (self.0.kill(), self.0.wait());
    }
}

/// A counter of an interface.
fn figure(daemon: &Daemon, name: &str, part: &str, what: &str) -> u64 {
    let all = daemon.json(&format!("show interface {name}"));
    all["interfaces"][0][part][what].as_u64().unwrap()
}

#[test]
fn a_host_on_a_trunk_reaches_the_router_and_what_is_behind_it() {
    let Some((daemon, bed)) = start() else {
        return;
    };
    let message = probe(&daemon, &bed, "ask");
    assert!(message.contains(" 0 faults"), "{message}");
    for (id, ..) in SUBS {
        let name = format!("left.{id}");
        let (rx, tx) = (
            figure(&daemon, &name, "rx", "packets"),
            figure(&daemon, &name, "tx", "packets"),
        );
        assert!(rx >= 10 && tx >= 10, "{name}: {rx} {tx}");
    }
}

#[test]
fn the_kernel_reaches_hosts_on_the_trunk() {
    let Some((daemon, bed)) = start() else {
        return;
    };
    let _host = Host::new(&bed);
    // The router's ARP request for the host has tags, and so has the reply.
    for (_, _, net) in SUBS {
        assert!(bed.pings("b", &format!("10.77.{net}.2"), 3, "0.2") >= 2);
        assert!(bed.pings("b", &format!("2001:db8:{net}::2"), 3, "0.2") >= 2);
    }
    let message = daemon.ok("ping 10.77.200.2");
    assert!(message.contains("5 received, 0 lost"), "{message}");
    // A lower MTU of the sub-interface, which ICMP errors report to the kernel host.
    daemon.ok("set interface mtu 1400 left.100");
    let ping = |target: &str, size: &str| {
        let words = [
            "ping", "-n", "-c", "2", "-W", "1", "-M", "do", "-s", size, target,
        ];
        text(&bed.exec("b", 20, &words).stdout)
    };
    let message = ping("10.77.100.2", "1400");
    assert!(
        message.contains("mtu = 1400") || message.contains("mtu=1400"),
        "{message}"
    );
    let message = ping("10.77.100.2", "1372");
    assert!(message.contains(" 0% packet loss"), "{message}");
    let message = ping("10.77.101.2", "1472");
    assert!(
        message.contains(" 0% packet loss"),
        "tags are not counted: {message}"
    );
    let message = ping("2001:db8:100::2", "1400");
    assert!(message.contains("1400"), "{message}");
    // Sub-interfaces of a parent that is down are down.
    daemon.ok("set interface state left down");
    let message = ping("10.77.101.2", "56");
    assert!(message.contains("100% packet loss"), "{message}");
    assert!(
        daemon
            .ok("show interface left.1")
            .contains("its parent left is down")
    );
    daemon.ok("set interface state left up");
    assert!(bed.pings("b", "10.77.101.2", 10, "0.3") >= 5);
}

#[test]
fn frames_that_are_nobodys_are_counted_by_their_reasons() {
    let Some((daemon, bed)) = start() else {
        return;
    };
    daemon.ok("create sub-interfaces left 103");
    daemon.ok("trace add vlan-input 3");
    let message = probe(&daemon, &bed, "wrong");
    let counts = message
        .lines()
        .find(|l| l.contains("unknown-vlan="))
        .unwrap();
    for count in counts.split(' ') {
        let (reason, sent) = count.split_once('=').unwrap();
        let got = counter(&daemon, "vlan-input", reason);
        assert_eq!(got.to_string(), sent, "{reason}: {counts}");
    }
    let trace = daemon.ok("show trace");
    assert!(trace.contains("vlan 102 priority 0 type 0x0800"), "{trace}");
    // After that the probe finds no fault.
    let message = probe(&daemon, &bed, "ask");
    assert!(message.contains(" 0 faults"), "{message}");
}

#[test]
fn they_come_and_go_while_packets_pass() {
    let Some((daemon, bed)) = start() else {
        return;
    };
    let _host = Host::new(&bed);
    assert!(bed.pings("b", "10.77.100.2", 3, "0.2") >= 2);
    let mut ping = Command::new("timeout")
        .args(["-k", "1", "60", "ip", "netns", "exec", &bed.name("b")])
        .args([
            "ping",
            "-n",
            "-q",
            "-i",
            "0.01",
            "-c",
            "600",
            "-W",
            "2",
            "10.77.100.2",
        ])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    for round in 0..10 {
        for id in [500, 501] {
            daemon.ok(&format!(
                "create sub-interfaces left {id} dot1q {id} inner-dot1q {}",
                round + 1
            ));
            daemon.ok(&format!(
                "set interface ip address left.{id} 10.90.{}.1/24",
                id - 500
            ));
            daemon.ok(&format!("set interface state left.{id} up"));
        }
        for id in [500, 501] {
            daemon.ok(&format!("delete sub-interface left.{id}"));
        }
    }
    let mut message = String::new();
    let out = ping.stdout.take().unwrap();
    std::io::Read::read_to_string(&mut std::io::BufReader::new(out), &mut message).unwrap();
    assert!(ping.wait().unwrap().success());
    assert!(message.contains(" 0% packet loss"), "{message}");
    // Deleting a parent deletes its sub-interfaces, unless a route uses one.
    daemon.ok("ip route add 10.200.0.0/16 via 10.77.200.2 left.2");
    let message = daemon.refused("delete interface left");
    assert!(
        message.contains("left.2") && message.contains("in use"),
        "{message}"
    );
    daemon.ok("ip route del 10.200.0.0/16");
    daemon.ok("delete interface left");
    let left = daemon.ok("show interface");
    assert!(!left.contains("left"), "{left}");
}

/// A UDP packet to 10.255.0.9 with these tags.
fn tagged(tags: &[u8]) -> Vec<u8> {
    let mut ip = vec![
        0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 9, 10, 255, 0, 9,
    ];
    let sum: u32 = ip
        .chunks(2)
        .map(|w| u32::from(w[0]) << 8 | u32::from(w[1]))
        .sum();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    ip.extend([0x10; 26]);
    ip[24..26].copy_from_slice(&[0, 26]);
    let macs = [2, 0xfe, 0, 0, 0, 1, 2, 0xaa, 0, 0, 0, 1];
    [&macs[..], tags, &[8, 0], &ip].concat()
}

#[test]
fn thousands_of_them_on_one_interface() {
    const SINGLE: u32 = 4094;
    const PAIRS: u32 = 2000;
    let mut config = String::from(
        "[engine]\nbuffers = 16384\n\
         [[interface]]\nname = \"pg0\"\nkind = \"pg\"\nmac = \"02:fe:00:00:00:01\"\n\
         [[interface]]\nname = \"pg1\"\nkind = \"pg\"\nmac = \"02:fe:00:00:00:02\"\naddresses = [\"10.255.0.1/24\"]\n\
         capture = \"@/out.pcap\"\n\
         [[neighbor]]\ninterface = \"pg1\"\naddress = \"10.255.0.9\"\nmac = \"02:aa:00:00:00:02\"\n",
    );
    let mut packets = Vec::new();
    for n in 1..=SINGLE + PAIRS {
        let (high, low) = (n >> 8, n & 0xff);
        let mut tags = vec![0x81, 0, high as u8, low as u8];
        let mut more = String::new();
        if n > SINGLE {
            let inner = (n - SINGLE) as u16;
            tags = vec![0x88, 0xa8, 0, 7, 0x81, 0];
            tags.extend(inner.to_be_bytes());
            more = format!("dot1ad = 7\ninner_dot1q = {inner}\n");
        }
        config += &format!(
            "[[interface]]\nname = \"pg0.{n}\"\nkind = \"sub-interface\"\nparent = \"pg0\"\n{more}addresses = [\"10.{high}.{low}.1/24\"]\n"
        );
        packets.push(volley_pcap::Packet::ethernet(0, tagged(&tags)));
    }
    let began = std::time::Instant::now();
    let mut daemon = Daemon::start(&config, &[]);
    println!("{} sub-interfaces: {:?}", SINGLE + PAIRS, began.elapsed());
    let file = daemon.folder.file("in.pcap");
    oracle::write(&file, &packets);
    let limit = packets.len();
    daemon.ok(&format!(
        "packet-generator new name s interface pg0 limit {limit} pcap {}",
        file.display()
    ));
    daemon.ok("packet-generator enable s");
    daemon.wait_for("all packets", |d| {
        figure(d, "pg1", "tx", "packets") == limit as u64
    });
    let all = daemon.json("show interface")["interfaces"].clone();
    let subs: Vec<_> = all
        .as_array()
        .unwrap()
        .iter()
        .filter(|i| i["kind"] == "sub-interface")
        .cloned()
        .collect();
    assert_eq!(subs.len(), limit);
    for sub in subs {
        let got = (sub["rx"]["packets"].as_u64(), sub["rx"]["bytes"].as_u64());
        assert_eq!(got, (Some(1), Some(60)), "{sub}");
    }
    daemon.ok("packet-generator disable s");
    daemon.ok("packet-generator delete s");
    let began = std::time::Instant::now();
    daemon.ok("delete interface pg0");
    println!("deleted in {:?}", began.elapsed());
    let left = daemon.json("show interface")["interfaces"]
        .as_array()
        .unwrap()
        .len();
    assert_eq!(left, 1);
}

#[test]
fn a_cross_connect_changes_tags() {
    let mut daemon = Daemon::start(
        "[[interface]]\nname = \"pg0\"\nkind = \"pg\"\nmac = \"02:fe:00:00:00:01\"\n\
         [[interface]]\nname = \"pg1\"\nkind = \"pg\"\ncapture = \"@/out.pcap\"\n",
        &[],
    );
    for (line, part) in [
        ("create sub-interfaces pg0 1 dot1q 5", ""),
        ("create sub-interfaces pg1 1 dot1ad 9 inner-dot1q 4", ""),
        ("set interface l2 xconnect pg0.1 pg1.1", ""),
        ("set interface state pg0.1 up", ""),
        ("set interface state pg1.1 up", ""),
        (
            "create sub-interfaces pg0 2 dot1q 5",
            "in use by sub-interface pg0.1",
        ),
        (
            "create sub-interfaces pg0.1 2 dot1q 5",
            "sub-interface itself",
        ),
        ("create sub-interfaces pg7 2", "no interface pg7"),
        (
            "set interface l2 xconnect pg0 pg1",
            "in use by sub-interface pg0.1",
        ),
        (
            "test l2patch rx pg0 tx pg1",
            "in use by sub-interface pg0.1",
        ),
        (
            "set interface mac address pg0.1 02:fe:00:00:00:07",
            "of its parent",
        ),
        ("set interface promiscuous on pg0.1", "of its parent"),
        ("set interface name pg0 pg9", "called after it"),
        ("set interface name pg0.1 pg9", "called after its parent"),
    ] {
        if part.is_empty() {
            daemon.ok(line);
        } else {
            let message = daemon.refused(line);
            assert!(message.contains(part), "{line}: {message}");
        }
    }
    daemon.ok("bridge-domain add 1");
    for line in [
        "set interface l2 bridge pg0.1 1",
        "set interface l2 bridge pg1.1 1",
    ] {
        daemon.refused(line);
    }
    let message = daemon.refused("set interface l2 bridge pg1 1");
    assert!(
        message.contains("in use by sub-interface pg1.1"),
        "{message}"
    );
    let file = daemon.folder.file("in.pcap");
    let frame = tagged(&[0x81, 0, 0xe0, 5]);
    let packets = vec![volley_pcap::Packet::ethernet(0, frame); 3];
    oracle::write(&file, &packets);
    daemon.ok(&format!(
        "packet-generator new name s interface pg0 limit 3 pcap {}",
        file.display()
    ));
    daemon.ok("packet-generator enable s");
    daemon.wait_for("all packets", |d| figure(d, "pg1", "tx", "packets") == 3);
    daemon.stop("TERM");
    let got = support::frames(&daemon.folder.file("out.pcap"));
    assert_eq!(got, vec![tagged(&[0x88, 0xa8, 0, 9, 0x81, 0, 0, 4]); 3]);
}
