//! Objects of multicast routes.

use std::collections::BTreeSet;
use std::fmt::{self, Display, Formatter};
use std::net::IpAddr;
use std::str::FromStr;
use volley_model::{Family, Prefix};
use volley_object::{FieldError, Object, refuse, text_field};

/// A group, or a prefix of groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Groups(pub Prefix);

impl FromStr for Groups {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.contains('/') {
            return text
                .parse::<Prefix>()
                .map(Groups)
                .map_err(|e| e.to_string());
        }
        let address = text.parse::<IpAddr>().map(Prefix::host).map(Groups);
        address.map_err(|_| "it is no address".to_owned())
    }
}

impl Display for Groups {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

text_field!(
    Groups,
    "a group such as 239.1.1.1 or ff05::1, or a prefix of groups",
    Network,
    ["239.1.1.1", "ff05::/16"]
);

/// The source of a group; none = any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source(pub Option<IpAddr>);

impl FromStr for Source {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "any" {
            return Ok(Source(None));
        }
        let address = text.parse().map(|address| Source(Some(address)));
        address.map_err(|_| "it is no address".to_owned())
    }
}

impl Display for Source {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(address) => address.fmt(f),
            None => f.write_str("any"),
        }
    }
}

text_field!(
    Source,
    "an IP address, or any",
    Address,
    ["192.0.2.9", "any"]
);

/// Multicast route: interfaces by which packets for a group, or for many groups, may come, and interfaces that get a copy. A
/// change replaces both lists. It is (S,G) with a source, (*,G) without one, and (*,G/len) for many groups.
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "mroute", file = "[[mroute]]", check = Mroute::check, formerly = "mroute-set")]
#[object(group("ip mroute", "Make, change and remove IPv4 multicast routes."))]
#[object(group("ip6 mroute", "Make, change and remove IPv6 multicast routes."))]
#[object(set = "(ip@v4 | ip6@v6) mroute (add | set) <group> \
           {table <table> | source <source> | accept <accept> {<accept>} | forward <forward> {<forward>}}")]
#[object(unset = "(ip@v4 | ip6@v6) mroute del~ete <group> {table <table> | source <source>}")]
#[object(example = "ip mroute add 239.1.1.1 source 192.0.2.9 accept pg0 forward pg1 pg2")]
pub struct Mroute {
    /// Group, or prefix of groups.
    #[object(key, example = "239.1.1.1")]
    pub group: Groups,
    /// Source of one group.
    #[object(key, default = Source(None), example = "192.0.2.9")]
    pub source: Source,
    /// IP table of the receiving interface.
    #[object(key, default = 0, needs = "table", example = "7")]
    pub table: u32,
    /// Interfaces by which packets may come.
    #[object(loses = "interface", least = 1)]
    pub accept: BTreeSet<String>,
    /// Interfaces that get a copy; never the one that a packet came by.
    #[object(loses = "interface")]
    pub forward: BTreeSet<String>,
}

fn is_link_local(group: Prefix) -> bool {
    match group.addr() {
        IpAddr::V4(a) => group.len() >= 24 && a.octets()[..3] == [224, 0, 0],
        IpAddr::V6(a) => group.len() >= 16 && a.octets()[1] & 15 <= 2,
    }
}

impl Mroute {
    fn check(&self) -> Result<(), FieldError> {
        let group = self.group.0;
        let (least, full) = match group.family() {
            Family::V4 => (4, 32),
            Family::V6 => (8, 128),
        };
        if !group.addr().is_multicast() || group.len() < least {
            let why = format!("must be in 224.0.0.0/4 or ff00::/8, not {group}");
            return refuse("group", why);
        }
        if is_link_local(group) {
            let why = "must not be of one link (224.0.0.0/24, ff01::/16, ff02::/16): such packets are never forwarded";
            return refuse("group", why);
        }
        let Some(source) = self.source.0 else {
            return Ok(());
        };
        if Family::of(source) != group.family() {
            return refuse(
                "source",
                format!("must be of the IP version of the group {group}"),
            );
        }
        if group.len() != full {
            let why = format!("must be left out: a source goes with one group, not with {group}");
            return refuse("source", why);
        }
        match source.is_multicast() || source.is_unspecified() {
            true => refuse(
                "source",
                format!("must be the address of one host, not {source}"),
            ),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(group: &str, source: &str) -> Option<&'static str> {
        crate::classes().unwrap();
        let it = Mroute {
            group: group.parse().unwrap(),
            source: source.parse().unwrap(),
            table: 0,
            accept: ["pg0".into()].into(),
            forward: BTreeSet::new(),
        };
        it.instance().err().map(|error| error.field)
    }

    #[test]
    fn groups_that_are_never_forwarded_are_refused() {
        for good in [
            "239.1.2.3/32",
            "239.1.2.3",
            "224.0.1.0/24",
            "224.0.0.0/4",
            "ff05::/16",
            "ff00::/8",
            "ff3e::8000:1/128",
        ] {
            assert_eq!(refused(good, "any"), None, "{good}");
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
            assert_eq!(refused(bad, "any"), Some("group"), "{bad}");
        }
        assert_eq!(refused("239.1.2.3/32", "10.0.0.1"), None);
        assert_eq!(refused("239.1.2.0/24", "10.0.0.1"), Some("source"));
        assert_eq!(refused("239.1.2.3/32", "2001:db8::1"), Some("source"));
        assert_eq!(refused("239.1.2.3/32", "224.0.1.1"), Some("source"));
    }
}
