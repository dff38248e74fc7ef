//! `show workers`, `show load` and `show pauses`: the queries, their replies, and their text.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use volley_object::Query;
use volley_show::{or_dash, table};

/// Workers: core, receive queues, load, rounds, sleeps, the longest round, what each runs.
#[derive(Clone, Debug, PartialEq, Query)]
#[query(
    name = "workers",
    show = "show workers",
    show = "show load",
    example = "show workers"
)]
#[query(reply = WorkersReply, text = workers)]
#[query(view(load = load, "How much of its time each worker has work, which polling hides, and how full its vectors are."))]
pub struct ShowWorkers;

/// The longest gaps in each worker's rounds, and what the control thread was doing then.
#[derive(Clone, Debug, PartialEq, Query)]
#[query(name = "pauses", show = "show pauses", example = "show pauses")]
#[query(reply = PausesReply, text = pauses)]
pub struct ShowPauses;

/// Workers.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct WorkersReply {
    /// Most workers at a time.
    pub places: u32,
    /// The largest difference of two workers' load of the last second, in points of a hundred.
    pub imbalance: f64,
    /// One per worker, in order.
    pub workers: Vec<WorkerRow>,
}

/// One worker.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct WorkerRow {
    /// Number of the worker.
    pub worker: u32,
    /// Core it is pinned to.
    pub core: Option<u32>,
    /// The NUMA node of that core, from which its buffers come.
    pub numa: Option<u32>,
    /// `polling`, `sleeping`, `leaving`, or `stalled`: no round for longer than a second.
    pub state: String,
    /// Receive queues of the worker (`tap0 queue 1`).
    pub queues: Vec<String>,
    /// Share of the last second in rounds that found packets.
    pub load_percent: f64,
    /// The same since the last clear.
    pub load_since_clear_percent: f64,
    /// Rounds since the last clear.
    pub rounds: u64,
    /// Rounds that found packets, since the last clear.
    pub busy_rounds: u64,
    /// Share of rounds that found none, since the last clear.
    pub empty_rounds_percent: f64,
    /// Packets in since the last clear.
    pub rx_packets: u64,
    /// Packets in a second, over the last second.
    pub packets_per_second: f64,
    /// Packets of a round that found some, averaged since the last clear.
    pub packets_per_round: f64,
    /// The same as a share of the vector size, at most 100.
    pub vector_fill_percent: f64,
    /// Times it slept since the daemon started.
    pub sleeps: u64,
    /// The longest round since the last clear, in microseconds.
    pub longest_round_us: f64,
    /// Times that it was stalled for longer than a second.
    pub stalls: u64,
    /// The node that it ran last.
    pub node: String,
    /// The calls in which it was last stalled, the innermost first.
    pub stalled_in: Vec<String>,
}

/// Where workers paused.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct PausesReply {
    /// The shortest gap that is recorded.
    pub threshold_us: u32,
    /// One per worker, in order.
    pub workers: Vec<WorkerPauses>,
}

/// Where one worker paused.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct WorkerPauses {
    /// Number of the worker.
    pub worker: u32,
    /// The longest gap between the ends of two rounds since the last clear, sleep aside, in microseconds.
    pub longest_us: f64,
    /// Gaps over the threshold since the last clear.
    pub over: u64,
    /// The longest of them, longest first.
    pub gaps: Vec<Pause>,
}

/// One gap.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Pause {
    /// How long, in microseconds.
    pub gap_us: f64,
    /// How many seconds ago it ended.
    pub ago_s: f64,
    /// The node that the worker ran last in it.
    pub node: String,
    /// The request that the control thread was carrying out meanwhile, if it was.
    pub during: Option<String>,
}

fn workers(reply: &WorkersReply) -> String {
    let row = |w: &WorkerRow| {
        vec![
            w.worker.to_string(),
            or_dash(w.core),
            or_dash(w.numa),
            w.state.clone(),
            w.queues.len().to_string(),
            format!("{:.1}%", w.load_percent),
            w.rounds.to_string(),
            w.sleeps.to_string(),
            format!("{:.1}", w.longest_round_us),
            w.stalls.to_string(),
            w.node.clone(),
        ]
    };
    let rows: Vec<_> = reply.workers.iter().map(row).collect();
    let mut out = table(
        &[
            "Worker",
            ">Core",
            ">NUMA",
            "State",
            ">Queues",
            ">Load",
            ">Rounds",
            ">Sleeps",
            ">Longest us",
            ">Stalls",
            "Last node",
        ],
        &rows,
    );
    for worker in reply.workers.iter().filter(|w| !w.queues.is_empty()) {
        out += &format!("worker {}: {}\n", worker.worker, worker.queues.join(", "));
    }
    for worker in reply.workers.iter().filter(|w| !w.stalled_in.is_empty()) {
        out += &format!(
            "worker {} stood still in\n  {}\n",
            worker.worker,
            worker.stalled_in.join("\n  ")
        );
    }
    out += &format!(
        "{} of {} places have a worker; load imbalance {:.1} points\n",
        reply.workers.len(),
        reply.places,
        reply.imbalance
    );
    out
}

/// The load of workers without polling: a polling worker uses all of its core with or without packets.
fn load(reply: &WorkersReply) -> String {
    let row = |w: &WorkerRow| {
        vec![
            w.worker.to_string(),
            format!("{:.1}%", w.load_percent),
            format!("{:.1}%", w.load_since_clear_percent),
            format!("{:.1}", w.packets_per_round),
            format!("{:.1}%", w.vector_fill_percent),
            format!("{:.1}%", w.empty_rounds_percent),
            format!("{:.0}", w.packets_per_second),
        ]
    };
    let rows: Vec<_> = reply.workers.iter().map(row).collect();
    table(
        &[
            "Worker",
            ">Last second",
            ">Since clear",
            ">Packets/round",
            ">Vector fill",
            ">Empty rounds",
            ">Packets/sec",
        ],
        &rows,
    )
}

fn pauses(reply: &PausesReply) -> String {
    let mut out = String::new();
    for worker in &reply.workers {
        out += &format!(
            "worker {}: longest gap {:.1} us, {} gaps over {} us\n",
            worker.worker, worker.longest_us, worker.over, reply.threshold_us
        );
        for gap in &worker.gaps {
            let during = gap.during.as_deref().unwrap_or("nothing");
            out += &format!(
                "  {:>10.1} us, {:.3} s ago, last node {}, control thread: {during}\n",
                gap.gap_us, gap.ago_s, gap.node
            );
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_worker_does_and_where_it_paused() {
        let reply = WorkersReply {
            places: 8,
            imbalance: 0.0,
            workers: vec![WorkerRow {
                worker: 1,
                core: Some(3),
                numa: Some(1),
                state: "polling".into(),
                queues: vec!["tap0 queue 0".into(), "tap0 queue 1".into()],
                load_percent: 12.34,
                vector_fill_percent: 50.0,
                node: "ip4-lookup".into(),
                stalled_in: vec!["inner a.rs:1".into(), "outer b.rs:2".into()],
                ..WorkerRow::default()
            }],
        };
        let text = workers(&reply);
        assert!(
            text.contains("12.3%") && text.contains("ip4-lookup"),
            "{text}"
        );
        assert!(
            text.contains("worker 1: tap0 queue 0, tap0 queue 1\nworker 1 stood still in\n  inner a.rs:1\n  outer b.rs:2\n1 of 8 places"),
            "{text}"
        );
        assert!(load(&reply).contains("50.0%"));
        let gap = Pause {
            gap_us: 81.5,
            ago_s: 2.0,
            node: "ip4-rewrite".into(),
            during: Some("set interface mtu 1500 pg0".into()),
        };
        let reply = PausesReply {
            threshold_us: 50,
            workers: vec![WorkerPauses {
                worker: 0,
                longest_us: 81.5,
                over: 3,
                gaps: vec![gap],
            }],
        };
        let text = pauses(&reply);
        assert!(
            text.starts_with("worker 0: longest gap 81.5 us, 3 gaps over 50 us\n"),
            "{text}"
        );
        assert!(
            text.ends_with("last node ip4-rewrite, control thread: set interface mtu 1500 pg0\n")
        );
    }
}
