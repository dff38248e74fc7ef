//! Other programs read the files that Volley writes, and vice versa: scapy, and tcpdump for the text of packets, if installed.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use volley_pcap::file::WriterOptions;
use volley_pcap::{FileFormat, Packet, Writer, read_packets};
use volley_wire::MacAddr;
use volley_wire::build::Packet as Build;

/// A Python with scapy: `$VOLLEY_PYTHON`, the environment that `cargo xtask install` makes, or the system's.
fn python() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), |dir| root.join(dir));
    let named = std::env::var_os("VOLLEY_PYTHON").map(PathBuf::from);
    let candidates = [
        named,
        Some(target.join("venv/bin/python")),
        Some("python3".into()),
    ];
    let found = candidates.into_iter().flatten().find(|python| {
        let mut check = Command::new(python);
        check
            .args(["-c", "import scapy.all"])
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        check.status().is_ok_and(|s| s.success())
    });
    if found.is_none() {
        eprintln!("SKIP: no Python with scapy (cargo xtask install, or set VOLLEY_PYTHON)");
    }
    found
}

fn run(python: &Path, script: &str, args: &[&Path]) -> String {
    let output = Command::new(python)
        .args(["-c", script])
        .args(args)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

fn packets() -> Vec<Packet> {
    let base = || Build::eth(MacAddr::local(2), MacAddr::local(1));
    let (a4, b4) = ([10, 0, 0, 1].into(), [10, 1, 0, 1].into());
    let (a6, b6) = (
        "2001:db8::1".parse().unwrap(),
        "2001:db8::2".parse().unwrap(),
    );
    let built = [
        base().ip4(a4, b4).udp(1234, 80).payload(b"odd"),
        base()
            .vlan(7)
            .vlan(8)
            .ip4(a4, b4)
            .options(&[148, 4, 0, 0])
            .tcp(1, 2, 0x12)
            .options(&[2, 4, 5, 0xb4]),
        base().ip4(a4, b4).echo4(1, 2).payload([0xaa; 99]),
        base()
            .ip6(a6, b6)
            .hop_by_hop(&[5, 2, 0, 0])
            .dest_options(&[])
            .udp(5, 6)
            .frame_len(1514),
        base()
            .ip6(a6, b6)
            .fragment6(0, false, 9)
            .tcp(5, 6, 0x02)
            .payload(b"x"),
        base().ip6(a6, b6).echo6(3, 4).payload(b"ping"),
        base()
            .ip6(a6, b6)
            .ip4(a4, b4)
            .ttl(3)
            .udp(1, 2)
            .payload(b"inner"),
    ];
    let time = |n: usize| 1_700_000_000_000_000_000 + n as u64 * 1_000_001_000;
    built
        .iter()
        .enumerate()
        .map(|(n, p)| Packet::ethernet(time(n), p.build()))
        .collect()
}

fn write(path: &Path, format: FileFormat, packets: &[Packet]) {
    let mut writer = Writer::create(path, WriterOptions::new(format)).unwrap();
    packets
        .iter()
        .for_each(|p| writer.write(p.as_ref()).unwrap());
    writer.finish().unwrap();
}

/// For each packet: time in µs, bytes, and whether scapy generates the same bytes after deleting every length and checksum.
const READ: &str = r#"
import sys
from scapy.all import rdpcap, raw, Ether
from scapy.layers.inet import IP, UDP, TCP, ICMP
from scapy.layers.inet6 import IPv6
def again(p):
    p = p.copy()
    q = p
    while q:
        for f in ("len", "chksum", "plen", "cksum", "ihl", "dataofs"):
            if f in getattr(q, "fields", {}) and not (f == "len" and type(q).__name__.startswith("IPv6Ext")):
                delattr(q, f)
        q = q.payload
    return raw(p)
for p in rdpcap(sys.argv[1]):
    b = raw(p)
    print(round(float(p.time) * 1e6), b.hex(), int(again(Ether(b)) == b))
"#;

#[test]
fn scapy_reads_what_we_write() {
    let Some(python) = python() else { return };
    let dir = tempfile::tempdir().unwrap();
    for format in [FileFormat::PcapUs, FileFormat::PcapNs, FileFormat::PcapNg] {
        let path = dir.path().join("a.pcap");
        write(&path, format, &packets());
        let text = run(&python, READ, &[&path]);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), packets().len());
        for (line, packet) in lines.iter().zip(packets()) {
            let hex: String = packet.data.iter().map(|b| format!("{b:02x}")).collect();
            let expected = format!("{} {hex} 1", packet.timestamp_ns / 1000);
            assert_eq!(
                *line, expected,
                "{format:?}: time, bytes, and 1: scapy works out the same lengths and checksums"
            );
        }
    }
}

const WRITE: &str = r#"
import sys
from scapy.all import rdpcap, wrpcap, PcapNgWriter
packets = rdpcap(sys.argv[1])
wrpcap(sys.argv[2], packets, endianness=">")
wrpcap(sys.argv[3], packets, nano=True)
wrpcap(sys.argv[4], packets, gz=True)
with PcapNgWriter(sys.argv[5]) as w:
    for p in packets:
        p.comment = "from scapy"
        w.write(p)
"#;

#[test]
fn we_read_what_scapy_writes() {
    let Some(python) = python() else { return };
    let dir = tempfile::tempdir().unwrap();
    let ours = dir.path().join("ours.pcap");
    write(&ours, FileFormat::PcapUs, &packets());
    let theirs: Vec<_> = ["big.pcap", "ns.pcap", "packed.pcap.gz", "ng.pcapng"]
        .map(|n| dir.path().join(n))
        .into();
    let args: Vec<&Path> = std::iter::once(&ours)
        .chain(&theirs)
        .map(PathBuf::as_path)
        .collect();
    run(&python, WRITE, &args);
    for path in &theirs {
        let capture = read_packets(path).unwrap();
        let ng = capture.format == FileFormat::PcapNg;
        assert_eq!(ng, path.ends_with("ng.pcapng"));
        for (found, packet) in capture.packets.iter().zip(packets()) {
            assert_eq!(
                (&found.data, found.timestamp_ns / 1000),
                (&packet.data, packet.timestamp_ns / 1000),
                "{path:?}"
            );
            assert_eq!(found.comment.as_deref(), ng.then_some("from scapy"));
        }
        assert_eq!(capture.packets.len(), packets().len());
    }
}

#[test]
fn tcpdump_finds_nothing_wrong() {
    if Command::new("tcpdump").arg("--version").output().is_err() {
        eprintln!("SKIP: tcpdump is not installed");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    for (format, name) in [
        (FileFormat::PcapNs, "a.pcap"),
        (FileFormat::PcapNg, "a.pcapng"),
    ] {
        let path = dir.path().join(name);
        write(&path, format, &packets());
        let output = Command::new("tcpdump")
            .args(["-nnevvv", "-r"])
            .arg(&path)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let faults = ["bad cksum", "incorrect", "truncated", "bad udp", "[|"];
        faults
            .iter()
            .for_each(|fault| assert!(!text.contains(fault), "{fault} in {text}"));
        assert_eq!(text.matches("02:00:00:00:00:01 >").count(), packets().len());
    }
}
