//! `show runtime`, `show errors`, `show drops` and `show trace`: the queries, their replies, their text, and figures on the
//! page of metrics.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use volley_object::Query;
use volley_show::{COUNTER, GAUGE, Page, WIDTH, or_dash, rate, table, wrapped};

/// Calls, vectors and clocks of nodes; verbose: idle ones too.
#[derive(Clone, Debug, PartialEq, Query)]
#[query(
    name = "runtime",
    show = "show runtime [verbose]",
    example = "show runtime"
)]
#[query(reply = RuntimeReply, text = busy, detail = all, figures = runtime_figures)]
pub struct ShowRuntime;

/// Counters of nodes that are not zero: faults, then information.
#[derive(Clone, Debug, PartialEq, Query)]
#[query(name = "errors", show = "show errors", example = "show errors")]
#[query(reply = ErrorsReply, text = errors, figures = error_figures)]
pub struct ShowErrors;

/// Dropped packets by node, reason and receiving interface, and the last one of each.
#[derive(Clone, Debug, PartialEq, Query)]
#[query(name = "drops", show = "show drops", example = "show drops")]
#[query(reply = DropsReply, text = drops, figures = drop_figures)]
pub struct ShowDrops;

/// Traced packets.
#[derive(Clone, Debug, PartialEq, Query)]
#[query(
    name = "trace",
    show = "show trace [max <max>]",
    example = "show trace max 3",
    large
)]
#[query(reply = TraceReply, text = trace)]
pub struct ShowTrace {
    /// Most packets to show.
    pub max: Option<u64>,
}

/// Clocks of every node, per worker.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct RuntimeReply {
    /// One per worker, in order.
    pub workers: Vec<WorkerRuntime>,
}

/// One worker.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct WorkerRuntime {
    /// Name of the thread (`worker0`, `main`).
    pub name: String,
    /// Core it is pinned to.
    pub core: Option<u32>,
    /// Seconds the figures are of.
    pub seconds: f64,
    /// Packets per internal-node call, averaged.
    pub vectors_per_loop: f64,
    /// Rounds of the main loop per second.
    pub loops_per_second: f64,
    /// Packets in per second.
    pub rx_pps: f64,
    /// Packets out per second.
    pub tx_pps: f64,
    /// Packets dropped per second.
    pub drop_pps: f64,
    /// The longest round in microseconds: the longest that anything kept packets waiting.
    #[serde(default)]
    pub longest_round_us: f64,
    /// Rounds of the main loop.
    #[serde(default)]
    pub rounds: u64,
    /// Rounds that found packets.
    #[serde(default)]
    pub busy_rounds: u64,
    /// Packets in.
    #[serde(default)]
    pub rx_packets: u64,
    /// Seconds spent in rounds that found packets, since the daemon started: what the worker is really used.
    #[serde(default)]
    pub busy_s: f64,
    /// Times it slept since the daemon started.
    #[serde(default)]
    pub sleeps: u64,
    /// Nodes in order of name.
    pub nodes: Vec<NodeRuntime>,
}

/// One node on one worker.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct NodeRuntime {
    /// Name of the node.
    pub name: String,
    /// `active` (internal, has run), `polling`, `interrupt wait`, `any wait`, `event wait`, `done`, `disabled`, `loop` (what
    /// the worker's rounds cost beside its nodes; calls are rounds).
    pub state: String,
    /// Times it ran.
    pub calls: u64,
    /// Packets it was given.
    pub vectors: u64,
    /// Times it waited (process nodes).
    pub suspends: u64,
    /// TSC cycles spent.
    pub cycles: u64,
    /// Cycles per packet; without packets, 0.
    pub cycles_per_packet: f64,
    /// Cycles per call; without calls, 0.
    pub cycles_per_call: f64,
    /// Packets per call; without calls, 0.
    pub vectors_per_call: f64,
    /// Largest vector seen.
    pub max_vector: u32,
}

impl NodeRuntime {
    /// A row from counts; computes the ratios.
    pub fn new(
        name: &str,
        state: &str,
        calls: u64,
        vectors: u64,
        suspends: u64,
        cycles: u64,
    ) -> Self {
        NodeRuntime {
            name: name.to_string(),
            state: state.to_string(),
            calls,
            vectors,
            suspends,
            cycles,
            cycles_per_packet: ratio(cycles, vectors),
            cycles_per_call: ratio(cycles, calls),
            vectors_per_call: ratio(vectors, calls),
            max_vector: 0,
        }
    }
}

fn ratio(a: u64, b: u64) -> f64 {
    if b == 0 { 0.0 } else { a as f64 / b as f64 }
}

/// How bad a counter's event is.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Normal.
    Info,
    /// Worth a look.
    Warn,
    /// A packet was lost or refused.
    #[default]
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Severity::Info => "info",
            Severity::Warn => "warn",
            Severity::Error => "error",
        })
    }
}

/// Counters that are not zero.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ErrorsReply {
    /// In order of node and counter.
    pub errors: Vec<ErrorRow>,
}

/// One counter of one node, summed over workers.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ErrorRow {
    /// Events.
    pub count: u64,
    /// Node.
    pub node: String,
    /// Counter's short name.
    pub reason: String,
    /// How bad.
    pub severity: Severity,
    /// The operator's sentence.
    pub text: String,
}

/// Dropped packets.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct DropsReply {
    /// Sum of all rows.
    pub total: u64,
    /// Most first.
    pub drops: Vec<DropRow>,
}

/// Drops of one node for one reason, of packets from one interface.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct DropRow {
    /// Packets.
    pub count: u64,
    /// Node that decided.
    pub node: String,
    /// Reason's short name.
    pub reason: String,
    /// The operator's sentence.
    pub text: String,
    /// Receiving interface; none for packets without a buffer (none was free), for packets about to be freed, and for packets
    /// of deleted interfaces.
    pub interface: Option<String>,
    /// The last one, decoded, when kept.
    pub sample: Option<String>,
}

/// Traced packets.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct TraceReply {
    /// In order of arrival.
    pub packets: Vec<TracedPacket>,
    /// Traced packets not in this answer.
    pub more: u64,
}

/// The path of one packet.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct TracedPacket {
    /// Number of the packet, from 1.
    pub packet: u32,
    /// Worker.
    pub worker: u32,
    /// Nodes it passed.
    pub steps: Vec<TraceStep>,
}

/// One node of a packet's path.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct TraceStep {
    /// Seconds since the daemon's start.
    pub time_s: f64,
    /// Node.
    pub node: String,
    /// What it did, one or more lines.
    pub text: String,
}

fn busy(reply: &RuntimeReply) -> String {
    runtime(reply, false)
}

fn all(reply: &RuntimeReply) -> String {
    runtime(reply, true)
}

fn runtime(reply: &RuntimeReply, idle_too: bool) -> String {
    let mut out = String::new();
    for worker in &reply.workers {
        if !out.is_empty() {
            out.push_str("---------------\n");
        }
        out += &head(worker);
        let ran = |n: &&NodeRuntime| idle_too || n.calls > 0 || n.suspends > 0;
        let rows: Vec<_> = worker.nodes.iter().filter(ran).map(row).collect();
        out += &table(
            &[
                "Name",
                "State",
                ">Calls",
                ">Vectors",
                ">Suspends",
                ">Clocks",
                ">Vectors/Call",
            ],
            &rows,
        );
    }
    out
}

fn head(w: &WorkerRuntime) -> String {
    let core = w
        .core
        .map_or_else(String::new, |core| format!(", core {core}"));
    format!(
        "Thread {}{core}: {:.1} s, {} loops/sec, {:.2} vectors/node call\n  vector rates in {}, out {}, drop {} packets/sec, longest round {:.1} us\n",
        w.name,
        w.seconds,
        rate(w.loops_per_second),
        w.vectors_per_loop,
        rate(w.rx_pps),
        rate(w.tx_pps),
        rate(w.drop_pps),
        w.longest_round_us,
    )
}

/// A row of the table. Clocks are per packet, or per call for a node that never had a packet.
fn row(n: &NodeRuntime) -> Vec<String> {
    let clocks = if n.vectors > 0 {
        n.cycles_per_packet
    } else {
        n.cycles_per_call
    };
    vec![
        n.name.clone(),
        n.state.clone(),
        n.calls.to_string(),
        n.vectors.to_string(),
        n.suspends.to_string(),
        format!("{clocks:.2}"),
        format!("{:.2}", n.vectors_per_call),
    ]
}

/// Faults, then information.
fn errors(reply: &ErrorsReply) -> String {
    let (information, faults): (Vec<_>, Vec<_>) = reply
        .errors
        .iter()
        .partition(|e| e.severity == Severity::Info);
    if reply.errors.is_empty() {
        return "no counter is other than zero\n".to_owned();
    }
    let mut out = match faults.is_empty() {
        true => "no faults\n".to_owned(),
        false => counters(&faults),
    };
    if !information.is_empty() {
        out += "\nInformation:\n";
        out += &counters(&information);
    }
    out
}

/// Counters by node, each with its sentence, which continues on the next line if it is long.
fn counters(rows: &[&ErrorRow]) -> String {
    let width = |of: fn(&ErrorRow) -> String, head: &str| {
        let all = rows.iter().map(|e| of(e).chars().count());
        all.chain([head.len()]).max().unwrap_or(0)
    };
    let count = width(|e| e.count.to_string(), "Count");
    let node = width(|e| e.node.clone(), "Node");
    let mut out = format!(
        "{:>count$}  {:<node$}  {:<8}  Reason\n",
        "Count", "Node", "Severity"
    );
    let before = count + node + 8 + 6;
    for e in rows {
        let text = wrapped(&e.text, WIDTH.saturating_sub(before).max(20));
        let severity = e.severity.to_string();
        let head = format!("{:>count$}  {:<node$}  {severity:<8}  ", e.count, e.node);
        out += &(head + &text.join(&format!("\n{:before$}", "")) + "\n");
    }
    out
}

fn drops(reply: &DropsReply) -> String {
    if reply.drops.is_empty() {
        return "no packet was dropped\n".to_string();
    }
    let row = |d: &DropRow| {
        vec![
            d.count.to_string(),
            d.node.clone(),
            d.reason.clone(),
            or_dash(d.interface.as_ref()),
            d.text.clone(),
        ]
    };
    let rows: Vec<_> = reply.drops.iter().map(row).collect();
    let mut out = table(
        &[">Packets", "Node", "Reason", "Interface", "Meaning"],
        &rows,
    );
    out += &format!("total {}\n", reply.total);
    for d in &reply.drops {
        let Some(sample) = &d.sample else { continue };
        let from = d.interface.as_ref().map(|name| format!(" from {name}"));
        let from = from.unwrap_or_default();
        out += &format!("last {} at {}{from}:\n  {sample}\n", d.reason, d.node);
    }
    out
}

fn trace(reply: &TraceReply) -> String {
    if reply.packets.is_empty() {
        return "No packets in trace buffer\n".to_string();
    }
    let mut out = String::new();
    for packet in &reply.packets {
        out += &format!("Packet {}\n\n", packet.packet);
        for step in &packet.steps {
            out += &format!("{}: {}\n", clock(step.time_s), step.node);
            for line in step.text.lines() {
                out += &format!("  {line}\n");
            }
        }
        out.push('\n');
    }
    if reply.more > 0 {
        out += &format!("{} more traced packets are not shown\n", reply.more);
    }
    out
}

/// A time since start as `HH:MM:SS:ffffff`.
fn clock(seconds: f64) -> String {
    let micros = (seconds.max(0.0) * 1e6).min(1e15) as u64;
    let (s, us) = (micros / 1_000_000, micros % 1_000_000);
    format!("{:02}:{:02}:{:02}:{us:06}", s / 3600, s / 60 % 60, s % 60)
}

fn runtime_figures(reply: &RuntimeReply, page: &mut Page) {
    worker_figures(&reply.workers, page);
    node_figures(&reply.workers, page);
}

fn worker_figures(rows: &[WorkerRuntime], page: &mut Page) {
    type Read = fn(&WorkerRuntime) -> f64;
    let figures: [(&str, &str, &str, Read); 6] = [
        ("rounds_total", COUNTER, "Rounds of the main loop.", |w| {
            w.rounds as f64
        }),
        (
            "busy_rounds_total",
            COUNTER,
            "Rounds that found packets.",
            |w| w.busy_rounds as f64,
        ),
        (
            "busy_seconds_total",
            COUNTER,
            "Seconds spent in rounds that found packets; its rate is the real utilisation, whatever polling takes.",
            |w| w.busy_s,
        ),
        (
            "packets_total",
            COUNTER,
            "Packets that entered the graph.",
            |w| w.rx_packets as f64,
        ),
        ("sleeps_total", COUNTER, "Times the worker slept.", |w| {
            w.sleeps as f64
        }),
        (
            "longest_round_seconds",
            GAUGE,
            "The longest round since the last clear: the longest that anything kept packets waiting.",
            |w| w.longest_round_us / 1e6,
        ),
    ];
    for (name, kind, help, read) in figures {
        let name = format!("volley_worker_{name}");
        page.rows((&name, kind, help), rows, |put, row| {
            put(&[("worker", &row.name)], read(row))
        });
    }
}

fn node_figures(workers: &[WorkerRuntime], page: &mut Page) {
    type Read = fn(&NodeRuntime) -> f64;
    let figures: [(&str, &str, &str, Read); 4] = [
        ("calls_total", COUNTER, "Times the node ran.", |n| {
            n.calls as f64
        }),
        (
            "packets_total",
            COUNTER,
            "Packets the node was given.",
            |n| n.vectors as f64,
        ),
        (
            "cycles_total",
            COUNTER,
            "Cycles of the time-stamp counter spent.",
            |n| n.cycles as f64,
        ),
        (
            "packets_per_call",
            GAUGE,
            "Packets per call (vector size), averaged since the last clear.",
            |n| n.vectors_per_call,
        ),
    ];
    for (name, kind, help, read) in figures {
        let name = format!("volley_node_{name}");
        page.rows((&name, kind, help), workers, |put, worker| {
            for node in &worker.nodes {
                put(
                    &[("worker", &worker.name), ("node", &node.name)],
                    read(node),
                );
            }
        });
    }
}

fn error_figures(reply: &ErrorsReply, page: &mut Page) {
    let help = "Events that nodes counted and that are no drops.";
    page.rows(
        ("volley_node_events_total", COUNTER, help),
        &reply.errors,
        |put, row| {
            if row.severity != Severity::Error {
                put(
                    &[("node", &row.node), ("event", &row.reason)],
                    row.count as f64,
                );
            }
        },
    );
}

fn drop_figures(reply: &DropsReply, page: &mut Page) {
    // Sums over all interfaces: a drop has no interface until its packet is freed, so the rows by interface may decrease.
    let mut drops: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for row in &reply.drops {
        *drops.entry((&row.node, &row.reason)).or_default() += row.count;
    }
    let help = "Packets dropped, by node and reason.";
    page.rows(
        ("volley_drops_total", COUNTER, help),
        &drops.into_iter().collect::<Vec<_>>(),
        |put, ((node, reason), count)| {
            put(&[("node", node), ("reason", reason)], *count as f64);
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runtime_looks_as_operators_know_it() {
        let nodes = vec![
            NodeRuntime::new("ip4-lookup", "active", 4, 1024, 0, 8192),
            NodeRuntime::new("ip6-lookup", "active", 0, 0, 0, 0),
        ];
        let worker = WorkerRuntime {
            name: "worker0".into(),
            core: Some(1),
            seconds: 2.0,
            vectors_per_loop: 256.0,
            rx_pps: 10.4e6,
            nodes,
            ..WorkerRuntime::default()
        };
        let reply = RuntimeReply {
            workers: vec![worker],
        };
        assert_eq!(
            busy(&reply),
            "\
Thread worker0, core 1: 2.0 s, 0.00 loops/sec, 256.00 vectors/node call
  vector rates in 10.4M, out 0.00, drop 0.00 packets/sec, longest round 0.0 us
Name        State   Calls  Vectors  Suspends  Clocks  Vectors/Call
ip4-lookup  active      4     1024         0    8.00        256.00
"
        );
        assert!(all(&reply).contains("ip6-lookup"));
        let json = serde_json::to_value(&reply).unwrap();
        assert_eq!(json["workers"][0]["nodes"][0]["cycles_per_packet"], 8.0);
    }

    #[test]
    fn errors_are_in_columns_faults_first() {
        let reported = ErrorRow {
            count: 12345,
            node: "ip4-frag".into(),
            reason: "fragments".into(),
            severity: Severity::Info,
            text: "fragments that they were cut into, which is a sentence of more than a line of a terminal".into(),
        };
        let row = ErrorRow {
            count: 7,
            node: "ip4-input".into(),
            reason: "bad-checksum".into(),
            severity: Severity::Error,
            text: "header checksum is wrong".into(),
        };
        let reply = ErrorsReply {
            errors: vec![reported, row],
        };
        assert_eq!(
            errors(&reply),
            "\
Count  Node       Severity  Reason
    7  ip4-input  error     header checksum is wrong

Information:
Count  Node      Severity  Reason
12345  ip4-frag  info      fragments that they were cut into, which is a
                           sentence of more than a line of a terminal
"
        );
    }

    #[test]
    fn traces_and_empty_answers() {
        let step = TraceStep {
            time_s: 3661.5,
            node: "pg-input".into(),
            text: "stream s0\nlength 64".into(),
        };
        let packet = TracedPacket {
            packet: 1,
            worker: 0,
            steps: vec![step],
        };
        let reply = TraceReply {
            packets: vec![packet],
            more: 2,
        };
        assert_eq!(
            trace(&reply),
            "Packet 1\n\n01:01:01:500000: pg-input\n  stream s0\n  length 64\n\n2 more traced packets are not shown\n"
        );
        assert_eq!(
            trace(&TraceReply::default()),
            "No packets in trace buffer\n"
        );
    }
}
