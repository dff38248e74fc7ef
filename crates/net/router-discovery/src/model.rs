//! Objects of router discovery: settings of interfaces.

use std::net::{IpAddr, Ipv6Addr};
use volley_model::Prefix;
use volley_object::{Choice, Class, DefinitionError, FieldError, Object, at_most, refuse};

/// Most configured prefixes of an interface's router advertisements.
pub const PREFIXES: usize = 16;
/// Most DNS servers, and most search domains, of an interface's router advertisements.
const NAMES: usize = 8;
/// Most bytes of all search domains.
const DOMAIN_BYTES: usize = 256;
/// Longest lifetime of a default router in seconds (RFC 4861, 6.2.1).
const LIFETIME: u32 = 9000;
/// Lifetime of a prefix in seconds (RFC 4861, 6.2.1, AdvValidLifetime).
const VALID: u32 = 2_592_000;
/// Preferred lifetime of a prefix in seconds (AdvPreferredLifetime).
const PREFERRED: u32 = 604_800;

/// What an interface takes from router advertisements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum AutoconfMode {
    /// Nothing.
    Off,
    /// Addresses and on-link prefixes.
    On,
    /// Addresses, on-link prefixes and default routes.
    DefaultRoute,
}

/// SLAAC (RFC 4862): configure addresses of the interface from router advertisements.
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "autoconf", file = "interface.autoconf")]
#[object(set = "ip6 nd address autoconfig@mode=on <interface>")]
#[object(
    set = "ip6 nd address autoconfig <interface> (default-route@mode=default-route | disable@mode=off)"
)]
#[object(example = "ip6 nd address autoconfig wan0 default-route")]
pub struct Autoconf {
    /// Interface.
    #[object(key, part_of = "interface")]
    pub interface: String,
    /// Configuration taken from router advertisements.
    #[object(default = AutoconfMode::Off)]
    pub mode: AutoconfMode,
}

/// Router advertisements (RFC 4861, 6.2): the interface advertises itself as an IPv6 router, with the networks of its
/// addresses.
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(
    class = "router_advertisement",
    file = "interface.router_advertisement",
    check = RouterAdvertisement::check
)]
#[object(group("ip6 nd", "Neighbour discovery: router advertisements, SLAAC."))]
#[object(set = "ip6 nd <interface> ra-send {fields}")]
#[object(
    set = "ip6 nd <interface> ra-send {ra-interval <max_interval> [<min_interval>] | ra-lifetime <lifetime> | \
           ra-managed-config-flag@managed=on | ra-other-config-flag@other=on | ra-suppress-link-layer@send_link_layer=off | \
           ra-suppress-mtu@send_mtu=off | ra-hop-limit <hop_limit> | ra-reachable <reachable> | ra-retransmit <retransmit> | \
           rdnss <rdnss> | dnssl <dnssl>}"
)]
#[object(unset = "ip6 nd <interface> ra-suppress")]
#[object(example = "ip6 nd wan0 ra-send max-interval 30 min-interval 10 rdnss 2001:db8::53")]
pub struct RouterAdvertisement {
    /// Interface.
    #[object(key, part_of = "interface")]
    pub interface: String,
    /// Longest time between two unsolicited advertisements.
    #[object(default = 600, range = 4u32..=1800, unit = "s")]
    pub max_interval: u32,
    /// Shortest time between two unsolicited advertisements; a third of the longest where it is not set.
    #[object(range = 3u32..=1350, unit = "s")]
    pub min_interval: Option<u32>,
    /// Lifetime of the default router, 0 = no default router; three times the longest interval where it is not set.
    #[object(range = 0..=LIFETIME, unit = "s")]
    pub lifetime: Option<u32>,
    /// Hosts get addresses by DHCPv6.
    #[object(default = false)]
    pub managed: bool,
    /// Hosts get other configuration by DHCPv6.
    #[object(default = false)]
    pub other: bool,
    /// Hop limit for hosts, 0 = not given.
    #[object(default = 64)]
    pub hop_limit: u8,
    /// Time that a neighbour is reachable, 0 = not given.
    #[object(default = 0, range = 0u32..=3_600_000, unit = "ms")]
    pub reachable: u32,
    /// Time between two neighbour solicitations, 0 = not given.
    #[object(default = 0, unit = "ms")]
    pub retransmit: u32,
    /// Send the MTU of the interface.
    #[object(default = true)]
    pub send_mtu: bool,
    /// Send the MAC address of the interface.
    #[object(default = true)]
    pub send_link_layer: bool,
    /// DNS servers (RFC 8106, 5.1), 8 at most.
    pub rdnss: Vec<Ipv6Addr>,
    /// Domains to search (RFC 8106, 5.2), 8 at most.
    #[object(example = "example.net")]
    pub dnssl: Vec<String>,
}

impl RouterAdvertisement {
    /// Shortest time between two unsolicited advertisements in seconds (RFC 4861, 6.2.1).
    pub fn shortest_interval(&self) -> u32 {
        let usual = match self.max_interval {
            9.. => self.max_interval * 33 / 100,
            short => short * 3 / 4,
        };
        self.min_interval.unwrap_or(usual).max(3)
    }

    /// Lifetime of the default router in seconds.
    pub fn router_lifetime(&self) -> u16 {
        let usual = (3 * self.max_interval).min(LIFETIME);
        self.lifetime.unwrap_or(usual) as u16
    }

    /// Lifetime of DNS servers and domains in seconds (RFC 8106, 5.1).
    pub fn names_lifetime(&self) -> u32 {
        3 * self.max_interval
    }

    fn check(&self) -> Result<(), FieldError> {
        let max = self.max_interval;
        let most_of_min = (max * 3 / 4).max(3);
        if self.min_interval.is_some_and(|min| min > most_of_min) {
            let why = format!("must be three quarters of max_interval at most: {most_of_min}");
            return refuse("min_interval", why);
        }
        if self.lifetime.is_some_and(|s| s != 0 && s < max) {
            let why = format!("must be 0 or not shorter than max_interval: {max}");
            return refuse("lifetime", why);
        }
        at_most("rdnss", self.rdnss.len(), NAMES)?;
        at_most("dnssl", self.dnssl.len(), NAMES)?;
        let bytes: usize = self.dnssl.iter().map(|name| name.len() + 2).sum();
        if bytes > DOMAIN_BYTES {
            let why = format!("must have {DOMAIN_BYTES} bytes at most in all, not {bytes}");
            return refuse("dnssl", why);
        }
        let host = |a: &Ipv6Addr| !(a.is_unspecified() || a.is_multicast() || a.is_loopback());
        if let Some(bad) = self.rdnss.iter().find(|a| !host(a)) {
            return refuse(
                "rdnss",
                format!("must be the address of one host, not '{bad}'"),
            );
        }
        self.dnssl.iter().try_for_each(|name| domain(name))
    }
}

/// Checks that a name has valid labels (RFC 1035, 2.3.4).
fn domain(name: &str) -> Result<(), FieldError> {
    let letter = |c: u8| c.is_ascii_alphanumeric() || c == b'-' || c == b'_';
    let label = |l: &str| (1..=63).contains(&l.len()) && l.bytes().all(letter);
    if name.len() > 253 || !name.split('.').all(label) {
        let why = format!(
            "must be labels of letters, digits and hyphens with dots between, such as example.net, not '{name}'"
        );
        return refuse("dnssl", why);
    }
    Ok(())
}

/// Prefix in the router advertisements of an interface that is not one of the interface's networks, or has other values
/// than the defaults.
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(
    class = "advertised_prefix",
    file = "interface.advertised_prefix[]",
    check = AdvertisedPrefix::check
)]
#[object(set = "ip6 nd <interface> prefix <prefix> {fields}")]
#[object(
    set = "ip6 nd <interface> prefix <prefix> [<valid> [<preferred>]] [off-link@on_link=off] [no-autoconfig@autoconfig=off] \
           [no-advertise@advertise=off]"
)]
#[object(unset = "ip6 nd <interface> no prefix <prefix>")]
#[object(example = "ip6 nd wan0 prefix 2001:db8:99::/64 valid 86400 preferred 3600")]
pub struct AdvertisedPrefix {
    /// Interface.
    #[object(key, part_of = "interface")]
    pub interface: String,
    /// IPv6 prefix.
    #[object(key, example = "2001:db8:99::/64")]
    pub prefix: Prefix,
    /// Lifetime of addresses of the prefix; 4294967295 = infinite.
    #[object(default = VALID, unit = "s")]
    pub valid: u32,
    /// Lifetime of these addresses for new connections; 604800 or `valid`, the shorter one, where it is not set.
    #[object(unit = "s")]
    pub preferred: Option<u32>,
    /// Tell hosts that the prefix is on the link.
    #[object(default = true)]
    pub on_link: bool,
    /// Tell hosts to configure addresses of the prefix.
    #[object(default = true)]
    pub autoconfig: bool,
    /// Advertise the prefix.
    #[object(default = true)]
    pub advertise: bool,
}

impl AdvertisedPrefix {
    /// A network of an interface with the default values.
    pub fn network(prefix: Prefix) -> Self {
        AdvertisedPrefix {
            interface: String::new(),
            prefix,
            valid: VALID,
            preferred: None,
            on_link: true,
            autoconfig: true,
            advertise: true,
        }
    }

    /// Lifetime of addresses for new connections in seconds.
    pub fn preferred_lifetime(&self) -> u32 {
        self.preferred.unwrap_or(PREFERRED.min(self.valid))
    }

    fn check(&self) -> Result<(), FieldError> {
        let unicast = |a: Ipv6Addr| !(a.is_unicast_link_local() || a.is_multicast());
        match self.prefix.addr() {
            IpAddr::V6(a) if unicast(a) => {}
            _ => {
                let why = "must be of IPv6, and neither link-local nor multicast";
                return refuse("prefix", why);
            }
        }
        match self.preferred_lifetime() > self.valid {
            true => refuse("preferred", "must not be longer than valid"),
            false => Ok(()),
        }
    }
}

/// The classes of this crate.
pub fn classes() -> Result<Vec<Class>, DefinitionError> {
    Ok(vec![
        Autoconf::class()?,
        RouterAdvertisement::class()?,
        AdvertisedPrefix::class()?,
    ])
}
