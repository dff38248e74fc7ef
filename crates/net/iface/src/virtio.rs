//! `virtio_net_hdr`: the offload request of a packet from or to a kernel or guest (virtio 1.2, 5.1.6).
//!
//! - On entry: no assumption; every field may be hostile.
//! - On exit: an [`Offload`] whose offsets are those of the packet's own headers, which are checked again when it is set; or
//!   the reason to drop the packet.

use crate::gso::{GsoProtocol, GsoType};
use volley_graph::{BadOffload, Checksum, Gso, Offload};

/// The ten bytes that every `virtio_net_hdr` begins with, little-endian on the wire of virtio 1 and native for the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct VirtioNetHdr {
    /// [`NEEDS_CSUM`], [`DATA_VALID`].
    pub flags: u8,
    /// Type of super-segment, with [`GSO_ECN`].
    pub gso_type: u8,
    /// Length of the headers: a hint that is ignored.
    pub hdr_len: u16,
    /// Payload bytes of each segment.
    pub gso_size: u16,
    /// Start of the checksummed bytes.
    pub csum_start: u16,
    /// Offset of the checksum field from `csum_start`.
    pub csum_offset: u16,
}

/// The checksum is partial and must be completed.
pub const NEEDS_CSUM: u8 = 1;
/// The checksum was verified.
pub const DATA_VALID: u8 = 2;
/// TCP over IPv4.
pub const GSO_TCPV4: u8 = 1;
/// TCP over IPv6.
pub const GSO_TCPV6: u8 = 4;
/// UDP, one datagram for each segment.
pub const GSO_UDP_L4: u8 = 5;
/// The segments use ECN.
pub const GSO_ECN: u8 = 0x80;

impl VirtioNetHdr {
    /// Length of the header in bytes.
    pub const LEN: usize = 10;

    /// Decodes the bytes before a packet.
    pub fn from_le_bytes(bytes: &[u8; Self::LEN]) -> Self {
        let word = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        VirtioNetHdr {
            flags: bytes[0],
            gso_type: bytes[1],
            hdr_len: word(2),
            gso_size: word(4),
            csum_start: word(6),
            csum_offset: word(8),
        }
    }

    /// Encodes the bytes before a packet.
    pub fn to_le_bytes(self) -> [u8; Self::LEN] {
        let mut bytes = [self.flags, self.gso_type, 0, 0, 0, 0, 0, 0, 0, 0];
        let words = [
            self.hdr_len,
            self.gso_size,
            self.csum_start,
            self.csum_offset,
        ];
        for (place, word) in bytes[2..].chunks_exact_mut(2).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// The offload request of a packet that begins with `first` (its first segment, from the Ethernet header on).
    pub fn to_offload(&self, first: &[u8]) -> Result<Offload, BadOffload> {
        if self.flags & NEEDS_CSUM == 0 && self.gso_type == 0 {
            return Ok(Offload::NONE);
        }
        let checksum = (self.flags & NEEDS_CSUM != 0).then_some(Checksum {
            start: self.csum_start,
            offset: self.csum_offset,
        });
        let protocol = match self.gso_type & !GSO_ECN {
            0 => None,
            GSO_TCPV4 => Some(GsoProtocol::Tcp4),
            GSO_TCPV6 => Some(GsoProtocol::Tcp6),
            GSO_UDP_L4 => Some(GsoProtocol::Udp),
            _ => return Err(BadOffload::Kind),
        };
        let Some(protocol) = protocol else {
            let offload = Offload {
                checksum,
                gso: None,
            };
            return offload.check(first.len()).map(|()| offload);
        };
        let headers = headers(first, protocol, checksum).ok_or(BadOffload::Headers)?;
        let gso = Some(Gso {
            kind: GsoType {
                protocol,
                ecn: self.gso_type & GSO_ECN != 0,
            }
            .into(),
            size: self.gso_size,
            headers: u16::try_from(headers).map_err(|_| BadOffload::Headers)?,
        });
        let offload = Offload { checksum, gso };
        offload.check(first.len()).map(|()| offload)
    }

    /// The header for a packet whose offloads the peer must complete.
    pub fn from_offload(offload: &Offload) -> Self {
        let mut hdr = VirtioNetHdr::default();
        if let Some(sum) = offload.checksum {
            hdr.flags = NEEDS_CSUM;
            (hdr.csum_start, hdr.csum_offset) = (sum.start, sum.offset);
        }
        if let Some(gso) = offload.gso {
            let GsoType { protocol, ecn } = gso.kind.into();
            let ecn = if ecn { GSO_ECN } else { 0 };
            hdr.gso_type = ecn
                | match protocol {
                    GsoProtocol::Tcp4 => GSO_TCPV4,
                    GsoProtocol::Tcp6 => GSO_TCPV6,
                    GsoProtocol::Udp => GSO_UDP_L4,
                };
            (hdr.hdr_len, hdr.gso_size) = (gso.headers, gso.size);
        }
        hdr
    }
}

/// Length of all headers of a super-segment, from the headers themselves, whatever the peer states.
fn headers(first: &[u8], protocol: GsoProtocol, checksum: Option<Checksum>) -> Option<usize> {
    let found = crate::offload::header_offsets(first, protocol, checksum)?;
    Some(found.l4 + found.l4_len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_both_ways() {
        let bytes = [1, 0x81, 54, 0, 0xa8, 5, 34, 0, 16, 0];
        let hdr = VirtioNetHdr::from_le_bytes(&bytes);
        assert_eq!(
            (hdr.gso_size, hdr.csum_start, hdr.csum_offset),
            (1448, 34, 16)
        );
        assert_eq!(hdr.to_le_bytes(), bytes);
    }

    #[test]
    fn hostile_headers_are_refused_by_name() {
        let packet = [0u8; 60];
        let hdr = |flags, gso_type, gso_size, csum_start, csum_offset| VirtioNetHdr {
            flags,
            gso_type,
            hdr_len: 0,
            gso_size,
            csum_start,
            csum_offset,
        };
        let why = |hdr: VirtioNetHdr| hdr.to_offload(&packet).unwrap_err();
        assert_eq!(why(hdr(1, 0, 0, 60, 0)), BadOffload::Checksum);
        assert_eq!(why(hdr(1, 0, 0, u16::MAX, u16::MAX)), BadOffload::Checksum);
        assert_eq!(why(hdr(1, 3, 1448, 34, 6)), BadOffload::Kind);
        assert_eq!(why(hdr(1, 1, 1448, 34, 16)), BadOffload::Headers);
        assert_eq!(hdr(0, 0, 9, 9, 9).to_offload(&packet), Ok(Offload::NONE));
        assert_eq!(hdr(2, 0, 0, 0, 0).to_offload(&packet), Ok(Offload::NONE));
    }
}
