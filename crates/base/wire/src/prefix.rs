//! IP prefixes and address ranges, and their text.
//!
//! Contract: a [`Prefix4`] / [`Prefix6`] never has bits set behind its length, and its length is in range, so that users of the
//! type need no check. Order is by address, then length (the order of the routing-table files). `Display` and `FromStr` are
//! inverse.

use alloc::string::ToString;
use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::str::FromStr;

use crate::TextError;

/// Both families have the same text with different widths: one macro defines both.
macro_rules! family {
    ($prefix:ident, $range:ident, $addr:ty, $int:ty, $bits:literal, $v:literal, $ver:literal) => {
        #[doc = concat!("An ", $ver, " prefix: address and length, no bits set behind the length.")]
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $prefix {
            addr: $int,
            len: u8,
        }

        impl $prefix {
            /// The prefix of all addresses: `/0`.
            pub const DEFAULT: $prefix = $prefix { addr: 0, len: 0 };
            /// Bits of an address.
            pub const BITS: u8 = $bits;

            /// A prefix from address and length; bits set behind the length are an error.
            pub fn new(addr: $addr, len: u8) -> Result<$prefix, TextError> {
                let prefix = Self::of(addr, len)?;
                if prefix.addr == addr.to_bits() {
                    return Ok(prefix);
                }
                Err(TextError::HostBits {
                    text: alloc::format!("{addr}/{len}"),
                    prefix: prefix.to_string(),
                })
            }

            /// The prefix of `len` bits that contains `addr`.
            pub fn of(addr: $addr, len: u8) -> Result<$prefix, TextError> {
                if len > $bits {
                    return Err(TextError::Length {
                        text: alloc::format!("{addr}/{len}"),
                        max: $bits,
                    });
                }
                Ok($prefix {
                    addr: addr.to_bits() & mask_of(len),
                    len,
                })
            }

            /// The prefix of one address.
            pub fn host(addr: $addr) -> $prefix {
                $prefix {
                    addr: addr.to_bits(),
                    len: $bits,
                }
            }

            /// Parses `ADDRESS/LEN` of an interface: the address, and the prefix that contains it.
            pub fn parse_interface(text: &str) -> Result<($addr, $prefix), TextError> {
                let (addr, len) = parse_parts(text)?;
                Ok((addr, Self::of(addr, len)?))
            }

            /// The first address.
            pub fn addr(self) -> $addr {
                <$addr>::from_bits(self.addr)
            }

            /// The first address as a number.
            #[inline]
            pub fn bits(self) -> $int {
                self.addr
            }

            /// Prefix length.
            #[inline]
            #[allow(clippy::len_without_is_empty)] // the length of a prefix, not of a collection
            pub fn len(self) -> u8 {
                self.len
            }

            /// Ones for the bits of the length.
            #[inline]
            pub fn mask(self) -> $int {
                mask_of(self.len)
            }

            /// The last address.
            pub fn last(self) -> $addr {
                <$addr>::from_bits(self.addr | !self.mask())
            }

            /// Whether the prefix contains `addr`.
            #[inline]
            pub fn contains(self, addr: $addr) -> bool {
                addr.to_bits() & self.mask() == self.addr
            }

            /// Whether `other` is equal to or inside this prefix.
            pub fn covers(self, other: $prefix) -> bool {
                self.len <= other.len && other.addr & self.mask() == self.addr
            }

            /// The addresses as a range.
            pub fn range(self) -> $range {
                $range {
                    first: self.addr(),
                    last: self.last(),
                }
            }
        }

        impl fmt::Display for $prefix {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}/{}", self.addr(), self.len)
            }
        }

        impl fmt::Debug for $prefix {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $prefix {
            type Err = TextError;

            fn from_str(text: &str) -> Result<Self, TextError> {
                let (addr, len) = parse_parts(text)?;
                Self::new(addr, len)
            }
        }

        #[doc = concat!("A run of ", $ver, " addresses, both ends included; never empty.")]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub struct $range {
            first: $addr,
            last: $addr,
        }

        impl $range {
            /// From `first` up to `last`.
            pub fn new(first: $addr, last: $addr) -> Result<$range, TextError> {
                if first <= last {
                    return Ok($range { first, last });
                }
                Err(TextError::Backwards(alloc::format!("{first}-{last}")))
            }

            /// The lowest address.
            pub fn first(self) -> $addr {
                self.first
            }

            /// The highest address.
            pub fn last(self) -> $addr {
                self.last
            }

            /// The number of addresses minus one (so that the whole address space fits).
            pub fn span(self) -> $int {
                self.last.to_bits() - self.first.to_bits()
            }

            /// The address at `offset` from the first, modulo the number of addresses.
            pub fn nth(self, offset: $int) -> $addr {
                let step = match self.span().checked_add(1) {
                    Some(count) => offset % count,
                    None => offset,
                };
                <$addr>::from_bits(self.first.to_bits() + step)
            }

            /// Whether the range contains `addr`.
            pub fn contains(self, addr: $addr) -> bool {
                self.first <= addr && addr <= self.last
            }
        }

        impl fmt::Display for $range {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}-{}", self.first, self.last)
            }
        }

        impl FromStr for $range {
            type Err = TextError;

            /// `FIRST-LAST`, a prefix, or one address.
            fn from_str(text: &str) -> Result<Self, TextError> {
                if text.contains('/') {
                    return Ok(text.parse::<$prefix>()?.range());
                }
                let (first, last) = text.split_once('-').unwrap_or((text, text));
                let range = $range {
                    first: parse_addr(first.trim())?,
                    last: parse_addr(last.trim())?,
                };
                if range.first > range.last {
                    return Err(TextError::Backwards(text.to_string()));
                }
                Ok(range)
            }
        }

        fn mask_of(len: u8) -> $int {
            <$int>::MAX.checked_shl($bits - u32::from(len)).unwrap_or(0)
        }

        fn parse_addr(text: &str) -> Result<$addr, TextError> {
            text.parse()
                .map_err(|_| TextError::Address(text.to_string(), $v))
        }

        fn parse_parts(text: &str) -> Result<($addr, u8), TextError> {
            let Some((addr, len)) = text.split_once('/') else {
                parse_addr(text)?;
                return Err(TextError::NoLength {
                    text: text.to_string(),
                    full: $bits,
                });
            };
            let addr = parse_addr(addr)?;
            let digits = len.len() <= 3 && len.bytes().all(|b| b.is_ascii_digit());
            let len = if digits { len.parse().ok() } else { None };
            match len.filter(|len| *len <= $bits) {
                Some(len) => Ok((addr, len)),
                None => Err(TextError::Length {
                    text: text.to_string(),
                    max: $bits,
                }),
            }
        }
    };
}

mod v4 {
    use super::*;
    family!(Prefix4, Range4, Ipv4Addr, u32, 32, "v4", "IPv4");
}

mod v6 {
    use super::*;
    family!(Prefix6, Range6, Ipv6Addr, u128, 128, "v6", "IPv6");
}

pub use v4::{Prefix4, Range4};
pub use v6::{Prefix6, Range6};

/// A prefix of either family.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Prefix {
    /// IPv4
    V4(Prefix4),
    /// IPv6
    V6(Prefix6),
}

impl Prefix {
    /// The first address.
    pub fn addr(self) -> IpAddr {
        match self {
            Prefix::V4(p) => p.addr().into(),
            Prefix::V6(p) => p.addr().into(),
        }
    }

    /// Prefix length.
    #[allow(clippy::len_without_is_empty)] // the length of a prefix, not of a collection
    pub fn len(self) -> u8 {
        match self {
            Prefix::V4(p) => p.len(),
            Prefix::V6(p) => p.len(),
        }
    }

    /// Parses `ADDRESS/LEN` of an interface: the address, and the prefix that contains it.
    pub fn parse_interface(text: &str) -> Result<(IpAddr, Prefix), TextError> {
        if text.contains(':') {
            return Prefix6::parse_interface(text).map(|(a, p)| (a.into(), Prefix::V6(p)));
        }
        Prefix4::parse_interface(text).map(|(a, p)| (a.into(), Prefix::V4(p)))
    }
}

impl From<Prefix4> for Prefix {
    fn from(p: Prefix4) -> Self {
        Prefix::V4(p)
    }
}

impl From<Prefix6> for Prefix {
    fn from(p: Prefix6) -> Self {
        Prefix::V6(p)
    }
}

impl FromStr for Prefix {
    type Err = TextError;

    fn from_str(text: &str) -> Result<Self, TextError> {
        if text.contains(':') {
            return text.parse().map(Prefix::V6);
        }
        text.parse().map(Prefix::V4)
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Prefix::V4(p) => p.fmt(f),
            Prefix::V6(p) => p.fmt(f),
        }
    }
}

impl fmt::Debug for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;
    use proptest::prelude::*;

    #[test]
    fn masks_and_ends() {
        let p: Prefix4 = "10.1.0.0/16".parse().unwrap();
        assert_eq!(
            (p.bits(), p.len(), p.mask()),
            (0x0a01_0000, 16, 0xffff_0000)
        );
        assert_eq!(p.last(), Ipv4Addr::new(10, 1, 255, 255));
        assert!(p.contains([10, 1, 2, 3].into()) && !p.contains([10, 2, 0, 0].into()));
        assert!(Prefix4::DEFAULT.covers(p) && !p.covers(Prefix4::DEFAULT));
        assert_eq!(Prefix4::DEFAULT.last(), Ipv4Addr::BROADCAST);
        assert_eq!(Prefix4::host([1, 2, 3, 4].into()).mask(), u32::MAX);
        let p: Prefix6 = "2001:db8::/33".parse().unwrap();
        assert_eq!(
            p.last().to_string(),
            "2001:db8:7fff:ffff:ffff:ffff:ffff:ffff"
        );
        assert_eq!(Prefix6::DEFAULT.mask(), 0);
    }

    #[test]
    fn errors_say_what_and_how_to_mend() {
        let error = |text: &str| text.parse::<Prefix>().unwrap_err().to_string();
        assert_eq!(
            error("10.0.0.1/8"),
            "10.0.0.1/8 has bits set behind its prefix length; the prefix is 10.0.0.0/8"
        );
        assert_eq!(
            error("10.0.0.1"),
            "\"10.0.0.1\" has no prefix length; write it like 10.0.0.1/32"
        );
        assert_eq!(
            error("2001:db8::1"),
            "\"2001:db8::1\" has no prefix length; write it like 2001:db8::1/128"
        );
        assert_eq!(
            error("10.0.0.0/33"),
            "\"10.0.0.0/33\": the prefix length must be a number from 0 to 32"
        );
        assert_eq!(
            error("::/+1"),
            "\"::/+1\": the prefix length must be a number from 0 to 128"
        );
        assert_eq!(error("10.0.0/8"), "\"10.0.0\" is not an IPv4 address");
        assert_eq!(error("x::/8"), "\"x::\" is not an IPv6 address");
        for text in [
            "",
            "/",
            "10.0.0.0/",
            "10.0.0.0/256",
            "10.0.0.0/8/8",
            " 10.0.0.0/8",
        ] {
            assert!(text.parse::<Prefix>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn interface_addresses_keep_their_host_bits() {
        let (addr, prefix) = Prefix::parse_interface("192.0.2.7/24").unwrap();
        assert_eq!(
            (addr.to_string(), prefix.to_string()),
            ("192.0.2.7".into(), String::from("192.0.2.0/24"))
        );
        let (addr, prefix) = Prefix::parse_interface("2001:db8::7/64").unwrap();
        assert_eq!(
            (addr.to_string(), prefix.to_string()),
            ("2001:db8::7".into(), String::from("2001:db8::/64"))
        );
    }

    #[test]
    fn ranges() {
        let r: Range4 = "10.0.0.1-10.0.0.4".parse().unwrap();
        assert_eq!(
            (r.span(), r.nth(0), r.nth(3)),
            (3, [10, 0, 0, 1].into(), [10, 0, 0, 4].into())
        );
        assert_eq!(r.nth(4), r.first());
        assert_eq!(
            "0.0.0.0/0".parse::<Range4>().unwrap().nth(u32::MAX),
            Ipv4Addr::BROADCAST
        );
        assert_eq!("::/0".parse::<Range6>().unwrap().span(), u128::MAX);
        assert_eq!("10.0.0.9".parse::<Range4>().unwrap().span(), 0);
        let error = "10.0.0.2-10.0.0.1".parse::<Range4>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "\"10.0.0.2-10.0.0.1\": the last address of a range must not lie before the first"
        );
        assert!(Range4::new([2, 0, 0, 0].into(), [1, 0, 0, 0].into()).is_err());
    }

    #[test]
    fn order_is_address_then_length() {
        let mut all: [Prefix4; 3] =
            ["10.0.0.0/16", "9.0.0.0/8", "10.0.0.0/8"].map(|t| t.parse().unwrap());
        all.sort();
        assert_eq!(
            alloc::format!("{all:?}"),
            "[9.0.0.0/8, 10.0.0.0/8, 10.0.0.0/16]"
        );
    }

    proptest! {
        #[test]
        fn text_both_ways(a: u32, b: u128, len4 in 0u8..=32, len6 in 0u8..=128) {
            let p = Prefix::from(Prefix4::of(a.into(), len4).unwrap());
            prop_assert_eq!(p.to_string().parse(), Ok(p));
            let p = Prefix::from(Prefix6::of(b.into(), len6).unwrap());
            prop_assert_eq!(p.to_string().parse(), Ok(p));
        }

        #[test]
        fn parsing_never_panics(text: String) {
            let _ = text.parse::<Prefix>();
            let _ = text.parse::<Range4>();
            let _ = text.parse::<Range6>();
        }

        #[test]
        fn parsing_near_misses_never_panics(text in "[0-9a-f:.]{0,20}[-/]?[0-9:.]{0,6}") {
            let _ = text.parse::<Prefix>();
            let _ = text.parse::<Range4>();
            let _ = text.parse::<Range6>();
        }

        #[test]
        fn contains_is_first_to_last(a: u32, b: u32, len in 0u8..=32) {
            let p = Prefix4::of(a.into(), len).unwrap();
            prop_assert_eq!(p.contains(b.into()), p.range().contains(b.into()));
            prop_assert!(p.contains(a.into()));
        }

        #[test]
        fn nth_stays_inside(a: u128, b: u128, n: u128) {
            let r = Range6::new(a.min(b).into(), a.max(b).into()).unwrap();
            prop_assert!(r.contains(r.nth(n)));
        }
    }
}
