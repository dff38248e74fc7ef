//! `show ip mroute`, `show ip6 mroute`.

use super::table::table;
use volley_model::reply::{MrouteRow, MroutesReply};

fn names(names: &[String]) -> String {
    if names.is_empty() {
        return "-".to_owned();
    }
    names.join(" ")
}

pub(super) fn mroutes(reply: &MroutesReply) -> String {
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
