//! Sources of routes, and paths.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use volley_object::{Choice, choice_name};

/// Who put a route there. When several sources have one prefix, the smallest [`RouteSource::preference`] forwards.
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
    Choice,
)]
#[serde(rename_all = "kebab-case")]
pub enum RouteSource {
    /// Built in (broadcast, multicast and class E drops).
    Special,
    /// Addresses of interfaces: connected subnets and own addresses.
    Interface,
    /// Operator: configuration file, command line, API.
    #[default]
    Static,
    /// A file of routes.
    File,
    /// A routing protocol.
    Dynamic,
    /// The Linux kernel, through the mirror.
    LcpRt,
    /// Routers of IPv6 that advertise themselves, and the networks of their links (autoconfiguration).
    Autoconf,
    /// Neighbours: host routes that complete an adjacency.
    Adjacency,
    /// The default drop that every table begins with.
    Default,
}

impl RouteSource {
    /// Name, as in `show ip fib`.
    pub fn name(self) -> &'static str {
        choice_name(&self)
    }

    /// Whether its routes are the router's own decision: an operator's, a file's, a routing protocol's. Other tables are told
    /// these; the rest follows from addresses and neighbours, or comes from there.
    pub fn is_own(self) -> bool {
        matches!(
            self,
            RouteSource::Static | RouteSource::File | RouteSource::Dynamic
        )
    }

    /// Rank, smaller wins.
    pub fn preference(self) -> u8 {
        self as u8
    }
}

/// One path of a route.
#[derive(
    Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(deny_unknown_fields)]
pub struct Path {
    /// Where to.
    pub target: PathTarget,
    /// Share of the traffic among paths of the same preference, 1..=255.
    #[serde(default = "weight_one")]
    pub weight: u32,
    /// Smallest preference that is usable forwards, 0..=255.
    #[serde(default)]
    pub preference: u8,
    /// The next hop is on the link of its interface, though no address there says so: no warning is given.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub onlink: bool,
}

fn weight_one() -> u32 {
    1
}

impl Path {
    /// A path of weight 1 and preference 0.
    pub fn to(target: PathTarget) -> Path {
        Path {
            target,
            weight: 1,
            preference: 0,
            onlink: false,
        }
    }

    /// Via a next hop, over an interface when given, else resolved recursively in the route's table.
    pub fn via(addr: IpAddr, interface: Option<&str>) -> Path {
        Path::to(PathTarget::Via {
            addr,
            interface: interface.map(str::to_string),
            table: None,
        })
    }
}

/// Where a path leads.
#[derive(
    Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum PathTarget {
    /// A next hop.
    Via {
        /// Its address.
        addr: IpAddr,
        /// Interface it is attached to; none = look the address up (recursive).
        #[serde(default)]
        interface: Option<String>,
        /// Table to look the address up in; none = the route's own. Only without an interface.
        #[serde(default)]
        table: Option<u32>,
    },
    /// Attached: destinations are neighbours on this interface.
    Interface(String),
    /// Discarded silently.
    Drop,
    /// Discarded; ICMP destination unreachable.
    Unreachable,
    /// Discarded; ICMP administratively prohibited.
    Prohibit,
    /// For this router itself.
    Local,
    /// Look the destination up again in another table of the same family.
    LookupIn(u32),
}
