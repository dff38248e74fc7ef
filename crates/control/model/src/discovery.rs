//! How an interface deals with its neighbours: whether it asks before it uses an address, for whom it answers, what it
//! advertises, what it takes from other routers' advertisements.

use crate::addr::Prefix;
use crate::advert::RouterAdvert;
use crate::autoconf::Autoconf;
use crate::error::ModelError;
use crate::limits;
use crate::querier::GroupQuerier;
use crate::validate::within;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::{self, Formatter};

/// One setting of an interface; what is usual is as if nobody had set it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InterfaceProtocol {
    /// How many probes for an address are sent before it is used; 0 = it is used at once.
    Probes(u32),
    /// For whom it answers: addresses that are reached through other interfaces.
    Proxy(Vec<Prefix>),
    /// What it advertises as a router of IPv6; none = it advertises nothing.
    Advert(Option<RouterAdvert>),
    /// How it asks IPv4 hosts for their groups; none = it does not.
    Igmp(Option<GroupQuerier>),
    /// How it asks IPv6 hosts for their groups; none = it does not.
    Mld(Option<GroupQuerier>),
    /// What it takes from advertisements of its link's routers; none = nothing.
    Autoconf(Option<Autoconf>),
}

/// Which setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum InterfaceProtocolKind {
    /// Duplicate address detection.
    Probes,
    /// Proxy ARP and proxy ND.
    Proxy,
    /// Router advertisements.
    Advert,
    /// The querier of IGMP.
    Igmp,
    /// The querier of MLD.
    Mld,
    /// Stateless address autoconfiguration.
    Autoconf,
}

impl InterfaceProtocolKind {
    /// All of them.
    pub const ALL: [InterfaceProtocolKind; 6] = [
        InterfaceProtocolKind::Probes,
        InterfaceProtocolKind::Proxy,
        InterfaceProtocolKind::Advert,
        InterfaceProtocolKind::Igmp,
        InterfaceProtocolKind::Mld,
        InterfaceProtocolKind::Autoconf,
    ];

    /// How it is when nobody sets it.
    pub fn usual(self) -> InterfaceProtocol {
        match self {
            InterfaceProtocolKind::Probes => InterfaceProtocol::Probes(0),
            InterfaceProtocolKind::Proxy => InterfaceProtocol::Proxy(Vec::new()),
            InterfaceProtocolKind::Advert => InterfaceProtocol::Advert(None),
            InterfaceProtocolKind::Igmp => InterfaceProtocol::Igmp(None),
            InterfaceProtocolKind::Mld => InterfaceProtocol::Mld(None),
            InterfaceProtocolKind::Autoconf => InterfaceProtocol::Autoconf(None),
        }
    }
}

fn proxy(ranges: &[Prefix]) -> Result<(), ModelError> {
    if ranges.len() > limits::PROXIES {
        let (asked, limit) = (ranges.len() as u64, limits::PROXIES as u64);
        return Err(ModelError::limit("ranges of addresses", asked, limit));
    }
    let group = |range: &&Prefix| range.addr().is_multicast();
    if let Some(range) = ranges.iter().find(group) {
        let why = "nobody answers for a group";
        return Err(ModelError::invalid(format!("proxy {range}"), why));
    }
    Ok(())
}

/// The command of a querier.
fn querier(
    what: &str,
    name: &str,
    it: Option<&GroupQuerier>,
    f: &mut Formatter<'_>,
) -> fmt::Result {
    match it {
        Some(it) => write!(f, "set interface {what} {name} {it}"),
        None => write!(f, "set interface {what} {name} off"),
    }
}

/// The command of autoconfiguration.
fn autoconf(name: &str, it: Option<&Autoconf>, f: &mut Formatter<'_>) -> fmt::Result {
    let word = match it {
        Some(it) if it.default_route => " default-route",
        Some(_) => "",
        None => " disable",
    };
    write!(f, "ip6 nd address autoconfig {name}{word}")
}

impl InterfaceProtocol {
    /// Which setting it is.
    pub fn part(&self) -> InterfaceProtocolKind {
        match self {
            InterfaceProtocol::Probes(_) => InterfaceProtocolKind::Probes,
            InterfaceProtocol::Proxy(_) => InterfaceProtocolKind::Proxy,
            InterfaceProtocol::Advert(_) => InterfaceProtocolKind::Advert,
            InterfaceProtocol::Igmp(_) => InterfaceProtocolKind::Igmp,
            InterfaceProtocol::Mld(_) => InterfaceProtocolKind::Mld,
            InterfaceProtocol::Autoconf(_) => InterfaceProtocolKind::Autoconf,
        }
    }

    pub(crate) fn validate(&self) -> Result<(), ModelError> {
        match self {
            InterfaceProtocol::Probes(probes) => within("dad", *probes, limits::DAD_PROBES),
            InterfaceProtocol::Proxy(ranges) => proxy(ranges),
            InterfaceProtocol::Advert(it) => it.as_ref().map_or(Ok(()), RouterAdvert::validate),
            InterfaceProtocol::Igmp(it) | InterfaceProtocol::Mld(it) => {
                it.as_ref().map_or(Ok(()), GroupQuerier::validate)
            }
            InterfaceProtocol::Autoconf(_) => Ok(()),
        }
    }

    /// The command that sets it.
    pub(crate) fn spell(&self, name: &str, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            InterfaceProtocol::Probes(0) => write!(f, "set interface dad {name} off"),
            InterfaceProtocol::Probes(probes) => write!(f, "set interface dad {name} {probes}"),
            InterfaceProtocol::Proxy(ranges) if ranges.is_empty() => {
                write!(f, "set interface proxy {name} off")
            }
            InterfaceProtocol::Proxy(ranges) => {
                write!(f, "set interface proxy {name}")?;
                ranges.iter().try_for_each(|range| write!(f, " {range}"))
            }
            InterfaceProtocol::Advert(Some(it)) => write!(f, "ip6 nd {name} {it}"),
            InterfaceProtocol::Advert(None) => write!(f, "ip6 nd {name} ra-suppress"),
            InterfaceProtocol::Igmp(it) => querier("igmp", name, it.as_ref(), f),
            InterfaceProtocol::Mld(it) => querier("mld", name, it.as_ref(), f),
            InterfaceProtocol::Autoconf(it) => autoconf(name, it.as_ref(), f),
        }
    }
}
