//! IP prefixes (host bits zero) and interface addresses (host bits kept), and their text.
//!
//! Contract: the length of a prefix or an address is in range, and a [`Prefix`] has no host bits, so that users of the types
//! need no check. `Display` and `FromStr` are inverse.

use crate::TextError;
use alloc::format;
use alloc::string::ToString;
use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::str::FromStr;

/// IP version of an address, prefix or table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
#[cfg_attr(
    feature = "json",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)
)]
pub enum Family {
    /// IPv4.
    #[default]
    #[cfg_attr(feature = "json", serde(rename = "ip4"))]
    V4,
    /// IPv6.
    #[cfg_attr(feature = "json", serde(rename = "ip6"))]
    V6,
}

impl Family {
    /// Family of an address.
    pub fn of(addr: IpAddr) -> Family {
        if addr.is_ipv4() {
            Family::V4
        } else {
            Family::V6
        }
    }

    /// The version number in IP headers: 4 or 6.
    pub fn version(self) -> u8 {
        match self {
            Family::V4 => 4,
            Family::V6 => 6,
        }
    }

    /// Bits of an address: 32 or 128.
    pub fn bits(self) -> u8 {
        match self {
            Family::V4 => 32,
            Family::V6 => 128,
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Family::V4 => "IPv4",
            Family::V6 => "IPv6",
        })
    }
}

/// An IP prefix whose host bits are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Prefix {
    addr: IpAddr,
    len: u8,
}

impl Prefix {
    /// Creates a prefix; refuses a length too large for the family, and host bits that are set.
    pub fn new(addr: IpAddr, len: u8) -> Result<Prefix, TextError> {
        let prefix = Prefix::masked(addr, len)?;
        if prefix.addr != addr {
            let text = format!("{addr}/{len}");
            return Err(TextError::HostBits {
                text,
                corrected: prefix,
            });
        }
        Ok(prefix)
    }

    /// The prefix of this length that covers the address.
    pub fn masked(addr: IpAddr, len: u8) -> Result<Prefix, TextError> {
        let family = Family::of(addr);
        let max = family.bits();
        if len > max {
            let text = format!("{addr}/{len}");
            return Err(TextError::Length { text, family, max });
        }
        let addr = to_addr(family, to_bits(addr) & mask(family, len));
        Ok(Prefix { addr, len })
    }

    /// The prefix of full length with this address.
    pub fn host(addr: IpAddr) -> Prefix {
        let len = Family::of(addr).bits();
        Prefix { addr, len }
    }

    /// The address as a number: the low 32 bits for IPv4, 128 bits for IPv6.
    pub fn bits(self) -> u128 {
        to_bits(self.addr)
    }

    /// Whether the prefix contains the address.
    pub fn contains(self, addr: IpAddr) -> bool {
        let family = self.family();
        Family::of(addr) == family && to_bits(addr) & mask(family, self.len) == self.bits()
    }

    /// The prefix `steps` prefixes of the same length later; `None` past the end of the address space.
    pub fn step(self, steps: u64) -> Option<Prefix> {
        let family = self.family();
        let shift = u32::from(family.bits() - self.len);
        if shift >= u32::from(family.bits()) {
            return (steps == 0).then_some(self);
        }
        let index = (self.bits() >> shift).checked_add(u128::from(steps))?;
        if self.len < 128 && index >> self.len != 0 {
            return None;
        }
        let addr = to_addr(family, index << shift);
        Some(Prefix {
            addr,
            len: self.len,
        })
    }
}

/// An address on an interface with the length of its subnet: `192.0.2.1/24`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IfAddress {
    addr: IpAddr,
    len: u8,
}

impl IfAddress {
    /// An interface address; refuses a length too large for the family.
    pub fn new(addr: IpAddr, len: u8) -> Result<IfAddress, TextError> {
        Prefix::masked(addr, len).map(|_| IfAddress { addr, len })
    }

    /// The connected subnet.
    pub fn subnet(self) -> Prefix {
        let (family, len) = (self.family(), self.len);
        let addr = to_addr(family, to_bits(self.addr) & mask(family, len));
        Prefix { addr, len }
    }

    /// From which of these to speak to a receiver: the one whose subnet it is in, else the first one of its family; never
    /// from a link-local one (RFC 6724, 5).
    ///
    /// ```
    /// # use volley_wire::IfAddress;
    /// let all = ["2001:db8::1/64", "192.0.2.1/24", "198.51.100.1/24"].map(|a| a.parse::<IfAddress>().unwrap());
    /// let from = |to: &str| IfAddress::nearest(&all, to.parse().unwrap()).unwrap().to_string();
    /// assert_eq!(from("198.51.100.9"), "198.51.100.1");
    /// assert_eq!(from("203.0.113.9"), "192.0.2.1");
    /// assert_eq!(from("2001:db8:9::9"), "2001:db8::1");
    /// ```
    pub fn nearest(all: &[IfAddress], to: IpAddr) -> Option<IpAddr> {
        let local = |a: IpAddr| matches!(a, IpAddr::V6(a) if a.is_unicast_link_local());
        let fit = |a: &&IfAddress| a.family() == Family::of(to) && !local(a.addr);
        let mut fit = all.iter().filter(fit);
        let near = fit.clone().find(|a| a.subnet().contains(to));
        near.or_else(|| fit.next()).map(|a| a.addr)
    }
}

/// Implements what an address with a length has, for types of both.
macro_rules! with_length {
    ($($t:ty),*) => {$(
        impl $t {
            /// The address; of a prefix, that of the network.
            pub fn addr(self) -> IpAddr {
                self.addr
            }

            /// Length of the prefix in bits.
            #[expect(clippy::len_without_is_empty, reason = "it is no collection")]
            pub fn len(self) -> u8 {
                self.len
            }

            /// IP version.
            pub fn family(self) -> Family {
                Family::of(self.addr)
            }
        }

        impl fmt::Display for $t {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}/{}", self.addr, self.len)
            }
        }

        impl FromStr for $t {
            type Err = TextError;

            fn from_str(text: &str) -> Result<Self, TextError> {
                let (addr, len) = split(text)?;
                <$t>::new(addr, len)
            }
        }
    )*};
}
with_length!(Prefix, IfAddress);

fn split(text: &str) -> Result<(IpAddr, u8), TextError> {
    let (addr, len) = match text.split_once('/') {
        Some((addr, len)) => (addr, Some(len)),
        None => (text, None),
    };
    let addr: IpAddr = addr.parse().map_err(|_| TextError::Ip(addr.to_string()))?;
    let len = len.ok_or_else(|| TextError::NoLength(text.to_string()))?;
    let family = Family::of(addr);
    let digits = !len.is_empty() && len.bytes().all(|b| b.is_ascii_digit());
    let len = digits.then(|| len.parse().ok()).flatten();
    let bad = || TextError::Length {
        text: text.to_string(),
        family,
        max: family.bits(),
    };
    Ok((addr, len.ok_or_else(bad)?))
}

fn mask(family: Family, len: u8) -> u128 {
    let host = u32::from(family.bits().saturating_sub(len));
    u128::MAX.checked_shl(host).unwrap_or(0)
}

fn to_bits(addr: IpAddr) -> u128 {
    match addr {
        IpAddr::V4(a) => u128::from(a.to_bits()),
        IpAddr::V6(a) => a.to_bits(),
    }
}

fn to_addr(family: Family, bits: u128) -> IpAddr {
    match family {
        Family::V4 => IpAddr::V4(Ipv4Addr::from_bits(bits as u32)),
        Family::V6 => IpAddr::V6(Ipv6Addr::from_bits(bits)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_bits_are_refused_with_the_prefix_that_was_meant() {
        let e = "10.0.0.1/8".parse::<Prefix>().unwrap_err();
        assert_eq!(
            e.to_string(),
            "'10.0.0.1/8' has host bits set: the prefix is 10.0.0.0/8"
        );
        let e = "2001:db8::1/129".parse::<Prefix>().unwrap_err();
        assert_eq!(
            e.to_string(),
            "'2001:db8::1/129' has a bad prefix length: IPv6 allows /0 to /128"
        );
        for bad in [
            "10.0.0.0",
            "10.0.0.0/",
            "10.0.0.0/+8",
            "10.0.0/8",
            "/8",
            "10.0.0.0/300",
        ] {
            assert!(bad.parse::<Prefix>().is_err(), "{bad}");
        }
    }

    #[test]
    fn prefixes_step_to_the_end_of_the_space_and_no_further() {
        let p: Prefix = "10.0.0.0/24".parse().unwrap();
        assert_eq!(p.step(256).unwrap().to_string(), "10.1.0.0/24");
        let last: Prefix = "255.255.255.0/24".parse().unwrap();
        assert_eq!(last.step(1), None);
        let all: Prefix = "::/0".parse().unwrap();
        assert_eq!((all.step(0), all.step(1)), (Some(all), None));
        let host: Prefix = "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128"
            .parse()
            .unwrap();
        assert_eq!(host.step(1), None);
        let low: Prefix = "::1/128".parse().unwrap();
        assert_eq!(low.step(2).unwrap().to_string(), "::3/128");
    }

    #[test]
    fn interface_addresses_keep_host_bits() {
        let a: IfAddress = "192.0.2.1/24".parse().unwrap();
        assert_eq!(a.subnet().to_string(), "192.0.2.0/24");
        assert!(a.subnet().contains("192.0.2.255".parse().unwrap()));
        assert!(!a.subnet().contains("::1".parse().unwrap()));
    }

    proptest::proptest! {
        #[test]
        fn text_both_ways(four: u32, six: u128, len4 in 0u8..=32, len6 in 0u8..=128) {
            for (addr, len) in [
                (IpAddr::from(Ipv4Addr::from_bits(four)), len4),
                (Ipv6Addr::from_bits(six).into(), len6),
            ] {
                let prefix = Prefix::masked(addr, len).unwrap();
                proptest::prop_assert_eq!(prefix.to_string().parse(), Ok(prefix));
                let address = IfAddress::new(addr, len).unwrap();
                proptest::prop_assert_eq!(address.to_string().parse(), Ok(address));
                proptest::prop_assert!(prefix.contains(addr) && address.subnet() == prefix);
            }
        }

        #[test]
        fn parsing_near_misses_never_panics(text in "[0-9a-f:.]{0,20}[-/]?[0-9:.]{0,6}") {
            let _ = (text.parse::<Prefix>(), text.parse::<IfAddress>());
        }
    }
}
