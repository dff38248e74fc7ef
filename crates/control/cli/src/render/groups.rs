//! `show igmp`, `show mld`.

use volley_model::reply::{GroupRow, GroupsReply, GroupsRow, SourceRow};
use volley_object::Instance;

pub(super) fn groups(r: &GroupsReply) -> String {
    if r.interfaces.is_empty() {
        return "no interface asks for groups\n".to_owned();
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
