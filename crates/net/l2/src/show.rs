//! `show l2patch`, `show bridge-domain`, `show l2fib`: the queries, their replies, their text, and metrics.

use schemars::JsonSchema;
use serde::Serialize;
use std::fmt::Write;
use volley_model::Mac;
use volley_object::Query;
use volley_show::{COUNTER, GAUGE, Page, table};

/// L2 patches and cross-connects.
#[derive(Clone, Debug, PartialEq, Query)]
#[query(
    name = "l2",
    show = "show (l2 | l2patch | mode)",
    example = "show l2patch"
)]
#[query(reply = L2Reply, text = bindings)]
pub struct ShowL2;

/// Bridge domains; detail: ports, and what happened to stations.
#[derive(Clone, Debug, PartialEq, Query)]
#[query(name = "bridge-domains", example = "show bridge-domain 10 detail")]
#[query(show = "show bridge-domain [<id>] [detail]")]
#[query(reply = BridgeDomainsReply, text = brief, detail = detailed, figures = figures)]
pub struct ShowBridgeDomains {
    /// Only this bridge domain.
    #[query(needs = "bridge_domain")]
    pub id: Option<u32>,
}

/// Stations of bridge domains, of all or of one.
#[derive(Clone, Debug, PartialEq, Query)]
#[query(name = "l2-fib", example = "show l2fib 10")]
#[query(show = "show (l2fib | mac [address-table]) [<domain>]")]
#[query(reply = L2FibReply, text = l2fib)]
pub struct ShowL2Fib {
    /// Only of this bridge domain.
    #[query(needs = "bridge_domain")]
    pub domain: Option<u32>,
}

/// L2 patches and cross-connects.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct L2Reply {
    /// In order of receiving interface.
    pub bindings: Vec<L2Row>,
}

/// One binding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct L2Row {
    /// Receiving interface.
    pub rx: String,
    /// Transmitting interface.
    pub tx: String,
    /// Type of the binding.
    pub mode: L2Mode,
}

/// Kind of an L2 binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum L2Mode {
    /// `test l2patch`.
    Patch,
    /// `set interface l2 xconnect`.
    Xconnect,
}

/// Bridge domains.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct BridgeDomainsReply {
    /// By number.
    pub domains: Vec<BridgeDomainRow>,
}

/// One bridge domain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BridgeDomainRow {
    /// Identifier.
    pub id: u32,
    /// Whether the addresses of stations are learned.
    pub learn: bool,
    /// Whether frames to groups and to all stations are flooded.
    pub flood: bool,
    /// Whether frames to unknown stations are flooded.
    pub uu_flood: bool,
    /// Whether frames to known stations are forwarded.
    pub forward: bool,
    /// Minutes after which a silent station is forgotten; 0 = never.
    pub mac_age: u32,
    /// Most stations that are learned.
    pub mac_limit: u32,
    /// Of the groups 01:80:c2:00:00:00 to :0f those that are flooded, as bits.
    pub group_fwd_mask: u32,
    /// Ports of the bridge domain, by interface index.
    pub ports: Vec<BridgePortRow>,
    /// Stations that were learned and are known.
    pub learned: u64,
    /// Stations that are configured and in use.
    pub fixed: u64,
    /// Event counters.
    pub counts: BridgeCounts,
}

/// One port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BridgePortRow {
    /// Interface.
    pub interface: String,
    /// Split-horizon group; 0 = in none.
    pub shg: u32,
    /// Whether packets pass.
    pub up: bool,
}

/// Events of a bridge domain's MAC entries since the domain was created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct BridgeCounts {
    /// Learned.
    pub learned: u64,
    /// Found behind another port.
    pub moved: u64,
    /// Forgotten because they were silent.
    pub aged: u64,
    /// Forgotten because they were flushed, or their port went down or away.
    pub flushed: u64,
    /// Not learned because of the domain's `mac_limit`, or because the table was full.
    pub refused: u64,
}

/// Stations.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct L2FibReply {
    /// By domain and address.
    pub entries: Vec<L2FibRow>,
}

/// One station.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct L2FibRow {
    /// MAC address.
    pub mac: Mac,
    /// Bridge domain.
    pub domain: u32,
    /// Port of the entry; none = frames are dropped.
    pub interface: Option<String>,
    /// Whether the entry is configured.
    pub fixed: bool,
    /// Seconds since a frame from this address was last seen, with a resolution of a few seconds; none if the entry does not
    /// age.
    pub age_s: Option<u64>,
}

fn brief(reply: &BridgeDomainsReply) -> String {
    domains(reply, false)
}

fn detailed(reply: &BridgeDomainsReply) -> String {
    domains(reply, true)
}

fn bindings(reply: &L2Reply) -> String {
    if reply.bindings.is_empty() {
        return "no L2 patches or cross-connects\n".to_string();
    }
    let mode = |m| match m {
        L2Mode::Patch => "patch",
        L2Mode::Xconnect => "xconnect",
    };
    let row = |b: &L2Row| vec![b.rx.clone(), b.tx.clone(), mode(b.mode).to_string()];
    let rows: Vec<_> = reply.bindings.iter().map(row).collect();
    table(&["Rx", "Tx", "Mode"], &rows)
}

fn switch(on: bool) -> String {
    if on { "on" } else { "off" }.to_owned()
}

fn age(minutes: u32) -> String {
    match minutes {
        0 => "off".to_owned(),
        minutes => format!("{minutes} min"),
    }
}

fn domains(reply: &BridgeDomainsReply, detail: bool) -> String {
    if reply.domains.is_empty() {
        return "no bridge domains\n".to_owned();
    }
    let row = |row: &BridgeDomainRow| {
        vec![
            row.id.to_string(),
            switch(row.learn),
            switch(row.forward),
            switch(row.uu_flood),
            switch(row.flood),
            age(row.mac_age),
            row.ports.len().to_string(),
            (row.learned + row.fixed).to_string(),
            row.mac_limit.to_string(),
        ]
    };
    let titles = [
        "BD-ID", "Learning", "U-Forwrd", "UU-Flood", "Flooding", "Age", "Ports", "MACs", "Limit",
    ];
    if !detail {
        let rows: Vec<_> = reply.domains.iter().map(row).collect();
        return table(&titles, &rows);
    }
    let mut out = String::new();
    for domain in &reply.domains {
        out += &table(&titles, &[row(domain)]);
        details(domain, &mut out);
    }
    out
}

fn details(row: &BridgeDomainRow, out: &mut String) {
    let c = &row.counts;
    let _ = writeln!(
        out,
        "  stations: {} learned, {} configured; ever learned {}, moved {}, aged {}, flushed {}, refused {}",
        row.learned, row.fixed, c.learned, c.moved, c.aged, c.flushed, c.refused
    );
    if row.group_fwd_mask != 0 {
        let mask = row.group_fwd_mask;
        let _ = writeln!(out, "  group-fwd-mask {mask:#06x}");
    }
    for port in &row.ports {
        let state = if port.up { "up" } else { "down" };
        let _ = writeln!(out, "  {}: {state}, shg {}", port.interface, port.shg);
    }
}

fn l2fib(reply: &L2FibReply) -> String {
    if reply.entries.is_empty() {
        return "no stations\n".to_owned();
    }
    let row = |row: &L2FibRow| {
        vec![
            row.mac.to_string(),
            row.domain.to_string(),
            row.interface.clone().unwrap_or_else(|| "filter".to_owned()),
            if row.fixed { "static" } else { "learned" }.to_owned(),
            row.age_s.map_or_else(|| "-".to_owned(), |s| s.to_string()),
        ]
    };
    let rows: Vec<_> = reply.entries.iter().map(row).collect();
    table(
        &["Mac-Address", "BD-ID", "Interface", "Kind", "Age(s)"],
        &rows,
    )
}

fn figures(reply: &BridgeDomainsReply, page: &mut Page) {
    type Read = fn(&BridgeDomainRow) -> u64;
    let figures: [(&str, &str, &str, Read); 6] = [
        (
            "stations",
            GAUGE,
            "Stations that the bridge domain knows.",
            |b| b.learned + b.fixed,
        ),
        ("learned_total", COUNTER, "Stations learned.", |b| {
            b.counts.learned
        }),
        (
            "moved_total",
            COUNTER,
            "Stations found behind another port.",
            |b| b.counts.moved,
        ),
        (
            "aged_total",
            COUNTER,
            "Stations forgotten because they were silent.",
            |b| b.counts.aged,
        ),
        ("flushed_total", COUNTER, "Stations flushed.", |b| {
            b.counts.flushed
        }),
        (
            "refused_total",
            COUNTER,
            "Stations not learned because of the limit.",
            |b| b.counts.refused,
        ),
    ];
    for (name, kind, help, read) in figures {
        let name = format!("volley_bridge_domain_{name}");
        page.rows((&name, kind, help), &reply.domains, |put, row| {
            put(&[("domain", &row.id.to_string())], read(row) as f64);
        });
    }
}
