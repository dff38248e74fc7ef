//! `volley demo --capture FILE` with typical captures: long frames of hosts with offloads, and packets without an Ethernet
//! header. The output must match the reference model.

mod support;

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use support::bed::{Space, has_scapy};
use support::{Folder, oracle, text};
use volley_pcap::read_packets;

/// The output of the demo for a capture, with two small tables.
fn demo(folder: &Folder, capture: &Path) -> String {
    let (four, six) = (folder.file("t4.txt"), folder.file("t6.txt"));
    std::fs::write(&four, "10.0.0.0/8 0\n10.1.0.0/16 1\n").unwrap();
    std::fs::write(&six, "2001:db8::/32 1\n").unwrap();
    let output = Command::new("timeout")
        .args([
            "100",
            env!("CARGO_BIN_EXE_volley"),
            "demo",
            "--seconds",
            "0.3",
        ])
        .args([Path::new("--capture"), capture, Path::new("--table"), &four])
        .args([Path::new("--table6"), &six])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let (message, error) = (text(&output.stdout), text(&output.stderr));
    assert!(
        output.status.success(),
        "{}: {message}{error}",
        capture.display()
    );
    let last = message.lines().last().unwrap_or_default();
    assert!(last.starts_with("verified: "), "{message}");
    message
}

fn scapy(script: &str, file: &Path) -> bool {
    if !has_scapy() {
        println!("SKIP: no Python with scapy (cargo xtask install)");
        return false;
    }
    let made = Command::new(oracle::python().unwrap())
        .args(["-c", script])
        .arg(file)
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", text(&made.stderr));
    true
}

/// Lengths around the MTU and far above it, with and without DF, options that fragments copy and that they do not, packets
/// that are fragments themselves.
const LONG: &str = r#"
import sys
from scapy.all import *
eth = lambda: Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
data = lambda n: Raw(bytes(i & 255 for i in range(n)))
four = lambda **k: eth() / IP(src="198.18.0.9", dst="10.1.2.3", **k)
packets = []
for n in (1400, 1472, 1473, 1480, 2000, 2960, 2961, 8000, 8900, 14000, 40000, 65000):
    for flags in ("", "DF"):
        packets.append(four(flags=flags, id=n) / UDP() / data(n))
    packets.append(eth() / IPv6(src="2001:2::9", dst="2001:db8::1") / UDP() / data(n))
record = IPOption_RR(length=11, routers=["0.0.0.0"] * 2)
for n in (100, 1460, 4000):
    packets.append(four(options=[record, IPOption_Router_Alert(), IPOption_NOP()]) / UDP() / data(n))
    packets.append(four(options=[IPOption_Router_Alert(), IPOption_NOP()], flags="DF") / UDP() / data(n))
packets.append(four(id=5, flags="MF", frag=100) / data(4000))
packets.append(four(id=5, flags=0, frag=600) / data(4001))
packets.append(four() / TCP(flags="PA") / data(9000))
wrpcap(sys.argv[1], [Ether(bytes(p)) for p in packets])
"#;

#[test]
fn frames_above_the_mtu_are_verified() {
    let folder = Folder::new();
    let file = folder.file("long.pcap");
    if !scapy(LONG, &file) {
        return;
    }
    let message = demo(&folder, &file);
    assert!(
        message.contains("   45 packets, real (long.pcap)"),
        "{message}"
    );
    for (node, reason) in [
        ("ip4-rewrite", "frag-needed"),
        ("ip6-rewrite", "packet-too-big"),
    ] {
        assert!(
            message.contains(node) && message.contains(reason),
            "{message}"
        );
    }
    assert!(message.contains("ip4-frag "), "{message}");
}

/// Packets between hosts of a link: the router ignores them, which is no drop.
const QUIET: &str = r#"
import sys
from scapy.all import *
mac = "02:00:00:00:00:01"
ask = lambda n: Ether(src=mac, dst="ff:ff:ff:ff:ff:ff") / ARP(hwsrc=mac, psrc="198.18.0.9", pdst="198.18.0.%d" % n)
find = lambda n: (Ether(src=mac, dst="33:33:ff:00:00:%02x" % n) / IPv6(src="2001:2::9", dst="ff02::1:ff00:%x" % n, hlim=255)
    / ICMPv6ND_NS(tgt="2001:2::%x" % n) / ICMPv6NDOptSrcLLAddr(lladdr=mac))
packets = [ask(n) for n in range(100, 104)] + [find(n) for n in range(0x70, 0x73)]
packets.append(Ether(src=mac, dst="02:00:00:00:00:02") / IP(src="198.18.0.9", dst="10.1.2.3") / UDP())
wrpcap(sys.argv[1], [Ether(bytes(p)) for p in packets])
"#;

#[test]
fn messages_for_other_hosts_of_the_link_are_verified() {
    let folder = Folder::new();
    let file = folder.file("quiet.pcap");
    if scapy(QUIET, &file) {
        let message = demo(&folder, &file);
        assert!(
            message.contains("    8 packets, real (quiet.pcap)"),
            "{message}"
        );
    }
}

/// The same packets behind each type of link header.
const LINKS: &str = r#"
import sys, struct
from scapy.all import *
four = IP(src="198.18.0.9", dst="10.1.2.3") / UDP() / Raw(b"x" * 100)
six = IPv6(src="2001:2::9", dst="2001:db8::1") / UDP() / Raw(b"x" * 100)
both = [bytes(four), bytes(six), bytes(four)]
sll = lambda t, p: struct.pack(">HHH8sH", 0, 1, 6, b"\2\0\0\0\0\1", t) + p
sll2 = lambda t, p: struct.pack(">HHIHBB8s", t, 0, 3, 1, 0, 6, b"\2\0\0\0\0\1") + p
heads = {
    "raw": (101, both), "raw12": (12, both), "raw14": (14, both),
    "ip4": (228, [bytes(four)] * 3), "ip6": (229, [bytes(six)] * 3),
    "null": (0, [b"\2\0\0\0" + both[0], b"\x1e\0\0\0" + both[1], b"\2\0\0\0" + both[2]]),
    "loop": (108, [b"\0\0\0\2" + both[0], b"\0\0\0\x18" + both[1], b"\0\0\0\2" + both[2]]),
    "sll": (113, [sll(0x800, both[0]), sll(0x86dd, both[1]), sll(0x800, both[2]), sll(4, b"\x42" * 40)]),
    "sll2": (276, [sll2(0x800, both[0]), sll2(0x86dd, both[1]), sll2(0x8100, b"\0\7\x08\0" + both[2])]),
}
for name, (link, packets) in heads.items():
    with open(f"{sys.argv[1]}/{name}.pcap", "wb") as out:
        out.write(struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 262144, link))
        for p in packets:
            out.write(struct.pack("<IIII", 1, 0, len(p), len(p)) + p)
"#;

#[test]
fn captures_without_an_ethernet_header_are_replayed() {
    let folder = Folder::new();
    if !scapy(LINKS, &folder.0) {
        return;
    }
    for name in [
        "raw", "raw12", "raw14", "ip4", "ip6", "null", "loop", "sll", "sll2",
    ] {
        let message = demo(&folder, &folder.file(&format!("{name}.pcap")));
        assert!(
            message.contains("      3 packets, real"),
            "{name}: {message}"
        );
        assert!(message.contains("with an Ethernet header for the router's MAC address"));
        assert_eq!(
            message.contains("1 left out"),
            name == "sll",
            "{name}: {message}"
        );
        // Three of the capture and 65,536 of each uniform stream; all are transmitted.
        assert!(
            message.contains("(131075 in, 131075 out"),
            "{name}: {message}"
        );
    }
}

/// The formats of `tcpdump -i any` and `tcpdump -i lo`.
#[test]
fn captures_of_tcpdump_are_replayed() {
    let Some(space) = Space::new(format!("dump{}", std::process::id())) else {
        return;
    };
    space.ip("link set lo up");
    space.ip("addr add 10.9.0.1/24 dev lo");
    let folder = Folder::new();
    for (kind, device) in [
        ("LINUX_SLL", "any"),
        ("LINUX_SLL2", "any"),
        ("EN10MB", "lo"),
    ] {
        let file = folder.file(&format!("{kind}.pcap"));
        let inside = ["netns", "exec", &space.0, "timeout", "20"];
        let dump = Command::new("ip")
            .args(inside)
            .args(["tcpdump", "-U", "-y", kind, "-c", "6", "-i", device, "-w"])
            .arg(&file)
            .stderr(Stdio::null())
            .spawn();
        let Ok(mut dump) = dump else {
            println!("SKIP: no tcpdump");
            return;
        };
        let until = Instant::now() + Duration::from_secs(20);
        while dump.try_wait().unwrap().is_none() && Instant::now() < until {
            space.does(5, "ping -c 1 -W 1 -s 3000 10.9.0.1");
        }
        if !file.exists() {
            println!("SKIP: this tcpdump does not capture");
            return;
        }
        let packets = read_packets(&file).unwrap().packets.len();
        assert!(packets >= 6, "{kind}: {packets}");
        let message = demo(&folder, &file);
        assert!(
            message.contains(&format!("{packets} packets, real")),
            "{message}"
        );
    }
}
