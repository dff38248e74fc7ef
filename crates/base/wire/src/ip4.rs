//! IPv4 (RFC 791; checks in the order of RFC 1812 5.2.2).
//!
//! Contract: an [`Ip4`] from [`Ip4::parse`] has version 4, a header length of 5 to 15 words within the bytes, and a total
//! length between the header length and the number of bytes; `payload` ends at the total length, not at the end of the buffer.
//! Only [`Ip4::checksum_ok`] checks the header checksum; options are checked when they are walked.

use core::net::Ipv4Addr;

use crate::header::{header, stated};
use crate::tlv::Options;
use crate::{Header, IntoBytes, IpProto, U16, WireError, checksum};

header! {
    /// The 20 bytes without options.
    pub struct Ip4Header: 20, "IPv4 header" {
        /// Version (4) and header length in words
        pub version_ihl: u8,
        /// DSCP and ECN
        pub tos: u8,
        /// Header and payload in bytes
        pub total_len: U16,
        /// Identification of fragments
        pub id: U16,
        /// Flags (3 bits) and fragment offset in units of 8 bytes (13 bits)
        pub flags_fragment: U16,
        /// Time to live
        pub ttl: u8,
        /// Protocol of the payload
        pub protocol: IpProto,
        /// Header checksum
        pub checksum: U16,
        /// Source
        pub src: [u8; 4],
        /// Destination
        pub dst: [u8; 4],
    }
}

/// The reserved bit, always zero (RFC 791).
pub const FLAG_RESERVED: u16 = 0x8000;
/// Don't fragment.
pub const FLAG_DONT_FRAGMENT: u16 = 0x4000;
/// More fragments.
pub const FLAG_MORE_FRAGMENTS: u16 = 0x2000;

/// Option numbers (with copied flag and class).
pub mod option {
    /// Record route
    pub const RECORD_ROUTE: u8 = 7;
    /// Timestamp
    pub const TIMESTAMP: u8 = 68;
    /// Loose source route
    pub const LOOSE_SOURCE_ROUTE: u8 = 131;
    /// Strict source route
    pub const STRICT_SOURCE_ROUTE: u8 = 137;
    /// Router alert (RFC 2113)
    pub const ROUTER_ALERT: u8 = 148;
}

/// The sum of the 16-bit words of a header without options, not folded. `header` has its 32-bit words in host order.
#[inline(always)]
pub fn add_up(header: [u32; 5]) -> u32 {
    let high = header.iter().fold(0u32, |sum, word| sum + (word >> 16));
    // The lower halves add up to less than 2^32, so that the sum of whole words determines them even without its carries.
    let whole = header
        .iter()
        .fold(0u32, |sum, word| sum.wrapping_add(*word));
    whole.wrapping_sub(high << 16).wrapping_add(high)
}

/// Nonzero for a packet that a router may not simply forward (RFC 1812, 5.2.2, 5.3.1 and 5.3.7): an invalid header, options, a TTL of 0 or
/// 1, or an address that is never forwarded. It takes as few operations as all these checks together allow, so that only such packets
/// need an exact check. `len` is the length from the header on, `header` has the header's 32-bit words in host order.
#[inline(always)]
pub fn suspicious(len: u32, header: [u32; 5]) -> u32 {
    let mask = |is: bool| u32::from(is).wrapping_neg();
    let [w0, _, w2, src, dst] = header;
    // A correct header sums to a multiple of 0xffff, from one to ten times: one fold turns all of these into 0xffff.
    let sum = add_up(header);
    let checksum = ((sum & 0xffff) + (sum >> 16)) ^ 0xffff;
    let (total, len) = ((w0 & 0xffff) as i32, len as i32);
    // This also covers a frame shorter than 20 bytes: it is shorter than a total length of 20 or more.
    let lengths = mask(total < 20) | mask(total > len);
    // First byte 0 or from 224 on, 127, or 169.254: the same for both addresses.
    let from_one = |a: u32| a.wrapping_sub(1 << 24);
    let range = mask(from_one(src).max(from_one(dst)) >= 223 << 24);
    let odd = |a: u32| mask(a >> 24 == 127) | mask(a >> 16 == 0xa9fe);
    (w0 >> 24 ^ 0x45) | checksum | lengths | range | odd(src) | odd(dst) | mask(w2 >> 25 == 0)
}

impl Ip4Header {
    /// A header without options, with a correct checksum, for `payload_len` bytes; the total length is limited to 65,535.
    pub fn new(
        src: Ipv4Addr,
        dst: Ipv4Addr,
        protocol: IpProto,
        ttl: u8,
        payload_len: usize,
    ) -> Ip4Header {
        let total_len = u16::try_from(payload_len.saturating_add(Self::LEN)).unwrap_or(u16::MAX);
        let mut header = Ip4Header {
            version_ihl: 0x45,
            tos: 0,
            total_len: U16::new(total_len),
            id: U16::ZERO,
            flags_fragment: U16::ZERO,
            ttl,
            protocol,
            checksum: U16::ZERO,
            src: src.octets(),
            dst: dst.octets(),
        };
        header.fill_checksum(&[]);
        header
    }

    /// The header for these options: lengths and checksum include them. Their length is a multiple of 4, at most 40.
    pub fn with_options(mut self, options: &[u8]) -> Ip4Header {
        let len = options.len().min(40);
        self.version_ihl = 4 << 4 | ((Self::LEN + len) / 4) as u8;
        self.total_len = U16::new(self.total_len.get().saturating_add(len as u16));
        self.fill_checksum(options);
        self
    }

    /// Sets the checksum over this header and its options.
    pub fn fill_checksum(&mut self, options: &[u8]) {
        self.checksum = U16::ZERO;
        self.checksum = U16::new(
            checksum::Sum::new()
                .bytes(self.as_bytes())
                .bytes(options)
                .checksum(),
        );
    }

    /// Version field.
    #[inline]
    pub fn version(&self) -> u8 {
        self.version_ihl >> 4
    }

    /// Header length in bytes, from the header.
    #[inline]
    pub fn header_len(&self) -> usize {
        usize::from(self.version_ihl & 0xf) * 4
    }

    /// Source address.
    #[inline]
    pub fn src(&self) -> Ipv4Addr {
        self.src.into()
    }

    /// Destination address.
    #[inline]
    pub fn dst(&self) -> Ipv4Addr {
        self.dst.into()
    }

    /// Flag "don't fragment".
    #[inline]
    pub fn dont_fragment(&self) -> bool {
        self.flags_fragment.get() & FLAG_DONT_FRAGMENT != 0
    }

    /// Flag "more fragments".
    #[inline]
    pub fn more_fragments(&self) -> bool {
        self.flags_fragment.get() & FLAG_MORE_FRAGMENTS != 0
    }

    /// Fragment offset in bytes.
    #[inline]
    pub fn fragment_offset(&self) -> usize {
        usize::from(self.flags_fragment.get() & 0x1fff) * 8
    }

    /// Whether the packet is a fragment, first or later.
    #[inline]
    pub fn is_fragment(&self) -> bool {
        self.flags_fragment.get() & (FLAG_MORE_FRAGMENTS | 0x1fff) != 0
    }

    /// Decrements the TTL and updates the checksum. The caller has checked that the TTL is not zero (else it wraps to 255).
    #[inline]
    pub fn decrement_ttl(&mut self) {
        self.ttl = self.ttl.wrapping_sub(1);
        self.checksum = U16::new(checksum::after_ttl_decrement(self.checksum.get()));
    }
}

/// A packet whose lengths were checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ip4<'a> {
    /// The fixed part.
    pub header: &'a Ip4Header,
    /// Option bytes, 0 to 40.
    pub options: &'a [u8],
    /// The bytes up to the total length.
    pub payload: &'a [u8],
    /// Bytes behind the total length (link-layer padding).
    pub trailer: &'a [u8],
}

impl<'a> Ip4<'a> {
    /// Checks version, header length and total length against the bytes, in this order.
    pub fn parse(bytes: &'a [u8]) -> Result<Ip4<'a>, WireError> {
        let (header, rest) = Ip4Header::split(bytes)?;
        if header.version() != 4 {
            return Err(WireError::Version {
                what: "IPv4",
                version: header.version(),
            });
        }
        let header_len = header.header_len();
        let options_len = header_len
            .checked_sub(Ip4Header::LEN)
            .ok_or(WireError::LengthBelow {
                what: "IPv4 header",
                len: header_len,
                min: Ip4Header::LEN,
            })?;
        let (options, _) = stated(rest, options_len, "IPv4 options")?;
        let total = usize::from(header.total_len.get());
        if total < header_len {
            return Err(WireError::LengthBelow {
                what: "IPv4 total",
                len: total,
                min: header_len,
            });
        }
        let (packet, trailer) = stated(bytes, total, "IPv4 total")?;
        let (_, payload) = stated(packet, header_len, "IPv4 header")?;
        Ok(Ip4 {
            header,
            options,
            payload,
            trailer,
        })
    }

    /// Whether the header checksum is correct.
    pub fn checksum_ok(&self) -> bool {
        checksum::Sum::new()
            .bytes(self.header.as_bytes())
            .bytes(self.options)
            .is_valid()
    }

    /// Walks the options; "no operation" is skipped, "end of list" ends the walk.
    pub fn options(&self) -> Options<'a> {
        Options::classic(self.options, "IPv4 option")
    }

    /// Whether the payload starts with UDP, TCP or another transport header (false for later fragments).
    pub fn has_transport_header(&self) -> bool {
        self.header.fragment_offset() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use alloc::vec::Vec;

    /// A captured UDP packet's IPv4 header with an inserted router alert option.
    const BYTES: [u8; 32] = [
        0x46, 0x00, 0x00, 0x1c, 0x12, 0x34, 0x40, 0x00, 0x40, 0x11, 0x7f, 0x96, 10, 0, 0, 1, 10, 1,
        0, 1, 0x94, 0x04, 0, 0, 1, 2, 3, 4, 0xee, 0xee, 0xee, 0xee,
    ];

    #[test]
    fn bytes_both_ways() {
        let ip = Ip4::parse(&BYTES).unwrap();
        assert!(ip.checksum_ok());
        assert_eq!(
            (ip.header.src(), ip.header.dst()),
            ([10, 0, 0, 1].into(), [10, 1, 0, 1].into())
        );
        assert_eq!((ip.payload, ip.trailer.len()), (&[1, 2, 3, 4][..], 4));
        assert!(ip.header.dont_fragment() && !ip.header.is_fragment());
        let options: Vec<_> = ip.options().map(|o| o.unwrap().kind).collect();
        assert_eq!(options, [option::ROUTER_ALERT]);

        let mut header = Ip4Header::new(ip.header.src(), ip.header.dst(), IpProto::UDP, 64, 8);
        header.version_ihl = 0x46;
        header.id = U16::new(0x1234);
        header.flags_fragment = U16::new(FLAG_DONT_FRAGMENT);
        header.fill_checksum(&BYTES[20..24]);
        assert_eq!(header.as_bytes(), &BYTES[..20]);
    }

    #[test]
    fn faults_are_found_in_order() {
        let with = |edits: &[(usize, u8)]| {
            let mut bytes = BYTES;
            edits.iter().for_each(|&(at, v)| bytes[at] = v);
            Ip4::parse(&bytes).unwrap_err().to_string()
        };
        assert_eq!(with(&[(0, 0x61)]), "IPv4 header says version 6");
        assert_eq!(
            with(&[(0, 0x44), (3, 1)]),
            "IPv4 header length field is 16, less than the least of 20"
        );
        assert_eq!(
            with(&[(0, 0x4f)]),
            "IPv4 options length field is 40, more than the 12 bytes there are"
        );
        assert_eq!(
            with(&[(3, 23)]),
            "IPv4 total length field is 23, less than the least of 24"
        );
        assert_eq!(
            with(&[(3, 33)]),
            "IPv4 total length field is 33, more than the 32 bytes there are"
        );
        assert_eq!(
            Ip4::parse(&BYTES[..19]).unwrap_err().to_string(),
            "IPv4 header cut short: needs 20 bytes, has 19"
        );
        for cut in 0..28 {
            assert!(Ip4::parse(&BYTES[..cut]).is_err(), "{cut}");
        }
    }

    #[test]
    fn fragments() {
        let mut header = *Ip4::parse(&BYTES).unwrap().header;
        header.flags_fragment = U16::new(FLAG_MORE_FRAGMENTS | 3);
        assert!(header.is_fragment() && header.more_fragments());
        assert_eq!(header.fragment_offset(), 24);
    }

    #[test]
    fn a_hop_less() {
        let mut bytes = BYTES;
        Ip4Header::split_mut(&mut bytes).unwrap().0.decrement_ttl();
        let ip = Ip4::parse(&bytes).unwrap();
        assert!(ip.checksum_ok() && ip.header.ttl == 63);
    }

    proptest::proptest! {
        #[test]
        fn emit_then_parse(src: u32, dst: u32, proto: u8, ttl: u8, payload: Vec<u8>) {
            let header = Ip4Header::new(src.into(), dst.into(), IpProto(proto), ttl, payload.len());
            let bytes = [header.as_bytes(), &payload].concat();
            let ip = Ip4::parse(&bytes).unwrap();
            proptest::prop_assert!(ip.checksum_ok());
            proptest::prop_assert_eq!((*ip.header, ip.payload), (header, &payload[..]));
        }

        #[test]
        fn never_panics(mut bytes: Vec<u8>, plausible: bool) {
            if let (true, Some(first)) = (plausible, bytes.first_mut()) {
                *first = 0x40 | (*first & 0xf);
            }
            if let Ok(ip) = Ip4::parse(&bytes) {
                let _ = (ip.checksum_ok(), ip.options().count());
                let parts = Ip4Header::LEN + ip.options.len() + ip.payload.len() + ip.trailer.len();
                proptest::prop_assert_eq!(parts, bytes.len());
            }
        }
    }
}
