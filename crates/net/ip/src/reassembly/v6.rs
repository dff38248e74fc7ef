//! Fragments of IPv6 (RFC 8200, 4.5; RFC 5722; RFC 7112).

use super::{HEADERS, Key, LONGEST, Reassemble, Span, Wrong, is_tiny};
use crate::extensions::{Stop, fragment_header, upper_at};
use crate::icmp::be16;
use volley_fib::V6;
use volley_wire::IpProto;

const ICMP: u8 = IpProto::ICMP6.0;
/// Bytes of a fragment header.
const FRAGMENT: usize = 8;

#[expect(private_interfaces, reason = "the trait is sealed by its types")]
impl Reassemble for V6 {
    const HANDOFF: &'static str = "ip6-full-reassembly-handoff";
    const REASSEMBLY: &'static str = "ip6-full-reassembly";
    const SV_FEATURE: &'static str = "ip6-sv-reassembly-feature";
    const SV_HANDOFF: &'static str = "ip6-sv-reassembly-handoff";
    const SV_REASSEMBLY: &'static str = "ip6-sv-reassembly";
    const CUT_AT: usize = 4;

    /// The next header is a fragment header, or one that may precede it: hop-by-hop options, routing, destination options.
    #[inline(always)]
    fn may_be_cut(word: u32) -> bool {
        matches!(word >> 8 & 0xff, 0 | 43 | 44 | 60)
    }

    fn is_cut(bytes: &[u8]) -> bool {
        fragment_header(bytes).is_some()
    }

    fn key(bytes: &[u8]) -> Option<Key> {
        let address = |at: usize| {
            let octets: [u8; 16] = bytes.get(at..at + 16)?.try_into().ok()?;
            Some(u128::from_be_bytes(octets))
        };
        let (at, _) = fragment_header(bytes)?;
        let id: [u8; 4] = bytes.get(at + 4..at + 8)?.try_into().ok()?;
        Some(Key {
            table: 0,
            source: address(8)?,
            destination: address(24)?,
            id: u32::from_be_bytes(id),
            protocol: 0,
        })
    }

    fn fragment(bytes: &[u8], len: usize) -> Result<(Key, Span), Wrong> {
        let total = 40 + usize::from(be16(bytes, 4));
        let (at, _) = fragment_header(bytes).ok_or(Wrong::Malformed)?;
        let key = Self::key(bytes).ok_or(Wrong::Malformed)?;
        let head = at + FRAGMENT;
        if total < head || total > len || head > HEADERS {
            return Err(Wrong::Malformed);
        }
        let (word, payload) = (be16(bytes, at + 2), total - head);
        let (start, more) = (usize::from(word & 0xfff8), word & 1 != 0);
        if payload == 0 {
            return Err(Wrong::Empty);
        }
        if more && !payload.is_multiple_of(8) {
            return Err(Wrong::BadLength);
        }
        if at - 40 + start + payload > LONGEST {
            return Err(Wrong::TooLong);
        }
        if start == 0 {
            first(&bytes[..bytes.len().min(total)], at)?;
        }
        let span = Span {
            start: start as u32,
            end: (start + payload) as u32,
            more,
            ecn: bytes[1] >> 4 & 3,
            head: head as u16,
            chained: 0,
        };
        Ok((key, span))
    }

    fn headers(first: &[u8], payload: usize, ecn: u8, out: &mut [u8; HEADERS]) -> Option<usize> {
        let (at, named_at) = fragment_header(first)?;
        let length = u16::try_from(at - 40 + payload).ok()?;
        let header = out.get_mut(..at)?;
        header.copy_from_slice(first.get(..at)?);
        header[1] = header[1] & !0x30 | ecn << 4;
        header[4..6].copy_from_slice(&length.to_be_bytes());
        header[named_at] = first[at];
        Some(at)
    }
}

/// Fault of a first fragment with the fragment header at `at`: it must contain the whole header chain (RFC 7112), and neighbour
/// discovery must not be fragmented (RFC 6980).
fn first(packet: &[u8], at: usize) -> Result<(), Wrong> {
    match upper_at(packet, packet[at], at, at + FRAGMENT) {
        Ok(found) if is_tiny(found.proto, packet.len() - found.at.min(packet.len())) => {
            Err(Wrong::Tiny)
        }
        Ok(found) if found.proto == ICMP && matches!(packet.get(found.at), Some(133..=137)) => {
            Err(Wrong::Discovery)
        }
        Err(fault) if fault.stop == Stop::Malformed => Err(Wrong::Tiny),
        // Other faults are reported after reassembly.
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A fragment with the bytes `before` and `behind` its fragment header.
    fn fragment(before: &[u8], next: u8, word: u16, behind: &[u8]) -> Vec<u8> {
        let length = before.len() + 8 + behind.len();
        let first = if before.is_empty() { 44 } else { 60 };
        let mut p = vec![0x60, 0x30, 0, 0, 0, 0, first, 64];
        p[4..6].copy_from_slice(&(length as u16).to_be_bytes());
        p.extend([1; 16]);
        p.extend([2; 16]);
        p.extend(before);
        p.extend([next, 0]);
        p.extend(word.to_be_bytes());
        p.extend([0, 0, 0, 9]);
        p.extend(behind);
        p
    }

    fn message(bytes: &[u8]) -> Result<Span, Wrong> {
        V6::fragment(bytes, bytes.len()).map(|(_, span)| span)
    }

    #[test]
    fn a_fragment_says_where_it_belongs() {
        let options = [44, 0, 1, 4, 0, 0, 0, 0];
        let bytes = fragment(&options, 17, 0x19, &[5; 16]);
        let (key, span) = V6::fragment(&bytes, bytes.len()).unwrap();
        assert_eq!((key.id, key.protocol), (9, 0));
        let want = Span {
            start: 24,
            end: 40,
            more: true,
            ecn: 3,
            head: 56,
            chained: 0,
        };
        assert_eq!(span, want);
    }

    #[test]
    fn what_is_wrong_by_itself_is_named() {
        let solicitation = [135, 0, 0, 0, 0, 0, 0, 0];
        let cases = [
            (fragment(&[], 17, 1, &[5; 9]), Wrong::BadLength),
            (fragment(&[], 17, 8, &[]), Wrong::Empty),
            (fragment(&[], 17, 0xfff8, &[5; 8]), Wrong::TooLong),
            (fragment(&[], 6, 1, &[5; 16]), Wrong::Tiny),
            (
                fragment(&[], 60, 1, &[17, 1, 1, 4, 0, 0, 0, 0]),
                Wrong::Tiny,
            ),
            (
                fragment(&[], 60, 1, &[17, 0, 1, 4, 0, 0, 0, 0]),
                Wrong::Tiny,
            ),
            (fragment(&[], 58, 1, &solicitation), Wrong::Discovery),
            (
                fragment(&[], 17, 1, &[5; 8])[..47].to_vec(),
                Wrong::Malformed,
            ),
        ];
        for (bytes, want) in cases {
            assert_eq!(message(&bytes), Err(want), "{bytes:02x?}");
        }
        for good in [(17, 1, 8), (6, 9, 8), (59, 1, 8), (58, 8, 3)] {
            let bytes = fragment(&[], good.0, good.1, &vec![5; good.2]);
            assert!(message(&bytes).is_ok(), "{good:?}");
        }
    }

    #[test]
    fn the_fragment_header_is_left_out_of_the_whole() {
        let options = [44, 0, 1, 4, 0, 0, 0, 0];
        let mut out = [0; HEADERS];
        let head = V6::headers(&fragment(&options, 17, 1, &[5; 8]), 3000, 3, &mut out);
        assert_eq!(head, Some(48));
        assert_eq!(out[..8], [0x60, 0x30, 0, 0, 0x0b, 0xc0, 60, 64]);
        assert_eq!(out[40..48], [17, 0, 1, 4, 0, 0, 0, 0]);
        let bytes = fragment(&[], 17, 1, &[5; 8]);
        assert_eq!(V6::headers(&bytes, 65_536, 0, &mut out), None);
        assert_eq!(V6::headers(&bytes, 16, 2, &mut out), Some(40));
        assert_eq!((out[6], out[1]), (17, 0x20));
    }
}
