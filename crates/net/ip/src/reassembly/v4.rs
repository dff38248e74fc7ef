//! Fragments of IPv4 (RFC 791).

use super::{HEADERS, Key, LONGEST, Reassemble, Span, Wrong, is_tiny};
use crate::icmp::be16;
use volley_fib::V4;
use volley_wire::IpProto;
use volley_wire::checksum::Sum;

const TCP: u8 = IpProto::TCP.0;
/// The flag "more fragments".
const MORE: u16 = 0x2000;

fn header_len(bytes: &[u8]) -> usize {
    bytes.first().map_or(0, |b| usize::from(b & 15) * 4)
}

#[expect(private_interfaces, reason = "the trait is sealed by its types")]
impl Reassemble for V4 {
    const HANDOFF: &'static str = "ip4-full-reassembly-handoff";
    const REASSEMBLY: &'static str = "ip4-full-reassembly";
    const SV_FEATURE: &'static str = "ip4-sv-reassembly-feature";
    const SV_HANDOFF: &'static str = "ip4-sv-reassembly-handoff";
    const SV_REASSEMBLY: &'static str = "ip4-sv-reassembly";
    const CUT_AT: usize = 4;

    /// Nonzero offset, or "more fragments".
    #[inline(always)]
    fn may_be_cut(word: u32) -> bool {
        word & 0x3fff != 0
    }

    fn is_cut(_: &[u8]) -> bool {
        true
    }

    fn key(bytes: &[u8]) -> Option<Key> {
        let address = |at: usize| {
            let word: [u8; 4] = bytes.get(at..at + 4)?.try_into().ok()?;
            Some(u128::from(u32::from_be_bytes(word)))
        };
        Some(Key {
            table: 0,
            source: address(12)?,
            destination: address(16)?,
            id: be16(bytes, 4).into(),
            protocol: bytes[9],
        })
    }

    fn fragment(bytes: &[u8], len: usize) -> Result<(Key, Span), Wrong> {
        let (head, total) = (header_len(bytes), usize::from(be16(bytes, 2)));
        if head < 20 || bytes.len() < head || total < head || total > len {
            return Err(Wrong::Malformed);
        }
        let key = Self::key(bytes).ok_or(Wrong::Malformed)?;
        let (flags, payload) = (be16(bytes, 6), total - head);
        let (start, more) = (usize::from(flags & 0x1fff) * 8, flags & MORE != 0);
        if payload == 0 {
            return Err(Wrong::Empty);
        }
        if more && !payload.is_multiple_of(8) {
            return Err(Wrong::BadLength);
        }
        // The total length includes the header of the first fragment, which is as long as this one except for options.
        if start + payload + head > LONGEST {
            return Err(Wrong::TooLong);
        }
        // RFC 3128: a fragment must not begin with the second half of a TCP header.
        let hides = key.protocol == TCP && start == 8;
        if hides || start == 0 && is_tiny(key.protocol, payload) {
            return Err(Wrong::Tiny);
        }
        let span = Span {
            start: start as u32,
            end: (start + payload) as u32,
            more,
            ecn: bytes[1] & 3,
            head: head as u16,
            chained: 0,
        };
        Ok((key, span))
    }

    fn headers(first: &[u8], payload: usize, ecn: u8, out: &mut [u8; HEADERS]) -> Option<usize> {
        let head = header_len(first);
        let total = u16::try_from(head + payload).ok()?;
        let header = out.get_mut(..head)?;
        header.copy_from_slice(first.get(..head)?);
        header[1] = header[1] & !3 | ecn;
        header[2..4].copy_from_slice(&total.to_be_bytes());
        header[6..8].fill(0);
        header[10..12].fill(0);
        let sum = Sum::new().bytes(header).checksum();
        header[10..12].copy_from_slice(&sum.to_be_bytes());
        Some(head)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fragment(protocol: u8, flags: u16, payload: usize) -> Vec<u8> {
        let total = (20 + payload) as u16;
        let mut p = vec![0x45, 2, 0, 0, 0x12, 0x34];
        p[2..4].copy_from_slice(&total.to_be_bytes());
        p.extend(flags.to_be_bytes());
        p.extend([64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        p.resize(20 + payload, 7);
        p
    }

    fn message(bytes: &[u8]) -> Result<Span, Wrong> {
        V4::fragment(bytes, bytes.len()).map(|(_, span)| span)
    }

    #[test]
    fn a_fragment_says_where_it_belongs() {
        let bytes = fragment(17, MORE | 3, 16);
        let (key, span) = V4::fragment(&bytes, bytes.len()).unwrap();
        assert_eq!((key.id, key.protocol), (0x1234, 17));
        assert_eq!((key.source, key.destination), (0x0a00_0001, 0x0a00_0002));
        let want = Span {
            start: 24,
            end: 40,
            more: true,
            ecn: 2,
            head: 20,
            chained: 0,
        };
        assert_eq!(span, want);
        assert!(!message(&fragment(17, 3, 5)).unwrap().more);
    }

    #[test]
    fn what_is_wrong_by_itself_is_named() {
        let cases = [
            (fragment(17, MORE, 9), Wrong::BadLength),
            (fragment(17, 5, 0), Wrong::Empty),
            (fragment(17, 0x1fff, 8), Wrong::TooLong),
            (fragment(6, MORE, 16), Wrong::Tiny),
            (fragment(6, MORE | 1, 24), Wrong::Tiny),
            (fragment(6, 1, 24), Wrong::Tiny),
            (fragment(17, MORE, 8)[..27].to_vec(), Wrong::Malformed),
            (vec![0x44; 24], Wrong::Malformed),
        ];
        for (bytes, want) in cases {
            assert_eq!(message(&bytes), Err(want), "{bytes:02x?}");
        }
        for good in [(17, MORE, 8), (6, MORE, 24), (6, 2, 8), (47, MORE, 8)] {
            assert!(
                message(&fragment(good.0, good.1, good.2)).is_ok(),
                "{good:?}"
            );
        }
    }

    #[test]
    fn the_header_of_the_whole_is_the_first_one_s() {
        let mut out = [0; HEADERS];
        let head = V4::headers(&fragment(17, MORE, 8), 3000, 3, &mut out).unwrap();
        assert_eq!(head, 20);
        assert_eq!(out[..10], [0x45, 3, 0x0b, 0xcc, 0x12, 0x34, 0, 0, 64, 17]);
        assert!(volley_wire::checksum::is_valid(&out[..20]));
        assert!(V4::headers(&fragment(17, MORE, 8), 65_516, 0, &mut out).is_none());
    }
}
