//! The Internet checksum: whole (RFC 1071), incremental (RFC 1624) and with pseudo-headers (RFC 768, 8200 8.1, 9293).
//!
//! Contract: no function panics or allocates, and any length and alignment is valid. Checksum fields are `u16` in host order
//! (the result of `U16::get`). If the field is included when the sum is taken, a correct packet's sum is `0xffff`.

use core::net::{Ipv4Addr, Ipv6Addr};

use crate::IpProto;

/// An incomplete one's complement sum. Slices of odd length may be added one after the other (buffer chains): the sum
/// records whether its position is odd.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sum {
    /// Sum of native-endian 16- and 32-bit words, not folded. 2^32 additions of 32-bit words fit.
    acc: u64,
    odd: bool,
}

impl Sum {
    /// The sum of no bytes.
    pub const fn new() -> Sum {
        Sum { acc: 0, odd: false }
    }

    /// Adds bytes in wire order.
    #[inline]
    #[must_use]
    pub fn bytes(self, bytes: &[u8]) -> Sum {
        let part = fold(sum_native(bytes));
        // RFC 1071 2(B): at an odd position all bytes are swapped, and so is their sum
        let part = if self.odd { part.swap_bytes() } else { part };
        Sum {
            acc: self.acc + u64::from(part),
            odd: self.odd ^ (bytes.len() & 1 == 1),
        }
    }

    /// Adds a 16-bit field in host order, at an even position.
    #[inline]
    #[must_use]
    pub fn word(self, word: u16) -> Sum {
        Sum {
            acc: self.acc + u64::from(word.to_be()),
            ..self
        }
    }

    /// The pseudo-header of RFC 768 / RFC 9293 3.1: `len` is that of UDP or TCP header and data.
    #[inline]
    #[must_use]
    pub fn pseudo4(src: Ipv4Addr, dst: Ipv4Addr, proto: IpProto, len: u16) -> Sum {
        Sum::new()
            .bytes(&src.octets())
            .bytes(&dst.octets())
            .word(u16::from(proto.0))
            .word(len)
    }

    /// The pseudo-header of RFC 8200 8.1.
    #[inline]
    #[must_use]
    pub fn pseudo6(src: Ipv6Addr, dst: Ipv6Addr, proto: IpProto, len: u32) -> Sum {
        Sum::new()
            .bytes(&src.octets())
            .bytes(&dst.octets())
            .bytes(&len.to_be_bytes())
            .word(u16::from(proto.0))
    }

    /// The sum folded to 16 bits, host order; `0xffff` means that a packet that includes its checksum is correct.
    #[inline]
    pub fn folded(self) -> u16 {
        u16::from_be(fold(self.acc))
    }

    /// The value for a checksum field that was zero (or left out) when it was summed, host order.
    #[inline]
    pub fn checksum(self) -> u16 {
        !self.folded()
    }

    /// The same for UDP, where zero means "no checksum" and is sent as `0xffff` (RFC 768).
    #[inline]
    pub fn checksum_udp(self) -> u16 {
        match self.checksum() {
            0 => 0xffff,
            sum => sum,
        }
    }

    /// Whether a sum over all bytes, checksum field included, is that of a correct packet.
    #[inline]
    pub fn is_valid(self) -> bool {
        self.folded() == 0xffff
    }
}

/// Sum of the native 32-bit words, two lanes to a 64-bit load, plus the tail; simple enough for the compiler to vectorise.
#[inline]
fn sum_native(bytes: &[u8]) -> u64 {
    let (blocks, rest) = bytes.as_chunks::<32>();
    let mut lanes = [0u64; 4];
    for block in blocks {
        for (lane, word) in lanes.iter_mut().zip(block.as_chunks::<8>().0) {
            let word = u64::from_ne_bytes(*word);
            *lane += (word & 0xffff_ffff) + (word >> 32);
        }
    }
    let (words, rest) = rest.as_chunks::<4>();
    let words = words
        .iter()
        .map(|w| u64::from(u32::from_ne_bytes(*w)))
        .sum::<u64>();
    let tail = match *rest {
        [] => 0,
        [a] => u64::from(u16::from_ne_bytes([a, 0])),
        [a, b] => u64::from(u16::from_ne_bytes([a, b])),
        [a, b, c, ..] => {
            u64::from(u16::from_ne_bytes([a, b])) + u64::from(u16::from_ne_bytes([c, 0]))
        }
    };
    // four lanes of at most 2^33 per block: a slice would need 2^31 blocks (64 GiB) to overflow the sum
    lanes.iter().sum::<u64>() + words + tail
}

/// End-around carry down to 16 bits; zero stays zero and nothing else becomes zero.
#[inline]
fn fold(acc: u64) -> u16 {
    let acc = (acc & 0xffff_ffff) + (acc >> 32);
    let acc = (acc & 0xffff_ffff) + (acc >> 32);
    let acc = (acc & 0xffff) + (acc >> 16);
    let acc = (acc & 0xffff) + (acc >> 16);
    let acc = (acc & 0xffff) + (acc >> 16);
    acc as u16
}

/// The checksum of bytes whose checksum field is zero.
#[inline]
pub fn checksum(bytes: &[u8]) -> u16 {
    Sum::new().bytes(bytes).checksum()
}

/// Whether bytes that contain their checksum are correct.
#[inline]
pub fn is_valid(bytes: &[u8]) -> bool {
    Sum::new().bytes(bytes).is_valid()
}

/// RFC 1624 equation 3: the checksum after one 16-bit field changed from `old` to `new`.
#[inline]
#[must_use]
pub fn update(checksum: u16, old: u16, new: u16) -> u16 {
    let sum = u32::from(!checksum) + u32::from(!old) + u32::from(new);
    let sum = (sum & 0xffff) + (sum >> 16);
    !(((sum & 0xffff) + (sum >> 16)) as u16)
}

/// As [`update`], for a 32-bit field (an IPv4 address, a TCP sequence number).
#[inline]
#[must_use]
pub fn update32(checksum: u16, old: u32, new: u32) -> u16 {
    let halves = |v: u32| ((v >> 16) as u16, v as u16);
    let ((old_hi, old_lo), (new_hi, new_lo)) = (halves(old), halves(new));
    update(update(checksum, old_hi, new_hi), old_lo, new_lo)
}

/// As [`update`], for any bytes at an even position (an IPv6 address). If `old` and `new` differ in length, the shorter one is
/// extended by zeros.
#[must_use]
pub fn update_bytes(checksum: u16, old: &[u8], new: &[u8]) -> u16 {
    let old = Sum::new().bytes(old).folded();
    let new = Sum::new().bytes(new).folded();
    update(checksum, old, new)
}

/// An IPv4 header's checksum after its TTL was decremented by one.
#[inline]
#[must_use]
pub fn after_ttl_decrement(checksum: u16) -> u16 {
    // RFC 1624, equation 3, for a word that decreases by 0x0100: the checksum increases by 0x0100 in one's complement. With its bytes
    // swapped it increases by 1, and the carry out of 0xffff (both forms of zero) adds one more.
    let sum = checksum.swap_bytes();
    sum.wrapping_add(1 + u16::from(sum >= 0xfffe)).swap_bytes()
}

/// Whether a UDP or TCP segment over IPv4, including its checksum, is correct. The caller handles a UDP checksum of zero.
pub fn is_valid4(src: Ipv4Addr, dst: Ipv4Addr, proto: IpProto, segment: &[u8]) -> bool {
    u16::try_from(segment.len())
        .is_ok_and(|len| Sum::pseudo4(src, dst, proto, len).bytes(segment).is_valid())
}

/// Whether a UDP, TCP or ICMPv6 message over IPv6, including its checksum, is correct.
pub fn is_valid6(src: Ipv6Addr, dst: Ipv6Addr, proto: IpProto, segment: &[u8]) -> bool {
    u32::try_from(segment.len())
        .is_ok_and(|len| Sum::pseudo6(src, dst, proto, len).bytes(segment).is_valid())
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    fn naive(bytes: &[u8]) -> u16 {
        let mut sum = 0u64;
        for pair in bytes.chunks(2) {
            sum += u64::from(pair[0]) << 8 | u64::from(pair.get(1).copied().unwrap_or(0));
        }
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    /// RFC 1071 3: the worked example.
    #[test]
    fn rfc1071_example() {
        let bytes = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(Sum::new().bytes(&bytes).folded(), 0xddf2);
        assert_eq!(checksum(&bytes), 0x220d);
    }

    /// RFC 1624 4: the example for which RFC 1141's equation is wrong.
    #[test]
    fn rfc1624_example() {
        assert_eq!(update(0xdd2f, 0x5555, 0x3285), 0x0000);
    }

    #[test]
    fn a_known_ip4_header() {
        let mut header = [
            0x45, 0, 0, 0x73, 0, 0, 0x40, 0, 0x40, 0x11, 0xb8, 0x61, 0xc0, 0xa8, 0, 1, 0xc0, 0xa8,
            0, 0xc7,
        ];
        assert!(is_valid(&header));
        header[8] -= 1;
        header[10..12].copy_from_slice(&after_ttl_decrement(0xb861).to_be_bytes());
        assert!(is_valid(&header));
        // Zero has one form in checksums of headers (RFC 1624, 3).
        assert_eq!(after_ttl_decrement(0xfeff), 0);
        assert_eq!(after_ttl_decrement(0xff00), 1);
    }

    #[test]
    fn all_ones_and_large() {
        let ones = std::vec![0xffu8; 1 << 20];
        assert_eq!(Sum::new().bytes(&ones).folded(), 0xffff);
        assert_eq!(Sum::new().bytes(&[]).folded(), 0);
    }

    proptest! {
        #[test]
        fn equals_naive(bytes: Vec<u8>, skip in 0usize..8) {
            let bytes = bytes.get(skip..).unwrap_or(&[]);
            prop_assert_eq!(Sum::new().bytes(bytes).folded(), naive(bytes));
        }

        #[test]
        fn long_equals_naive(bytes in proptest::collection::vec(any::<u8>(), 1000..3000)) {
            prop_assert_eq!(Sum::new().bytes(&bytes).folded(), naive(&bytes));
        }

        #[test]
        fn parts_equal_whole(parts: Vec<Vec<u8>>) {
            let sum = parts.iter().fold(Sum::new(), |s, p| s.bytes(p));
            prop_assert_eq!(sum.folded(), naive(&parts.concat()));
        }

        #[test]
        fn incremental_equals_full(mut bytes in proptest::collection::vec(any::<u8>(), 4..80), at: usize, new: u16) {
            bytes.truncate(bytes.len() & !1);
            prop_assume!(bytes[2..].iter().any(|b| *b != 0)); // an all-zero packet has no canonical sum (RFC 1624 3)
            bytes[..2].fill(0);
            let before = checksum(&bytes);
            let at = 2 + at % (bytes.len() / 2 - 1).max(1) * 2;
            prop_assume!(at < bytes.len());
            let old = u16::from_be_bytes([bytes[at], bytes[at + 1]]);
            bytes[at..at + 2].copy_from_slice(&new.to_be_bytes());
            prop_assume!(bytes[2..].iter().any(|b| *b != 0));
            prop_assert_eq!(update(before, old, new), checksum(&bytes));
        }

        #[test]
        fn incremental_address(addr: [u8; 4], old: u32, new: u32) {
            prop_assume!(addr != [0; 4]);
            let with = |a: u32| checksum(&[&addr[..], &a.to_be_bytes()[..]].concat());
            prop_assert_eq!(update32(with(old), old, new), with(new));
            prop_assert_eq!(update_bytes(with(old), &old.to_be_bytes(), &new.to_be_bytes()), with(new));
        }

        #[test]
        fn ttl_decrement_equals_full(mut header: [u8; 20]) {
            prop_assume!(header[8] > 0);
            header[0] = 0x45;
            header[10..12].fill(0);
            let before = checksum(&header);
            header[8] -= 1;
            prop_assert_eq!(after_ttl_decrement(before), checksum(&header));
        }

        #[test]
        fn pseudo_headers_equal_written_out(src: [u8; 4], dst: [u8; 4], src6: [u8; 16], dst6: [u8; 16], data: Vec<u8>) {
            let len = data.len() as u16;
            let v4 = [&src[..], &dst, &[0, 17], &len.to_be_bytes(), &data].concat();
            let sum = Sum::pseudo4(src.into(), dst.into(), IpProto::UDP, len).bytes(&data);
            prop_assert_eq!(sum.folded(), naive(&v4));
            let v6 = [&src6[..], &dst6, &[0, 0], &len.to_be_bytes(), &[0, 0, 0, 58], &data].concat();
            let sum = Sum::pseudo6(src6.into(), dst6.into(), IpProto::ICMP6, len.into()).bytes(&data);
            prop_assert_eq!(sum.folded(), naive(&v6));
        }
    }
}
