//! Addresses: MAC, IP prefix (host bits zero) and interface address (host bits kept).
//!
//! All three are parsed from and written in the standard notation, and are text in JSON. IP addresses themselves are
//! `std::net::IpAddr`.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;
use volley_object::Instance;

/// IP version of an address, prefix or table.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Default,
    Serialize,
    Deserialize,
    JsonSchema,
)]
pub enum Family {
    /// IPv4.
    #[default]
    #[serde(rename = "ip4")]
    V4,
    /// IPv6.
    #[serde(rename = "ip6")]
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

    /// IP version of an object, see [`Instance::ip_version`].
    pub fn of_object(object: &Instance) -> Option<Family> {
        match object.ip_version()? {
            4 => Some(Family::V4),
            _ => Some(Family::V6),
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

/// Errors of parsing an address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddrError {
    /// The text is not six pairs of hex digits.
    #[error("'{0}' is not a MAC address: write six pairs of hex digits, such as 02:fe:00:00:00:01")]
    Mac(String),
    /// The text is not an IP address.
    #[error("'{0}' is not an IP address: write one such as 192.0.2.1 or 2001:db8::1")]
    Ip(String),
    /// The slash or the length is missing.
    #[error("'{0}' has no prefix length: write one such as {0}/24")]
    NoLength(String),
    /// The length is not a number, or too large for the family.
    #[error("'{text}' has a bad prefix length: {family} allows /0 to /{max}")]
    Length {
        /// The text.
        text: String,
        /// The family.
        family: Family,
        /// Maximum length.
        max: u8,
    },
    /// Bits after the prefix are set.
    #[error("'{text}' has host bits set: the prefix is {corrected}")]
    HostBits {
        /// The text.
        text: String,
        /// The prefix with the host bits cleared.
        corrected: Prefix,
    },
}

/// A MAC address, in wire order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Mac(pub [u8; 6]);

impl Mac {
    /// All ones.
    pub const BROADCAST: Mac = Mac([0xff; 6]);

    /// True for group addresses, broadcast among them.
    pub fn is_multicast(self) -> bool {
        self.0[0] & 1 == 1
    }

    /// The requirement for the address of one host that this address violates, if any.
    pub fn not_of_one_host(self) -> Option<&'static str> {
        let bad = self.is_multicast() || self.0 == [0; 6];
        bad.then_some("a unicast address (first octet even) and not zero")
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl FromStr for Mac {
    type Err = AddrError;

    /// Parses `02:fe:00:00:00:01`, with `:` or `-` between pairs, or `02fe.0000.0001` (groups may be short: `2.3.4`).
    fn from_str(text: &str) -> Result<Self, AddrError> {
        pairs(text)
            .or_else(|| quads(text))
            .ok_or_else(|| AddrError::Mac(text.to_string()))
    }
}

fn pairs(text: &str) -> Option<Mac> {
    let mut mac = [0; 6];
    let mut parts = text.split([':', '-']);
    for byte in &mut mac {
        *byte = hex(parts.next()?, 2)? as u8;
    }
    parts.next().is_none().then_some(Mac(mac))
}

fn quads(text: &str) -> Option<Mac> {
    let mut mac = [0; 6];
    let mut parts = text.split('.');
    for pair in mac.chunks_exact_mut(2) {
        pair.copy_from_slice(&hex(parts.next()?, 4)?.to_be_bytes());
    }
    parts.next().is_none().then_some(Mac(mac))
}

fn hex(text: &str, digits: usize) -> Option<u16> {
    let fits = (1..=digits).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_hexdigit());
    if !fits {
        return None;
    }
    u16::from_str_radix(text, 16).ok()
}

/// An IP prefix whose host bits are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Prefix {
    addr: IpAddr,
    len: u8,
}

impl Prefix {
    /// Creates a prefix; refuses a length too large for the family, and host bits that are set.
    pub fn new(addr: IpAddr, len: u8) -> Result<Prefix, AddrError> {
        let prefix = Prefix::masked(addr, len)?;
        if prefix.addr != addr {
            let text = format!("{addr}/{len}");
            return Err(AddrError::HostBits {
                text,
                corrected: prefix,
            });
        }
        Ok(prefix)
    }

    /// The prefix of this length that covers the address.
    pub fn masked(addr: IpAddr, len: u8) -> Result<Prefix, AddrError> {
        let family = Family::of(addr);
        let max = family.bits();
        if len > max {
            let text = format!("{addr}/{len}");
            return Err(AddrError::Length { text, family, max });
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
    pub fn new(addr: IpAddr, len: u8) -> Result<IfAddress, AddrError> {
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
    /// # use volley_model::IfAddress;
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
            type Err = AddrError;

            fn from_str(text: &str) -> Result<Self, AddrError> {
                let (addr, len) = split(text)?;
                <$t>::new(addr, len)
            }
        }
    )*};
}
with_length!(Prefix, IfAddress);

fn split(text: &str) -> Result<(IpAddr, u8), AddrError> {
    let (addr, len) = match text.split_once('/') {
        Some((addr, len)) => (addr, Some(len)),
        None => (text, None),
    };
    let addr: IpAddr = addr.parse().map_err(|_| AddrError::Ip(addr.to_string()))?;
    let len = len.ok_or_else(|| AddrError::NoLength(text.to_string()))?;
    let family = Family::of(addr);
    let digits = !len.is_empty() && len.bytes().all(|b| b.is_ascii_digit());
    let len = digits.then(|| len.parse().ok()).flatten();
    let bad = || AddrError::Length {
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

/// Implements serde as text, for types with `FromStr` and `Display`.
macro_rules! serde_as_text {
    ($($t:ty: $text:literal),*) => {$(
        impl Serialize for $t {
            fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.collect_str(self)
            }
        }
        impl<'de> Deserialize<'de> for $t {
            fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                let text = String::deserialize(d)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
        impl schemars::JsonSchema for $t {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($t).into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "description": $text })
            }
        }
    )*};
}
serde_as_text!(
    Mac: "MAC address such as `02:fe:00:00:00:01`.",
    Prefix: "Prefix such as `10.0.0.0/8`, host bits zero.",
    IfAddress: "Address and subnet length such as `192.0.2.1/24`."
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn macs_read_and_print() {
        let mac: Mac = "02:fe:0:1:2:ff".parse().unwrap();
        assert_eq!(mac.to_string(), "02:fe:00:01:02:ff");
        assert_eq!("2.3.4".parse(), Ok(Mac([0, 2, 0, 3, 0, 4])));
        for bad in [
            "",
            "02:fe",
            "02:fe:00:00:00:001",
            "+2:fe:0:0:0:0",
            "1.2.3.4",
        ] {
            assert!(bad.parse::<Mac>().is_err(), "{bad}");
        }
    }

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
}
