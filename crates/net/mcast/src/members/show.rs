//! `show igmp`, `show mld`: the query, its reply and its text.

use schemars::JsonSchema;
use serde::Serialize;
use std::net::IpAddr;
use volley_model::Family;
use volley_object::{Instance, Query};

/// Groups that hosts listen to, their sources and timers, and the querier of each link.
#[derive(Clone, Debug, PartialEq, Query)]
#[query(name = "groups", example = "show igmp lan0")]
#[query(show = "show (igmp@family=ip4 | mld@family=ip6) [<interface>]")]
#[query(reply = GroupsReply, text = text)]
pub struct ShowGroups {
    /// IP version: IGMP or MLD.
    pub family: Family,
    /// Only this interface.
    #[query(needs = "interface")]
    pub interface: Option<String>,
}

/// Groups that hosts listen to.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct GroupsReply {
    /// By interface.
    pub interfaces: Vec<GroupsRow>,
}

/// One interface with a group querier.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct GroupsRow {
    /// The interface.
    pub interface: String,
    /// Settings of the querier.
    pub settings: Option<Instance>,
    /// Querier of the link, the router with the lowest address; none while the interface is down or has no address.
    pub querier: Option<IpAddr>,
    /// Whether that is this router.
    pub own: bool,
    /// Milliseconds until the other router counts as gone.
    pub other_ms: Option<u64>,
    /// Queries sent.
    pub queries: u64,
    /// Accepted messages of hosts.
    pub reports: u64,
    /// Groups and sources refused because a limit was reached.
    pub refused: u64,
    /// Groups with members.
    pub groups: Vec<GroupRow>,
}

/// One group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct GroupRow {
    /// The group.
    pub group: IpAddr,
    /// EXCLUDE mode: all sources are forwarded except the blocked ones; otherwise only the listed ones.
    pub exclude: bool,
    /// Milliseconds until the filter mode becomes INCLUDE (group timer, RFC 3376, 6.2.2; filter timer, RFC 3810, 7.2.2).
    pub expires_ms: Option<u64>,
    /// The version of the oldest host (of IGMP: 1 to 3; of MLD: 1, 2).
    pub version: u8,
    /// Listed sources.
    pub sources: Vec<SourceRow>,
}

/// One source of a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SourceRow {
    /// The source.
    pub source: IpAddr,
    /// Milliseconds until the source has no listener (source timer); none = it is blocked.
    pub expires_ms: Option<u64>,
}

fn text(r: &GroupsReply) -> String {
    if r.interfaces.is_empty() {
        return "no interface has a group querier\n".to_owned();
    }
    r.interfaces.iter().map(interface).collect()
}

fn seconds(ms: u64) -> String {
    format!("{}.{} s", ms / 1000, ms / 100 % 10)
}

fn interface(row: &GroupsRow) -> String {
    let settings = row.settings.as_ref().map(Instance::summary);
    let settings = settings.unwrap_or_default();
    let mut out = format!("{}: {settings}\n", row.interface);
    out += &match (row.querier, row.other_ms) {
        (None, _) => "  querier: none, the interface is down or has no address\n".to_owned(),
        (Some(address), Some(ms)) => {
            format!("  querier: {address}, expires in {}\n", seconds(ms))
        }
        (Some(address), None) => format!("  querier: {address}, this router\n"),
    };
    out += &format!(
        "  queries {}, reports {}, refused {}\n",
        row.queries, row.reports, row.refused
    );
    row.groups.iter().for_each(|it| out += &group(it));
    out
}

fn group(it: &GroupRow) -> String {
    let mode = if it.exclude { "exclude" } else { "include" };
    let mut out = format!("  group {} {mode}, version {}", it.group, it.version);
    if let Some(ms) = it.expires_ms {
        out += &format!(", expires in {}", seconds(ms));
    }
    out.push('\n');
    it.sources.iter().for_each(|it| out += &source(it));
    out
}

fn source(it: &SourceRow) -> String {
    match it.expires_ms {
        Some(ms) => format!("    source {}, expires in {}\n", it.source, seconds(ms)),
        None => format!("    source {}, blocked\n", it.source),
    }
}
