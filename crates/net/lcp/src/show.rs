//! `show lcp`, `lcp audit`: the queries and their text.

use crate::reply::{LcpAuditReply, LcpDifference, LcpReply, LcpRow, LcpSyncStatus, LcpTableRow};
use volley_object::Query;
use volley_show::{or_dash, table};

/// Linux control plane: interfaces with an LCP tap, synchronised routes, state of the synchronisation.
#[derive(Clone, Debug, PartialEq, Query)]
#[query(name = "lcp", show = "show lcp", example = "show lcp")]
#[query(reply = LcpReply, text = text)]
pub struct ShowLcp;

/// List every difference between the kernel and the forwarding table.
#[derive(Clone, Debug, PartialEq, Query)]
#[query(name = "lcp-audit", show = "lcp audit", example = "lcp audit")]
#[query(reply = LcpAuditReply, text = audit)]
pub struct ShowLcpAudit;

/// Columns of the tables: routes from the kernel, and routes written to it.
const TABLES: [&str; 6] = [
    ">Table",
    ">Kernel table",
    ">IPv4",
    ">IPv6",
    ">IPv4 told",
    ">IPv6 told",
];

fn text(reply: &LcpReply) -> String {
    if reply.pairs.is_empty() {
        return "No interface has an LCP tap in the Linux kernel\n".to_owned();
    }
    let pair = |p: &LcpRow| {
        vec![
            p.interface.clone(),
            p.tap.clone(),
            p.host.clone(),
            p.host_index.to_string(),
            or_dash(p.namespace.as_ref()),
        ]
    };
    let pairs: Vec<_> = reply.pairs.iter().map(pair).collect();
    let mut out = table(&["Interface", "Tap", "Host", ">Index", "Namespace"], &pairs);
    let row = |t: &LcpTableRow| {
        let numbers = [t.table.into(), t.kernel_table.into()];
        [
            numbers[0],
            numbers[1],
            t.ip4,
            t.ip6,
            t.reported_ip4,
            t.reported_ip6,
        ]
    };
    let rows = reply.tables.iter().map(row);
    let rows: Vec<Vec<String>> = rows
        .map(|r: [u64; 6]| r.map(|n| n.to_string()).into())
        .collect();
    if !rows.is_empty() {
        out += "\n";
        out += &table(&TABLES, &rows);
    }
    if let Some(mirror) = &reply.mirror {
        out += &how(mirror);
    }
    out
}

fn how(m: &LcpSyncStatus) -> String {
    let mut out = format!(
        "\n{}, {} prefixes wait\n{} messages read, {} overruns, {} resynchronisations, the last in {} ms\n",
        m.state, m.waiting, m.messages, m.overruns, m.resyncs, m.resync_ms
    );
    if let Some(why) = &m.last_refused {
        out += &format!("{} changes refused, the last: {why}\n", m.refused);
    }
    out
}

fn audit(reply: &LcpAuditReply) -> String {
    let summary = format!("{} compared, {} differ\n", reply.compared, reply.differing);
    if reply.differences.is_empty() {
        return summary;
    }
    let row = |d: &LcpDifference| {
        let side = |text: &String| or_dash(Some(text).filter(|t| !t.is_empty()));
        vec![
            d.kind.clone(),
            d.what.clone(),
            side(&d.kernel),
            side(&d.volley),
        ]
    };
    let rows: Vec<_> = reply.differences.iter().map(row).collect();
    table(&["Kind", "What", "Kernel", "Volley"], &rows) + &summary
}
