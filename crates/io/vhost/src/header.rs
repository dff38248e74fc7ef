//! `virtio_net_hdr`: what it asks for, in the words of the graph and back.

use crate::batch::HEADER;
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

/// The header that asks for `offload`, without the number of buffers.
pub fn write(offload: &Offload) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    let mut word = |at: usize, word: u16| header[at..at + 2].copy_from_slice(&word.to_le_bytes());
    if let Some(sum) = offload.checksum {
        word(6, sum.start);
        word(8, sum.offset);
    }
    if let Some(gso) = offload.gso {
        word(2, gso.headers);
        word(4, gso.size);
        let kind = match gso.kind {
            GsoKind::Tcp4 => TCP4,
            GsoKind::Tcp6 => TCP6,
            GsoKind::Udp => UDP,
        };
        header[1] = kind | if gso.ecn { ECN } else { 0 };
    }
    header[0] = u8::from(offload.checksum.is_some());
    header
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
        assert_eq!(write(&offload), bytes);
        assert_eq!(read(&[0; 12]), Some(Offload::NONE));
        assert_eq!(write(&Offload::NONE), [0; 12]);
        assert_eq!(read(&[0, 1, 54, 0, 1, 0, 0, 0, 0, 0, 0, 0]), None);
        assert_eq!(read(&[1, 9, 54, 0, 1, 0, 0, 0, 0, 0, 0, 0]), None);
    }
}
