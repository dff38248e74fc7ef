//! `show trace` and `show drops` report no fault for correct packets, however many of their bytes were kept, and with or
//! without finished checksums (offload).

mod support;

use std::process::Command;
use support::bed::{Space, has_scapy, wait_until_up};
use support::{Daemon, Folder, frames, oracle, text};
use volley_wire::dissect;

/// Words by which the dissector reports faults.
const FAULTS: [&str; 7] = [
    "bad ",
    "cut short",
    "length field",
    "not allow",
    "says version",
    "malformed",
    "truncated",
];

fn assert_sound(what: &str, text: &str) {
    let fault = FAULTS.iter().find(|fault| text.contains(**fault));
    assert_eq!(fault, None, "{what}: {text}");
}

/// At least one packet of each type that the dissector knows, built by scapy.
const SCAPY: &str = r#"
import sys
from scapy.all import *
eth = lambda **k: Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02", **k)
four = lambda **k: IP(src="10.0.0.1", dst="10.1.0.1", **k)
six = lambda **k: IPv6(src="2001:db8::1", dst="2001:db8::2", **k)
local = lambda **k: IPv6(src="fe80::1", dst="ff02::1", hlim=255, **k)
data = Raw(bytes(range(256)) * 5)
quoted4 = IP(src="10.1.0.1", dst="10.9.0.1") / UDP(sport=7, dport=8) / Raw(b"x" * 900)
quoted6 = IPv6(src="2001:db8::2", dst="2001:db8::9") / TCP(sport=7, dport=8) / Raw(b"x" * 900)
options = [("MSS", 1460), ("SAckOK", b""), ("Timestamp", (1, 2)), ("NOP", None), ("WScale", 7)]
packets = [
    eth() / ARP(op=1, psrc="10.0.0.1", pdst="10.0.0.2"),
    eth() / ARP(op=2, psrc="10.0.0.1", pdst="10.0.0.2"),
    eth() / four() / UDP(sport=5, dport=53) / data,
    eth() / four(flags="DF") / TCP(sport=1, dport=2, options=options) / data,
    eth() / four() / TCP(sport=1, dport=2, flags="PA") / data,
    eth() / four(options=[IPOption_Router_Alert()]) / UDP() / data,
    eth() / four(options=[IPOption_RR(length=39, routers=["0.0.0.0"] * 9)]) / ICMP() / data,
    eth() / four() / ICMP(type=8) / data,
    eth() / four() / ICMP(type=0) / data,
    eth() / four() / ICMP(type=3, code=4, nexthopmtu=1400) / quoted4,
    eth() / four() / ICMP(type=5, code=1, gw="10.0.0.9") / quoted4,
    eth() / four() / ICMP(type=11) / quoted4,
    eth() / four() / ICMP(type=12, ptr=20) / quoted4,
    eth() / four() / four() / UDP() / data,
    eth() / four() / six() / TCP(options=options) / data,
    eth() / six() / four() / UDP() / data,
    eth() / four(proto=50) / Raw(b"\x01" * 300),
    eth() / four(proto=47) / Raw(b"\x01" * 300),
    eth() / Dot1Q(vlan=7, prio=3) / four() / UDP() / data,
    eth(type=0x88a8) / Dot1AD(vlan=200) / Dot1Q(vlan=7) / six() / TCP(options=options) / data,
    eth() / six() / UDP(sport=5, dport=53) / data,
    eth() / six(tc=4, fl=77) / TCP(sport=1, dport=2, options=options) / data,
    eth() / six() / IPv6ExtHdrHopByHop(options=[RouterAlert()]) / UDP() / data,
    eth() / six() / IPv6ExtHdrDestOpt(options=[PadN(optdata=b"\0" * 40)]) / TCP(options=options) / data,
    eth() / six() / IPv6ExtHdrRouting(type=0, segleft=0, addresses=["2001:db8::7", "2001:db8::8"]) / UDP() / data,
    eth() / six(nh=59),
    eth() / six() / ICMPv6EchoRequest(data=bytes(900)),
    eth() / six() / ICMPv6EchoReply(data=bytes(900)),
    eth() / six() / ICMPv6DestUnreach(code=4) / quoted6,
    eth() / six() / ICMPv6PacketTooBig(mtu=1280) / quoted6,
    eth() / six() / ICMPv6TimeExceeded() / quoted6,
    eth() / six() / ICMPv6ParamProblem(ptr=40) / quoted6,
    eth() / local() / ICMPv6ND_RS() / ICMPv6NDOptSrcLLAddr(lladdr="02:00:00:00:00:01"),
    eth() / local() / ICMPv6ND_RA() / ICMPv6NDOptSrcLLAddr(lladdr="02:00:00:00:00:01") / ICMPv6NDOptMTU(mtu=1400)
        / ICMPv6NDOptPrefixInfo(prefix="2001:db8:7::", prefixlen=64) / ICMPv6NDOptRDNSS(dns=["2001:db8::53"]),
    eth() / local() / ICMPv6ND_NS(tgt="fe80::2") / ICMPv6NDOptSrcLLAddr(lladdr="02:00:00:00:00:01"),
    eth() / local() / ICMPv6ND_NA(tgt="fe80::1") / ICMPv6NDOptDstLLAddr(lladdr="02:00:00:00:00:01"),
    eth() / IPv6(src="fe80::1", dst="2001:db8::2", hlim=255)
        / ICMPv6ND_Redirect(tgt="fe80::9", dst="2001:db8::9") / ICMPv6NDOptRedirectedHdr(pkt=bytes(quoted6)[:400]),
    eth() / IPv6(src="fe80::1", dst="ff02::16", hlim=1) / IPv6ExtHdrHopByHop(options=[RouterAlert()])
        / ICMPv6MLReport2(records=[ICMPv6MLDMultAddrRec(rtype=4, dst="ff05::7")] * 5),
    eth(type=0x88cc) / Raw(b"\x02" * 60),
    Dot3(src="02:00:00:00:00:01", dst="01:80:c2:00:00:00") / LLC() / STP(),
]
packets += fragment(eth() / four(id=9) / TCP(options=options) / data, fragsize=8)[:3]
packets += fragment(eth() / four(id=9) / UDP() / data, fragsize=512)
packets += fragment6(six() / IPv6ExtHdrFragment(id=4) / UDP() / Raw(bytes(3000)), 1280)
packets = [p if isinstance(p, (Ether, Dot3)) else eth() / p for p in packets]
# Short frames come with padding.
packets += [Ether(bytes(p).ljust(60, b"\0")) for p in packets if len(p) < 60]
wrpcap(sys.argv[1], [Ether(bytes(p)) for p in packets], linktype=1)
"#;

#[test]
fn every_kind_of_packet_is_sound_at_every_kept_length() {
    if !has_scapy() {
        println!("SKIP: no Python with scapy (cargo xtask install)");
        return;
    }
    let folder = Folder::new();
    let file = folder.file("all.pcap");
    let made = Command::new(oracle::python().unwrap())
        .args(["-c", SCAPY, &file.display().to_string()])
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", text(&made.stderr));
    let packets = frames(&file);
    assert!(packets.len() > 45, "{}", packets.len());
    for bytes in &packets {
        let whole = dissect::one_line(bytes);
        assert_sound("all bytes", &whole);
        assert!(!whole.contains("bytes kept"), "{whole}");
        for kept in 0..bytes.len() {
            let reported = dissect::frame(&bytes[..kept]).of(bytes.len()).to_string();
            assert_sound(&format!("{kept} of {} bytes", bytes.len()), &reported);
            let ends = reported.contains(&format!("({kept} of {} bytes kept)", bytes.len()));
            assert!(kept >= 14 || ends, "{kept}: {reported}");
        }
    }
}

const CONFIG: &str = r#"
[[interface]]
name = "a"
kind = "tap"
host = "a0"
namespace = "SPACE-a"
host_addresses = ["10.1.0.2/24"]
addresses = ["10.1.0.1/24"]

[[interface]]
name = "b"
kind = "tap"
host = "b0"
namespace = "SPACE-b"
host_addresses = ["10.2.0.2/24"]
addresses = ["10.2.0.1/24"]
"#;

/// Accepts one connection and reads.
const SERVER: &str = "import socket\ns=socket.create_server(('10.2.0.2',7));c,_=s.accept()\nwhile c.recv(65536):pass";
/// Sends 300,000 bytes to the server, once it listens.
const CLIENT: &str = "import socket,time\nfor _ in range(100):\n try:\n  c=socket.create_connection(('10.2.0.2',7),5);break\n except OSError:\n  time.sleep(.1)\nc.sendall(bytes(300000));c.shutdown(1);c.recv(1)";
/// Sends a datagram without a route, whose checksum is left to the device.
const LOST: &str = "import socket\nsocket.socket(socket.AF_INET,socket.SOCK_DGRAM).sendto(bytes(1400),('203.0.113.9',9))";

#[test]
fn segments_of_the_kernel_are_neither_cut_nor_bad() {
    let name = format!("trace{}", std::process::id());
    let spaces = ["a", "b"].map(|end| Space::new(format!("{name}-{end}")));
    let [Some(a), Some(b)] = &spaces else {
        return;
    };
    let daemon = Daemon::start(&CONFIG.replace("SPACE", &name), &[]);
    for (space, device, router) in [(a, "a0", "10.1.0.1"), (b, "b0", "10.2.0.1")] {
        space.ip(&format!("link set {device} up"));
        wait_until_up(&format!("-n {}", space.0), device);
        space.ip(&format!("route replace default via {router}"));
    }
    let python = |space: &Space, script: &str| {
        let mut command = Command::new("ip");
        command.args([
            "netns", "exec", &space.0, "timeout", "30", "python3", "-c", script,
        ]);
        command.spawn().unwrap()
    };
    daemon.ok("trace add tap-input 200");
    let mut server = python(b, SERVER);
    assert!(python(a, CLIENT).wait().unwrap().success());
    assert!(server.wait().unwrap().success());
    let trace = daemon.ok("show trace");
    assert_sound("show trace", &trace);
    let long = |line: &&str| {
        let len = line
            .split_once(" len ")
            .and_then(|(_, rest)| rest.split(' ').next());
        len.and_then(|n| n.parse::<u32>().ok())
            .is_some_and(|n| n > 1400)
    };
    let segments: Vec<&str> = trace
        .lines()
        .filter(|l| l.contains("TCP 10.1.0.2"))
        .collect();
    assert!(segments.iter().any(long), "{trace}");
    assert!(trace.contains(" checksum offloaded"), "{trace}");
    assert!(python(a, LOST).wait().unwrap().success());
    let until = std::time::Instant::now() + std::time::Duration::from_secs(20);
    loop {
        let drops = daemon.ok("show drops");
        let last = drops.lines().find(|line| line.contains("203.0.113.9"));
        if let Some(last) = last {
            assert_sound("show drops", last);
            assert!(
                last.contains("1442 bytes: ") && last.contains("len 1428"),
                "{last}"
            );
            assert!(last.ends_with("checksum offloaded"), "{last}");
            break;
        }
        assert!(std::time::Instant::now() < until, "{drops}");
    }
}
