//! Figures for Prometheus.

mod latency;

pub use latency::{BOUNDS, Histogram, Latencies};

use std::collections::BTreeMap;
use volley_cli::server::Backend;
use volley_model::reply::{
    ArenaRow, DropRow, ErrorRow, HolderRow, InterfaceRow, NodeRuntime, Severity, VersionReply,
    WorkerRuntime,
};
use volley_model::{AdminState, ModelError, Query, Reply};
use volley_object::Answer;
use volley_show::{COUNTER, GAUGE, Page};

/// What the page is made of.
#[derive(Debug, Default)]
pub struct Figures {
    /// Of the daemon.
    pub version: VersionReply,
    /// Of interfaces.
    pub interfaces: Vec<InterfaceRow>,
    /// Of workers and their nodes.
    pub workers: Vec<WorkerRuntime>,
    /// Of nodes: events.
    pub errors: Vec<ErrorRow>,
    /// Of nodes: packets lost.
    pub drops: Vec<DropRow>,
    /// Of buffers.
    pub arenas: Vec<ArenaRow>,
    /// Of those that keep buffers outside the graph.
    pub holders: Vec<HolderRow>,
    /// Of queries that crates of features define.
    pub registered: Vec<Answer>,
}

impl Figures {
    /// Asks for all of them.
    pub async fn gather(backend: &(impl Backend + ?Sized)) -> Result<Figures, ModelError> {
        let mut figures = Figures::default();
        for query in [
            Query::Version,
            Query::Interfaces { name: None },
            Query::Runtime,
            Query::Errors,
            Query::Drops,
            Query::Buffers,
        ] {
            match backend.query(query).await? {
                Reply::Version(reply) => figures.version = reply,
                Reply::Interfaces(reply) => figures.interfaces = reply.interfaces,
                Reply::Runtime(reply) => figures.workers = reply.workers,
                Reply::Errors(reply) => figures.errors = reply.errors,
                Reply::Drops(reply) => figures.drops = reply.drops,
                Reply::Buffers(reply) => {
                    figures.arenas = reply.arenas;
                    figures.holders = reply.holders;
                }
                _ => {}
            }
        }
        for query in volley_object::classes().queries() {
            let Some(asked) = query.for_figures() else {
                continue;
            };
            // One that was removed meanwhile has no figures.
            let reply = backend.query(Query::Registered(asked)).await;
            if let Ok(Reply::Registered(answer)) = reply {
                figures.registered.push(answer);
            }
        }
        Ok(figures)
    }
}

/// The page, in the text format 0.0.4.
pub fn text(figures: &Figures, latencies: &Latencies) -> String {
    let mut page = Page::default();
    daemon(&mut page, &figures.version);
    interfaces(&mut page, &figures.interfaces);
    workers(&mut page, &figures.workers);
    nodes(&mut page, &figures.workers);
    events(&mut page, figures);
    buffers(&mut page, &figures.arenas);
    holders(&mut page, &figures.holders);
    let all = figures.registered.iter();
    all.for_each(|answer| answer.figures(&mut page));
    control(&mut page, latencies);
    page.text()
}

fn daemon(page: &mut Page, version: &VersionReply) {
    page.family("volley_build_info", GAUGE, "Always 1; what runs.");
    let labels = [("version", &version.version[..]), ("isa", &version.isa)];
    page.sample("volley_build_info", &labels, 1);
    let help = "Seconds since the daemon started.";
    page.family("volley_uptime_seconds", GAUGE, help);
    page.sample("volley_uptime_seconds", &[], version.uptime_s);
}

fn interfaces(page: &mut Page, rows: &[InterfaceRow]) {
    type Read = fn(&InterfaceRow) -> u64;
    let counters: [(&str, &str, Read); 7] = [
        ("receive_packets", "Packets received.", |r| r.rx.packets),
        (
            "receive_bytes",
            "Bytes received, without frame check sequence.",
            |r| r.rx.bytes,
        ),
        ("transmit_packets", "Packets transmitted.", |r| r.tx.packets),
        (
            "transmit_bytes",
            "Bytes transmitted, without frame check sequence.",
            |r| r.tx.bytes,
        ),
        (
            "drops",
            "Packets received on it and dropped anywhere.",
            |r| r.drops,
        ),
        ("receive_errors", "Receive errors.", |r| r.rx_errors),
        ("transmit_errors", "Transmit errors.", |r| r.tx_errors),
    ];
    for (name, help, read) in counters {
        let name = format!("volley_interface_{name}_total");
        page.rows((&name, COUNTER, help), rows, |put, row| {
            put(&[("interface", &row.name)], read(row) as f64);
        });
    }
    let (name, help) = (
        "volley_interface_speed_bits_per_second",
        "Speed of the link, where the device says one.",
    );
    page.rows((name, GAUGE, help), rows, |put, row| {
        if let Some(speed) = row.speed_bps {
            put(&[("interface", &row.name)], speed as f64);
        }
    });
    type State = fn(&InterfaceRow) -> AdminState;
    let states: [(&str, &str, State); 2] = [
        ("volley_interface_admin_up", "1 when it is set up.", |r| {
            r.state
        }),
        ("volley_interface_link_up", "1 when it has a link.", |r| {
            r.link
        }),
    ];
    for (name, help, read) in states {
        page.rows((name, GAUGE, help), rows, |put, row| {
            let up = read(row) == AdminState::Up;
            put(&[("interface", &row.name)], f64::from(u8::from(up)));
        });
    }
}

fn workers(page: &mut Page, rows: &[WorkerRuntime]) {
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

fn nodes(page: &mut Page, workers: &[WorkerRuntime]) {
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

fn events(page: &mut Page, figures: &Figures) {
    // All interfaces together: a drop counts without one until its packet is freed, so the rows by interface may go down.
    let mut drops: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for row in &figures.drops {
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
    let help = "Events that nodes counted and that are no drops.";
    page.rows(
        ("volley_node_events_total", COUNTER, help),
        &figures.errors,
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

fn holders(page: &mut Page, rows: &[HolderRow]) {
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

fn buffers(page: &mut Page, rows: &[ArenaRow]) {
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
        (name, COUNTER, "Buffers asked for that were not there."),
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

fn control(page: &mut Page, latencies: &Latencies) {
    let name = "volley_control_latency_seconds";
    let help = "How long the control plane took to answer; changes until the workers use them.";
    page.family(name, "histogram", help);
    let all = [
        ("query", &latencies.query),
        ("change", &latencies.change),
        ("config", &latencies.config),
    ];
    for (operation, histogram) in all {
        let counts = histogram.cumulative();
        let bounds = BOUNDS.iter().map(ToString::to_string);
        for (bound, count) in bounds.chain(["+Inf".to_owned()]).zip(&counts) {
            let labels = [("operation", operation), ("le", &bound)];
            page.sample(&format!("{name}_bucket"), &labels, count);
        }
        let labels = [("operation", operation)];
        page.sample(&format!("{name}_sum"), &labels, histogram.sum());
        let count = counts.last().copied().unwrap_or_default();
        page.sample(&format!("{name}_count"), &labels, count);
    }
}
