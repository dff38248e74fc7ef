//! Packets of the demo: captures, adapted to the router, and uniform streams over the tables' prefixes.

use super::DemoError;
use super::router::{Lab, RX_MAC, quoted};
use super::table::{RouteTable, name, shared};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use volley_file::Scratch;
use volley_pcap::{FileFormat, LinkType, Packet, Writer, WriterOptions, read_packets};
use volley_reference::has_timestamp;
use volley_wire::ip4::Ip4Header;
use volley_wire::ip6::Ip6Header;
use volley_wire::udp::UdpHeader;
use volley_wire::{Header, IntoBytes, IpProto, ethertype};

/// Number of destinations of a uniform stream.
const DISTINCT: usize = 65_536;
/// Number of packets of a synthetic capture.
const MADE: usize = 4096;

/// One stream.
pub struct Stream {
    /// Name of the stream.
    pub name: &'static str,
    /// Number of different packets.
    pub packets: usize,
    /// Description.
    pub what: String,
    /// Arguments of its command after name, interface and limit.
    source: String,
    /// Whether the stream has a template instead of a file.
    pub uniform: bool,
}

impl Stream {
    fn of_file(name: &'static str, packets: usize, what: String, file: &Path) -> Self {
        let source = format!("pcap {}", quoted(file));
        Stream {
            name,
            packets,
            what,
            source,
            uniform: false,
        }
    }

    /// The command that sends each packet once.
    pub fn once(&self) -> String {
        format!(
            "packet-generator new name {} interface pg0 limit {} {}",
            self.name, self.packets, self.source
        )
    }

    /// The command that sends the packets repeatedly.
    pub fn endless(&self) -> String {
        let limit = if self.uniform {
            String::new()
        } else {
            format!("limit {} ", 1u64 << 50)
        };
        format!(
            "packet-generator new name {} interface pg0 {limit}{}",
            self.name, self.source
        )
    }
}

/// All streams.
pub struct Traffic {
    /// Streams that are sent at the same time, interleaved packet by packet.
    pub streams: Vec<Stream>,
}

impl Traffic {
    /// Find or create all streams.
    pub fn prepare(
        given: &Option<PathBuf>,
        v4: &RouteTable,
        v6: &RouteTable,
        scratch: &Scratch,
    ) -> Result<Self, DemoError> {
        let mut random = Random(0x9e37_79b9_7f4a_7c15);
        let to4: Vec<Ipv4Addr> = (0..DISTINCT)
            .map(|_| destination4(&v4.routes.v4, &mut random))
            .collect();
        let to6: Vec<Ipv6Addr> = (0..DISTINCT)
            .map(|_| destination6(&v6.routes.v6, &mut random))
            .collect();
        let captures = match given {
            Some(path) => vec![("capture", path.clone())],
            None => [("mix4k", "mix4k-snabb"), ("valid", "valid")]
                .into_iter()
                .filter_map(|(name, start)| Some((name, shared("captures", start, ".pcap.xz")?)))
                .collect(),
        };
        let mut streams = Vec::new();
        for (stream, path) in captures {
            streams.push(fitted(stream, &path, scratch)?);
        }
        if streams.is_empty() {
            streams.push(made(&to4, &to6, &mut random, scratch)?);
        }
        streams.push(uniform4(&to4, scratch)?);
        streams.push(uniform6(&to6, scratch)?);
        Ok(Traffic { streams })
    }

    /// Delete all streams.
    pub fn delete(&self, lab: &mut Lab) -> Result<(), DemoError> {
        lab.switch(None, false)?;
        self.streams
            .iter()
            .try_for_each(|s| lab.line(&format!("packet-generator delete {}", s.name)))
    }
}

/// Pseudo-random numbers (xorshift).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn of<'a, T>(&mut self, all: &'a [T]) -> Option<&'a T> {
        all.get((self.next() % all.len().max(1) as u64) as usize)
    }
}

fn destination4(routes: &[(u32, u8, u32)], random: &mut Random) -> Ipv4Addr {
    let (net, length) = random.of(routes).map_or((0, 0), |r| (r.0, r.1));
    let host = u32::MAX.checked_shr(length.into()).unwrap_or(0);
    Ipv4Addr::from_bits(net | random.next() as u32 & host)
}

fn destination6(routes: &[(u128, u8, u32)], random: &mut Random) -> Ipv6Addr {
    let (net, length) = random.of(routes).map_or((0, 0), |r| (r.0, r.1));
    let host = u128::MAX.checked_shr(length.into()).unwrap_or(0);
    let bits = u128::from(random.next()) << 64 | u128::from(random.next());
    Ipv6Addr::from_bits(net | bits & host)
}

/// A stream of 60-byte packets to the destinations in rotation.
fn uniform4(to: &[Ipv4Addr], scratch: &Scratch) -> Result<Stream, DemoError> {
    let file = scratch.file("to4.txt");
    write_lines(&file, to.iter())?;
    let packet =
        "ip4 src 198.18.0.9 dst 1.0.0.0 / udp sport 1024 dport 1024 checksum 0 / payload 18";
    Ok(uniform("uniform4", "IPv4", "ip4.dst", packet, &file))
}

fn uniform6(to: &[Ipv6Addr], scratch: &Scratch) -> Result<Stream, DemoError> {
    let file = scratch.file("to6.txt");
    write_lines(&file, to.iter())?;
    let packet = "ip6 src 2001:2::9 dst 2000:: / udp sport 1024 dport 1024 checksum 0 / payload 18";
    Ok(uniform("uniform6", "IPv6", "ip6.dst", packet, &file))
}

fn uniform(name: &'static str, version: &str, field: &str, packet: &str, file: &Path) -> Stream {
    let source = format!(
        "edit {field} file {} template {{ eth src 02:00:00:00:00:09 dst 02:fe:00:00:00:00 / {packet} }}",
        quoted(file)
    );
    let what = format!("small, {version}, destinations random inside the table's prefixes");
    Stream {
        name,
        packets: DISTINCT,
        what,
        source,
        uniform: true,
    }
}

fn write_lines<T: ToString>(path: &Path, lines: impl Iterator<Item = T>) -> Result<(), DemoError> {
    let text: String = lines.map(|l| l.to_string() + "\n").collect();
    std::fs::write(path, text).map_err(|source| DemoError::Io {
        path: path.to_owned(),
        source,
    })
}

/// Adapts an external capture: its packets get the router's MAC address and lose one VLAN tag, or get an Ethernet header.
fn fitted(stream: &'static str, path: &Path, scratch: &Scratch) -> Result<Stream, DemoError> {
    let captured = read_packets(path)?.packets;
    let packets: Vec<Packet> = captured.iter().filter_map(fit).collect();
    if packets.is_empty() {
        return Err(DemoError::Useless {
            path: path.to_owned(),
            why: "it has no packets that a router of Ethernet can get",
        });
    }
    let file = scratch.file(&format!("{stream}.pcap"));
    write_packets(&file, &packets)?;
    let ethernet = captured.iter().all(|p| p.linktype == LinkType::ETHERNET);
    let how = match ethernet {
        true => "sent to the router's MAC address, one VLAN tag taken off",
        false => "with an Ethernet header for the router's MAC address",
    };
    let left = match captured.len() - packets.len() {
        0 => String::new(),
        n => format!(
            ", {n} left out (no packet of layer 3, too long, or a timestamp option, which depends on the clock)"
        ),
    };
    let what = format!("real ({}), {how}{left}", name(path));
    Ok(Stream::of_file(stream, packets.len(), what, &file))
}

fn fit(packet: &Packet) -> Option<Packet> {
    let frame = match packet.linktype {
        LinkType::ETHERNET => {
            let mut frame = packet.data.clone();
            let tagged = matches!(
                frame.get(12..14)?,
                [0x81, 0x00] | [0x88, 0xa8] | [0x91, 0x00]
            );
            if tagged && frame.len() >= 18 {
                frame.drain(12..16);
            }
            frame[..6].copy_from_slice(&RX_MAC);
            frame
        }
        _ => {
            let (kind, bytes) = packet.as_ref().layer3()?;
            [&ethernet(kind.value())[..], bytes].concat()
        }
    };
    let fits = (14..=65_535).contains(&frame.len()) && !has_timestamp(&frame);
    fits.then(|| Packet::ethernet(packet.timestamp_ns, frame))
}

fn write_packets(path: &Path, packets: &[Packet]) -> Result<(), DemoError> {
    let mut writer = Writer::create(path, WriterOptions::new(FileFormat::PcapUs))?;
    packets.iter().try_for_each(|p| writer.write(p.as_ref()))?;
    writer.finish()?;
    Ok(())
}

/// A synthetic capture: both IP versions, several lengths, and a fault in one packet of eight.
fn made(
    to4: &[Ipv4Addr],
    to6: &[Ipv6Addr],
    random: &mut Random,
    scratch: &Scratch,
) -> Result<Stream, DemoError> {
    let (Some(first4), Some(first6)) = (to4.first(), to6.first()) else {
        return Err(DemoError::Wrong("there are no destinations".to_owned()));
    };
    let packet = |n: usize| {
        let length = [18, 548, 1472][[0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2][n % 12]];
        let mut frame = match n % 3 {
            0 => frame6(random.of(to6).unwrap_or(first6), length.min(1452)),
            _ => frame4(random.of(to4).unwrap_or(first4), length),
        };
        if n % 8 == 7 {
            // Checksum or address, type, version: faults of different frequency, so that lists sorted by number of
            // packets have the same order each time.
            let at = [22, 22, 22, 22, 22, 12, 12, 14, 14, 24][n / 8 % 10];
            frame[at] ^= 0x41;
        }
        Packet::ethernet(n as u64 * 1_000_000, frame)
    };
    let packets: Vec<Packet> = (0..MADE).map(packet).collect();
    let file = scratch.file("made.pcap");
    write_packets(&file, &packets)?;
    let what = "made up: IPv4 and IPv6, three lengths, one packet of eight with a fault".to_owned();
    Ok(Stream::of_file("made", MADE, what, &file))
}

fn frame4(to: &Ipv4Addr, payload: usize) -> Vec<u8> {
    let mut frame = ethernet(ethertype::IP4);
    let from = Ipv4Addr::new(198, 18, 0, 9);
    let header = Ip4Header::new(from, *to, IpProto::UDP, 64, UdpHeader::LEN + payload);
    frame.extend(header.as_bytes());
    udp(frame, payload)
}

fn frame6(to: &Ipv6Addr, payload: usize) -> Vec<u8> {
    let mut frame = ethernet(ethertype::IP6);
    let from = Ipv6Addr::from(0x2001_0002u128 << 96 | 9);
    let header = Ip6Header::new(from, *to, IpProto::UDP, 64, UdpHeader::LEN + payload);
    frame.extend(header.as_bytes());
    udp(frame, payload)
}

fn ethernet(kind: u16) -> Vec<u8> {
    let mut frame = RX_MAC.to_vec();
    frame.extend([0x02, 0, 0, 0, 0, 9]);
    frame.extend(kind.to_be_bytes());
    frame
}

fn udp(mut frame: Vec<u8>, payload: usize) -> Vec<u8> {
    frame.extend(UdpHeader::new(1024, 1024, payload).as_bytes());
    frame.resize(frame.len() + payload, 0x5a);
    frame
}
