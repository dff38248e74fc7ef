//! The router for the captures of the shared data, and its output.

use super::{Daemon, frames};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use volley_pcap::{Packet, read_packets};

/// The number of packets in a burst: with the ICMP errors for them, fewer than the capture's ring has slots for.
pub const BURST: usize = 500;

/// The router's configuration.
pub const CONFIG: &str = r#"
[icmp]
rate = 0
receiver_rate = 0
[[interface]]
name = "pg0"
kind = "pg"
mac = "02:fe:00:00:00:00"
addresses = ["198.18.0.1/24", "2001:2::1/64"]
[[interface]]
name = "pg1"
kind = "pg"
mac = "02:fe:00:00:00:01"
mtu = 1500
addresses = ["198.18.1.1/24", "2001:2:0:1::1/64"]
capture = "@/out.pcap"
[[neighbor]]
interface = "pg1"
address = "198.18.1.10"
mac = "02:aa:00:00:00:0a"
[[neighbor]]
interface = "pg1"
address = "198.18.1.11"
mac = "02:aa:00:00:00:0b"
[[neighbor]]
interface = "pg1"
address = "2001:2:0:1::a"
mac = "02:aa:00:00:00:0a"
[[neighbor]]
interface = "pg1"
address = "2001:2:0:1::b"
mac = "02:aa:00:00:00:0b"
[[route]]
prefix = "0.0.0.0/0"
via = "198.18.1.10"
interface = "pg1"
[[route]]
prefix = "10.0.0.0/8"
paths = [{ via = "198.18.1.10", interface = "pg1" }, { via = "198.18.1.11", interface = "pg1" }]
[[route]]
prefix = "172.16.0.0/12"
action = "unreachable"
[[route]]
prefix = "192.168.0.0/24"
action = "drop"
[[route]]
prefix = "::/0"
via = "2001:2:0:1::a"
interface = "pg1"
[[route]]
prefix = "2001:db8::/32"
paths = [{ via = "2001:2:0:1::a", interface = "pg1" }, { via = "2001:2:0:1::b", interface = "pg1" }]
[[route]]
prefix = "fd00::/8"
action = "prohibit"
"#;

/// The path of a capture of the shared data.
pub fn shared(name: &str) -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let root = std::env::var_os("VOLLEY_SHARED").map_or(beside, PathBuf::from);
    Some(root.join("data/captures").join(format!("{name}.pcap.xz"))).filter(|path| path.is_file())
}

/// The packets of a capture for the router; those of the tagged mix without their tag.
pub fn packets(name: &str, path: &Path) -> Vec<Packet> {
    let mut packets = read_packets(path).unwrap().packets;
    for packet in &mut packets {
        let frame = &mut packet.data;
        if name == "mix4k-snabb" && frame[12..14] == [0x81, 0] {
            frame.drain(12..16);
        }
        if let Some(mac) = frame.get_mut(..6) {
            mac.copy_from_slice(&[2, 0xfe, 0, 0, 0, 0]);
        }
        packet.orig_len = packet.data.len() as u32;
    }
    packets
}

/// The output: how often each frame left, and how often each was dropped for which reason.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    pub sent: BTreeMap<Vec<u8>, usize>,
    pub dropped: BTreeMap<(String, Vec<u8>), usize>,
}

impl Outcome {
    /// Reads `out.pcap` and `drops.pcapng` of a daemon that has ended.
    pub fn of(daemon: &Daemon) -> Self {
        let mut outcome = Outcome::default();
        for frame in sent(daemon) {
            *outcome.sent.entry(frame).or_default() += 1;
        }
        let drops = daemon.folder.file("drops.pcapng");
        for packet in read_packets(&drops).unwrap().packets {
            *outcome
                .dropped
                .entry((packet.comment.unwrap_or_default(), untimed(packet.data)))
                .or_default() += 1;
        }
        outcome
    }
}

/// Frames that left by `out.pcap`, each through [`untimed`].
pub fn sent(daemon: &Daemon) -> Vec<Vec<u8>> {
    let out = daemon.folder.file("out.pcap");
    let all = if out.exists() {
        frames(&out)
    } else {
        Vec::new()
    };
    all.into_iter().map(untimed).collect()
}

/// A frame without the times in a timestamp option (RFC 791, 3.1) and without the checksum of a header that has one, because
/// they differ between runs. The oracle checks them.
fn untimed(mut frame: Vec<u8>) -> Vec<u8> {
    let is_ip4 = frame.get(12..14) == Some(&[8, 0]);
    let end = frame.get(14).map_or(0, |b| 14 + usize::from(b & 15) * 4);
    let Some(header) = frame.get_mut(14..end).filter(|h| is_ip4 && h.len() > 20) else {
        return frame;
    };
    let mut at = 20;
    while at + 1 < header.len() && header[at] != 0 {
        let len = match header[at] {
            1 => 1,
            _ => usize::from(header[at + 1]).max(2),
        };
        if let (68, Some(option)) = (header[at], header.get_mut(at..at + len))
            && option.len() >= 4
        {
            let entry = if matches!(option[3] & 15, 1 | 3) {
                8
            } else {
                4
            };
            for entry in option[4..].chunks_exact_mut(entry) {
                let time = entry.len() - 4;
                entry[time..].fill(0);
            }
            header[10..12].fill(0);
        }
        at += len;
    }
    frame
}

/// The key of a flow: of IPv4 DSCP, protocol and addresses, of IPv6 next header and addresses. An ICMP error belongs to the
/// flow of the packet that it quotes.
pub fn flow(packet: &[u8]) -> Vec<u8> {
    let (mut key, error) = match packet.first().map(|b| b >> 4) {
        Some(4) if packet.len() >= 20 => {
            let header = usize::from(packet[0] & 15) * 4;
            let error = packet[9] == 1 && matches!(packet.get(header), Some(3 | 11 | 12));
            let key = [&packet[1..2], &packet[9..10], &packet[12..20]].concat();
            (key, error.then_some(header + 8))
        }
        Some(6) if packet.len() >= 40 => {
            let error = packet[6] == 58 && packet.get(40).is_some_and(|kind| *kind < 128);
            (
                [&packet[6..7], &packet[8..40]].concat(),
                error.then_some(48),
            )
        }
        _ => (Vec::new(), None),
    };
    if let Some(quoted) = error.and_then(|at| packet.get(at..)) {
        key.extend(flow(quoted));
    }
    key
}

/// Packets that left, by flow, each in order.
pub fn flows(frames: Vec<Vec<u8>>) -> BTreeMap<Vec<u8>, Vec<Vec<u8>>> {
    let mut flows: BTreeMap<Vec<u8>, Vec<Vec<u8>>> = BTreeMap::new();
    for frame in frames {
        let key = match frame.get(12..14) {
            Some([8, 0] | [0x86, 0xdd]) => flow(&frame[14..]),
            _ => Vec::new(),
        };
        flows.entry(key).or_default().push(frame);
    }
    flows
}
