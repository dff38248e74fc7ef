//! `show workers | load | pauses`.

use volley_model::reply::{PausesReply, WorkerRow, WorkersReply};
use volley_show::{or_dash, table};

pub(super) fn workers(reply: &WorkersReply) -> String {
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

/// What workers really have to do: a polling worker takes all of a core whatever comes.
pub(super) fn load(reply: &WorkersReply) -> String {
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

pub(super) fn pauses(reply: &PausesReply) -> String {
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
    use volley_model::reply::{Pause, WorkerPauses};

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
