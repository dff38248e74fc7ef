//! Multicast routes: where packets for a group may come from, and where they go (RFC 1812, 5.3.10; RFC 4291, 2.7).

use crate::addr::{Family, Prefix};
use crate::error::{ModelError, ObjectKind};
use crate::name::check_name;
use crate::request::Request;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::{self, Display, Formatter};
use std::net::IpAddr;

type Check = Result<(), ModelError>;

/// A multicast route: (S,G) with a source, (*,G) without, and (*,G/len) for many groups at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Mroute {
    /// The groups: of full length for one.
    pub group: Prefix,
    /// The source, for one group; none = any.
    #[serde(default)]
    pub source: Option<IpAddr>,
    /// IP table that the receiving interface looks in.
    #[serde(default)]
    pub table: u32,
    /// Interfaces by which packets may come: at least one.
    pub accept: Vec<String>,
    /// Interfaces that get a copy, but never the one that a packet came by.
    #[serde(default)]
    pub forward: Vec<String>,
}

fn invalid(what: impl Display, why: &str) -> ModelError {
    ModelError::invalid(what.to_string(), why)
}

fn is_link_local(group: Prefix) -> bool {
    match group.addr() {
        IpAddr::V4(a) => group.len() >= 24 && a.octets()[..3] == [224, 0, 0],
        IpAddr::V6(a) => group.len() >= 16 && a.octets()[1] & 15 <= 2,
    }
}

fn check(group: Prefix, source: Option<IpAddr>) -> Check {
    let (least, full) = match group.family() {
        Family::V4 => (4, 32),
        Family::V6 => (8, 128),
    };
    if !group.addr().is_multicast() || group.len() < least {
        let why = "groups are in 224.0.0.0/4 and ff00::/8";
        return Err(invalid(format!("group {group}"), why));
    }
    if is_link_local(group) {
        let why = "packets to groups of one link (224.0.0.0/24, ff01::/16, ff02::/16) are never forwarded";
        return Err(invalid(format!("group {group}"), why));
    }
    let Some(source) = source else { return Ok(()) };
    if Family::of(source) != group.family() {
        let why = "source and group must be of one IP version";
        return Err(invalid(format!("source {source}"), why));
    }
    if group.len() != full {
        let why = "a source goes with one group, not with a prefix of groups";
        return Err(invalid(format!("group {group}"), why));
    }
    if source.is_multicast() || source.is_unspecified() {
        let why = "a source is the address of one host";
        return Err(invalid(format!("source {source}"), why));
    }
    Ok(())
}

impl Mroute {
    /// Checks everything that needs no state.
    pub fn validate(&self) -> Check {
        check(self.group, self.source)?;
        if self.accept.is_empty() {
            let why = "name at least one interface by which packets may come: accept IF";
            return Err(invalid(format!("mroute {}", self.group), why));
        }
        for names in [&self.accept, &self.forward] {
            for (at, name) in names.iter().enumerate() {
                check_name(ObjectKind::Interface, name)?;
                if names[..at].contains(name) {
                    let what = format!("mroute {}", self.group);
                    return Err(ModelError::invalid(what, format!("{name} is named twice")));
                }
            }
        }
        Ok(())
    }

    /// The same route over those interfaces only for which `keep` says so; none when nothing could come in any more.
    pub fn over(&self, keep: impl Fn(&str) -> bool) -> Option<Mroute> {
        let only = |names: &[String]| -> Vec<String> {
            names.iter().filter(|name| keep(name)).cloned().collect()
        };
        let (accept, forward) = (only(&self.accept), only(&self.forward));
        (!accept.is_empty()).then(|| Mroute {
            accept,
            forward,
            ..self.clone()
        })
    }

    /// Every interface that it names, accepting ones first.
    pub fn interfaces(&self) -> impl Iterator<Item = &String> {
        self.accept.iter().chain(&self.forward)
    }
}

/// Groups and source, as commands write them.
struct Called(Prefix, Option<IpAddr>, u32);

impl Display for Called {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Called(group, source, table) = self;
        write!(f, " {group}")?;
        if *table != 0 {
            write!(f, " table {table}")?;
        }
        source.map_or(Ok(()), |source| write!(f, " source {source}"))
    }
}

fn word(family: Family) -> &'static str {
    match family {
        Family::V4 => "ip",
        Family::V6 => "ip6",
    }
}

impl Display for Mroute {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let called = Called(self.group, self.source, self.table);
        write!(f, "{} mroute add{called}", word(self.group.family()))?;
        for (word, names) in [("accept", &self.accept), ("forward", &self.forward)] {
            if !names.is_empty() {
                write!(f, " {word}")?;
            }
            for name in names {
                write!(f, " {}", crate::spell::apart(name))?;
            }
        }
        Ok(())
    }
}

/// Checks requests of multicast routes; any other is fine here.
pub(crate) fn validate(request: &Request) -> Check {
    match request {
        Request::MrouteSet(it) => it.validate(),
        Request::MrouteDel { group, source, .. } => check(*group, *source),
        _ => Ok(()),
    }
}

/// Spells requests of multicast routes; false for any other.
pub(crate) fn spell(request: &Request, f: &mut Formatter<'_>) -> Result<bool, fmt::Error> {
    match request {
        Request::MrouteSet(it) => write!(f, "{it}")?,
        Request::MrouteDel {
            group,
            source,
            table,
        } => {
            let called = Called(*group, *source, *table);
            write!(f, "{} mroute del{called}", word(group.family()))?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_that_are_never_forwarded_are_refused() {
        let group = |text: &str| check(text.parse().unwrap(), None).is_ok();
        for good in [
            "239.1.2.3/32",
            "224.0.1.0/24",
            "224.0.0.0/4",
            "ff05::/16",
            "ff00::/8",
            "ff3e::8000:1/128",
        ] {
            assert!(group(good), "{good}");
        }
        for bad in [
            "10.0.0.0/8",
            "224.0.0.5/32",
            "224.0.0.0/24",
            "ff02::1/128",
            "ff12::/16",
            "ff01::/16",
            "2001:db8::/32",
            "0.0.0.0/0",
        ] {
            assert!(!group(bad), "{bad}");
        }
        let with = |group: &str, source: &str| {
            check(group.parse().unwrap(), Some(source.parse().unwrap())).is_ok()
        };
        assert!(with("239.1.2.3/32", "10.0.0.1"));
        assert!(!with("239.1.2.0/24", "10.0.0.1"));
        assert!(!with("239.1.2.3/32", "2001:db8::1"));
        assert!(!with("239.1.2.3/32", "224.0.1.1"));
    }
}
