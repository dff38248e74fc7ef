//! `show bridge-domain`, `show l2fib`.

use super::table::table;
use std::fmt::Write;
use volley_model::reply::{BridgeDomainRow, BridgeDomainsReply, L2FibReply, L2FibRow};

fn switch(on: bool) -> String {
    if on { "on" } else { "off" }.to_owned()
}

fn age(minutes: u32) -> String {
    match minutes {
        0 => "off".to_owned(),
        minutes => format!("{minutes} min"),
    }
}

pub(super) fn domains(reply: &BridgeDomainsReply, detail: bool) -> String {
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

pub(super) fn l2fib(reply: &L2FibReply) -> String {
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
