//! ICMPv6 (RFC 4443): the common part of all messages. Neighbour discovery is in [`crate::nd`].
//!
//! Contract: [`Icmp6::parse`] requires 8 bytes, and does not check type and code. Only [`Icmp6::checksum_ok`] checks the
//! checksum (with pseudo-header). A message of 4 to 7 bytes is an error: no type in use is so short.

use crate::checksum::Sum;
use crate::header::{header, numbers};
use crate::{Header, IntoBytes, U16, WireError};

numbers! {
    /// Message type; values below 128 are errors.
    pub struct Icmp6Type(u8) {
        /// Destination unreachable
        UNREACHABLE = 1 "unreachable",
        /// Packet too big
        PACKET_TOO_BIG = 2 "packet-too-big",
        /// Time exceeded
        TIME_EXCEEDED = 3 "time-exceeded",
        /// Parameter problem
        PARAMETER_PROBLEM = 4 "parameter-problem",
        /// Echo request
        ECHO_REQUEST = 128 "echo-request",
        /// Echo reply
        ECHO_REPLY = 129 "echo-reply",
        /// Multicast listener query
        MLD_QUERY = 130 "mld-query",
        /// Multicast listener report
        MLD_REPORT = 131 "mld-report",
        /// Multicast listener done
        MLD_DONE = 132 "mld-done",
        /// Router solicitation
        ROUTER_SOLICITATION = 133 "router-solicitation",
        /// Router advertisement
        ROUTER_ADVERTISEMENT = 134 "router-advertisement",
        /// Neighbour solicitation
        NEIGHBOUR_SOLICITATION = 135 "neighbour-solicitation",
        /// Neighbour advertisement
        NEIGHBOUR_ADVERTISEMENT = 136 "neighbour-advertisement",
        /// Redirect
        REDIRECT = 137 "redirect",
        /// Multicast listener report, version 2
        MLD2_REPORT = 143 "mld2-report",
    }
}

impl Icmp6Type {
    /// Whether this is an error message: it quotes a packet, and no error may be sent in response (RFC 4443 2.4 e).
    #[inline]
    pub fn is_error(self) -> bool {
        self.0 < 128
    }
}

impl core::fmt::Display for Icmp6Type {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "type-{}", self.0),
        }
    }
}

/// Codes of "destination unreachable".
pub mod unreachable {
    /// No route
    pub const NO_ROUTE: u8 = 0;
    /// Administratively prohibited
    pub const PROHIBITED: u8 = 1;
    /// Address unreachable
    pub const ADDRESS: u8 = 3;
    /// Port unreachable
    pub const PORT: u8 = 4;
}

header! {
    /// The first 8 bytes.
    pub struct Icmp6Header: 8, "ICMPv6 header" {
        /// Message type
        pub kind: Icmp6Type,
        /// Code within the type
        pub code: u8,
        /// Checksum over pseudo-header and message
        pub checksum: U16,
        /// Identifier, MTU, pointer or flags, by type
        pub rest: [u8; 4],
    }
}

impl Icmp6Header {
    /// A header without checksum.
    pub fn new(kind: Icmp6Type, code: u8, rest: [u8; 4]) -> Icmp6Header {
        Icmp6Header {
            kind,
            code,
            checksum: U16::ZERO,
            rest,
        }
    }

    /// Echo request with identifier and sequence number.
    pub fn echo_request(id: u16, seq: u16) -> Icmp6Header {
        let ([a, b], [c, d]) = (id.to_be_bytes(), seq.to_be_bytes());
        Self::new(Icmp6Type::ECHO_REQUEST, 0, [a, b, c, d])
    }

    /// Sets the checksum; `pseudo` is the pseudo-header's sum.
    pub fn fill_checksum(&mut self, pseudo: Sum, body: &[u8]) {
        self.checksum = U16::ZERO;
        self.checksum = U16::new(pseudo.bytes(self.as_bytes()).bytes(body).checksum());
    }

    /// Identifier and sequence number of an echo message.
    pub fn echo(&self) -> (u16, u16) {
        let [a, b, c, d] = self.rest;
        (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]))
    }

    /// MTU of "packet too big", pointer of a parameter problem.
    pub fn word(&self) -> u32 {
        u32::from_be_bytes(self.rest)
    }
}

/// A message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Icmp6<'a> {
    /// The first 8 bytes.
    pub header: &'a Icmp6Header,
    /// The rest of the message.
    pub body: &'a [u8],
}

impl<'a> Icmp6<'a> {
    /// `bytes`: the upper-layer payload.
    pub fn parse(bytes: &'a [u8]) -> Result<Icmp6<'a>, WireError> {
        Icmp6Header::split(bytes).map(|(header, body)| Icmp6 { header, body })
    }

    /// Whether the checksum is correct; `pseudo` is the pseudo-header's sum.
    pub fn checksum_ok(&self, pseudo: Sum) -> bool {
        pseudo
            .bytes(self.header.as_bytes())
            .bytes(self.body)
            .is_valid()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::IpProto;
    use alloc::vec::Vec;
    use core::net::Ipv6Addr;

    #[test]
    fn bytes_both_ways() {
        let bytes = [128, 0, 0, 0, 0x12, 0x34, 0, 1, 0xaa];
        let icmp = Icmp6::parse(&bytes).unwrap();
        assert_eq!(*icmp.header, Icmp6Header::echo_request(0x1234, 1));
        assert_eq!(icmp.header.as_bytes(), &bytes[..8]);
        assert_eq!((icmp.header.echo(), icmp.body), ((0x1234, 1), &[0xaa][..]));
        assert!(!icmp.header.kind.is_error());
        let too_big = Icmp6Header::new(Icmp6Type::PACKET_TOO_BIG, 0, [0, 0, 5, 0]);
        assert!(too_big.kind.is_error());
        assert_eq!(too_big.word(), 1280);
        assert_eq!(
            alloc::format!("{} {}", Icmp6Type::REDIRECT, Icmp6Type(200)),
            "redirect type-200"
        );
    }

    #[test]
    fn every_cut() {
        for cut in 0..9 {
            assert_eq!(Icmp6::parse(&[0; 9][..cut]).is_ok(), cut >= 8);
        }
    }

    proptest::proptest! {
        #[test]
        fn emit_then_parse(src: u128, dst: u128, kind: u8, code: u8, rest: [u8; 4], body: Vec<u8>) {
            let pseudo = Sum::pseudo6(Ipv6Addr::from(src), dst.into(), IpProto::ICMP6, 8 + body.len() as u32);
            let mut header = Icmp6Header::new(Icmp6Type(kind), code, rest);
            header.fill_checksum(pseudo, &body);
            let bytes = [header.as_bytes(), &body].concat();
            let icmp = Icmp6::parse(&bytes).unwrap();
            proptest::prop_assert!(icmp.checksum_ok(pseudo));
            proptest::prop_assert_eq!((*icmp.header, icmp.body), (header, &body[..]));
        }
    }
}
