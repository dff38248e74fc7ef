//! Conversion between `virtio_net_hdr` and the graph's offload requests.

use crate::batch::HEADER;
use crate::sys::View;
use volley_graph::Offload;
use volley_iface::virtio::{GSO_ECN, GSO_TCPV4, GSO_TCPV6, GSO_UDP_L4, NEEDS_CSUM, VirtioNetHdr};
use volley_iface::{GsoProtocol, GsoType};

/// The offload request in the header of a packet that begins with `first`; `None` if the header is invalid.
pub fn read(header: &[u8; HEADER], first: &[u8]) -> Option<Offload> {
    let (bytes, _) = header.split_first_chunk()?;
    // The peer's header length is only a hint; a kernel may include payload in it.
    let offload = VirtioNetHdr::from_le_bytes(bytes).to_offload(first).ok()?;
    // A super-segment without a checksum request cannot be segmented.
    let whole = offload.gso.is_none() || offload.checksum.is_some();
    whole.then_some(offload)
}

/// A header to be written: its first eight bytes and its last four. It consists of two numbers because of store
/// forwarding: a wide copy of separately stored bytes waits until all earlier stores have left the core, including those
/// to cache lines that another core shares.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Words(u64, u32);

impl Words {
    /// Write the header to the beginning of a buffer, unless it is there from the previous packet, as in most buffers.
    #[inline(always)]
    pub fn store(self, view: View<'_>) {
        view.settle(0, self.0.to_le_bytes());
        view.settle(8, self.1.to_le_bytes());
    }

    /// The header's bytes.
    pub fn bytes(self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[..8].copy_from_slice(&self.0.to_le_bytes());
        bytes[8..].copy_from_slice(&self.1.to_le_bytes());
        bytes
    }
}

/// A header without offload requests, for a packet in this number of buffers.
#[inline(always)]
pub fn plain(buffers: u16) -> Words {
    Words(0, u32::from(buffers) << 16)
}

/// A header with the requests of `offload`, for a packet in this number of buffers.
pub fn write(offload: &Offload, buffers: u16) -> Words {
    let Words(mut first, mut last) = plain(buffers);
    if let Some(sum) = offload.checksum {
        first |= u64::from(NEEDS_CSUM) | u64::from(sum.start) << 48;
        last |= u32::from(sum.offset);
    }
    if let Some(gso) = offload.gso {
        let GsoType { protocol, ecn } = gso.kind.into();
        let kind = match protocol {
            GsoProtocol::Tcp4 => GSO_TCPV4,
            GsoProtocol::Tcp6 => GSO_TCPV6,
            GsoProtocol::Udp => GSO_UDP_L4,
        };
        let kind = kind | if ecn { GSO_ECN } else { 0 };
        first |= u64::from(kind) << 8 | u64::from(gso.headers) << 16 | u64::from(gso.size) << 32;
    }
    Words(first, last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use volley_graph::Checksum;

    /// The first bytes of a packet: IPv4 without options, and UDP, or TCP with 12 bytes of options.
    fn packet(protocol: u8) -> [u8; 80] {
        let mut bytes = [0; 80];
        bytes[12..15].copy_from_slice(&[8, 0, 0x45]);
        (bytes[23], bytes[46]) = (protocol, 0x80);
        bytes
    }

    #[test]
    fn real_bytes_both_ways() {
        let (tcp, bytes) = (packet(6), [1, 0x81, 66, 0, 0xa8, 5, 34, 0, 16, 0, 0, 0]);
        let offload = read(&bytes, &tcp).unwrap();
        assert_eq!(
            offload.checksum,
            Some(Checksum {
                start: 34,
                offset: 16
            })
        );
        let gso = offload.gso.unwrap();
        assert_eq!(
            (gso.kind.into(), gso.size, gso.headers),
            (
                GsoType {
                    protocol: GsoProtocol::Tcp4,
                    ecn: true
                },
                1448,
                66
            )
        );
        assert_eq!(write(&offload, 0).bytes(), bytes);
        assert_eq!(read(&[0; 12], &tcp), Some(Offload::NONE));
        assert_eq!(write(&Offload::NONE, 0).bytes(), [0; 12]);
        assert_eq!(plain(0x0201).bytes()[10..], [1, 2]);
        assert_eq!(
            write(&offload, 0x0201).bytes()[..11],
            [&bytes[..10], &[1]].concat()
        );
        let (udp, bytes) = (packet(17), [1, 5, 42, 0, 0xc0, 5, 34, 0, 6, 0, 0, 0]);
        let offload = read(&bytes, &udp).unwrap();
        assert_eq!(
            offload.gso.map(|gso| gso.kind),
            Some(GsoProtocol::Udp.into())
        );
        assert_eq!(write(&offload, 0).bytes(), bytes);
    }

    #[test]
    fn the_packet_says_how_long_its_headers_are() {
        let mut header = [1, 1, 66, 0, 0xa8, 5, 34, 0, 16, 0, 0, 0];
        for hint in [0, 54, 200] {
            header[2] = hint;
            let gso = read(&header, &packet(6)).unwrap().gso.unwrap();
            assert_eq!(gso.headers, 66);
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let tcp = packet(6);
        let segments = |flags, kind| [flags, kind, 66, 0, 0xa8, 5, 34, 0, 16, 0, 0, 0];
        assert!(read(&segments(1, 1), &tcp).is_some());
        assert_eq!(read(&segments(0, 1), &tcp), None, "no checksum");
        assert_eq!(read(&segments(1, 9), &tcp), None, "no such kind");
        assert_eq!(
            read(&segments(1, 3), &tcp),
            None,
            "fragments are no segments"
        );
        assert_eq!(read(&segments(1, 4), &tcp), None, "it is not IPv6");
        assert_eq!(read(&segments(1, 1), &tcp[..60]), None, "too short");
    }
}
