//! `virtio_net_hdr`: what it asks for, in the words of the graph and back.

use crate::batch::HEADER;
use crate::sys::View;
use volley_graph::{Checksum, Gso, GsoKind, Offload};

const NEEDS_CSUM: u8 = 1;
const TCP4: u8 = 1;
const UDP: u8 = 3;
const TCP6: u8 = 4;
const ECN: u8 = 0x80;

/// What a header asks for; none when it makes no sense.
pub fn read(header: &[u8; HEADER]) -> Option<Offload> {
    let word = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
    let checksum = (header[0] & NEEDS_CSUM != 0).then(|| Checksum {
        start: word(6),
        offset: word(8),
    });
    let kind = match header[1] & !ECN {
        0 => None,
        TCP4 => Some(GsoKind::Tcp4),
        TCP6 => Some(GsoKind::Tcp6),
        _ => return None,
    };
    // A super-segment without a checksum to be finished cannot be cut.
    if kind.is_some() && checksum.is_none() {
        return None;
    }
    let gso = kind.map(|kind| Gso {
        kind,
        size: word(4),
        headers: word(2),
        ecn: header[1] & ECN != 0,
    });
    Some(Offload { checksum, gso })
}

/// A header as it is written: its first eight bytes and its last four. As numbers, not bytes: bytes that are put together one by
/// one and then copied as a whole have to wait until every store before them has left the core, those to lines that another
/// core has, too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Words(u64, u32);

impl Words {
    /// Make it stand at the beginning of a buffer. Most buffers have it there from the last packet.
    #[inline(always)]
    pub fn store(self, view: View<'_>) {
        view.settle(0, self.0.to_le_bytes());
        view.settle(8, self.1.to_le_bytes());
    }

    /// The bytes of it.
    pub fn bytes(self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[..8].copy_from_slice(&self.0.to_le_bytes());
        bytes[8..].copy_from_slice(&self.1.to_le_bytes());
        bytes
    }
}

/// The header of a packet that asks for nothing and lies in so many buffers.
#[inline(always)]
pub fn plain(buffers: u16) -> Words {
    Words(0, u32::from(buffers) << 16)
}

/// The header that asks for `offload`, of a packet in so many buffers.
pub fn write(offload: &Offload, buffers: u16) -> Words {
    let Words(mut first, mut last) = plain(buffers);
    if let Some(sum) = offload.checksum {
        first |= u64::from(NEEDS_CSUM) | u64::from(sum.start) << 48;
        last |= u32::from(sum.offset);
    }
    if let Some(gso) = offload.gso {
        let kind = match gso.kind {
            GsoKind::Tcp4 => TCP4,
            GsoKind::Tcp6 => TCP6,
            GsoKind::Udp => UDP,
        };
        let kind = kind | if gso.ecn { ECN } else { 0 };
        first |= u64::from(kind) << 8 | u64::from(gso.headers) << 16 | u64::from(gso.size) << 32;
    }
    Words(first, last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn real_bytes_both_ways() {
        let bytes = [1, 0x81, 66, 0, 0xa8, 5, 34, 0, 16, 0, 0, 0];
        let offload = read(&bytes).unwrap();
        assert_eq!(
            offload.checksum,
            Some(Checksum {
                start: 34,
                offset: 16
            })
        );
        let gso = offload.gso.unwrap();
        assert_eq!(
            (gso.kind, gso.size, gso.headers, gso.ecn),
            (GsoKind::Tcp4, 1448, 66, true)
        );
        assert_eq!(write(&offload, 0).bytes(), bytes);
        assert_eq!(read(&[0; 12]), Some(Offload::NONE));
        assert_eq!(write(&Offload::NONE, 0).bytes(), [0; 12]);
        assert_eq!(plain(0x0201).bytes()[10..], [1, 2]);
        assert_eq!(
            write(&offload, 0x0201).bytes()[..11],
            [&bytes[..10], &[1]].concat()
        );
        assert_eq!(read(&[0, 1, 54, 0, 1, 0, 0, 0, 0, 0, 0, 0]), None);
        assert_eq!(read(&[1, 9, 54, 0, 1, 0, 0, 0, 0, 0, 0, 0]), None);
    }
}
