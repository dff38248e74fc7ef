//! IPv6 (RFC 8200): the fixed header.
//!
//! Contract: an [`Ip6`] from [`Ip6::parse`] has version 6 and a payload length within the bytes; `payload` ends at the
//! payload length. Jumbograms (RFC 2675) are not supported: a payload length of zero is an empty payload.
//! Extension headers are walked by [`Ip6::extensions`] and [`Ip6::upper`] (see [`crate::ip6_ext`]).

use core::net::Ipv6Addr;

use crate::checksum::Sum;
use crate::header::{header, stated};
use crate::ip6_ext::{Extensions, Upper};
use crate::{Header, IpProto, U16, U32, WireError};

header! {
    /// The fixed 40 bytes.
    pub struct Ip6Header: 40, "IPv6 header" {
        /// Version (4 bits), traffic class (8), flow label (20)
        pub version_class_flow: U32,
        /// Number of bytes behind this header
        pub payload_len: U16,
        /// Type of the next header
        pub next_header: IpProto,
        /// Hop limit
        pub hop_limit: u8,
        /// Source
        pub src: [u8; 16],
        /// Destination
        pub dst: [u8; 16],
    }
}

impl Ip6Header {
    /// A header for `payload_len` bytes; the length is limited to 65,535.
    pub fn new(
        src: Ipv6Addr,
        dst: Ipv6Addr,
        next: IpProto,
        hop_limit: u8,
        payload_len: usize,
    ) -> Ip6Header {
        Ip6Header {
            version_class_flow: U32::new(6 << 28),
            payload_len: U16::new(u16::try_from(payload_len).unwrap_or(u16::MAX)),
            next_header: next,
            hop_limit,
            src: src.octets(),
            dst: dst.octets(),
        }
    }

    /// Version field.
    #[inline]
    pub fn version(&self) -> u8 {
        (self.version_class_flow.get() >> 28) as u8
    }

    /// Traffic class: DSCP and ECN.
    #[inline]
    pub fn traffic_class(&self) -> u8 {
        (self.version_class_flow.get() >> 20) as u8
    }

    /// Flow label, 20 bits.
    #[inline]
    pub fn flow_label(&self) -> u32 {
        self.version_class_flow.get() & 0xf_ffff
    }

    /// Sets traffic class and flow label (cut to 20 bits).
    pub fn set_class_flow(&mut self, class: u8, flow: u32) {
        self.version_class_flow = U32::new(6 << 28 | u32::from(class) << 20 | (flow & 0xf_ffff));
    }

    /// Source address.
    #[inline]
    pub fn src(&self) -> Ipv6Addr {
        self.src.into()
    }

    /// Destination address.
    #[inline]
    pub fn dst(&self) -> Ipv6Addr {
        self.dst.into()
    }

    /// The pseudo-header's sum for an upper-layer message of `len` bytes (no routing header in between).
    pub fn pseudo(&self, proto: IpProto, len: usize) -> Sum {
        Sum::pseudo6(
            self.src(),
            self.dst(),
            proto,
            u32::try_from(len).unwrap_or(u32::MAX),
        )
    }
}

/// A packet whose payload length was checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ip6<'a> {
    /// The fixed header.
    pub header: &'a Ip6Header,
    /// The bytes up to the payload length, extension headers included.
    pub payload: &'a [u8],
    /// Bytes behind the payload length (link-layer padding).
    pub trailer: &'a [u8],
}

impl<'a> Ip6<'a> {
    /// Checks version and payload length against the bytes, in this order.
    pub fn parse(bytes: &'a [u8]) -> Result<Ip6<'a>, WireError> {
        let (header, rest) = Ip6Header::split(bytes)?;
        if header.version() != 6 {
            return Err(WireError::Version {
                what: "IPv6",
                version: header.version(),
            });
        }
        let (payload, trailer) =
            stated(rest, usize::from(header.payload_len.get()), "IPv6 payload")?;
        Ok(Ip6 {
            header,
            payload,
            trailer,
        })
    }

    /// Walks the extension headers.
    pub fn extensions(&self) -> Extensions<'a> {
        Extensions::new(self.header.next_header, self.payload)
    }

    /// Walks all extension headers and returns the upper-layer payload.
    pub fn upper(&self) -> Result<Upper<'a>, WireError> {
        self.extensions().upper()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::IntoBytes;
    use alloc::string::ToString;
    use alloc::vec::Vec;

    const BYTES: [u8; 46] = [
        0x6a, 0xb1, 0x23, 0x45, 0, 4, 17, 64, 0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        0, 1, 0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 1, 2, 3, 4, 0xee, 0xee,
    ];

    #[test]
    fn bytes_both_ways() {
        let ip = Ip6::parse(&BYTES).unwrap();
        assert_eq!(
            (ip.header.traffic_class(), ip.header.flow_label()),
            (0xab, 0x12345)
        );
        assert_eq!(
            (ip.header.src().to_string(), ip.header.dst().to_string()),
            ("2001:db8::1".into(), "2001:db8::2".to_string())
        );
        assert_eq!((ip.payload, ip.trailer.len()), (&[1, 2, 3, 4][..], 2));
        let mut header = Ip6Header::new(ip.header.src(), ip.header.dst(), IpProto::UDP, 64, 4);
        header.set_class_flow(0xab, 0x12345);
        assert_eq!(header.as_bytes(), &BYTES[..40]);
    }

    #[test]
    fn faults() {
        let mut bytes = BYTES;
        bytes[0] = 0x45;
        assert_eq!(
            Ip6::parse(&bytes).unwrap_err().to_string(),
            "IPv6 header says version 4"
        );
        let error = Ip6::parse(&BYTES[..43]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "IPv6 payload length field is 4, more than the 3 bytes there are"
        );
        for cut in 0..44 {
            assert!(Ip6::parse(&BYTES[..cut]).is_err());
        }
    }

    proptest::proptest! {
        #[test]
        fn emit_then_parse(src: u128, dst: u128, next: u8, hops: u8, payload: Vec<u8>) {
            let header = Ip6Header::new(src.into(), dst.into(), IpProto(next), hops, payload.len());
            let bytes = [header.as_bytes(), &payload].concat();
            let ip = Ip6::parse(&bytes).unwrap();
            proptest::prop_assert_eq!((*ip.header, ip.payload), (header, &payload[..]));
        }
    }
}
