//! `show version`, `show process` and `show buffers`: the queries, their replies, their text, and figures on the page of
//! metrics.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use volley_object::Query;
use volley_show::{COUNTER, GAUGE, Page, or_dash, table};

/// Version, processor, instruction-set level, uptime.
#[derive(Clone, Debug, PartialEq, Query)]
#[query(
    name = "version",
    show = "show version [brief]",
    example = "show version"
)]
#[query(reply = VersionReply, text = version, figures = version_figures)]
pub struct ShowVersion;

/// User, capabilities and filters of system calls of the daemon's threads.
#[derive(Clone, Debug, PartialEq, Query)]
#[query(name = "process", show = "show process", example = "show process")]
#[query(reply = ProcessReply, text = process)]
pub struct ShowProcess;

/// Buffer arenas.
#[derive(Clone, Debug, PartialEq, Query)]
#[query(name = "buffers", show = "show buffers", example = "show buffers")]
#[query(reply = BuffersReply, text = buffers, figures = buffer_figures)]
pub struct ShowBuffers;

/// Version of the daemon and what it runs on.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct VersionReply {
    /// `0.1.0`.
    pub version: String,
    /// Commit it was built from, when known.
    pub commit: Option<String>,
    /// Compiler and build profile.
    pub build: String,
    /// Processor's name.
    pub cpu: String,
    /// Instruction-set level in use.
    pub isa: String,
    /// Packets per vector.
    pub vector_size: u32,
    /// Worker threads.
    pub workers: u32,
    /// Seconds since start.
    pub uptime_s: f64,
    /// Process id.
    pub pid: u32,
}

/// Buffer arenas.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct BuffersReply {
    /// One per NUMA node.
    pub arenas: Vec<ArenaRow>,
    /// Buffers that are reserved for forwarding.
    #[serde(default)]
    pub reserve: u64,
    /// Holders: nodes that keep packets outside the graph, and how many buffers.
    #[serde(default)]
    pub holders: Vec<HolderRow>,
}

/// One holder of buffers: its share of the pool, and its buffers.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct HolderRow {
    /// The holder: a node, or `neighbors`.
    pub name: String,
    /// Buffers that it may hold on all workers together.
    pub limit: u64,
    /// Buffers that it may hold on each worker.
    pub limit_each: u64,
    /// Buffers that it holds.
    pub held: u64,
    /// Packets that were dropped for newer ones.
    pub evicted: u64,
    /// Packets that were refused because the share was full.
    pub refused: u64,
}

/// One arena. `total = free + cached + used`.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ArenaRow {
    /// Name of the memory.
    pub name: String,
    /// NUMA node.
    pub numa: u32,
    /// Bytes of a slot, metadata and headroom included.
    pub slot_bytes: u32,
    /// Bytes of data in a slot.
    pub data_bytes: u32,
    /// Buffers.
    pub total: u64,
    /// On the shared free list.
    pub free: u64,
    /// In workers' free caches.
    pub cached: u64,
    /// Held by packets.
    pub used: u64,
    /// Allocations that failed.
    pub failures: u64,
    /// What backs it: `hugetlb`, `thp`, `pages`.
    pub backing: String,
}

/// What the kernel lets the daemon's threads do.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ProcessReply {
    /// Number of the process.
    pub pid: u32,
    /// Number of its user.
    pub uid: u32,
    /// Number of its group.
    pub gid: u32,
    /// Numbers of its further groups.
    pub groups: Vec<u32>,
    /// Whether Landlock limits the files of the daemon: on, partly (an old kernel) or off.
    #[serde(default)]
    pub landlock: String,
    /// Threads of the daemon by number; the first is the control thread.
    pub threads: Vec<ThreadRow>,
}

/// What one thread may do.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ThreadRow {
    /// Number of the thread.
    pub id: u32,
    /// Name of the thread.
    pub name: String,
    /// Effective capabilities of the thread.
    pub capabilities: Vec<String>,
    /// Whether no program that it starts gets more privileges.
    pub no_new_privileges: bool,
    /// Filter of system calls: off, filter or strict.
    pub seccomp: String,
    /// How many filters it has, those of the service manager included; none before Linux 5.9.
    pub filters: Option<u32>,
}

fn version(r: &VersionReply) -> String {
    let commit = r
        .commit
        .as_ref()
        .map_or_else(String::new, |c| format!(" ({c})"));
    format!(
        "volley {}{commit}, {}\n  cpu {}, isa {}\n  vector size {}, {} workers, up {:.0} s, pid {}\n",
        r.version, r.build, r.cpu, r.isa, r.vector_size, r.workers, r.uptime_s, r.pid
    )
}

/// The most capabilities that are listed by name; more are shown as a number.
const NAMED_CAPABILITIES: usize = 6;

fn process(r: &ProcessReply) -> String {
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
        "pid {}, uid {}, gid {}, further groups {groups}, Landlock {}\n{}",
        r.pid,
        r.uid,
        r.gid,
        r.landlock,
        table(&heads, &rows)
    )
}

fn is_admin(thread: &ThreadRow) -> bool {
    thread.capabilities.iter().any(|name| name == "sys_admin")
}

fn yes(is_so: bool) -> &'static str {
    if is_so { "yes" } else { "no" }
}

fn buffers(r: &BuffersReply) -> String {
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

/// The table of holders: nodes that keep packets outside the graph.
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

fn version_figures(version: &VersionReply, page: &mut Page) {
    page.family("volley_build_info", GAUGE, "Always 1; what runs.");
    let labels = [("version", &version.version[..]), ("isa", &version.isa)];
    page.sample("volley_build_info", &labels, 1);
    let help = "Seconds since the daemon started.";
    page.family("volley_uptime_seconds", GAUGE, help);
    page.sample("volley_uptime_seconds", &[], version.uptime_s);
}

fn buffer_figures(reply: &BuffersReply, page: &mut Page) {
    arena_figures(&reply.arenas, page);
    holder_figures(&reply.holders, page);
}

fn arena_figures(rows: &[ArenaRow], page: &mut Page) {
    let help = "Packet buffers by what they do.";
    page.rows(("volley_buffers", GAUGE, help), rows, |put, row| {
        for (state, value) in [
            ("free", row.free),
            ("cached", row.cached),
            ("used", row.used),
        ] {
            let numa = row.numa.to_string();
            let labels = [
                ("arena", row.name.as_str()),
                ("numa", &numa),
                ("state", state),
            ];
            put(&labels, value as f64);
        }
    });
    let name = "volley_buffer_allocation_failures_total";
    page.rows(
        (
            name,
            COUNTER,
            "Buffers that were requested and not available.",
        ),
        rows,
        |put, row| {
            let numa = row.numa.to_string();
            put(
                &[("arena", &row.name), ("numa", &numa)],
                row.failures as f64,
            );
        },
    );
}

fn holder_figures(rows: &[HolderRow], page: &mut Page) {
    type Read = fn(&HolderRow) -> u64;
    let figures: [(&str, &str, &str, Read); 4] = [
        (
            "volley_buffers_held",
            GAUGE,
            "Buffers that a holder keeps outside the graph.",
            |row| row.held,
        ),
        (
            "volley_buffers_held_limit",
            GAUGE,
            "Buffers that a holder may keep: its share of the pool.",
            |row| row.limit,
        ),
        (
            "volley_buffers_held_evicted_total",
            COUNTER,
            "Packets that yielded to newer ones because a holder was at its limit.",
            |row| row.evicted,
        ),
        (
            "volley_buffers_held_refused_total",
            COUNTER,
            "Packets that found the share of a holder full.",
            |row| row.refused,
        ),
    ];
    for (name, kind, help, read) in figures {
        page.rows((name, kind, help), rows, |put, row| {
            put(&[("holder", &row.name)], read(row) as f64);
        });
    }
}
