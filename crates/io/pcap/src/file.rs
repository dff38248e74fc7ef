//! Reads and writes pcap and pcapng files.
//!
//! Contract:
//! - [`Reader`] accepts any bytes, compressed or not, and never panics; memory is limited to [`MAX_BLOCK`] plus the needs of
//!   the decompressor, whatever lengths the file claims. The limit of [`read_packets`] is [`MAX_CAPTURE`].
//! - A truncated or malformed file results in a [`PcapError`] that names file, packet number and byte offset (in the contents,
//!   if compressed), after all packets in front of the fault. After an error or the end a reader stays at its end.
//! - Times are nanoseconds since 1970; finer resolutions are truncated. An original length below the
//!   captured one is replaced by the captured one. Frame check sequences that the file declares are removed.
//! - [`Reader`] returns what [`Writer`] wrote: time (in the format's resolution), lengths, bytes, and in pcapng comment and
//!   interface.
//!
//! Formats: draft-ietf-opsawg-pcap (µs and ns, both byte orders, and the older 24-byte record variant) and
//! draft-ietf-opsawg-pcapng (section, interface, enhanced, simple and obsolete packet blocks; others are skipped).

mod classic;
mod error;
mod link;
mod ng;
mod read;
mod source;
mod write;

use std::fmt;
use std::path::Path;

pub use error::{Fault, PcapError};
pub use read::{Reader, read_packets, read_packets_limited};
pub use write::{Output, Writer, WriterOptions};

/// The maximum length of a packet in a file, as in libpcap.
pub const MAX_PACKET: usize = 256 << 10;
/// The maximum length of a pcapng block.
pub const MAX_BLOCK: usize = 16 << 20;
/// The maximum memory of [`read_packets`].
pub const MAX_CAPTURE: u64 = 4 << 30;

/// The type of a packet's first header (numbers of tcpdump.org's link-layer type registry).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LinkType(pub u16);

impl LinkType {
    /// BSD loopback: address family in host order, then IP
    pub const NULL: LinkType = LinkType(0);
    /// Ethernet
    pub const ETHERNET: LinkType = LinkType(1);
    /// IPv4 or IPv6 by its version field
    pub const RAW: LinkType = LinkType(101);
    /// OpenBSD loopback: address family in network order, then IP
    pub const LOOP: LinkType = LinkType(108);
    /// Linux "cooked" capture
    pub const LINUX_SLL: LinkType = LinkType(113);
    /// Linux "cooked" capture, version 2
    pub const LINUX_SLL2: LinkType = LinkType(276);
    /// IPv4
    pub const IPV4: LinkType = LinkType(228);
    /// IPv6
    pub const IPV6: LinkType = LinkType(229);
}

impl fmt::Display for LinkType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            LinkType::NULL => f.write_str("BSD-loopback"),
            LinkType::ETHERNET => f.write_str("Ethernet"),
            LinkType::RAW => f.write_str("raw-IP"),
            LinkType::LOOP => f.write_str("OpenBSD-loopback"),
            LinkType::LINUX_SLL => f.write_str("Linux-SLL"),
            LinkType::LINUX_SLL2 => f.write_str("Linux-SLL2"),
            LinkType::IPV4 => f.write_str("IPv4"),
            LinkType::IPV6 => f.write_str("IPv6"),
            LinkType(other) => write!(f, "link-type-{other}"),
        }
    }
}

/// The format of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileFormat {
    /// pcap, times in microseconds
    PcapUs,
    /// pcap, times in nanoseconds
    PcapNs,
    /// pcapng
    PcapNg,
}

impl FileFormat {
    /// The format of a new file with this name: pcapng by its extension, else pcap with microseconds, which all programs read.
    pub fn for_path(path: &Path) -> FileFormat {
        match path.extension().and_then(|e| e.to_str()) {
            Some("pcapng" | "ntar") => FileFormat::PcapNg,
            _ => FileFormat::PcapUs,
        }
    }
}

/// A packet in the reader's buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PacketRef<'a> {
    /// Nanoseconds since 1970.
    pub timestamp_ns: u64,
    /// The length on the wire; at least `data.len()`.
    pub orig_len: u32,
    /// Number of the interface within its section (0 in pcap).
    pub interface: u32,
    /// The type of the first header in `data`.
    pub linktype: LinkType,
    /// The captured bytes.
    pub data: &'a [u8],
    /// The first comment (pcapng).
    pub comment: Option<&'a str>,
}

impl PacketRef<'_> {
    /// An owned copy.
    pub fn to_packet(&self) -> Packet {
        Packet {
            timestamp_ns: self.timestamp_ns,
            orig_len: self.orig_len,
            interface: self.interface,
            linktype: self.linktype,
            data: self.data.to_vec(),
            comment: self.comment.map(str::to_owned),
        }
    }
}

/// An owned packet; the fields are those of [`PacketRef`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packet {
    /// Nanoseconds since 1970.
    pub timestamp_ns: u64,
    /// The length on the wire; at least `data.len()`.
    pub orig_len: u32,
    /// Number of the interface within its section (0 in pcap).
    pub interface: u32,
    /// The type of the first header in `data`.
    pub linktype: LinkType,
    /// The captured bytes.
    pub data: Vec<u8>,
    /// The first comment (pcapng).
    pub comment: Option<String>,
}

impl Packet {
    /// An Ethernet packet that is captured completely.
    pub fn ethernet(timestamp_ns: u64, data: Vec<u8>) -> Packet {
        let orig_len = u32::try_from(data.len()).unwrap_or(u32::MAX);
        Packet {
            timestamp_ns,
            orig_len,
            interface: 0,
            linktype: LinkType::ETHERNET,
            data,
            comment: None,
        }
    }

    /// A reference for a [`Writer`].
    pub fn as_ref(&self) -> PacketRef<'_> {
        PacketRef {
            timestamp_ns: self.timestamp_ns,
            orig_len: self.orig_len,
            interface: self.interface,
            linktype: self.linktype,
            data: &self.data,
            comment: self.comment.as_deref(),
        }
    }
}

/// A whole file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capture {
    /// The format.
    pub format: FileFormat,
    /// Link type of the first packet, or of the file if it has none.
    pub linktype: LinkType,
    /// The packets in the file's order.
    pub packets: Vec<Packet>,
}

#[cfg(test)]
mod tests;
