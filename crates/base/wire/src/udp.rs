//! UDP (RFC 768).
//!
//! Contract: a [`Udp`] from [`Udp::parse`] has a length field between 8 and the number of bytes, and its payload ends there.
//! Only [`Udp::checksum_ok4`] and [`Udp::checksum_ok6`] check checksums.

use core::net::{Ipv4Addr, Ipv6Addr};

use crate::checksum::Sum;
use crate::header::{header, stated};
use crate::{Header, IntoBytes, IpProto, U16, WireError};

/// Destination ports of tunnels.
pub mod port {
    /// GTP-U (3GPP TS 29.281, 4.4.2).
    pub const GTPU: u16 = 2152;
    /// VXLAN (RFC 7348, 5).
    pub const VXLAN: u16 = 4789;
    /// Geneve (RFC 8926, 3.3).
    pub const GENEVE: u16 = 6081;
}

header! {
    /// The whole UDP header.
    pub struct UdpHeader: 8, "UDP header" {
        /// Source port
        pub src_port: U16,
        /// Destination port
        pub dst_port: U16,
        /// Header and payload in bytes
        pub len: U16,
        /// Checksum; over IPv4, zero means "no checksum"
        pub checksum: U16,
    }
}

impl UdpHeader {
    /// A header without checksum for `payload_len` bytes; the length is limited to 65,535.
    pub fn new(src_port: u16, dst_port: u16, payload_len: usize) -> UdpHeader {
        let len = u16::try_from(payload_len.saturating_add(Self::LEN)).unwrap_or(u16::MAX);
        UdpHeader {
            src_port: U16::new(src_port),
            dst_port: U16::new(dst_port),
            len: U16::new(len),
            checksum: U16::ZERO,
        }
    }

    /// Sets the checksum; `pseudo` is the pseudo-header's sum.
    pub fn fill_checksum(&mut self, pseudo: Sum, payload: &[u8]) {
        self.checksum = U16::ZERO;
        self.checksum = U16::new(pseudo.bytes(self.as_bytes()).bytes(payload).checksum_udp());
    }
}

/// A datagram whose length was checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Udp<'a> {
    /// The header.
    pub header: &'a UdpHeader,
    /// The bytes up to the length field.
    pub payload: &'a [u8],
}

impl<'a> Udp<'a> {
    /// Checks the length field against the bytes (the IP payload).
    pub fn parse(bytes: &'a [u8]) -> Result<Udp<'a>, WireError> {
        let (header, _) = UdpHeader::split(bytes)?;
        let len = usize::from(header.len.get());
        if len < UdpHeader::LEN {
            return Err(WireError::LengthBelow {
                what: "UDP",
                len,
                min: UdpHeader::LEN,
            });
        }
        let (datagram, _) = stated(bytes, len, "UDP")?;
        let (_, payload) = stated(datagram, UdpHeader::LEN, "UDP")?;
        Ok(Udp { header, payload })
    }

    /// Whether the checksum over IPv4 is correct or absent.
    pub fn checksum_ok4(&self, src: Ipv4Addr, dst: Ipv4Addr) -> bool {
        let none = self.header.checksum.get() == 0;
        none || self
            .sum(Sum::pseudo4(src, dst, IpProto::UDP, self.header.len.get()))
            .is_valid()
    }

    /// Whether the checksum over IPv6, where it is mandatory, is correct (RFC 8200 8.1).
    pub fn checksum_ok6(&self, src: Ipv6Addr, dst: Ipv6Addr) -> bool {
        let there = self.header.checksum.get() != 0;
        there
            && self
                .sum(Sum::pseudo6(
                    src,
                    dst,
                    IpProto::UDP,
                    self.header.len.get().into(),
                ))
                .is_valid()
    }

    fn sum(&self, pseudo: Sum) -> Sum {
        pseudo.bytes(self.header.as_bytes()).bytes(self.payload)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::vec::Vec;

    const BYTES: [u8; 13] = [0x04, 0xd2, 0x00, 0x50, 0, 12, 0, 0, 1, 2, 3, 4, 0xee];

    #[test]
    fn bytes_both_ways() {
        assert_eq!(UdpHeader::new(1234, 80, 4).as_bytes(), &BYTES[..8]);
        let udp = Udp::parse(&BYTES).unwrap();
        assert_eq!(
            (udp.header.src_port.get(), udp.header.dst_port.get()),
            (1234, 80)
        );
        assert_eq!(udp.payload, [1, 2, 3, 4]);
    }

    #[test]
    fn lengths() {
        let with = |len: u8| {
            let mut bytes = BYTES;
            bytes[5] = len;
            Udp::parse(&bytes).map(|u| u.payload.len())
        };
        assert_eq!((with(8), with(13)), (Ok(0), Ok(5)));
        assert_eq!(
            with(7).unwrap_err().to_string(),
            "UDP length field is 7, less than the least of 8"
        );
        assert_eq!(
            with(14).unwrap_err().to_string(),
            "UDP length field is 14, more than the 13 bytes there are"
        );
        for cut in 0..12 {
            assert!(Udp::parse(&BYTES[..cut]).is_err());
        }
    }

    #[test]
    fn no_checksum_is_right_over_ip4_only() {
        let udp = Udp::parse(&BYTES).unwrap();
        assert!(udp.checksum_ok4([10, 0, 0, 1].into(), [10, 1, 0, 1].into()));
        assert!(!udp.checksum_ok6(1u128.into(), 2u128.into()));
    }

    /// A computed sum of zero is sent as all ones (RFC 768).
    #[test]
    fn zero_is_sent_as_ones() {
        let (src, dst) = (0u128.into(), 0u128.into());
        // pseudo-header: 10 + 17; header: 10; the payload makes the sum 0xffff
        let payload = (0xffffu16 - 10 - 17 - 10).to_be_bytes();
        let mut header = UdpHeader::new(0, 0, 2);
        header.fill_checksum(Sum::pseudo6(src, dst, IpProto::UDP, 10), &payload);
        assert_eq!(header.checksum.get(), 0xffff);
        let bytes = [header.as_bytes(), &payload].concat();
        assert!(Udp::parse(&bytes).unwrap().checksum_ok6(src, dst));
    }

    proptest::proptest! {
        #[test]
        fn emit_then_parse(src: u32, dst: u32, ports: (u16, u16), payload: Vec<u8>, flip: usize) {
            let mut header = UdpHeader::new(ports.0, ports.1, payload.len());
            header.fill_checksum(Sum::pseudo4(src.into(), dst.into(), IpProto::UDP, header.len.get()), &payload);
            let mut bytes = [header.as_bytes(), &payload].concat();
            let udp = Udp::parse(&bytes).unwrap();
            proptest::prop_assert!(udp.checksum_ok4(src.into(), dst.into()));
            proptest::prop_assert_eq!((*udp.header, udp.payload), (header, &payload[..]));
            if !payload.is_empty() {
                bytes[8 + flip % payload.len()] ^= 0x10;
                proptest::prop_assert!(!Udp::parse(&bytes).unwrap().checksum_ok4(src.into(), dst.into()));
            }
        }

        #[test]
        fn never_panics(bytes: Vec<u8>) {
            let _ = Udp::parse(&bytes).map(|u| (u.checksum_ok4(1u32.into(), 2u32.into()), u.checksum_ok6(1u128.into(), 2u128.into())));
        }
    }
}
