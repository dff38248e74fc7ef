//! What an interface advertises as a router of IPv6 (RFC 4861, 6.2.1; RFC 8106).

use crate::addr::{Family, Prefix};
use crate::error::ModelError;
use crate::limits;
use crate::validate::within;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::{self, Display, Formatter};
use std::net::{IpAddr, Ipv6Addr};
use std::str::{FromStr, SplitWhitespace};

/// A prefix that is advertised otherwise than the networks of the interface's addresses, or beside them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AdvertPrefix {
    /// Which.
    pub prefix: Prefix,
    /// Seconds that addresses of it hold; 4294967295 = always.
    #[serde(default = "valid_s")]
    pub valid_s: u32,
    /// Seconds that hosts begin something new with them; 4294967295 = always.
    #[serde(default = "preferred_s")]
    pub preferred_s: u32,
    /// Hosts are not told that it is on the link.
    #[serde(default)]
    pub off_link: bool,
    /// Hosts make no address of it.
    #[serde(default)]
    pub no_autoconfig: bool,
    /// It is not advertised at all.
    #[serde(default)]
    pub no_advertise: bool,
}

/// RFC 4861, 6.2.1, AdvValidLifetime.
fn valid_s() -> u32 {
    2_592_000
}

/// RFC 4861, 6.2.1, AdvPreferredLifetime.
fn preferred_s() -> u32 {
    604_800
}

impl AdvertPrefix {
    /// A network of the interface, as it is advertised when nothing else is said.
    pub fn usual(prefix: Prefix) -> Self {
        AdvertPrefix {
            prefix,
            valid_s: valid_s(),
            preferred_s: preferred_s(),
            off_link: false,
            no_autoconfig: false,
            no_advertise: false,
        }
    }
}

/// What an interface advertises.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RouterAdvert {
    /// Longest time between two advertisements that nobody asked for, in seconds.
    pub max_interval_s: u32,
    /// Shortest time; none = a third of the longest.
    pub min_interval_s: Option<u32>,
    /// Seconds that hosts take it for a default router, 0 = they do not; none = three times the longest interval.
    pub lifetime_s: Option<u32>,
    /// Hosts get addresses by DHCPv6.
    pub managed: bool,
    /// Hosts get other things by DHCPv6.
    pub other: bool,
    /// Hop limit that hosts begin with, 0 = not said.
    pub hop_limit: u8,
    /// Milliseconds that a neighbour counts as reachable, 0 = not said.
    pub reachable_ms: u32,
    /// Milliseconds between two solicitations, 0 = not said.
    pub retransmit_ms: u32,
    /// The interface's MTU is not said.
    pub no_mtu: bool,
    /// The interface's MAC address is not said.
    pub no_source: bool,
    /// Prefixes beside the networks of the interface's addresses, or with other words than the usual.
    pub prefixes: Vec<AdvertPrefix>,
    /// Servers of names (RFC 8106, 5.1).
    pub rdnss: Vec<Ipv6Addr>,
    /// Domains to search (RFC 8106, 5.2).
    pub dnssl: Vec<String>,
}

impl Default for RouterAdvert {
    fn default() -> Self {
        RouterAdvert {
            max_interval_s: 600,
            min_interval_s: None,
            lifetime_s: None,
            managed: false,
            other: false,
            hop_limit: 64,
            reachable_ms: 0,
            retransmit_ms: 0,
            no_mtu: false,
            no_source: false,
            prefixes: Vec::new(),
            rdnss: Vec::new(),
            dnssl: Vec::new(),
        }
    }
}

impl RouterAdvert {
    /// Shortest time between two advertisements that nobody asked for, in seconds (RFC 4861, 6.2.1).
    pub fn min_interval(&self) -> u32 {
        let usual = match self.max_interval_s {
            9.. => self.max_interval_s * 33 / 100,
            short => short * 3 / 4,
        };
        self.min_interval_s.unwrap_or(usual).max(3)
    }

    /// Seconds that hosts take it for a default router.
    pub fn lifetime(&self) -> u16 {
        let usual = (3 * self.max_interval_s).min(*limits::ADVERT_LIFETIME.end());
        self.lifetime_s.unwrap_or(usual) as u16
    }

    /// Seconds that servers of names and domains hold (RFC 8106, 5.1).
    pub fn names_lifetime(&self) -> u32 {
        3 * self.max_interval_s
    }

    pub(crate) fn validate(&self) -> Result<(), ModelError> {
        let max = self.max_interval_s;
        within("ra-interval", max, limits::ADVERT_INTERVAL)?;
        if let Some(min) = self.min_interval_s {
            let most = (max * 3 / 4).max(3);
            within("shortest ra-interval", min, 3..=most)?;
        }
        if let Some(lifetime) = self.lifetime_s.filter(|s| *s != 0) {
            within(
                "ra-lifetime",
                lifetime,
                max..=*limits::ADVERT_LIFETIME.end(),
            )?;
        }
        within("ra-reachable", self.reachable_ms, 0..=3_600_000)?;
        let most = |what: &'static str, have: usize, limit: usize| match have > limit {
            true => Err(ModelError::limit(what, have as u64, limit as u64)),
            false => Ok(()),
        };
        most("prefixes", self.prefixes.len(), limits::ADVERT_PREFIXES)?;
        most("servers of names", self.rdnss.len(), limits::ADVERT_NAMES)?;
        most("domains", self.dnssl.len(), limits::ADVERT_NAMES)?;
        let bytes: usize = self.dnssl.iter().map(|name| name.len() + 2).sum();
        most("bytes of domains", bytes, limits::ADVERT_DOMAIN_BYTES)?;
        self.prefixes.iter().try_for_each(prefix)?;
        self.rdnss.iter().try_for_each(server)?;
        self.dnssl.iter().try_for_each(|name| domain(name))
    }
}

fn prefix(it: &AdvertPrefix) -> Result<(), ModelError> {
    let what = || format!("prefix {}", it.prefix);
    let local =
        matches!(it.prefix.addr(), IpAddr::V6(a) if a.is_unicast_link_local() || a.is_multicast());
    if it.prefix.family() != Family::V6 || local {
        let why = "it must be of IPv6, and neither link-local nor multicast";
        return Err(ModelError::invalid(what(), why));
    }
    if it.preferred_s > it.valid_s {
        let why = "it cannot be preferred for longer than it is valid";
        return Err(ModelError::invalid(what(), why));
    }
    Ok(())
}

fn server(address: &Ipv6Addr) -> Result<(), ModelError> {
    if address.is_unspecified() || address.is_multicast() || address.is_loopback() {
        let why = "it must be the address of one host";
        return Err(ModelError::invalid(format!("rdnss {address}"), why));
    }
    Ok(())
}

/// A name whose labels fit a message of the domain name system (RFC 1035, 2.3.4).
fn domain(name: &str) -> Result<(), ModelError> {
    let letter = |c: u8| c.is_ascii_alphanumeric() || c == b'-' || c == b'_';
    let label = |l: &str| (1..=63).contains(&l.len()) && l.bytes().all(letter);
    if name.len() > 253 || !name.split('.').all(label) {
        let why =
            "write labels of letters, digits and hyphens with dots between, such as example.net";
        return Err(ModelError::invalid(format!("dnssl '{name}'"), why));
    }
    Ok(())
}

impl Display for AdvertPrefix {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "prefix {}", self.prefix)?;
        if (self.valid_s, self.preferred_s) != (valid_s(), preferred_s()) {
            write!(f, " {} {}", self.valid_s, self.preferred_s)?;
        }
        let words = [
            (self.off_link, " off-link"),
            (self.no_autoconfig, " no-autoconfig"),
            (self.no_advertise, " no-advertise"),
        ];
        let mut said = words.iter().filter(|(said, _)| *said);
        said.try_for_each(|(_, word)| f.write_str(word))
    }
}

impl Display for RouterAdvert {
    /// The words behind `ip6 nd INTERFACE`, what is usual left out.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("ra-send")?;
        let usual = RouterAdvert::default();
        if (self.max_interval_s, self.min_interval_s) != (usual.max_interval_s, None) {
            write!(f, " ra-interval {}", self.max_interval_s)?;
            self.min_interval_s
                .map_or(Ok(()), |min| write!(f, " {min}"))?;
        }
        self.lifetime_s
            .map_or(Ok(()), |s| write!(f, " ra-lifetime {s}"))?;
        let words = [
            (self.managed, " ra-managed-config-flag"),
            (self.other, " ra-other-config-flag"),
            (self.no_mtu, " ra-suppress-mtu"),
            (self.no_source, " ra-suppress-link-layer"),
        ];
        let mut said = words.iter().filter(|(said, _)| *said);
        said.try_for_each(|(_, word)| f.write_str(word))?;
        let numbers = [
            (
                "ra-hop-limit",
                u32::from(self.hop_limit),
                u32::from(usual.hop_limit),
            ),
            ("ra-reachable", self.reachable_ms, 0),
            ("ra-retransmit", self.retransmit_ms, 0),
        ];
        let mut unusual = numbers.iter().filter(|(_, number, usual)| number != usual);
        unusual.try_for_each(|(word, number, _)| write!(f, " {word} {number}"))?;
        self.prefixes.iter().try_for_each(|it| write!(f, " {it}"))?;
        self.rdnss
            .iter()
            .try_for_each(|it| write!(f, " rdnss {it}"))?;
        self.dnssl
            .iter()
            .try_for_each(|it| write!(f, " dnssl {it}"))
    }
}

/// Words, one after the other.
struct Words<'a>(std::iter::Peekable<SplitWhitespace<'a>>);

impl Words<'_> {
    fn read<T: FromStr>(&mut self, of: &str) -> Result<T, ModelError> {
        let word = self.0.next().unwrap_or("");
        let wrong = |_| {
            let why = "it has no value that can be read: see `help ip6 nd`";
            ModelError::invalid(format!("{of} '{word}'"), why)
        };
        word.parse().map_err(wrong)
    }

    fn number(&mut self) -> Option<u32> {
        let number = self.0.peek()?.parse().ok()?;
        self.0.next();
        Some(number)
    }

    fn prefix(&mut self) -> Result<AdvertPrefix, ModelError> {
        let mut it = AdvertPrefix::usual(self.read("prefix")?);
        if let Some(valid) = self.number() {
            it.valid_s = valid;
            it.preferred_s = self.number().unwrap_or(preferred_s().min(valid));
        }
        while let Some(word) = self.0.peek() {
            match *word {
                "off-link" => it.off_link = true,
                "no-autoconfig" => it.no_autoconfig = true,
                "no-advertise" => it.no_advertise = true,
                _ => break,
            }
            self.0.next();
        }
        Ok(it)
    }
}

impl FromStr for RouterAdvert {
    type Err = ModelError;

    /// Reads the words behind `ip6 nd INTERFACE`, in any order.
    fn from_str(text: &str) -> Result<Self, ModelError> {
        let mut it = RouterAdvert::default();
        let mut words = Words(text.split_whitespace().peekable());
        while let Some(word) = words.0.next() {
            match word {
                "ra-send" => {}
                "ra-interval" => {
                    it.max_interval_s = words.read(word)?;
                    it.min_interval_s = words.number();
                }
                "ra-lifetime" => it.lifetime_s = Some(words.read(word)?),
                "ra-managed-config-flag" => it.managed = true,
                "ra-other-config-flag" => it.other = true,
                "ra-suppress-mtu" => it.no_mtu = true,
                "ra-suppress-link-layer" => it.no_source = true,
                "ra-hop-limit" => it.hop_limit = words.read(word)?,
                "ra-reachable" => it.reachable_ms = words.read(word)?,
                "ra-retransmit" => it.retransmit_ms = words.read(word)?,
                "prefix" => it.prefixes.push(words.prefix()?),
                "rdnss" => it.rdnss.push(words.read(word)?),
                "dnssl" => it.dnssl.push(words.read(word)?),
                other => {
                    let why = "it is no word of a router advertisement: see `help ip6 nd`";
                    return Err(ModelError::invalid(format!("'{other}'"), why));
                }
            }
        }
        it.validate().map(|()| it)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_settings_are_each_other() {
        for text in [
            "ra-send",
            "ra-send ra-interval 30 10 ra-lifetime 0 ra-managed-config-flag ra-suppress-mtu ra-hop-limit 0",
            "ra-send ra-interval 4 ra-reachable 30000 prefix 2001:db8:1::/64 100 50 off-link no-autoconfig \
             prefix 2001:db8:2::/64 no-advertise rdnss 2001:db8::53 rdnss fe80::53 dnssl example.net",
        ] {
            let it: RouterAdvert = text.parse().unwrap();
            assert_eq!(it.to_string(), text);
        }
    }

    #[test]
    fn what_is_not_said_follows_from_the_interval() {
        let of = |text: &str| {
            let it: RouterAdvert = text.parse().unwrap();
            (it.min_interval(), it.lifetime(), it.names_lifetime())
        };
        assert_eq!(of(""), (198, 1800, 1800));
        assert_eq!(of("ra-interval 4"), (3, 12, 12));
        assert_eq!(of("ra-interval 1800 100"), (100, 5400, 5400));
        assert_eq!(of("ra-lifetime 9000"), (198, 9000, 1800));
    }

    #[test]
    fn what_is_wrong_is_said() {
        let error = |text: &str| text.parse::<RouterAdvert>().unwrap_err().to_string();
        for (text, part) in [
            ("ra-interval 3", "ra-interval"),
            ("ra-interval 30 23", "shortest"),
            ("ra-lifetime 9001", "ra-lifetime"),
            ("ra-lifetime 599", "ra-lifetime"),
            ("prefix 10.0.0.0/8", "of IPv6"),
            ("prefix fe80::/64", "link-local"),
            ("prefix 2001:db8::/64 5 6", "preferred"),
            ("rdnss ff02::1", "one host"),
            ("dnssl a..b", "labels"),
            ("sideways", "'sideways'"),
        ] {
            assert!(error(text).contains(part), "{text}: {}", error(text));
        }
    }
}
