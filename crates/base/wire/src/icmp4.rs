//! ICMP for IPv4 (RFC 792, RFC 1191 next-hop MTU).
//!
//! Contract: [`Icmp4::parse`] requires the 8 bytes that every message has, and does not check type and code. Only
//! [`Icmp4::checksum_ok`] checks the checksum. Error messages quote a truncated packet, so `body` may be shorter than that
//! packet.

use core::net::Ipv4Addr;

use crate::checksum::Sum;
use crate::header::{header, numbers};
use crate::{Header, IntoBytes, U16, WireError};

numbers! {
    /// Message type.
    pub struct Icmp4Type(u8) {
        /// Echo reply
        ECHO_REPLY = 0 "echo-reply",
        /// Destination unreachable
        UNREACHABLE = 3 "unreachable",
        /// Source quench (deprecated)
        SOURCE_QUENCH = 4 "source-quench",
        /// Redirect
        REDIRECT = 5 "redirect",
        /// Echo request
        ECHO_REQUEST = 8 "echo-request",
        /// Router advertisement
        ROUTER_ADVERTISEMENT = 9 "router-advertisement",
        /// Router solicitation
        ROUTER_SOLICITATION = 10 "router-solicitation",
        /// Time exceeded
        TIME_EXCEEDED = 11 "time-exceeded",
        /// Parameter problem
        PARAMETER_PROBLEM = 12 "parameter-problem",
        /// Timestamp
        TIMESTAMP = 13 "timestamp",
        /// Timestamp reply
        TIMESTAMP_REPLY = 14 "timestamp-reply",
    }
}

impl core::fmt::Display for Icmp4Type {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "type-{}", self.0),
        }
    }
}

/// Codes of "destination unreachable".
pub mod unreachable {
    /// Network unreachable
    pub const NET: u8 = 0;
    /// Host unreachable
    pub const HOST: u8 = 1;
    /// Protocol unreachable
    pub const PROTOCOL: u8 = 2;
    /// Port unreachable
    pub const PORT: u8 = 3;
    /// Fragmentation needed and "don't fragment" set
    pub const FRAGMENTATION_NEEDED: u8 = 4;
    /// Communication administratively prohibited (RFC 1812 5.2.7.1)
    pub const PROHIBITED: u8 = 13;
}

header! {
    /// The 8 bytes at the start of all messages.
    pub struct Icmp4Header: 8, "ICMP header" {
        /// Message type
        pub kind: Icmp4Type,
        /// Code within the type
        pub code: u8,
        /// Checksum over the whole message
        pub checksum: U16,
        /// Identifier, gateway, pointer or MTU, by type
        pub rest: [u8; 4],
    }
}

impl Icmp4Header {
    /// A header without checksum.
    pub fn new(kind: Icmp4Type, code: u8, rest: [u8; 4]) -> Icmp4Header {
        Icmp4Header {
            kind,
            code,
            checksum: U16::ZERO,
            rest,
        }
    }

    /// Echo request with identifier and sequence number.
    pub fn echo_request(id: u16, seq: u16) -> Icmp4Header {
        let ([a, b], [c, d]) = (id.to_be_bytes(), seq.to_be_bytes());
        Self::new(Icmp4Type::ECHO_REQUEST, 0, [a, b, c, d])
    }

    /// Sets the checksum over header and body.
    pub fn fill_checksum(&mut self, body: &[u8]) {
        self.checksum = U16::ZERO;
        self.checksum = U16::new(Sum::new().bytes(self.as_bytes()).bytes(body).checksum());
    }

    /// Identifier and sequence number of an echo message.
    pub fn echo(&self) -> (u16, u16) {
        let [a, b, c, d] = self.rest;
        (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]))
    }

    /// Next-hop MTU of "fragmentation needed" (RFC 1191 4).
    pub fn mtu(&self) -> u16 {
        self.echo().1
    }

    /// Gateway of a redirect.
    pub fn gateway(&self) -> Ipv4Addr {
        self.rest.into()
    }

    /// Pointer of a parameter problem: the offset of the faulty byte.
    pub fn pointer(&self) -> u8 {
        self.rest[0]
    }
}

/// A message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Icmp4<'a> {
    /// The first 8 bytes.
    pub header: &'a Icmp4Header,
    /// Echo data, or the quoted packet of an error.
    pub body: &'a [u8],
}

impl<'a> Icmp4<'a> {
    /// `bytes`: the IP payload.
    pub fn parse(bytes: &'a [u8]) -> Result<Icmp4<'a>, WireError> {
        Icmp4Header::split(bytes).map(|(header, body)| Icmp4 { header, body })
    }

    /// Whether the checksum is correct.
    pub fn checksum_ok(&self) -> bool {
        Sum::new()
            .bytes(self.header.as_bytes())
            .bytes(self.body)
            .is_valid()
    }

    /// Whether this is an error message: it quotes a packet, and no error may be sent in response (RFC 1812 4.3.2.7).
    pub fn is_error(&self) -> bool {
        use Icmp4Type as T;
        matches!(
            self.header.kind,
            T::UNREACHABLE
                | T::SOURCE_QUENCH
                | T::REDIRECT
                | T::TIME_EXCEEDED
                | T::PARAMETER_PROBLEM
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const ECHO: [u8; 12] = [8, 0, 0xe1, 0xc4, 0x12, 0x34, 0, 1, 1, 2, 3, 4];

    #[test]
    fn bytes_both_ways() {
        let mut header = Icmp4Header::echo_request(0x1234, 1);
        header.fill_checksum(&[1, 2, 3, 4]);
        assert_eq!(header.as_bytes(), &ECHO[..8]);
        let icmp = Icmp4::parse(&ECHO).unwrap();
        assert!(icmp.checksum_ok() && !icmp.is_error());
        assert_eq!(
            (icmp.header.echo(), icmp.body),
            ((0x1234, 1), &[1, 2, 3, 4][..])
        );
    }

    #[test]
    fn errors_carry_mtu_gateway_and_pointer() {
        let bytes = [3, 4, 0, 0, 0, 0, 0x05, 0xdc];
        let icmp = Icmp4::parse(&bytes).unwrap();
        assert!(icmp.is_error());
        assert_eq!(
            (icmp.header.code, icmp.header.mtu()),
            (unreachable::FRAGMENTATION_NEEDED, 1500)
        );
        let redirect = Icmp4Header::new(Icmp4Type::REDIRECT, 1, [10, 0, 0, 9]);
        assert_eq!(redirect.gateway(), Ipv4Addr::new(10, 0, 0, 9));
        assert_eq!(
            Icmp4Header::new(Icmp4Type::PARAMETER_PROBLEM, 0, [20, 0, 0, 0]).pointer(),
            20
        );
        assert_eq!(
            alloc::format!("{} {}", Icmp4Type::TIME_EXCEEDED, Icmp4Type(99)),
            "time-exceeded type-99"
        );
    }

    #[test]
    fn every_cut() {
        for cut in 0..ECHO.len() {
            assert_eq!(Icmp4::parse(&ECHO[..cut]).is_ok(), cut >= 8);
        }
    }

    proptest::proptest! {
        #[test]
        fn emit_then_parse(kind: u8, code: u8, rest: [u8; 4], body: Vec<u8>) {
            let mut header = Icmp4Header::new(Icmp4Type(kind), code, rest);
            header.fill_checksum(&body);
            let bytes = [header.as_bytes(), &body].concat();
            let icmp = Icmp4::parse(&bytes).unwrap();
            proptest::prop_assert!(icmp.checksum_ok());
            proptest::prop_assert_eq!((*icmp.header, icmp.body), (header, &body[..]));
        }
    }
}
