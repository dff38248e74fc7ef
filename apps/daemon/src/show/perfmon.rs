//! `show perfmon` and `show perfmon bundle`: the queries, their replies, their text, and figures on the page of metrics.

use crate::perfmon::PerfmonBundle;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use volley_object::Query;
use volley_show::{COUNTER, Page, table};

/// Events of each node: for each packet and for each call, of the bundle that runs or ran last.
#[derive(Clone, Debug, PartialEq, Query)]
#[query(name = "perfmon", show = "show perfmon [statistics]")]
#[query(example = "show perfmon statistics")]
#[query(reply = PerfmonReply, text = statistics, figures = figures)]
pub struct ShowPerfmon;

/// Bundles of events that can be counted, and whether this machine counts them.
#[derive(Clone, Debug, PartialEq, Query)]
#[query(name = "perfmon-bundles", show = "show perfmon bundle [<bundle>]")]
#[query(example = "show perfmon bundle")]
#[query(reply = PerfmonBundlesReply, text = bundles)]
pub struct ShowPerfmonBundles {
    /// Only this bundle.
    pub bundle: Option<PerfmonBundle>,
}

/// What was counted.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct PerfmonReply {
    /// The bundle that runs or ran last.
    pub bundle: Option<String>,
    /// What counts its events: `PMU` or `kernel`.
    pub source: Option<String>,
    /// Whether the bundle runs.
    pub is_running: bool,
    /// Seconds that it has run.
    pub seconds: f64,
    /// Names of the events of the bundle.
    pub events: Vec<String>,
    /// The name of the quotient of two events.
    pub ratio: Option<String>,
    /// One per worker, in order.
    pub workers: Vec<PerfmonWorker>,
}

/// What was counted on one worker.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct PerfmonWorker {
    /// Number of the worker.
    pub worker: u32,
    /// How the worker reads its counters: `rdpmc` (in user mode), or `read` if it has read any by a system call, which costs more.
    pub read_by: String,
    /// Nodes in order of name.
    pub nodes: Vec<PerfmonNode>,
}

/// The events of one node.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct PerfmonNode {
    /// Name of the node.
    pub node: String,
    /// Calls that were counted.
    pub calls: u64,
    /// Packets of these calls.
    pub packets: u64,
    /// Calls during which another program had the processor's counters: they are in no figure but the totals.
    pub uncounted_calls: u64,
    /// Events in the order of the bundle.
    pub events: Vec<PerfmonEvent>,
    /// The quotient of two events.
    pub ratio: Option<f64>,
}

/// One event of a node. Figures that are not known are missing.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct PerfmonEvent {
    /// Name of the event.
    pub event: String,
    /// Events of the calls that were counted.
    pub counted: Option<u64>,
    /// All events; those of calls that were not counted are estimated, so that the number can fall.
    pub total: Option<f64>,
    /// Events for each packet.
    pub per_packet: Option<f64>,
    /// Events for each call.
    pub per_call: Option<f64>,
}

/// Bundles.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct PerfmonBundlesReply {
    /// All bundles, or the requested one.
    pub bundles: Vec<PerfmonBundleRow>,
}

/// One bundle.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct PerfmonBundleRow {
    /// Name of the bundle.
    pub bundle: String,
    /// The events of the bundle in a sentence.
    pub text: String,
    /// What counts the events: `PMU` or `kernel`.
    pub source: String,
    /// Names of the events.
    pub events: Vec<String>,
    /// Events among them that this processor does not count.
    pub missing: Vec<String>,
    /// Why the bundle cannot be started, if it cannot.
    pub why_not: Option<String>,
}

fn figure(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |it| format!("{it:.2}"))
}

fn statistics(reply: &PerfmonReply) -> String {
    let (Some(bundle), Some(source)) = (&reply.bundle, &reply.source) else {
        return "nothing was counted: `perfmon start bundle NAME` starts, `show perfmon bundle` lists the bundles\n".to_owned();
    };
    let state = if reply.is_running {
        "running"
    } else {
        "stopped"
    };
    let mut out = format!(
        "bundle {bundle} ({source}), {state}, {:.1} s\n",
        reply.seconds
    );
    for worker in &reply.workers {
        let number = worker.worker;
        out += &format!(
            "Thread worker{number}, counters read by {}\n",
            worker.read_by
        );
        if worker.nodes.is_empty() {
            out += "  no node has run\n";
            continue;
        }
        out += &nodes(reply, worker);
        let uncounted = worker
            .nodes
            .iter()
            .map(|it| it.uncounted_calls)
            .sum::<u64>();
        if uncounted > 0 {
            out += &format!(
                "  {uncounted} calls were not counted: another program had the processor's counters\n"
            );
        }
    }
    out
}

fn nodes(reply: &PerfmonReply, worker: &PerfmonWorker) -> String {
    let of = |event: &String, unit: &str| format!(">{event}/{unit}");
    let mut heads: Vec<String> = ["Name", ">Calls", ">Packets"].map(str::to_owned).into();
    heads.extend(reply.events.iter().map(|it| of(it, "packet")));
    heads.extend(reply.events.iter().map(|it| of(it, "call")));
    heads.extend(reply.ratio.iter().map(|it| format!(">{it}")));
    let row = |it: &PerfmonNode| {
        let mut row = vec![
            it.node.clone(),
            it.calls.to_string(),
            it.packets.to_string(),
        ];
        row.extend(it.events.iter().map(|it| figure(it.per_packet)));
        row.extend(it.events.iter().map(|it| figure(it.per_call)));
        row.extend(reply.ratio.iter().map(|_| figure(it.ratio)));
        row
    };
    let heads: Vec<&str> = heads.iter().map(String::as_str).collect();
    let rows: Vec<_> = worker.nodes.iter().map(row).collect();
    table(&heads, &rows)
}

fn bundles(reply: &PerfmonBundlesReply) -> String {
    let row = |it: &PerfmonBundleRow| {
        let has = |event: &&String| !it.missing.contains(event);
        let events: Vec<&str> = it.events.iter().filter(has).map(String::as_str).collect();
        let available = if it.why_not.is_none() { "yes" } else { "no" };
        vec![
            it.bundle.clone(),
            it.source.clone(),
            available.to_owned(),
            events.join(", "),
        ]
    };
    let rows: Vec<_> = reply.bundles.iter().map(row).collect();
    let mut out = table(&["Bundle", "Source", "Available", "Events"], &rows);
    let mut reasons: Vec<(&str, &str)> = Vec::new();
    for it in &reply.bundles {
        let reason = it.why_not.as_deref().map(|why| (it.source.as_str(), why));
        reasons.extend(reason.filter(|reason| !reasons.contains(reason)));
    }
    for (source, why) in reasons {
        out += &format!("{source}: {why}\n");
    }
    out
}

fn figures(reply: &PerfmonReply, page: &mut Page) {
    let help = "Events of the bundle that runs or ran last, since its start, in the calls that were counted.";
    let name = "volley_perfmon_events_total";
    page.rows((name, COUNTER, help), &reply.workers, |put, worker| {
        let thread = format!("worker{}", worker.worker);
        for node in &worker.nodes {
            for event in &node.events {
                let labels = [
                    ("worker", thread.as_str()),
                    ("node", node.node.as_str()),
                    ("event", event.event.as_str()),
                ];
                // Not the total: an estimate can fall, which is a restart for a program that reads counters.
                if let Some(counted) = event.counted {
                    put(&labels, counted as f64);
                }
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(name: &str, total: Option<f64>, per_packet: Option<f64>) -> PerfmonEvent {
        PerfmonEvent {
            event: name.to_owned(),
            counted: total.map(|it| it as u64),
            total,
            per_packet,
            per_call: per_packet.map(|it| 256.0 * it),
        }
    }

    fn reply() -> PerfmonReply {
        let node = PerfmonNode {
            node: "ip4-lookup".into(),
            calls: 4,
            packets: 1024,
            uncounted_calls: 1,
            events: vec![
                event("instructions", Some(37_120.0), Some(29.0)),
                event("cycles", None, None),
            ],
            ratio: None,
        };
        PerfmonReply {
            bundle: Some("inst-and-clock".into()),
            source: Some("PMU".into()),
            is_running: true,
            seconds: 2.04,
            events: vec!["instructions".into(), "cycles".into()],
            ratio: Some("IPC".into()),
            workers: vec![
                PerfmonWorker {
                    worker: 0,
                    read_by: "rdpmc".into(),
                    nodes: vec![node],
                },
                PerfmonWorker {
                    worker: 1,
                    read_by: "rdpmc".into(),
                    nodes: vec![],
                },
            ],
        }
    }

    #[test]
    fn events_are_for_packets_and_for_calls() {
        assert_eq!(
            statistics(&reply()),
            "\
bundle inst-and-clock (PMU), running, 2.0 s
Thread worker0, counters read by rdpmc
Name        Calls  Packets  instructions/packet  cycles/packet  instructions/call  cycles/call  IPC
ip4-lookup      4     1024                29.00              -            7424.00            -    -
  1 calls were not counted: another program had the processor's counters
Thread worker1, counters read by rdpmc
  no node has run
"
        );
        let never = statistics(&PerfmonReply::default());
        assert!(never.starts_with("nothing was counted: "), "{never}");
    }

    #[test]
    fn a_reason_is_shown_once() {
        let row = |bundle: &str, why: Option<&str>| PerfmonBundleRow {
            bundle: bundle.into(),
            source: if why.is_some() { "PMU" } else { "kernel" }.into(),
            events: vec!["a".into(), "b".into()],
            missing: vec!["b".into()],
            why_not: why.map(str::to_owned),
            ..PerfmonBundleRow::default()
        };
        let reply = PerfmonBundlesReply {
            bundles: vec![
                row("x", Some("no PMU")),
                row("y", Some("no PMU")),
                row("z", None),
            ],
        };
        assert_eq!(
            bundles(&reply),
            "\
Bundle  Source  Available  Events
x       PMU     no         a
y       PMU     no         a
z       kernel  yes        a
PMU: no PMU
"
        );
    }
}
