//! Objects of neighbour discovery: settings of interfaces.

use crate::arping::query::Arping;
use crate::show::{ShowDiscovery, ShowNeighbors};
use volley_model::{Family, Prefix};
use volley_object::{Class, DefinitionError, FieldError, Object, Query, Verb, at_most, refuse};

/// Most prefixes of proxy ARP and proxy ND of an interface.
const PROXIES: usize = 64;

/// Duplicate address detection: probes that the interface sends for each of its addresses before it uses the address (IPv6:
/// RFC 4862, 5.4; IPv4: RFC 5227).
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "dad", file = "interface.dad")]
#[object(set = "set interface dad <interface> (off@probes=0 | <probes>)")]
#[object(example = "set interface dad wan0 1")]
pub struct Dad {
    /// Interface.
    #[object(key, part_of = "interface")]
    pub interface: String,
    /// Probes for an address; 0 = the interface uses the address at once.
    #[object(default = 0, range = 0u32..=10)]
    pub probes: u32,
}

/// Proxy ARP and proxy ND: the interface answers for addresses of these prefixes that are reached through other interfaces.
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "proxy", file = "interface.proxy", check = Proxy::check)]
#[object(set = "set interface proxy <interface> {<prefixes>}")]
#[object(unset = "set interface proxy <interface> off")]
#[object(example = "set interface proxy lan0 192.0.2.0/25 2001:db8:1::/64")]
pub struct Proxy {
    /// Interface.
    #[object(key, part_of = "interface")]
    pub interface: String,
    /// Prefixes, 64 at most.
    pub prefixes: Vec<Prefix>,
}

impl Proxy {
    fn check(&self) -> Result<(), FieldError> {
        if self.prefixes.is_empty() {
            return refuse("prefixes", "must have one prefix at least");
        }
        at_most("prefixes", self.prefixes.len(), PROXIES)?;
        match self.prefixes.iter().find(|it| it.addr().is_multicast()) {
            Some(group) => refuse(
                "prefixes",
                format!("must not be of multicast groups: {group}"),
            ),
            None => Ok(()),
        }
    }
}

/// Forget learned neighbours.
#[derive(Clone, Debug, PartialEq, Eq, Verb)]
#[verb(name = "neighbor-clear", example = "clear ip neighbors pg1")]
#[verb(command = "clear (ip@family=ip4 | ip6@family=ip6) neighbor~s [<interface>]")]
pub struct NeighborClear {
    /// IP version.
    pub family: Family,
    /// Only neighbours of this interface.
    #[verb(needs = "interface")]
    pub interface: Option<String>,
}

/// The classes of this crate.
pub fn classes() -> Result<Vec<Class>, DefinitionError> {
    ShowDiscovery::query()?;
    ShowNeighbors::query()?;
    Arping::query()?;
    NeighborClear::verb()?;
    Ok(vec![Dad::class()?, Proxy::class()?])
}
