//! Answers as text: tables for people, or JSON.

mod config;
mod graph;
mod interfaces;
mod log;
pub(crate) mod ping;
mod runtime;
mod system;
mod workers;

pub(crate) use config::text as config;
pub use ping::{arping_failure, arping_head, arping_line, arping_summary};
use volley_model::{Applied, Reply};
pub use volley_object::View;

/// An answer as text; ends with a newline unless empty.
pub fn text(reply: &Reply, view: View) -> String {
    match (reply, view) {
        (Reply::Registered(answer), view) => answer.text(view),
        (Reply::Version(r), _) => system::version(r),
        (Reply::Interfaces(r), View::Named("address")) => interfaces::addresses(r),
        (Reply::Interfaces(r), View::Verbose) => interfaces::interfaces(r),
        (Reply::Interfaces(r), _) => interfaces::brief(r),
        (Reply::Hardware(r), _) => interfaces::hardware(r),
        (Reply::Runtime(r), view) => runtime::runtime(r, view == View::Verbose),
        (Reply::Errors(r), _) => runtime::errors(r),
        (Reply::Drops(r), _) => runtime::drops(r),
        (Reply::Trace(r), _) => runtime::trace(r),
        (Reply::Node(r), _) => graph::node(r),
        (Reply::Graph(r), View::Named("dot")) => graph::dot(r),
        (Reply::Graph(r), _) => graph::graph(r),
        (Reply::Ping(r), _) => ping::ping(r),
        (Reply::Traceroute(r), _) => ping::traceroute(r),
        (Reply::Arping(r), _) => ping::arping(r),
        (Reply::Buffers(r), _) => system::buffers(r),
        (Reply::Features(r), _) => graph::features(r),
        (Reply::RxPlacement(r), _) => interfaces::placement(r),
        (Reply::Workers(r), View::Named("load")) => workers::load(r),
        (Reply::Workers(r), _) => workers::workers(r),
        (Reply::Log(r), _) => log::log(r),
        (Reply::Pauses(r), _) => workers::pauses(r),
        (Reply::Process(r), _) => system::process(r),
    }
}

/// An answer as JSON, without the name of the query around it.
pub fn json(reply: &Reply) -> serde_json::Value {
    if let Reply::Registered(answer) = reply {
        return answer.json();
    }
    match serde_json::to_value(reply) {
        Ok(serde_json::Value::Object(map)) => map
            .into_iter()
            .next()
            .map_or(serde_json::Value::Null, |(_, v)| v),
        Ok(other) => other,
        Err(_) => serde_json::Value::Null,
    }
}

/// What a change did, as text: nothing when all is said by its success.
pub fn applied(applied: &Applied) -> String {
    let mut out = String::new();
    for note in &applied.notes {
        out += &format!("{note}\n");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use volley_model::reply::*;

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
        let reply = Reply::Runtime(RuntimeReply {
            workers: vec![worker],
        });
        assert_eq!(
            text(&reply, View::Table),
            "\
Thread worker0, core 1: 2.0 s, 0.00 loops/sec, 256.00 vectors/node call
  vector rates in 10.4M, out 0.00, drop 0.00 packets/sec, longest round 0.0 us
Name        State   Calls  Vectors  Suspends  Clocks  Vectors/Call
ip4-lookup  active      4     1024         0    8.00        256.00
"
        );
        assert!(text(&reply, View::Verbose).contains("ip6-lookup"));
        assert_eq!(
            json(&reply)["workers"][0]["nodes"][0]["cycles_per_packet"],
            8.0
        );
    }

    #[test]
    fn errors_are_in_columns_faults_first() {
        let told = ErrorRow {
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
        let reply = Reply::Errors(ErrorsReply {
            errors: vec![told, row],
        });
        assert_eq!(
            text(&reply, View::Table),
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
        let reply = Reply::Trace(TraceReply {
            packets: vec![packet],
            more: 2,
        });
        assert_eq!(
            text(&reply, View::Table),
            "Packet 1\n\n01:01:01:500000: pg-input\n  stream s0\n  length 64\n\n2 more traced packets are not shown\n"
        );
        assert_eq!(
            text(&Reply::Trace(TraceReply::default()), View::Table),
            "No packets in trace buffer\n"
        );
    }

    #[test]
    fn graphs_are_drawn_and_interfaces_listed() {
        let edge = NodeEdge {
            index: 0,
            node: "ip4-lookup".into(),
        };
        let node = GraphNode {
            name: "ip4-input".into(),
            kind: "internal".into(),
            next: vec![edge],
        };
        let out = text(
            &Reply::Graph(GraphReply { nodes: vec![node] }),
            View::Named("dot"),
        );
        assert!(
            out.contains("  \"ip4-input\" -> \"ip4-lookup\";\n"),
            "{out}"
        );
        let row = InterfaceRow {
            name: "pg0".into(),
            index: 1,
            mtu: 9000,
            addresses: vec!["192.0.2.1/24".parse().unwrap()],
            rx: Counter {
                packets: 5,
                bytes: 300,
            },
            ..InterfaceRow::default()
        };
        let quiet = InterfaceRow {
            name: "pg1".into(),
            ..row.clone()
        };
        let quiet = InterfaceRow {
            rx: Counter::default(),
            ..quiet
        };
        let reply = Reply::Interfaces(InterfacesReply {
            interfaces: vec![row, quiet],
        });
        let brief = text(&reply, View::Table);
        let last = brief.lines().last().unwrap().split_whitespace();
        let wanted = ["pg1", "down", "9000", "-", "-", "-", "-", "-", "0", "0"];
        assert_eq!(last.collect::<Vec<_>>(), wanted);
        let out = text(&reply, View::Verbose);
        let words: Vec<Vec<_>> = out
            .lines()
            .map(|l| l.split_whitespace().collect())
            .collect();
        assert_eq!(words[1], ["pg0", "1", "down", "9000", "rx", "packets", "5"]);
        assert_eq!(words[2], ["rx", "bytes", "300"]);
        assert_eq!(words[3], ["pg1", "1", "down", "9000"]);
        assert_eq!(
            text(&reply, View::Named("address")),
            "pg0 (dn):\n  L3 192.0.2.1/24\npg1 (dn):\n  L3 192.0.2.1/24\n"
        );
    }
}
