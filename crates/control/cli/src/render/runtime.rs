//! `show runtime | errors | drops | trace`.

use volley_model::reply::{
    DropsReply, ErrorRow, ErrorsReply, NodeRuntime, RuntimeReply, Severity, TraceReply,
    WorkerRuntime,
};
use volley_show::{WIDTH, or_dash, rate, table, wrapped};

pub(super) fn runtime(reply: &RuntimeReply, idle_too: bool) -> String {
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

/// Clocks are per packet; of a node that never had one, per call.
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

/// What went wrong, then what is only information.
pub(super) fn errors(reply: &ErrorsReply) -> String {
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

/// Counters by node, each with its sentence, which goes on below where it is long.
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

pub(super) fn drops(reply: &DropsReply) -> String {
    if reply.drops.is_empty() {
        return "no packet was dropped\n".to_string();
    }
    let row = |d: &volley_model::reply::DropRow| {
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

pub(super) fn trace(reply: &TraceReply) -> String {
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

/// `HH:MM:SS:ffffff` since start.
fn clock(seconds: f64) -> String {
    let micros = (seconds.max(0.0) * 1e6).min(1e15) as u64;
    let (s, us) = (micros / 1_000_000, micros % 1_000_000);
    format!("{:02}:{:02}:{:02}:{us:06}", s / 3600, s / 60 % 60, s % 60)
}
