//! Neighbour discovery (RFC 4861): solicitations, advertisements, redirect, and their options.
//!
//! Contract: [`NdMessage::parse`] applies the checks of RFC 4861 6.1 and 7.1 that depend only on the message (code 0, lengths,
//! no option of length 0, target not multicast). The caller checks the hop limit of 255 and the checksum. Every option of an
//! accepted message is well-formed, so [`NdMessage::options`] returns no errors.

use core::net::Ipv6Addr;

use crate::header::header;
use crate::icmp6::{Icmp6, Icmp6Type};
use crate::{Header, MacAddr, U32, WireError};

header! {
    /// Neighbour solicitation or advertisement, behind the ICMPv6 header.
    pub struct Target: 16, "ND target" {
        /// Target address
        pub target: [u8; 16],
    }
}

header! {
    /// Router advertisement, behind the ICMPv6 header.
    pub struct RouterTimes: 8, "router advertisement" {
        /// Reachable time in ms, 0: unspecified
        pub reachable_ms: U32,
        /// Retransmission time in ms, 0: unspecified
        pub retransmit_ms: U32,
    }
}

header! {
    /// Redirect, behind the ICMPv6 header.
    pub struct RedirectTarget: 32, "ND redirect" {
        /// The better first hop
        pub target: [u8; 16],
        /// For packets to this address
        pub destination: [u8; 16],
    }
}

header! {
    /// The prefix information option, behind type and length.
    pub struct PrefixInfo: 30, "ND prefix information" {
        /// Prefix length
        pub prefix_len: u8,
        /// 0x80: on link, 0x40: autonomous
        pub flags: u8,
        /// Valid lifetime in s
        pub valid_s: U32,
        /// Preferred lifetime in s
        pub preferred_s: U32,
        /// Zero
        pub reserved: U32,
        /// The prefix
        pub prefix: [u8; 16],
    }
}

/// Flag of an advertisement: the sender is a router.
pub const NA_ROUTER: u8 = 0x80;
/// Flag of an advertisement: it answers a solicitation.
pub const NA_SOLICITED: u8 = 0x40;
/// Flag of an advertisement: replace a cached address.
pub const NA_OVERRIDE: u8 = 0x20;

/// The contents of a message, without options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NdBody {
    /// Router solicitation.
    RouterSolicitation,
    /// Router advertisement.
    RouterAdvertisement {
        /// Hop limit for hosts, 0: unspecified
        hop_limit: u8,
        /// 0x80: managed addresses, 0x40: other configuration
        flags: u8,
        /// Lifetime as a default router in s
        lifetime_s: u16,
        /// Reachable and retransmission time
        times: RouterTimes,
    },
    /// Neighbour solicitation for `target`.
    NeighbourSolicitation {
        /// Not multicast
        target: Ipv6Addr,
    },
    /// Neighbour advertisement of `target`.
    NeighbourAdvertisement {
        /// Not multicast
        target: Ipv6Addr,
        /// [`NA_ROUTER`], [`NA_SOLICITED`], [`NA_OVERRIDE`]
        flags: u8,
    },
    /// Redirect to a better first hop.
    Redirect {
        /// The better hop
        target: Ipv6Addr,
        /// For packets to this address, not multicast
        destination: Ipv6Addr,
    },
}

/// One option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NdOption<'a> {
    /// Link-layer address of the sender
    SourceMac(MacAddr),
    /// Link-layer address of the target
    TargetMac(MacAddr),
    /// A prefix of the link
    Prefix(&'a PrefixInfo),
    /// The start of the packet that caused a redirect
    Redirected(&'a [u8]),
    /// MTU of the link
    Mtu(u32),
    /// Any other, or one of the above with an unexpected length
    Other {
        /// The option's number
        kind: u8,
        /// Bytes behind type and length
        data: &'a [u8],
    },
}

/// An accepted message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NdMessage<'a> {
    /// The contents.
    pub body: NdBody,
    options: &'a [u8],
}

impl<'a> NdMessage<'a> {
    /// None: not a neighbour discovery message.
    pub fn parse(icmp: &Icmp6<'a>) -> Option<Result<NdMessage<'a>, WireError>> {
        let message = Self::parse_body(icmp)?;
        Some(message.and_then(|message| message.check_options().map(|()| message)))
    }

    /// As [`Self::parse`], without a check of options: [`NdMessage::options`] ends before one that is not well-formed.
    pub(crate) fn parse_body(icmp: &Icmp6<'a>) -> Option<Result<NdMessage<'a>, WireError>> {
        let kind = icmp.header.kind.0;
        let is_nd = (Icmp6Type::ROUTER_SOLICITATION.0..=Icmp6Type::REDIRECT.0).contains(&kind);
        is_nd.then(|| Self::parse_nd(icmp))
    }

    /// Checks that every option is well-formed.
    pub(crate) fn check_options(&self) -> Result<(), WireError> {
        self.options().check()
    }

    fn parse_nd(icmp: &Icmp6<'a>) -> Result<NdMessage<'a>, WireError> {
        if icmp.header.code != 0 {
            return Err(WireError::Field {
                what: "ND code",
                value: icmp.header.code.into(),
            });
        }
        let (body, options) = match icmp.header.kind {
            Icmp6Type::ROUTER_SOLICITATION => (NdBody::RouterSolicitation, icmp.body),
            Icmp6Type::ROUTER_ADVERTISEMENT => advertisement(icmp)?,
            Icmp6Type::NEIGHBOUR_SOLICITATION => {
                let (target, options) = unicast(icmp.body)?;
                (NdBody::NeighbourSolicitation { target }, options)
            }
            Icmp6Type::NEIGHBOUR_ADVERTISEMENT => {
                let (target, options) = unicast(icmp.body)?;
                (
                    NdBody::NeighbourAdvertisement {
                        target,
                        flags: icmp.header.rest[0],
                    },
                    options,
                )
            }
            _ => redirect(icmp.body)?,
        };
        Ok(NdMessage { body, options })
    }

    /// The options in order.
    pub fn options(&self) -> NdOptions<'a> {
        NdOptions {
            bytes: self.options,
        }
    }
}

fn advertisement<'a>(icmp: &Icmp6<'a>) -> Result<(NdBody, &'a [u8]), WireError> {
    let (times, options) = RouterTimes::split(icmp.body)?;
    let [hop_limit, flags, hi, lo] = icmp.header.rest;
    let lifetime_s = u16::from_be_bytes([hi, lo]);
    Ok((
        NdBody::RouterAdvertisement {
            hop_limit,
            flags,
            lifetime_s,
            times: *times,
        },
        options,
    ))
}

fn redirect(body: &[u8]) -> Result<(NdBody, &[u8]), WireError> {
    let (header, options) = RedirectTarget::split(body)?;
    not_multicast(header.destination)?;
    let body = NdBody::Redirect {
        target: header.target.into(),
        destination: header.destination.into(),
    };
    Ok((body, options))
}

fn unicast(body: &[u8]) -> Result<(Ipv6Addr, &[u8]), WireError> {
    let (header, options) = Target::split(body)?;
    Ok((not_multicast(header.target)?, options))
}

fn not_multicast(addr: [u8; 16]) -> Result<Ipv6Addr, WireError> {
    match addr[0] {
        0xff => Err(WireError::Field {
            what: "first byte of ND target address",
            value: 0xff,
        }),
        _ => Ok(addr.into()),
    }
}

/// Walks options, whose length is in units of 8 bytes.
#[derive(Debug, Clone)]
pub struct NdOptions<'a> {
    bytes: &'a [u8],
}

impl<'a> NdOptions<'a> {
    fn check(mut self) -> Result<(), WireError> {
        while self.step()?.is_some() {}
        Ok(())
    }

    fn step(&mut self) -> Result<Option<NdOption<'a>>, WireError> {
        let (kind, units) = match *self.bytes {
            [] => return Ok(None),
            [_] => {
                return Err(WireError::Short {
                    what: "ND option",
                    need: 8,
                    have: 1,
                });
            }
            [kind, units, ..] => (kind, units),
        };
        if units == 0 {
            return Err(WireError::LengthBelow {
                what: "ND option",
                len: 0,
                min: 8,
            });
        }
        let (option, rest) =
            crate::header::stated(self.bytes, usize::from(units) * 8, "ND option")?;
        self.bytes = rest;
        Ok(Some(typed(kind, option.get(2..).unwrap_or(&[]))))
    }
}

fn typed(kind: u8, data: &[u8]) -> NdOption<'_> {
    let other = NdOption::Other { kind, data };
    let mac = || <[u8; 6]>::try_from(data).map(MacAddr);
    match kind {
        1 => mac().map_or(other, NdOption::SourceMac),
        2 => mac().map_or(other, NdOption::TargetMac),
        3 if data.len() == PrefixInfo::LEN => {
            PrefixInfo::split(data).map_or(other, |(info, _)| NdOption::Prefix(info))
        }
        4 => data.get(6..).map_or(other, NdOption::Redirected),
        5 => match *data {
            [_, _, a, b, c, d] => NdOption::Mtu(u32::from_be_bytes([a, b, c, d])),
            _ => other,
        },
        _ => other,
    }
}

impl<'a> Iterator for NdOptions<'a> {
    type Item = NdOption<'a>;

    fn next(&mut self) -> Option<NdOption<'a>> {
        self.step().ok().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::IntoBytes;
    use crate::icmp6::Icmp6Header;
    use alloc::string::ToString;
    use alloc::vec::Vec;

    fn target() -> Ipv6Addr {
        "fe80::2".parse().unwrap()
    }

    fn message(kind: Icmp6Type, rest: [u8; 4], body: &[u8]) -> Vec<u8> {
        [Icmp6Header::new(kind, 0, rest).as_bytes(), body].concat()
    }

    fn parse(bytes: &[u8]) -> Result<NdMessage<'_>, WireError> {
        NdMessage::parse(&Icmp6::parse(bytes)?).expect("an ND type")
    }

    #[test]
    fn solicitation_and_advertisement() {
        let body = [&target().octets()[..], &[1, 1, 2, 0, 0, 0, 0, 1]].concat();
        let bytes = message(Icmp6Type::NEIGHBOUR_SOLICITATION, [0; 4], &body);
        let nd = parse(&bytes).unwrap();
        assert_eq!(nd.body, NdBody::NeighbourSolicitation { target: target() });
        assert_eq!(
            nd.options().collect::<Vec<_>>(),
            [NdOption::SourceMac(MacAddr::local(1))]
        );
        for cut in 8..bytes.len() {
            assert_eq!(parse(&bytes[..cut]).is_ok(), cut == 24, "{cut}");
        }
        let bytes = message(Icmp6Type::NEIGHBOUR_ADVERTISEMENT, [0xe0, 0, 0, 0], &body);
        let flags = NA_ROUTER | NA_SOLICITED | NA_OVERRIDE;
        assert_eq!(
            parse(&bytes).unwrap().body,
            NdBody::NeighbourAdvertisement {
                target: target(),
                flags
            }
        );
    }

    #[test]
    fn router_messages() {
        let mut body = Vec::from([0, 0, 0x75, 0x30, 0, 0, 3, 0xe8]);
        body.extend([5, 1, 0, 0, 0, 0, 5, 0xdc]);
        body.extend([3, 4, 64, 0xc0, 0, 0, 0, 60, 0, 0, 0, 30, 0, 0, 0, 0]);
        body.extend("2001:db8::".parse::<Ipv6Addr>().unwrap().octets());
        body.extend([25, 1, 0, 0, 0, 0, 0, 0]);
        let bytes = message(
            Icmp6Type::ROUTER_ADVERTISEMENT,
            [64, 0x40, 0x07, 0x08],
            &body,
        );
        let nd = parse(&bytes).unwrap();
        let times = RouterTimes {
            reachable_ms: U32::new(30000),
            retransmit_ms: U32::new(1000),
        };
        assert_eq!(
            nd.body,
            NdBody::RouterAdvertisement {
                hop_limit: 64,
                flags: 0x40,
                lifetime_s: 1800,
                times
            }
        );
        let options: Vec<_> = nd.options().collect();
        assert_eq!(options[0], NdOption::Mtu(1500));
        assert!(
            matches!(options[1], NdOption::Prefix(p) if p.prefix_len == 64 && p.valid_s.get() == 60)
        );
        assert_eq!(
            options[2],
            NdOption::Other {
                kind: 25,
                data: &[0; 6]
            }
        );
        let solicitation = message(Icmp6Type::ROUTER_SOLICITATION, [0; 4], &[]);
        assert_eq!(
            parse(&solicitation).unwrap().body,
            NdBody::RouterSolicitation
        );
    }

    #[test]
    fn redirects() {
        let destination: Ipv6Addr = "2001:db8::9".parse().unwrap();
        let quoted = [4, 2, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
        let body = [&target().octets()[..], &destination.octets(), &quoted].concat();
        let bytes = message(Icmp6Type::REDIRECT, [0; 4], &body);
        let nd = parse(&bytes).unwrap();
        assert_eq!(
            nd.body,
            NdBody::Redirect {
                target: target(),
                destination
            }
        );
        assert_eq!(
            nd.options().next(),
            Some(NdOption::Redirected(&[1, 2, 3, 4, 5, 6, 7, 8]))
        );
    }

    #[test]
    fn faults() {
        let zero = [&target().octets()[..], &[1, 0, 0, 0, 0, 0, 0, 0]].concat();
        let bytes = message(Icmp6Type::NEIGHBOUR_SOLICITATION, [0; 4], &zero);
        assert_eq!(
            parse(&bytes).unwrap_err().to_string(),
            "ND option length field is 0, less than the least of 8"
        );
        let multicast = "ff02::1".parse::<Ipv6Addr>().unwrap().octets();
        let bytes = message(Icmp6Type::NEIGHBOUR_SOLICITATION, [0; 4], &multicast);
        assert!(parse(&bytes).is_err());
        let mut bytes = message(Icmp6Type::ROUTER_SOLICITATION, [0; 4], &[]);
        bytes[1] = 1;
        assert_eq!(
            parse(&bytes).unwrap_err(),
            WireError::Field {
                what: "ND code",
                value: 1
            }
        );
        let echo = message(Icmp6Type::ECHO_REQUEST, [0; 4], &[]);
        assert!(NdMessage::parse(&Icmp6::parse(&echo).unwrap()).is_none());
    }

    proptest::proptest! {
        #[test]
        fn never_panics(kind in 133u8..=137, mut bytes in proptest::collection::vec(0u8.., 8..120)) {
            (bytes[0], bytes[1]) = (kind, 0);
            if let Ok(nd) = parse(&bytes) {
                proptest::prop_assert!(nd.options().count() <= bytes.len() / 8);
            }
        }
    }
}
