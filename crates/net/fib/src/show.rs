//! `show ip fib`, `show ip6 fib`, `show tables` and `show ip route-counters`: the queries, their replies, their text, and metrics.

use crate::path::{PathTarget, RouteSource};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use volley_model::{Family, Prefix};
use volley_object::{FieldError, Query, refuse};
use volley_show::{COUNTER, GAUGE, Page, WIDTH, bytes, table};

/// Routes: all, one a line (1000 unless a limit is given); in detail those of one prefix, or the one that forwards an address.
#[derive(Clone, Debug, PartialEq, Query)]
#[query(name = "fib", example = "show ip fib 10.0.0.1", large)]
#[query(show = "show (ip@family=ip4 | ip6@family=ip6) (fib | route) \
            {table <table> | limit <limit> | summary@summary=on | detail | <prefix> | <address>}")]
#[query(reply = FibReply, text = brief, detail = detailed, detail_by = "prefix", detail_by = "address")]
#[query(check = ShowFib::check)]
pub struct ShowFib {
    /// IP version; that of the prefix or the address, where one is given.
    pub family: Family,
    /// Only this IP table.
    pub table: Option<u32>,
    /// Only the route of this prefix, or the one that covers it.
    pub prefix: Option<Prefix>,
    /// Only the route that forwards this address.
    pub address: Option<IpAddr>,
    /// Numbers of routes by prefix length, in place of routes.
    #[query(default = false)]
    pub summary: bool,
    /// Most routes to show.
    #[query(typed = Some(1000))]
    pub limit: Option<u64>,
}

impl ShowFib {
    fn check(&self) -> Result<(), FieldError> {
        let selected = [
            ("prefix", self.prefix.is_some()),
            ("address", self.address.is_some()),
            ("summary", self.summary),
        ];
        let mut selected = selected.iter().filter(|(_, is_given)| *is_given);
        match (selected.next(), selected.next()) {
            (Some(_), Some((field, _))) => refuse(
                field,
                "cannot be given too: give a prefix, an address or summary",
            ),
            _ => Ok(()),
        }
    }

    pub(crate) fn family(&self) -> Family {
        let of_address = self.address.map(Family::of);
        let of_prefix = self.prefix.map(|prefix| prefix.family());
        of_prefix.or(of_address).unwrap_or(self.family)
    }

    pub(crate) fn select(&self) -> FibSelect {
        match (self.prefix, self.address, self.summary) {
            (Some(prefix), ..) => FibSelect::Exact(prefix),
            (_, Some(address), _) => FibSelect::Match(address),
            (.., true) => FibSelect::Summary,
            _ => FibSelect::All,
        }
    }
}

/// Selection of the routes to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FibSelect {
    /// All routes.
    All,
    /// No routes: counts by length only.
    Summary,
    /// The route of exactly this prefix.
    Exact(Prefix),
    /// The route that forwards this address.
    Match(IpAddr),
}

/// IP tables.
#[derive(Clone, Debug, PartialEq, Query)]
#[query(
    name = "tables",
    show = "show [ip@family=ip4 | ip6@family=ip6] table~s",
    example = "show tables"
)]
#[query(reply = TablesReply, text = tables, figures = table_figures)]
pub struct ShowTables {
    /// Only of this IP version.
    pub family: Option<Family>,
}

/// Counted routes: packets that followed them, and bytes from the IP header on.
#[derive(Clone, Debug, PartialEq, Query)]
#[query(name = "route-counters", large)]
#[query(show = "show [ip@family=ip4 | ip6@family=ip6] route-counters")]
#[query(example = "show ip route-counters")]
#[query(reply = RouteCountersReply, text = route_counters, figures = route_figures)]
pub struct ShowRouteCounters {
    /// Only of this IP version.
    pub family: Option<Family>,
}

/// Routes of one family.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct FibReply {
    /// In order of number.
    pub tables: Vec<FibTable>,
    /// Matching routes that are not in this reply.
    pub more: u64,
}

/// One table.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct FibTable {
    /// IP version.
    pub family: Family,
    /// Number of the table.
    pub table: u32,
    /// Prefixes in the table.
    pub prefixes: u64,
    /// Bytes of the data-plane lookup structure.
    pub bytes: u64,
    /// Prefixes by length, lengths that have none left out.
    pub lengths: Vec<LengthCount>,
    /// Requested routes, in order of address and length.
    pub routes: Vec<FibRoute>,
    /// Requested prefix that the table does not have: `routes` has the route that covers it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub absent: Option<AbsentPrefix>,
}

/// A prefix that a table does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AbsentPrefix {
    /// Requested prefix.
    pub prefix: Prefix,
    /// Longer prefixes inside the requested one that the table has: packets to those follow their own routes.
    pub inside: u64,
}

/// Prefixes of one length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct LengthCount {
    /// Length in bits.
    pub len: u8,
    /// Prefixes.
    pub count: u64,
}

/// A route: the paths of its best source, and the state of the data plane.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FibRoute {
    /// Prefix.
    pub prefix: Prefix,
    /// Source that forwards.
    pub source: RouteSource,
    /// Other sources that have this prefix, best first.
    pub others: Vec<RouteSource>,
    /// Paths of the source that forwards.
    pub paths: Vec<FibPath>,
    /// Load balance (data-plane leaf) id.
    pub load_balance: u32,
    /// Packets that followed the route, or another one with its source and paths; absent while no route is counted (`set ip
    /// route-counter`). A counted route is counted alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counters: Option<FibCounters>,
    /// Buckets in order: flow hash modulo their number chooses.
    pub buckets: Vec<FibBucket>,
}

/// Counters of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct FibCounters {
    /// Packets.
    pub packets: u64,
    /// Bytes of these packets, from the IP header on.
    pub bytes: u64,
    /// Routes that are counted together, this one included.
    pub routes: u64,
}

/// One path of a route.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FibPath {
    /// Where to.
    pub target: PathTarget,
    /// Weight.
    pub weight: u32,
    /// Preference.
    pub preference: u8,
    /// The next hop is on the link of its interface, even if no address there covers it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub onlink: bool,
    /// The path is usable now.
    pub resolved: bool,
}

/// One bucket of a load balance.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct FibBucket {
    /// `adjacency`, `glean`, `incomplete`, `local`, `drop`, ...
    pub kind: String,
    /// Index of the object of that kind.
    pub index: u32,
    /// In words: `via 192.0.2.1 pg1 02fe...`.
    pub text: String,
}

/// IP tables.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct TablesReply {
    /// In order of family and number.
    pub tables: Vec<TableRow>,
}

/// One IP table.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct TableRow {
    /// IP version.
    pub family: Family,
    /// Number of the table.
    pub table: u32,
    /// Prefixes in the table.
    pub prefixes: u64,
    /// Bytes of the data-plane lookup structure.
    pub bytes: u64,
    /// Interfaces bound to the table.
    pub interfaces: Vec<String>,
}

/// Counted routes.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct RouteCountersReply {
    /// In order of family, table and prefix.
    pub routes: Vec<RouteCounterRow>,
}

/// One counted route.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RouteCounterRow {
    /// Prefix of the route.
    pub prefix: Prefix,
    /// Number of the table.
    pub table: u32,
    /// Packets that followed the route since it is counted, or has its source and paths.
    pub packets: u64,
    /// Bytes of these packets, from the IP header on.
    pub bytes: u64,
}

fn brief(reply: &FibReply) -> String {
    text(reply, brief_route)
}

fn detailed(reply: &FibReply) -> String {
    text(reply, route)
}

fn text(reply: &FibReply, show: fn(&FibRoute) -> String) -> String {
    let mut out = String::new();
    for t in &reply.tables {
        out += &head(t);
        out += &t.absent.as_ref().map_or_else(String::new, absent);
        t.routes.iter().for_each(|r| out += &show(r));
    }
    if reply.more > 0 {
        out += &format!(
            "... and {} more routes ('limit N' shows more of them)\n",
            reply.more
        );
    }
    out
}

/// Text about a prefix that the table does not have: how its packets are forwarded.
fn absent(a: &AbsentPrefix) -> String {
    let prefix = a.prefix;
    let except = match a.inside {
        0 => String::new(),
        1 => " (except to 1 longer prefix inside it, which has its own route)".to_owned(),
        n => format!(" (except to {n} longer prefixes inside it, which have their own routes)"),
    };
    format!("{prefix} is not in the table; packets to it follow{except}\n")
}

fn head(t: &FibTable) -> String {
    let family = t.family.to_string().to_lowercase();
    let mut out = format!(
        "{family}-VRF:{}, {} prefixes, {}\n",
        t.table,
        t.prefixes,
        bytes(t.bytes)
    );
    if t.routes.is_empty() {
        for l in &t.lengths {
            out += &format!("  /{:<3} {:>10}\n", l.len, l.count);
        }
    }
    out
}

/// Line of a route; paths that do not fit follow on separate lines.
fn brief_route(r: &FibRoute) -> String {
    let path = |p: &FibPath| {
        let weight = match (r.paths.len(), p.weight) {
            (1, _) | (_, 1) => String::new(),
            (_, weight) => format!(" weight {weight}"),
        };
        let state = if p.resolved { "" } else { " (unresolved)" };
        let onlink = onlink(p);
        format!("via {}{onlink}{weight}{}{state}", p.target, preference(p))
    };
    let mut out = r.prefix.to_string();
    let mut width = out.len();
    let words = r
        .paths
        .iter()
        .map(path)
        .chain([format!("proto {}", r.source.name())]);
    for word in words {
        let wide = width + 1 + word.len() > WIDTH;
        out += if wide { "\n  " } else { " " };
        width = if wide { 2 } else { width + 1 } + word.len();
        out += &word;
    }
    out + "\n"
}

fn onlink(p: &FibPath) -> &'static str {
    if p.onlink { " onlink" } else { "" }
}

fn preference(p: &FibPath) -> String {
    match p.preference {
        0 => String::new(),
        preference => format!(" preference {preference}"),
    }
}

fn route(r: &FibRoute) -> String {
    let others: Vec<_> = r.others.iter().map(|s| s.name()).collect();
    let others = if others.is_empty() {
        String::new()
    } else {
        format!(" (also {})", others.join(", "))
    };
    let mut out = format!("{}  source {}{others}\n", r.prefix, r.source);
    r.paths.iter().for_each(|p| out += &path(p));
    if !r.buckets.is_empty() {
        out += &format!(
            "  load-balance {}, {} buckets\n",
            r.load_balance,
            r.buckets.len()
        );
    }
    out += &r.counters.map_or(String::new(), counters);
    for (i, b) in r.buckets.iter().enumerate() {
        out += &format!("    [{i}] {} {} {}\n", b.kind, b.index, b.text);
    }
    out
}

fn path(p: &FibPath) -> String {
    let state = if p.resolved { "" } else { " (unresolved)" };
    let preference = preference(p);
    format!(
        "  via {}{} weight {}{preference}{state}\n",
        p.target,
        onlink(p),
        p.weight
    )
}

fn counters(counters: FibCounters) -> String {
    let with = match counters.routes {
        0 | 1 => String::new(),
        2 => ", together with 1 other route".to_owned(),
        n => format!(", together with {} other routes", n - 1),
    };
    let FibCounters { packets, bytes, .. } = counters;
    format!("  {packets} packets, {bytes} bytes{with}\n")
}

fn tables(reply: &TablesReply) -> String {
    let row = |t: &TableRow| {
        vec![
            t.table.to_string(),
            t.family.to_string(),
            t.prefixes.to_string(),
            bytes(t.bytes),
            t.interfaces.join(" "),
        ]
    };
    let rows: Vec<_> = reply.tables.iter().map(row).collect();
    table(
        &[">Table", "Family", ">Prefixes", ">Lookup", "Interfaces"],
        &rows,
    )
}

fn route_counters(reply: &RouteCountersReply) -> String {
    let row = |r: &RouteCounterRow| {
        vec![
            r.prefix.to_string(),
            r.table.to_string(),
            r.packets.to_string(),
            r.bytes.to_string(),
        ]
    };
    let rows: Vec<_> = reply.routes.iter().map(row).collect();
    table(&["Prefix", ">Table", ">Packets", ">Bytes"], &rows)
}

fn route_figures(reply: &RouteCountersReply, page: &mut Page) {
    let rows = &reply.routes;
    type Read = fn(&RouteCounterRow) -> u64;
    let figures: [(&str, &str, Read); 2] = [
        (
            "volley_route_packets_total",
            "Packets that followed a counted route.",
            |r| r.packets,
        ),
        (
            "volley_route_bytes_total",
            "Bytes of these packets, from the IP header on.",
            |r| r.bytes,
        ),
    ];
    for (name, help, read) in figures {
        page.rows((name, COUNTER, help), rows, |put, row| {
            let (prefix, table) = (row.prefix.to_string(), row.table.to_string());
            put(&[("prefix", &prefix), ("table", &table)], read(row) as f64);
        });
    }
}

fn table_figures(reply: &TablesReply, page: &mut Page) {
    let rows = &reply.tables;
    type Read = fn(&TableRow) -> u64;
    let figures: [(&str, &str, Read); 2] = [
        ("volley_table_prefixes", "Prefixes in an IP table.", |t| {
            t.prefixes
        }),
        (
            "volley_table_bytes",
            "Bytes of its lookup structure.",
            |t| t.bytes,
        ),
    ];
    for (name, help, read) in figures {
        page.rows((name, GAUGE, help), rows, |put, row| {
            let family = match row.family {
                Family::V4 => "ip4",
                Family::V6 => "ip6",
            };
            let table = row.table.to_string();
            put(&[("family", family), ("table", &table)], read(row) as f64);
        });
    }
}
