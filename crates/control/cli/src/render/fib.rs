//! `show ip fib | ip neighbors | tables`.

use volley_model::reply::{
    AbsentPrefix, FibPath, FibReply, FibRoute, FibTable, NeighborsReply, TablesReply,
};
use volley_show::{WIDTH, bytes, or_dash, table};

pub(super) fn fib(reply: &FibReply, detail: bool) -> String {
    let mut out = String::new();
    for t in &reply.tables {
        out += &head(t);
        out += &t.absent.as_ref().map_or_else(String::new, absent);
        let show = if detail { route } else { brief };
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

/// What packets to a prefix do that the table does not have.
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

/// A route in a line; paths that do not fit follow in lines of their own.
fn brief(r: &FibRoute) -> String {
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

pub(super) fn neighbors(reply: &NeighborsReply) -> String {
    let happened = reply.events.iter();
    let happened: String = happened
        .map(|e| format!("{:>10} {}: {}\n", e.count, e.event, e.text))
        .collect();
    if reply.neighbors.is_empty() {
        return format!("no neighbors\n{happened}");
    }
    let row = |n: &volley_model::reply::NeighborRow| {
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

pub(super) fn tables(reply: &TablesReply) -> String {
    let row = |t: &volley_model::reply::TableRow| {
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
