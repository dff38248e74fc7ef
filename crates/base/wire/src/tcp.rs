//! TCP (RFC 9293): the header and its options; no state machine.
//!
//! Contract: a [`Tcp`] from [`Tcp::parse`] has a data offset of 5 to 15 words within the bytes. Options are checked when they
//! are walked; only [`Tcp::checksum_ok`] checks the checksum.

use crate::checksum::Sum;
use crate::header::{header, stated};
use crate::tlv::Options;
use crate::{Header, IntoBytes, U16, U32, WireError};

header! {
    /// The 20 bytes without options.
    pub struct TcpHeader: 20, "TCP header" {
        /// Source port
        pub src_port: U16,
        /// Destination port
        pub dst_port: U16,
        /// Sequence number
        pub seq: U32,
        /// Acknowledgement number
        pub ack: U32,
        /// Data offset in words (4 bits), reserved
        pub data_offset: u8,
        /// [`flag`] bits
        pub flags: u8,
        /// Window
        pub window: U16,
        /// Checksum
        pub checksum: U16,
        /// Urgent pointer
        pub urgent: U16,
    }
}

/// Bits of the flags byte.
pub mod flag {
    /// No more data from the sender
    pub const FIN: u8 = 0x01;
    /// Synchronise sequence numbers
    pub const SYN: u8 = 0x02;
    /// Reset
    pub const RST: u8 = 0x04;
    /// Push
    pub const PSH: u8 = 0x08;
    /// Acknowledgement is valid
    pub const ACK: u8 = 0x10;
    /// Urgent pointer is valid
    pub const URG: u8 = 0x20;
    /// ECN echo
    pub const ECE: u8 = 0x40;
    /// Congestion window reduced
    pub const CWR: u8 = 0x80;
    /// Names, lowest bit first.
    pub const NAMES: [&str; 8] = ["FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR"];
}

/// Option numbers.
pub mod option {
    /// Maximum segment size
    pub const MSS: u8 = 2;
    /// Window scale
    pub const WINDOW_SCALE: u8 = 3;
    /// Selective acknowledgements permitted
    pub const SACK_PERMITTED: u8 = 4;
    /// Selective acknowledgements
    pub const SACK: u8 = 5;
    /// Timestamps
    pub const TIMESTAMPS: u8 = 8;
}

impl TcpHeader {
    /// A header without options and checksum.
    pub fn new(src_port: u16, dst_port: u16, flags: u8) -> TcpHeader {
        TcpHeader {
            src_port: U16::new(src_port),
            dst_port: U16::new(dst_port),
            seq: U32::ZERO,
            ack: U32::ZERO,
            data_offset: 5 << 4,
            flags,
            window: U16::new(u16::MAX),
            checksum: U16::ZERO,
            urgent: U16::ZERO,
        }
    }

    /// Header length in bytes, from the header.
    #[inline]
    pub fn header_len(&self) -> usize {
        usize::from(self.data_offset >> 4) * 4
    }

    /// Sets the checksum over header, options and payload; `pseudo` is the pseudo-header's sum.
    pub fn fill_checksum(&mut self, pseudo: Sum, options: &[u8], payload: &[u8]) {
        self.checksum = U16::ZERO;
        self.checksum = U16::new(
            pseudo
                .bytes(self.as_bytes())
                .bytes(options)
                .bytes(payload)
                .checksum(),
        );
    }
}

/// A segment whose header length was checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tcp<'a> {
    /// The fixed part.
    pub header: &'a TcpHeader,
    /// Option bytes, 0 to 40.
    pub options: &'a [u8],
    /// The bytes behind the header.
    pub payload: &'a [u8],
}

impl<'a> Tcp<'a> {
    /// Checks the data offset against the bytes (the IP payload).
    pub fn parse(bytes: &'a [u8]) -> Result<Tcp<'a>, WireError> {
        let (header, rest) = TcpHeader::split(bytes)?;
        let len = header.header_len();
        let options_len = len
            .checked_sub(TcpHeader::LEN)
            .ok_or(WireError::LengthBelow {
                what: "TCP header",
                len,
                min: TcpHeader::LEN,
            })?;
        let (options, payload) = stated(rest, options_len, "TCP options")?;
        Ok(Tcp {
            header,
            options,
            payload,
        })
    }

    /// Walks the options.
    pub fn options(&self) -> Options<'a> {
        Options::classic(self.options, "TCP option")
    }

    /// The maximum segment size option, if it is present and well-formed.
    pub fn mss(&self) -> Option<u16> {
        let mss = self.options().flatten().find(|o| o.kind == option::MSS)?;
        Some(u16::from_be_bytes(mss.data.try_into().ok()?))
    }

    /// Whether the checksum is correct; `pseudo` is the pseudo-header's sum.
    pub fn checksum_ok(&self, pseudo: Sum) -> bool {
        pseudo
            .bytes(self.header.as_bytes())
            .bytes(self.options)
            .bytes(self.payload)
            .is_valid()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::IpProto;
    use alloc::string::ToString;
    use alloc::vec::Vec;

    const BYTES: [u8; 30] = [
        0x04, 0xd2, 0x00, 0x50, 0, 0, 0, 7, 0, 0, 0, 9, 0x70, 0x12, 0xff, 0xff, 0, 0, 0, 0, 2, 4,
        0x05, 0xb4, 1, 3, 3, 7, 0xaa, 0xbb,
    ];

    #[test]
    fn bytes_both_ways() {
        let mut header = TcpHeader::new(1234, 80, flag::SYN | flag::ACK);
        (header.seq, header.ack, header.data_offset) = (U32::new(7), U32::new(9), 7 << 4);
        assert_eq!(header.as_bytes(), &BYTES[..20]);
        let tcp = Tcp::parse(&BYTES).unwrap();
        assert_eq!((*tcp.header, tcp.payload), (header, &[0xaa, 0xbb][..]));
        assert_eq!(tcp.mss(), Some(1460));
        let kinds: Vec<u8> = tcp.options().map(|o| o.unwrap().kind).collect();
        assert_eq!(kinds, [option::MSS, option::WINDOW_SCALE]);
    }

    #[test]
    fn lengths() {
        let mut bytes = BYTES;
        bytes[12] = 0x40;
        let error = Tcp::parse(&bytes).unwrap_err();
        assert_eq!(
            error.to_string(),
            "TCP header length field is 16, less than the least of 20"
        );
        bytes[12] = 0x80;
        let error = Tcp::parse(&bytes).unwrap_err();
        assert_eq!(
            error.to_string(),
            "TCP options length field is 12, more than the 10 bytes there are"
        );
        for cut in 0..28 {
            assert!(Tcp::parse(&BYTES[..cut]).is_err());
        }
    }

    proptest::proptest! {
        #[test]
        fn emit_then_parse(src: u32, dst: u32, ports: (u16, u16), flags: u8, payload: Vec<u8>) {
            let mut header = TcpHeader::new(ports.0, ports.1, flags);
            let pseudo = Sum::pseudo4(src.into(), dst.into(), IpProto::TCP, 20 + payload.len() as u16);
            header.fill_checksum(pseudo, &[], &payload);
            let bytes = [header.as_bytes(), &payload].concat();
            let tcp = Tcp::parse(&bytes).unwrap();
            proptest::prop_assert!(tcp.checksum_ok(pseudo));
            proptest::prop_assert_eq!((*tcp.header, tcp.payload), (header, &payload[..]));
        }

        #[test]
        fn never_panics(bytes: Vec<u8>) {
            let _ = Tcp::parse(&bytes).map(|t| (t.mss(), t.options().count()));
        }
    }
}
