//! The real captures, if installed: they are read and parsed, and the results are compared with the index that came with them.
//!
//! The index (`NAME.index.tsv.xz`) was made by another parser and names each packet's length, layers and faults.

use std::collections::BTreeSet;
use std::io::BufRead;
use std::path::PathBuf;

use volley_pcap::{Capture, FileFormat, LinkType, read_packets};
use volley_wire::ip4::Ip4;
use volley_wire::ip6::Ip6;
use volley_wire::{EtherType, IpProto, WireError, checksum, dissect, eth, udp};

const NAMES: [&str; 6] = [
    "valid",
    "jumbo",
    "odd",
    "malformed",
    "malformed-ndpi-lgpl3",
    "mix4k-snabb",
];

/// One line of an index.
struct Line {
    len: usize,
    layers: Vec<String>,
    faults: BTreeSet<String>,
    oddities: BTreeSet<String>,
}

fn folder() -> Option<PathBuf> {
    let beside = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../../shared"));
    let shared = std::env::var_os("VOLLEY_SHARED").map_or(beside, PathBuf::from);
    let folder = shared.join("data/captures");
    if !folder.is_dir() {
        eprintln!(
            "SKIP: no captures in {} (set VOLLEY_SHARED)",
            folder.display()
        );
        return None;
    }
    Some(folder)
}

fn set(text: &str) -> BTreeSet<String> {
    text.split(',')
        .filter(|t| *t != "-")
        .map(str::to_owned)
        .collect()
}

/// The installed captures, each with its index.
fn captures() -> Vec<(&'static str, Capture, Vec<Line>)> {
    let Some(folder) = folder() else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for name in NAMES {
        let path = folder.join(format!("{name}.pcap.xz"));
        if !path.is_file() {
            eprintln!("SKIP: {} is not there", path.display());
            continue;
        }
        let capture = read_packets(&path).unwrap();
        let index = volley_input::open(folder.join(format!("{name}.index.tsv.xz"))).unwrap();
        let lines = index
            .lines()
            .map(Result::unwrap)
            .filter(|l| !l.starts_with('#'))
            .map(|l| line(&l))
            .collect();
        found.push((name, capture, lines));
    }
    found
}

fn line(text: &str) -> Line {
    let fields: Vec<&str> = text.split('\t').collect();
    Line {
        len: fields[1].parse().unwrap(),
        layers: fields[3].split('/').map(str::to_owned).collect(),
        faults: set(fields[4]),
        oddities: set(fields[5]),
    }
}

#[test]
fn they_are_read_as_the_index_says() {
    for (name, capture, lines) in captures() {
        assert_eq!(
            (capture.format, capture.linktype),
            (FileFormat::PcapUs, LinkType::ETHERNET)
        );
        assert_eq!(capture.packets.len(), lines.len(), "{name}");
        for (n, (packet, line)) in capture.packets.iter().zip(&lines).enumerate() {
            assert_eq!(packet.data.len(), line.len, "{name} packet {}", n + 1);
            assert_eq!(
                packet.timestamp_ns,
                1_700_000_000_000_000_000 + n as u64 * 1_000_000
            );
        }
    }
}

/// The first IP header's fault, in the terms of the index; none if the header is correct.
fn verdict(bytes: &[u8]) -> Option<&'static str> {
    let Ok(frame) = eth::frame(bytes) else {
        return Some("eth-short");
    };
    match frame.ether_type {
        EtherType::IP4 => verdict4(frame.payload),
        EtherType::IP6 => verdict6(frame.payload),
        _ => None,
    }
}

fn verdict4(bytes: &[u8]) -> Option<&'static str> {
    match Ip4::parse(bytes) {
        Err(WireError::Short { .. }) => Some("ip4-short"),
        Err(WireError::Version { .. }) => Some("ip4-ver"),
        Err(WireError::LengthBelow {
            what: "IPv4 header",
            ..
        }) => Some("ip4-ihl"),
        Err(WireError::LengthBeyond {
            what: "IPv4 options",
            ..
        }) => Some("ip4-hdr-trunc"),
        Err(WireError::LengthBelow {
            what: "IPv4 total", ..
        }) => Some("ip4-totlen-lt-hdr"),
        Err(WireError::LengthBeyond {
            what: "IPv4 total", ..
        }) => Some("ip4-totlen-gt-frame"),
        Err(other) => panic!("no word for {other}"),
        Ok(ip) if !ip.checksum_ok() => Some("ip4-badcsum"),
        Ok(ip) if ip.options().check().is_err() => Some("ip4-opt-bad"),
        Ok(_) => None,
    }
}

fn verdict6(bytes: &[u8]) -> Option<&'static str> {
    match Ip6::parse(bytes) {
        Err(WireError::Short { .. }) => Some("ip6-short"),
        Err(WireError::Version { .. }) => Some("ip6-ver"),
        Err(WireError::LengthBeyond { .. }) => Some("ip6-plen-gt-frame"),
        Err(other) => panic!("no word for {other}"),
        Ok(ip) => match ip.upper() {
            Err(WireError::HopByHopNotFirst) => Some("ip6-hbh-notfirst"),
            Err(_) => Some("ip6-ext-short"),
            Ok(_) => None,
        },
    }
}

/// Every fault that Volley finds is in the index, and Volley finds every fault of the index that it knows, unless another comes
/// first.
#[test]
fn faults_are_those_of_the_index() {
    let mut found = std::collections::BTreeMap::<&str, usize>::new();
    for (name, capture, lines) in captures() {
        for (n, (packet, line)) in capture.packets.iter().zip(&lines).enumerate() {
            if line.layers.iter().any(|l| l == "jumbo") {
                continue; // RFC 2675: not supported, see the module
            }
            let place = || {
                format!(
                    "{name} packet {}: {:?} {:?}",
                    n + 1,
                    line.layers,
                    line.faults
                )
            };
            let outer_ip = line
                .layers
                .iter()
                .position(|l| l.starts_with("ip4") || l.starts_with("ip6"));
            let plain = line
                .layers
                .iter()
                .take(outer_ip.unwrap_or(0))
                .all(|l| l == "eth" || l == "vlan");
            let ips = line
                .layers
                .iter()
                .filter(|l| l.starts_with("ip4") || l.starts_with("ip6"))
                .count();
            if let Some(fault) = verdict(&packet.data) {
                *found.entry(fault).or_default() += 1;
                let cut = fault == "eth-short" && line.faults.contains("capture-truncated")
                    || fault == "ip6-ext-short" && line.faults.contains("ip6-ext-len");
                assert!(
                    line.faults.contains(fault) || cut,
                    "{} but we find {fault}",
                    place()
                );
                continue;
            }
            let ours = |f: &&String| {
                f.starts_with("ip4-") && !f.contains("frag")
                    || f.starts_with("ip6-ver")
                    || f.starts_with("ip6-plen")
            };
            if plain && ips == 1 {
                assert_eq!(
                    line.faults.iter().find(ours),
                    None,
                    "{} but we find nothing",
                    place()
                );
            }
        }
    }
    eprintln!("faults found: {found:?}");
}

/// The names, in the index, of the headers that Volley parses.
fn layers(bytes: &[u8]) -> Vec<String> {
    let Ok(frame) = eth::frame(bytes) else {
        return Vec::new();
    };
    let mut names = vec!["eth".to_owned()];
    let mut tag = frame.header.ether_type;
    for inner in frame.tags {
        names.push(
            if tag == EtherType::QINQ {
                "svlan"
            } else {
                "vlan"
            }
            .to_owned(),
        );
        tag = inner.ether_type;
    }
    match frame.ether_type {
        EtherType::ARP => names.push("arp".into()),
        EtherType::IP4 => names.extend(layers4(frame.payload)),
        EtherType::IP6 => names.extend(layers6(frame.payload)),
        _ => {}
    }
    names
}

fn transport(proto: IpProto) -> Option<String> {
    let name = match proto {
        IpProto::UDP => "udp",
        IpProto::TCP => "tcp",
        IpProto::SCTP => "sctp",
        _ => return None,
    };
    Some(name.to_owned())
}

fn layers4(bytes: &[u8]) -> Vec<String> {
    let Ok(ip) = Ip4::parse(bytes) else {
        return Vec::new();
    };
    let mut names = vec![
        if ip.options.is_empty() {
            "ip4"
        } else {
            "ip4opt"
        }
        .to_owned(),
    ];
    match (ip.header.is_fragment(), ip.has_transport_header()) {
        (true, true) => names.push("frag0".into()),
        (true, false) => {
            names.push("frag".into());
            return names;
        }
        _ => {}
    }
    match ip.header.protocol {
        IpProto::ICMP => names.extend(ip.payload.first().map(|t| format!("icmp{t}"))),
        proto => names.extend(transport(proto)),
    }
    names
}

fn layers6(bytes: &[u8]) -> Vec<String> {
    let Some((ip, upper)) = Ip6::parse(bytes)
        .ok()
        .and_then(|ip| Some((ip, ip.upper().ok()?)))
    else {
        return Vec::new();
    };
    let mut names = vec!["ip6".to_owned()];
    if ip.extensions().next().is_none() {
        names.extend(transport(upper.proto));
    }
    names
}

#[test]
fn layers_are_those_of_the_index() {
    let mut compared = 0;
    for (name, capture, lines) in captures() {
        for (n, (packet, line)) in capture.packets.iter().zip(&lines).enumerate() {
            let ours = layers(&packet.data);
            // the index lists more protocols than Volley parses; the index of a faulty packet ends where its parser stopped
            let common = ours.len().min(line.layers.len());
            let place = format!("{name} packet {} {:?}", n + 1, line.faults);
            let theirs: Vec<_> = line
                .layers
                .iter()
                .take(common)
                .map(|l| l.trim_end_matches("-short"))
                .collect();
            if line.faults.is_empty() {
                assert_eq!(ours[..common], theirs, "{place}");
                assert_eq!(
                    common,
                    ours.len(),
                    "{place}: we see more than {:?}",
                    line.layers
                );
                compared += 1;
            }
        }
    }
    eprintln!("layers compared of {compared} packets");
}

/// Whether the transport checksum of the outer packet is correct; none unless it is a whole UDP or TCP packet.
fn transport_checksum(bytes: &[u8]) -> Option<bool> {
    let frame = eth::frame(bytes).ok()?;
    if frame.ether_type == EtherType::IP4 {
        let ip = Ip4::parse(frame.payload)
            .ok()
            .filter(|ip| !ip.header.is_fragment())?;
        let (src, dst, proto) = (ip.header.src(), ip.header.dst(), ip.header.protocol);
        return match proto {
            IpProto::UDP => Some(udp::Udp::parse(ip.payload).ok()?.checksum_ok4(src, dst)),
            IpProto::TCP => Some(checksum::is_valid4(src, dst, proto, ip.payload)),
            IpProto::ICMP => Some(checksum::is_valid(ip.payload)),
            _ => None,
        };
    }
    let ip = Ip6::parse(frame.payload)
        .ok()
        .filter(|ip| ip.extensions().next().is_none())?;
    let (src, dst, proto) = (ip.header.src(), ip.header.dst(), ip.header.next_header);
    match proto {
        IpProto::UDP => Some(udp::Udp::parse(ip.payload).ok()?.checksum_ok6(src, dst)),
        IpProto::TCP | IpProto::ICMP6 => Some(checksum::is_valid6(src, dst, proto, ip.payload)),
        _ => None,
    }
}

#[test]
fn transport_checksums_are_right_where_the_index_says_so() {
    let (mut right, mut wrong) = (0, 0);
    for (name, capture, lines) in captures()
        .into_iter()
        .filter(|c| ["valid", "odd", "jumbo"].contains(&c.0))
    {
        for (n, (packet, line)) in capture.packets.iter().zip(&lines).enumerate() {
            let Some(ok) = transport_checksum(&packet.data) else {
                continue;
            };
            let bad = line.oddities.iter().any(|o| o.ends_with("-badcsum"));
            let inner = line.layers.iter().filter(|l| l.starts_with("ip")).count() > 1;
            if !inner {
                assert_eq!(
                    ok,
                    !bad,
                    "{name} packet {} {:?} {:?}",
                    n + 1,
                    line.layers,
                    line.oddities
                );
                *if ok { &mut right } else { &mut wrong } += 1;
            }
        }
    }
    eprintln!("transport checksums: {right} right, {wrong} wrong, all as the index says");
}

/// Every packet, and every truncation to one of its first 150 bytes, has a text.
#[test]
fn every_packet_has_a_text_however_cut() {
    let small = std::env::var_os("VOLLEY_SMALL").is_some();
    for (name, capture, _) in captures() {
        for (n, packet) in capture.packets.iter().enumerate() {
            let text = dissect::one_line(&packet.data);
            assert!(
                !text.is_empty() && text.len() < 4000 && !text.contains('\n'),
                "{name} packet {}",
                n + 1
            );
            if name == "valid" {
                assert!(
                    !text.contains("cut short") && !text.contains(" bad "),
                    "{name} packet {}: {text}",
                    n + 1
                );
            }
            if small && n % 50 != 0 {
                continue;
            }
            for cut in (0..packet.data.len().min(150)).step_by(1 + n % 7) {
                assert!(!dissect::multi_line(&packet.data[..cut]).is_empty());
            }
        }
    }
}
