//! `show version | process | buffers`.

use volley_model::reply::{
    ArenaRow, BuffersReply, HolderRow, ProcessReply, ThreadRow, VersionReply,
};
use volley_show::{or_dash, table};

pub(super) fn version(r: &VersionReply) -> String {
    let commit = r
        .commit
        .as_ref()
        .map_or_else(String::new, |c| format!(" ({c})"));
    format!(
        "volley {}{commit}, {}\n  cpu {}, isa {}\n  vector size {}, {} workers, up {:.0} s, pid {}\n",
        r.version, r.build, r.cpu, r.isa, r.vector_size, r.workers, r.uptime_s, r.pid
    )
}

/// More capabilities of a thread than this are a number.
const NAMED_CAPABILITIES: usize = 6;

pub(super) fn process(r: &ProcessReply) -> String {
    let row = |t: &ThreadRow| {
        let capabilities = match t.capabilities.len() {
            0 => "none".to_owned(),
            few if few <= NAMED_CAPABILITIES => t.capabilities.join(" "),
            many => format!("{many}, of them sys_admin: {}", yes(is_admin(t))),
        };
        let filters = or_dash(t.filters);
        let privileges = yes(!t.no_new_privileges).to_owned();
        let name = t.name.clone();
        vec![name, capabilities, privileges, t.seccomp.clone(), filters]
    };
    let rows: Vec<_> = r.threads.iter().map(row).collect();
    let groups: Vec<String> = r.groups.iter().map(u32::to_string).collect();
    let groups = match groups.is_empty() {
        true => "none".to_owned(),
        false => groups.join(" "),
    };
    let heads = ["Thread", "Capabilities", "May gain", "Seccomp", ">Filters"];
    format!(
        "pid {}, uid {}, gid {}, further groups {groups}\n{}",
        r.pid,
        r.uid,
        r.gid,
        table(&heads, &rows)
    )
}

fn is_admin(thread: &ThreadRow) -> bool {
    thread.capabilities.iter().any(|name| name == "sys_admin")
}

fn yes(is_so: bool) -> &'static str {
    if is_so { "yes" } else { "no" }
}

pub(super) fn buffers(r: &BuffersReply) -> String {
    let row = |a: &ArenaRow| {
        let cells = [
            u64::from(a.slot_bytes),
            u64::from(a.data_bytes),
            a.total,
            a.free,
            a.cached,
            a.failures,
            a.used,
        ];
        let mut row = vec![a.name.clone(), a.numa.to_string(), a.backing.clone()];
        row.extend(cells.map(|n| n.to_string()));
        row
    };
    let rows: Vec<_> = r.arenas.iter().map(row).collect();
    let heads = [
        "Pool Name",
        ">NUMA",
        "Pages",
        ">Size",
        ">Data Size",
        ">Total",
        ">Avail",
        ">Cached",
        ">Failed",
        ">Used",
    ];
    table(&heads, &rows) + &holders(r)
}

/// Who keeps packets outside the graph.
fn holders(r: &BuffersReply) -> String {
    if r.holders.is_empty() {
        return String::new();
    }
    let row = |h: &HolderRow| {
        let cells = [h.limit, h.limit_each, h.held, h.evicted, h.refused];
        let name = std::iter::once(h.name.clone());
        name.chain(cells.map(|n| n.to_string())).collect()
    };
    let rows: Vec<Vec<String>> = r.holders.iter().map(row).collect();
    let heads = [
        "Holder",
        ">Limit",
        ">Per Worker",
        ">Held",
        ">Evicted",
        ">Refused",
    ];
    let reserve = r.reserve;
    format!(
        "\n{}\n{reserve} buffers are for forwarding alone.\n",
        table(&heads, &rows)
    )
}
