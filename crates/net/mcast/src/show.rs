//! `show ip mroute`, `show ip6 mroute`: the query, its reply and its text.

use schemars::JsonSchema;
use serde::Serialize;
use std::net::IpAddr;
use volley_model::{Family, Prefix};
use volley_object::Query;
use volley_show::table;

/// Multicast routes, and what they carried.
#[derive(Clone, Debug, PartialEq, Query)]
#[query(name = "mroutes", example = "show ip mroute")]
#[query(show = "show (ip@family=ip4 | ip6@family=ip6) mroute [table <table>]")]
#[query(reply = MroutesReply, text = text)]
pub struct ShowMroutes {
    /// IP version.
    pub family: Family,
    /// Only of this IP table.
    pub table: Option<u32>,
}

/// Multicast routes.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct MroutesReply {
    /// By table, group and source.
    pub routes: Vec<MrouteRow>,
}

/// Accepting and forwarding interfaces of a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RouteOfGroup {
    /// The groups: of full length for one.
    pub group: Prefix,
    /// The source, for one group; none = any.
    pub source: Option<IpAddr>,
    /// IP table of the receiving interface.
    pub table: u32,
    /// Accepting interfaces.
    pub accept: Vec<String>,
    /// Forwarding interfaces; the interface that received a packet gets no copy.
    pub forward: Vec<String>,
}

/// One multicast route.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MrouteRow {
    /// Configured route.
    pub route: RouteOfGroup,
    /// Packets received on an accepting interface.
    pub packets: u64,
    /// Bytes of these packets, from the IP header on.
    pub bytes: u64,
    /// Packets received on another interface, and dropped.
    pub wrong_interface: u64,
}

fn names(names: &[String]) -> String {
    if names.is_empty() {
        return "-".to_owned();
    }
    names.join(" ")
}

fn text(reply: &MroutesReply) -> String {
    if reply.routes.is_empty() {
        return "no multicast routes\n".to_owned();
    }
    let row = |row: &MrouteRow| {
        let it = &row.route;
        let source = it.source.map_or_else(|| "*".to_owned(), |s| s.to_string());
        vec![
            it.table.to_string(),
            format!("({source}, {})", it.group),
            names(&it.accept),
            names(&it.forward),
            row.packets.to_string(),
            row.bytes.to_string(),
            row.wrong_interface.to_string(),
        ]
    };
    let titles = [
        "Table",
        "Route",
        "Accept",
        "Forward",
        "Packets",
        "Bytes",
        "Wrong-Interface",
    ];
    let rows: Vec<_> = reply.routes.iter().map(row).collect();
    table(&titles, &rows)
}
