//! Paths of routes in the configuration, and sources of routes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::{self, Display, Formatter};
use std::net::IpAddr;
use std::ops::RangeInclusive;
use volley_model::{Family, ModelError, check_name};
use volley_object::{Choice, choice_name, quote};

/// Weight of one path of a route.
pub(crate) const WEIGHT: RangeInclusive<u32> = 1..=255;
/// Most paths of one route.
pub(crate) const PATHS: usize = 64;

/// Source of a route. When several sources have one prefix, the smallest [`RouteSource::preference`] forwards.
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
    /// The Linux kernel, through the Linux control plane.
    LcpRt,
    /// Autoconfiguration: default routers and on-link prefixes from IPv6 router advertisements.
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

    /// Whether the router itself selected the route: static, file or dynamic. Other tables receive these routes; all others
    /// follow from addresses and neighbours, or come from such a table.
    pub fn is_own(self) -> bool {
        matches!(
            self,
            RouteSource::Static | RouteSource::File | RouteSource::Dynamic
        )
    }

    /// Rank of the source; the smallest has precedence.
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
    /// The next hop is on the link of its interface even if no address there covers it: no warning is given.
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

    /// A path via a next hop: over the interface if one is given, else resolved recursively in the route's table.
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
        /// Address of the next hop.
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

fn interface(name: &str) -> Result<(), ModelError> {
    check_name("interface", name)
}

fn host_address(addr: IpAddr) -> Result<(), ModelError> {
    let bad = addr.is_unspecified()
        || addr.is_multicast()
        || matches!(addr, IpAddr::V4(a) if a.is_broadcast());
    if bad {
        let why = "it must be the address of one host, not zero, multicast or broadcast";
        return Err(ModelError::invalid(format!("address {addr}"), why));
    }
    Ok(())
}

impl Path {
    /// Checks weight, names and, if known, the family.
    pub fn validate(&self, family: Option<Family>) -> Result<(), ModelError> {
        if !WEIGHT.contains(&self.weight) {
            let why = format!("it must be {} to {}", WEIGHT.start(), WEIGHT.end());
            let what = format!("weight {}", self.weight);
            return Err(ModelError::invalid(what, why));
        }
        let on = matches!(
            self.target,
            PathTarget::Via {
                interface: Some(_),
                ..
            }
        );
        if self.onlink && !on {
            let why = "it says that a next hop is on the link of its interface: give both, such as 'via 192.0.2.1 pg0 onlink'";
            return Err(ModelError::invalid("onlink", why));
        }
        match &self.target {
            PathTarget::Via {
                addr,
                interface: via,
                table,
            } => {
                host_address(*addr)?;
                if let Some(family) = family.filter(|f| *f != Family::of(*addr)) {
                    let instead = format!("give an {family} next hop");
                    return Err(ModelError::unsupported(
                        format!("next hop {addr} for {family}"),
                        instead,
                    ));
                }
                if via.is_some() && table.is_some() {
                    let why = "give an interface (attached) or a table to look it up in, not both";
                    return Err(ModelError::invalid(format!("next hop {addr}"), why));
                }
                via.as_deref().map_or(Ok(()), interface)
            }
            PathTarget::Interface(name) => interface(name),
            _ => Ok(()),
        }
    }
}

type Out<'a, 'b> = &'a mut Formatter<'b>;

/// Writes ` word value` if there is a value.
fn opt(f: Out<'_, '_>, word: &str, value: Option<impl Display>) -> fmt::Result {
    value.map_or(Ok(()), |v| write!(f, " {word} {v}"))
}

/// A name where a keyword is also possible: in quotes unless no keyword resembles it.
fn apart(name: &str) -> String {
    let letter = name.starts_with(|c: char| c.is_ascii_alphabetic());
    let digit = name.ends_with(|c: char| c.is_ascii_digit());
    let unlike = letter
        && digit
        && !name.contains(':')
        && !name.starts_with("ip")
        && !name.starts_with("l2");
    if unlike {
        quote(name)
    } else {
        format!("\"{name}\"")
    }
}

impl Display for Path {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "via {}", self.target)?;
        if self.onlink {
            f.write_str(" onlink")?;
        }
        opt(f, "weight", Some(self.weight).filter(|w| *w != 1))?;
        opt(f, "preference", Some(self.preference).filter(|p| *p != 0))
    }
}

impl Display for PathTarget {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            PathTarget::Via {
                addr,
                interface,
                table,
            } => {
                write!(f, "{addr}")?;
                interface
                    .as_deref()
                    .map_or(Ok(()), |i| write!(f, " {}", apart(i)))?;
                opt(f, "next-hop-table", *table)
            }
            PathTarget::Interface(name) => f.write_str(&apart(name)),
            PathTarget::Drop => f.write_str("drop"),
            PathTarget::Unreachable => f.write_str("unreachable"),
            PathTarget::Prohibit => f.write_str("prohibit"),
            PathTarget::Local => f.write_str("local"),
            PathTarget::LookupIn(table) => write!(f, "lookup-in-table {table}"),
        }
    }
}
