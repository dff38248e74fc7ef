//! `show ip neighbors` and `show ip6 nd`: the queries, their replies and their text.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, Ipv6Addr};
use volley_model::{Family, IfAddress, Mac, Prefix};
use volley_object::{Instance, Query};
use volley_router_discovery::NeighborState;
use volley_router_discovery::{AddressState, AdvertRow, AutoconfRow, AutoconfState, RouterRow};
use volley_show::{or_dash, table};

/// Neighbours.
#[derive(Clone, Debug, PartialEq, Query)]
#[query(name = "neighbors", example = "show ip neighbors")]
#[query(show = "show ((ip@family=ip4 | ip6@family=ip6) neighbor~s | arp@family=ip4) [<interface>]")]
#[query(reply = NeighborsReply, text = neighbors)]
pub struct ShowNeighbors {
    /// Only of this IP version.
    pub family: Option<Family>,
    /// Only of this interface.
    #[query(needs = "interface")]
    pub interface: Option<String>,
}

/// Neighbours.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct NeighborsReply {
    /// In order of interface and address.
    pub neighbors: Vec<NeighborRow>,
    /// Events of neighbours of both families since the start, without those that did not occur.
    pub events: Vec<NeighborEvent>,
}

/// Count of an event of neighbours.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NeighborEvent {
    /// Name of the event.
    pub event: String,
    /// Number of occurrences.
    pub count: u64,
    /// Description of the event.
    pub text: String,
}

/// One neighbour.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NeighborRow {
    /// Interface.
    pub interface: String,
    /// IP address of the neighbour.
    pub address: IpAddr,
    /// MAC address of the neighbour; none = not known yet.
    pub mac: Option<Mac>,
    /// Configured, not learned.
    pub fixed: bool,
    /// State of the neighbour.
    pub state: NeighborState,
    /// Packets that wait for the MAC address.
    pub held: u32,
    /// Seconds since the entry was created or confirmed.
    pub age_s: u64,
}

/// How interfaces deal with their neighbours: addresses and their states, for whom they answer, router advertisements.
#[derive(Clone, Debug, PartialEq, Query)]
#[query(
    name = "discovery",
    show = "show ip6 nd [<interface>]",
    example = "show ip6 nd wan0"
)]
#[query(reply = InterfaceProtocolReply, text = text)]
pub struct ShowDiscovery {
    /// Only this interface.
    #[query(needs = "interface")]
    pub interface: Option<String>,
}

/// How interfaces deal with their neighbours.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct InterfaceProtocolReply {
    /// In order of index.
    pub interfaces: Vec<InterfaceProtocolRow>,
}

/// One interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct InterfaceProtocolRow {
    /// The interface.
    pub interface: String,
    /// Link-local address of the interface; none without an IPv6 address.
    pub link_local: Option<Ipv6Addr>,
    /// Addresses of the interface.
    pub addresses: Vec<AddressRow>,
    /// Probes for an address before it is used.
    pub probes: u32,
    /// Prefixes of proxy ARP and proxy ND.
    pub proxies: Vec<Prefix>,
    /// IPv6 multicast groups that the interface reports by MLD.
    pub groups: Vec<Ipv6Addr>,
    /// Router advertisements that the interface sends.
    pub advert: Option<AdvertRow>,
    /// Configuration taken from router advertisements.
    pub autoconf: Option<AutoconfRow>,
}

/// An address of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AddressRow {
    /// The address.
    pub address: IfAddress,
    /// State of the address.
    pub state: AddressState,
}

fn text(r: &InterfaceProtocolReply) -> String {
    if r.interfaces.is_empty() {
        return "no interface\n".to_owned();
    }
    r.interfaces.iter().map(interface).collect()
}

fn interface(row: &InterfaceProtocolRow) -> String {
    let mut out = format!("{}\n", row.interface);
    match row.link_local {
        Some(address) => out += &format!("  link-local address {address}\n"),
        None => out += "  no IPv6 address\n",
    }
    for it in &row.addresses {
        out += &format!("  address {}{}\n", it.address, address_state(it.state));
    }
    if row.probes > 0 {
        out += &format!("  duplicate address detection: {} probes\n", row.probes);
    }
    for range in &row.proxies {
        out += &format!("  answers for {range}\n");
    }
    for group in &row.groups {
        out += &format!("  listens to {group}\n");
    }
    if let Some(it) = &row.advert {
        out += &advert(it);
    }
    if let Some(it) = &row.autoconf {
        out += &autoconf(it);
    }
    out
}

fn address_state(state: AddressState) -> &'static str {
    match state {
        AddressState::Preferred => "",
        AddressState::Tentative => ", tentative",
        AddressState::Duplicate => ", duplicate: another station has it",
        AddressState::Deprecated => ", deprecated",
    }
}

/// A time span in seconds.
fn span(ms: Option<u64>) -> String {
    ms.map_or("always".to_owned(), |ms| format!("{} s", ms / 1000))
}

/// Whether a default router is used, and its state.
fn standing(it: &RouterRow) -> String {
    let used = if it.in_use { "in use" } else { "not in use" };
    match it.neighbor {
        _ if it.silent => format!(", {used}, does not answer"),
        Some(state) => format!(", {used}, {}", state.name()),
        None => format!(", {used}"),
    }
}

fn router(it: &RouterRow, takes: bool) -> String {
    let preference = ["high", "medium", "low"][usize::from(it.preference.min(2))];
    let lifetime = match it.lifetime_ms {
        0 => "no default router".to_owned(),
        ms => {
            let standing = if takes { standing(it) } else { String::new() };
            let left = ms / 1000;
            format!("default router for {left} s, preference {preference}{standing}")
        }
    };
    let mut out = format!("    router {}: {lifetime}", it.address);
    let message = [
        ("hop limit", Some(u32::from(it.hop_limit))),
        ("MTU", it.mtu),
        ("reachable ms", Some(it.reachable_ms)),
        ("retransmit ms", Some(it.retransmit_ms)),
    ];
    let mut message = message
        .into_iter()
        .filter_map(|(what, n)| n.filter(|n| *n > 0).map(|n| format!("{what} {n}")))
        .peekable();
    if message.peek().is_some() {
        let all: Vec<String> = message.collect();
        out += &format!("; tells hosts {} (not used)", all.join(", "));
    }
    out + "\n"
}

fn autoconf(row: &AutoconfRow) -> String {
    let state = match row.state {
        AutoconfState::Down => "down",
        AutoconfState::Disabled => "disabled: another station has the link-local address",
        AutoconfState::Soliciting => "soliciting",
        AutoconfState::Unanswered => "no router answered",
        AutoconfState::Heard => "a router was heard",
    };
    let mode = if row.default_route {
        "default-route"
    } else {
        "on"
    };
    let mut out = format!(
        "  autoconfiguration {}: {state}; {} solicitations, {} advertisements, {} options refused\n",
        mode, row.solicitations, row.heard, row.refused
    );
    let takes = row.default_route;
    out.extend(row.routers.iter().map(|it| router(it, takes)));
    for it in &row.on_link {
        out += &format!("    on link {}, valid {}\n", it.prefix, span(it.valid_ms));
    }
    for it in &row.addresses {
        let state = it.state.map_or(", not used", address_state);
        out += &format!(
            "    address {}{state}, valid {}, preferred {}\n",
            it.address,
            span(it.valid_ms),
            span(it.preferred_ms)
        );
    }
    out
}

fn advert(row: &AdvertRow) -> String {
    let settings = row.settings.as_ref().map(Instance::summary);
    let mut out = format!(
        "  router advertisements: every {} to {} s, lifetime {} s; {}\n",
        row.min_interval_s,
        row.max_interval_s,
        row.lifetime_s,
        settings.unwrap_or_default()
    );
    for prefix in &row.prefixes {
        out += &format!("    prefix {prefix}\n");
    }
    let next = match row.next_ms {
        Some(ms) => format!("the next in {}.{:03} s", ms / 1000, ms % 1000),
        None => "none to come".to_owned(),
    };
    out += &format!(
        "    {} sent, {} solicitations heard, {next}\n",
        row.sent, row.solicited
    );
    if row.inconsistent > 0 {
        out += &format!(
            "    {} advertisements of other routers differ\n",
            row.inconsistent
        );
    }
    out
}

fn neighbors(reply: &NeighborsReply) -> String {
    let happened = reply.events.iter();
    let happened: String = happened
        .map(|e| format!("{:>10} {}: {}\n", e.count, e.event, e.text))
        .collect();
    if reply.neighbors.is_empty() {
        return format!("no neighbors\n{happened}");
    }
    let row = |n: &NeighborRow| {
        let flag = if n.fixed { "S" } else { "D" };
        vec![
            n.age_s.to_string(),
            n.address.to_string(),
            flag.to_string(),
            or_dash(n.mac),
            n.interface.clone(),
            n.state.name().to_string(),
            n.held.to_string(),
        ]
    };
    let rows: Vec<_> = reply.neighbors.iter().map(row).collect();
    let heads = [
        ">Age",
        "IP",
        "Flags",
        "Ethernet",
        "Interface",
        "State",
        ">Held",
    ];
    table(&heads, &rows) + &happened
}
