//! The object of this crate: DHCP relay of an interface.

use std::net::IpAddr;
use volley_model::Family;
use volley_object::{Choice, Class, DefinitionError, FieldError, Object, refuse};

/// Most servers of an interface and IP version.
const SERVERS: usize = 8;
/// Longest remote ID in bytes: the whole option must fit into 255 bytes, with the name of the interface.
const REMOTE_ID: usize = 64;

/// What happens to a client's request that already has a relay agent information option (RFC 3046, 2.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Choice)]
pub enum Option82 {
    /// The request is dropped: the circuit is not trusted.
    Drop,
    /// The request keeps the option, and no option is added.
    Keep,
    /// The option of the relay takes its place.
    Replace,
}

/// DHCP relay: the interface passes the requests of DHCP clients on to servers in other networks, and the replies of the
/// servers back to the clients (IPv4: RFC 2131 and RFC 3046; IPv6: RFC 8415, 19).
#[derive(Clone, Debug, PartialEq, Eq, Object)]
#[object(class = "dhcp_relay", file = "interface.dhcp_relay.*", check = DhcpRelay::check)]
#[object(
    set = "set interface (dhcp-relay@family=ip4 | dhcp6-relay@family=ip6) <interface> {fields}"
)]
#[object(unset = "set interface (dhcp-relay@family=ip4 | dhcp6-relay@family=ip6) <interface> off")]
#[object(example = "set interface dhcp-relay lan0 server 192.0.2.67 server 192.0.2.68")]
pub struct DhcpRelay {
    /// Interface.
    #[object(key, part_of = "interface")]
    pub interface: String,
    /// IP version of the clients and of the servers.
    #[object(key)]
    pub family: Family,
    /// DHCP server, 8 at most: each server gets every request.
    #[object(example = "192.0.2.67")]
    pub server: Vec<IpAddr>,
    /// IP table in which the servers are reached.
    #[object(default = 0, needs = "table", example = "0")]
    pub server_table: u32,
    /// Address of the router to which the servers reply; the first address of the interface where it is not set.
    #[object(example = "192.0.2.1")]
    pub source: Option<IpAddr>,
    /// Remote ID in option 82, 64 bytes at most; the MAC address of the interface where it is not set (IPv4 only).
    pub remote_id: Option<String>,
    /// Requests of clients that already have option 82 (IPv4 only).
    #[object(default = Option82::Drop)]
    pub option_82: Option82,
}

/// Whether an address can be that of one host of an IP version on another network.
fn is_host(addr: IpAddr, family: Family) -> bool {
    let near = match addr {
        IpAddr::V4(a) => a.is_broadcast() || a.is_link_local(),
        IpAddr::V6(a) => a.is_unicast_link_local() || a.to_ipv4_mapped().is_some(),
    };
    let none = addr.is_unspecified() || addr.is_loopback() || addr.is_multicast();
    Family::of(addr) == family && !near && !none
}

impl DhcpRelay {
    fn check(&self) -> Result<(), FieldError> {
        let six = self.family == Family::V6;
        if self.server.is_empty() || self.server.len() > SERVERS {
            let why = format!(
                "must be given 1 to {SERVERS} times, not {}",
                self.server.len()
            );
            return refuse("server", why);
        }
        let mut rest = self.server.iter();
        while let Some(server) = rest.next() {
            if rest.as_slice().contains(server) {
                return refuse("server", format!("must not be given twice: {server}"));
            }
        }
        let source = self.source.iter().map(|it| ("source", it));
        let all = self.server.iter().map(|it| ("server", it)).chain(source);
        for (field, addr) in all {
            if !is_host(*addr, self.family) {
                let version = if six { "IPv6" } else { "IPv4" };
                let why = format!("must be the {version} address of a host, not {addr}");
                return refuse(field, why);
            }
        }
        if six && self.remote_id.is_some() {
            return refuse("remote_id", "must be left out: option 82 is of IPv4 only");
        }
        if six && self.option_82 != Option82::Drop {
            return refuse("option_82", "must be left out: it is of IPv4 only");
        }
        match self.remote_id.as_ref().map(String::len) {
            Some(len) if !(1..=REMOTE_ID).contains(&len) => refuse(
                "remote_id",
                format!("must have 1 to {REMOTE_ID} bytes, not {len}"),
            ),
            _ => Ok(()),
        }
    }
}

/// The classes of this crate.
pub fn classes() -> Result<Vec<Class>, DefinitionError> {
    // Objects refer to the class of IP tables.
    volley_fib::IpTable::class()?;
    Ok(vec![DhcpRelay::class()?])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn relay(family: &str, server: &[&str]) -> DhcpRelay {
        classes().unwrap();
        let server = server.iter().map(|it| it.parse().unwrap()).collect();
        DhcpRelay {
            server,
            ..DhcpRelay::defaults_of("lan0", family)
        }
    }

    impl DhcpRelay {
        fn defaults_of(interface: &str, family: &str) -> DhcpRelay {
            DhcpRelay {
                interface: interface.into(),
                family: if family == "ip4" {
                    Family::V4
                } else {
                    Family::V6
                },
                server: Vec::new(),
                server_table: 0,
                source: None,
                remote_id: None,
                option_82: Option82::Drop,
            }
        }
    }

    fn refusal(relay: DhcpRelay) -> String {
        relay.instance().unwrap_err().to_string()
    }

    #[test]
    fn servers_are_hosts_of_the_family() {
        relay("ip4", &["192.0.2.1", "192.0.2.2"])
            .instance()
            .unwrap();
        relay("ip6", &["2001:db8::1"]).instance().unwrap();
        assert!(refusal(relay("ip4", &[])).contains("1 to 8 times, not 0"));
        let twice = refusal(relay("ip4", &["192.0.2.1", "192.0.2.1"]));
        assert!(twice.contains("twice: 192.0.2.1"), "{twice}");
        for (family, server) in [
            ("ip4", "2001:db8::1"),
            ("ip4", "255.255.255.255"),
            ("ip4", "224.0.0.1"),
            ("ip4", "0.0.0.0"),
            ("ip6", "192.0.2.1"),
            ("ip6", "ff05::1:3"),
            ("ip6", "fe80::1"),
            ("ip6", "::ffff:192.0.2.1"),
        ] {
            let why = refusal(relay(family, &[server]));
            assert!(why.contains("address of a host"), "{why}");
        }
    }

    #[test]
    fn option_82_is_of_ip4() {
        let six = relay("ip6", &["2001:db8::1"]);
        let named = DhcpRelay {
            remote_id: Some("r".into()),
            ..six.clone()
        };
        assert!(refusal(named).starts_with("remote_id must be left out"));
        let kept = DhcpRelay {
            option_82: Option82::Keep,
            ..six
        };
        assert!(refusal(kept).starts_with("option_82 must be left out"));
        let long = DhcpRelay {
            remote_id: Some("x".repeat(65)),
            ..relay("ip4", &["192.0.2.1"])
        };
        assert!(refusal(long).contains("1 to 64 bytes, not 65"));
    }
}
