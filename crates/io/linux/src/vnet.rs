//! `virtio_net_hdr`: partial checksums and super-segments, as the kernel and Volley exchange them.
//!
//! Offsets are not trusted: [`volley_graph::NewVector::set_offload`] checks them against the packet.

use volley_graph::{BadOffload, Checksum, Gso, Offload};
use volley_iface::{GsoProtocol, GsoType};

/// Bytes of the header.
pub const HEADER: usize = 10;

/// A header as bytes.
pub type Bytes = [u8; HEADER];

const NEEDS_CHECKSUM: u8 = 1;
const TCP4: u8 = 1;
const TCP6: u8 = 4;
const UDP: u8 = 5;
const ECN: u8 = 0x80;
const UDP_HEADER: u16 = 8;

fn word(bytes: &Bytes, at: usize) -> u16 {
    u16::from_ne_bytes([bytes[at], bytes[at + 1]])
}

/// The offload request of a header. `first` is the packet's first segment, in which `inserted` bytes were inserted before
/// layer 3 after the kernel wrote the header.
pub fn parse(bytes: &Bytes, first: &[u8], inserted: u16) -> Result<Offload, BadOffload> {
    let checksum = (bytes[0] & NEEDS_CHECKSUM != 0).then(|| Checksum {
        start: word(bytes, 6).saturating_add(inserted),
        offset: word(bytes, 8),
    });
    let protocol = match bytes[1] & !ECN {
        0 => {
            return Ok(Offload {
                checksum,
                gso: None,
            });
        }
        TCP4 => GsoProtocol::Tcp4,
        TCP6 => GsoProtocol::Tcp6,
        UDP => GsoProtocol::Udp,
        _ => return Err(BadOffload::Headers),
    };
    // The kernel's header length is only a hint: it may include payload.
    let start = checksum.ok_or(BadOffload::Checksum)?.start;
    let layer4 = match protocol {
        GsoProtocol::Udp => UDP_HEADER,
        _ => {
            let offset = first.get(usize::from(start) + 12);
            u16::from(offset.ok_or(BadOffload::Headers)? >> 4) * 4
        }
    };
    let gso = Gso {
        kind: GsoType {
            protocol,
            ecn: bytes[1] & ECN != 0,
        }
        .into(),
        size: word(bytes, 4),
        headers: start.saturating_add(layer4),
    };
    Ok(Offload {
        checksum,
        gso: Some(gso),
    })
}

/// The header that describes the request to the kernel.
pub fn emit(offload: &Offload) -> Bytes {
    let mut bytes = [0; HEADER];
    let mut put = |at: usize, word: u16| bytes[at..at + 2].copy_from_slice(&word.to_ne_bytes());
    if let Some(gso) = offload.gso {
        put(2, gso.headers);
        put(4, gso.size);
    }
    if let Some(sum) = offload.checksum {
        put(6, sum.start);
        put(8, sum.offset);
    }
    bytes[0] = u8::from(offload.checksum.is_some()) * NEEDS_CHECKSUM;
    bytes[1] = offload.gso.map_or(0, |gso| {
        let GsoType { protocol, ecn } = gso.kind.into();
        let kind = match protocol {
            GsoProtocol::Tcp4 => TCP4,
            GsoProtocol::Tcp6 => TCP6,
            GsoProtocol::Udp => UDP,
        };
        kind | if ecn { ECN } else { 0 }
    });
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        let mut packet = [0u8; 100];
        packet[34 + 12] = 0x80;
        let offload = Offload {
            checksum: Some(Checksum {
                start: 34,
                offset: 16,
            }),
            gso: Some(Gso {
                kind: GsoType {
                    protocol: GsoProtocol::Tcp4,
                    ecn: true,
                }
                .into(),
                size: 1448,
                headers: 66,
            }),
        };
        assert_eq!(parse(&emit(&offload), &packet, 0), Ok(offload));
        assert_eq!(parse(&emit(&Offload::NONE), &packet, 0), Ok(Offload::NONE));
    }

    #[test]
    fn a_header_that_does_not_fit_is_refused() {
        let tcp = |start: u16, flags| {
            let [a, b] = start.to_ne_bytes();
            [flags, TCP4, 0, 0, 0xa8, 5, a, b, 16, 0]
        };
        assert_eq!(parse(&tcp(34, 0), &[0; 100], 0), Err(BadOffload::Checksum));
        assert_eq!(parse(&tcp(90, 1), &[0; 100], 0), Err(BadOffload::Headers));
        assert_eq!(
            parse(&tcp(u16::MAX, 1), &[0; 100], 4),
            Err(BadOffload::Headers)
        );
        let mut unknown = tcp(34, 1);
        unknown[1] = 3;
        assert_eq!(parse(&unknown, &[0; 100], 0), Err(BadOffload::Headers));
    }

    #[test]
    fn an_inserted_tag_moves_places() {
        let bytes = emit(&Offload {
            checksum: Some(Checksum {
                start: 34,
                offset: 6,
            }),
            gso: None,
        });
        let got = parse(&bytes, &[0; 60], 4).unwrap().checksum.unwrap();
        assert_eq!((got.start, got.offset), (38, 6));
    }
}
