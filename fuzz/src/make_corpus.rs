//! Writes the seeds of this workspace: `cargo run --bin make_corpus` in `fuzz/`. Deterministic; run it again after adding a new
//! type of packet here, and commit the changed files.

#[path = "corpus/more.rs"]
mod more;
#[path = "corpus/plugin.rs"]
mod plugin;

use std::fs;
use std::io::Result;
use std::path::Path;

use volley_pcap::file::WriterOptions;
use volley_pcap::{FileFormat, Packet, Writer};
use volley_wire::MacAddr;
use volley_wire::arp::ArpPacket;
use volley_wire::build::Packet as Build;
use volley_wire::icmp4::{Icmp4Header, Icmp4Type};
use volley_wire::icmp6::{Icmp6Header, Icmp6Type};

fn main() -> Result<()> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus");
    for (name, packet) in packets() {
        put(&corpus, "wire_parse", name, &packet)?;
        put(&corpus, "wire_dissect", name, &packet)?;
    }
    for (n, text) in TEXTS.iter().enumerate() {
        put(&corpus, "wire_text", &format!("text{n}"), text.as_bytes())?;
    }
    for (n, line) in LINES.iter().enumerate() {
        put(&corpus, "cli_line", &format!("line{n}"), line.as_bytes())?;
    }
    for (n, body) in BODIES.iter().enumerate() {
        put(&corpus, "http_body", &format!("body{n}"), body.as_bytes())?;
    }
    put(&corpus, "config_text", "router", CONFIG.as_bytes())?;
    for (name, format) in [
        ("us", FileFormat::PcapUs),
        ("ns", FileFormat::PcapNs),
        ("ng", FileFormat::PcapNg),
    ] {
        put(&corpus, "pcap_read", name, &capture(format))?;
    }
    for (name, bytes) in COMPRESSED {
        put(&corpus, "input_decompress", name, bytes)?;
    }
    for (name, bytes) in plugin::seeds() {
        put(&corpus, "plugin_file", name, &bytes)?;
    }
    for (target, name, bytes) in more::seeds(&packets()) {
        put(&corpus, target, name, &bytes)?;
    }
    Ok(())
}

/// Bodies without a name, and bodies with the name of an action or a query.
const BODIES: [&str; 6] = [
    r#"{"interface-create":{"name":"pg0","kind":"pg"}}"#,
    r#"[{"set":{"class":"address","interface":"pg0","address":"192.0.2.1/24"}},{"set":{"class":"table","family":"ip6","id":7}}]"#,
    r#"[{"route-add":{"prefix":"10.0.0.0/8","paths":[{"target":{"via":{"addr":"192.0.2.9","interface":"pg0"}}}]}}]"#,
    "commit\n{\"source\":{\"text\":\"[engine]\"},\"confirm_s\":5}",
    "confirm\n{}",
    "fib\nfamily=ip4&table=7&address=192.0.2.1",
];

fn put(corpus: &Path, target: &str, name: &str, bytes: &[u8]) -> Result<()> {
    let dir = corpus.join(target);
    fs::create_dir_all(&dir)?;
    fs::write(dir.join(name), bytes)
}

const TEXTS: [&str; 10] = [
    "02:00:00:00:00:01",
    "0200.0000.0001",
    "10.0.0.0/8",
    "10.0.0.1/8",
    "2001:db8::/32",
    "::/0",
    "10.0.0.1-10.0.0.9",
    "::1-::ffff",
    "0x86dd",
    "192.0.2.7/24",
];

const LINES: [&str; 12] = [
    "show runtime | grep ip4",
    "show ip fib 10.0.0.0/8",
    "trace add pg-input 10",
    "ip route add 10.0.0.0/24 via 192.0.2.1 pg1 weight 2 count 1000",
    "set interface state pg0 up",
    "set interface ip address pg0 192.0.2.1/24",
    "set ip neighbor pg1 192.0.2.2 02:fe:00:00:00:01",
    "test l2patch rx pg0 tx pg1",
    "packet-generator enable s0",
    "pcap trace rx tx drop max 10 file /tmp/x.pcap",
    "set interface feature pg0 ip4-not-enabled arc ip4-unicast",
    "clear interfaces",
];

const CONFIG: &str = include_str!("../../crates/control/config/examples/router.toml");

/// `volley\n` in each format, as the standard tools write it.
const COMPRESSED: [(&str, &[u8]); 4] = [
    ("gzip", b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03+\xcb\xcf\xc9I\xad\xe4\x02\x00}wp\x96\x07\x00\x00\x00"),
    ("bzip2", b"BZh91AY&SY\xd4\xf4\xca\xe4\x00\x00\x02\xc1\x80\x00\x10\x02\x04\x81  \x00\x22\x18h0\x02u)\x85\xdc\x91N\x14$5=2\xb9\x00"),
    ("xz", b"\xfd7zXZ\x00\x00\x04\xe6\xd6\xb4F\x02\x00!\x01\x16\x00\x00\x00t/\xe5\xa3\x01\x00\x06volley\x0a\x00\x00\xca\xab\xd4&\x85i~\xd6\x00\x01\x1f\x07\x16.\xb8s\x1f\xb6\xf3}\x01\x00\x00\x00\x00\x04YZ"),
    ("zstd", b"(\xb5/\xfd\x04X9\x00\x00volley\x0a\xb6_e\xf2"),
];

fn packets() -> Vec<(&'static str, Vec<u8>)> {
    let base = || Build::eth(MacAddr::local(2), MacAddr::local(1));
    let ip4 = || base().ip4([10, 0, 0, 1].into(), [10, 1, 0, 1].into());
    let ip6 = || base().ip6(0x2001_0db8_u128.into(), 1u128.into());
    let arp = ArpPacket::request(
        MacAddr::local(1),
        [10, 0, 0, 1].into(),
        [10, 0, 0, 2].into(),
    );
    let ns = Icmp6Header::new(Icmp6Type::NEIGHBOUR_SOLICITATION, 0, [0; 4]);
    let ra = Icmp6Header::new(Icmp6Type::ROUTER_ADVERTISEMENT, 0, [64, 0, 0, 9]);
    let unreachable = Icmp4Header::new(Icmp4Type::UNREACHABLE, 1, [0; 4]);
    let quoted = Build::bare()
        .ip4([1; 4].into(), [2; 4].into())
        .udp(1, 2)
        .build();
    let nd_options = [1, 1, 2, 0, 0, 0, 0, 1, 5, 1, 0, 0, 0, 0, 5, 0xdc];
    vec![
        ("udp4", ip4().udp(1, 2).payload(b"x").build()),
        (
            "tcp4",
            ip4()
                .options(&[148, 4, 0, 0])
                .tcp(1, 2, 2)
                .options(&[2, 4, 5, 0xb4])
                .build(),
        ),
        (
            "fragment4",
            ip4().fragment4(8, true, 1).payload([0; 16]).build(),
        ),
        ("error4", ip4().icmp4(unreachable).payload(quoted).build()),
        ("vlans", base().vlan(1).vlan(2).arp(arp).build()),
        (
            "udp6",
            ip6()
                .hop_by_hop(&[5, 2, 0, 0])
                .routing(0, 1, 1)
                .dest_options(&[])
                .udp(1, 2)
                .build(),
        ),
        (
            "fragment6",
            ip6().fragment6(0, true, 1).tcp(1, 2, 2).build(),
        ),
        (
            "ns",
            ip6()
                .icmp6(ns)
                .payload([&[9; 16][..], &nd_options].concat())
                .build(),
        ),
        (
            "ra",
            ip6()
                .icmp6(ra)
                .payload([&[0; 8][..], &nd_options].concat())
                .build(),
        ),
        (
            "tunnel",
            ip6().ip4([1; 4].into(), [2; 4].into()).echo4(1, 2).build(),
        ),
    ]
}

fn capture(format: FileFormat) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), "corpus", WriterOptions::new(format))
        .expect("memory does not fail");
    for (n, (name, bytes)) in packets().into_iter().take(3).enumerate() {
        let mut packet = Packet::ethernet(1_700_000_000_000_000_000 + n as u64, bytes);
        packet.comment = Some(name.into());
        writer.write(packet.as_ref()).expect("memory does not fail");
    }
    writer.finish().expect("memory does not fail")
}
