//! The replies of the handlers, without numbers that a start assigns or a clock counts.

use crate::stack::Stack;
use serde_json::Value;
use volley_object::Asked;

/// Keys whose values are numbers of slots, counters or clocks, and not configuration.
const NUMBERS: [&str; 13] = [
    "index",
    "load_balance",
    "age_s",
    "bytes",
    "sent",
    "rx",
    "tx_errors",
    "rx_errors",
    "drops",
    "more",
    "enabled",
    "queues",
    // Rings between workers stay, with their counters, after the last interface that uses them.
    "handoffs",
];

/// The progress of a connection attempt: it depends on the time of the query.
const PROGRESS: [&str; 3] = ["link_reason", "reason", "draining"];

/// Lists in the order in which their items were created.
const SETS: [&str; 9] = [
    "interfaces",
    "hardware",
    "routes",
    "paths",
    "buckets",
    "neighbors",
    "bindings",
    "streams",
    "placement",
];

/// Queries about clocks, counters, threads and memory, and about the graph, which is the same for all configurations.
const MOMENTS: [&str; 14] = [
    "buffers",
    "control-latency",
    "drops",
    "errors",
    "graph",
    "log",
    "memory",
    "node",
    "pauses",
    "process",
    "runtime",
    "trace",
    "version",
    "workers",
];

fn plain(value: &mut Value) {
    match value {
        Value::Object(map) => {
            let counter = |v: &Value| v.get("packets").is_some();
            map.retain(|k, v| {
                !PROGRESS.contains(&k.as_str())
                    && (!NUMBERS.contains(&k.as_str()) || v.is_string())
                    && !counter(v)
            });
            for (key, value) in map.iter_mut() {
                plain(value);
                if let (true, Value::Array(all)) = (SETS.contains(&key.as_str()), value) {
                    all.sort_by_key(ToString::to_string);
                }
            }
        }
        Value::Array(all) => all.iter_mut().for_each(plain),
        _ => {}
    }
}

/// Every registered query about configuration, without parameters, and with each value of a required choice.
fn registered() -> Vec<Asked> {
    let all = volley_object::classes();
    let of_query = |query: &volley_object::QueryClass| {
        let class = query.class();
        let fields: Vec<_> = class.fields().iter().collect();
        let choice = fields.iter().position(|field| field.required());
        let values = choice.map(|at| fields[at].kind.samples().into_iter().map(Some).collect());
        let ask = |value: Option<volley_object::Value>| {
            let mut slots = vec![None; fields.len()];
            if let Some(at) = choice {
                slots[at] = value;
            }
            query.call(slots).unwrap()
        };
        let values: Vec<Option<volley_object::Value>> = values.unwrap_or_else(|| vec![None]);
        values.into_iter().map(ask).collect::<Vec<_>>()
    };
    let all = all
        .queries()
        .filter(|query| query.stream().is_none() && !MOMENTS.contains(&query.name()));
    all.flat_map(of_query).collect()
}

/// Every reply about configuration, as text that differs if the routers differ.
pub fn seen(stack: &Stack) -> String {
    let mut out = String::new();
    for query in registered() {
        match stack.query(&query) {
            Ok(reply) => {
                let mut reply = reply.json();
                plain(&mut reply);
                out += &format!("{reply:#}\n");
            }
            // Queries that only a daemon answers.
            Err(error) => out += &format!("{error}\n"),
        }
    }
    out
}

/// The first differing lines of two such texts, because the whole texts are too long to read.
pub fn differences(one: &str, other: &str) -> Vec<String> {
    let longer = one.lines().count().max(other.lines().count());
    let padded = |text: &'_ str| {
        let lines: Vec<String> = text.lines().map(|l| l.trim().to_owned()).collect();
        lines
            .into_iter()
            .chain(std::iter::repeat(String::new()))
            .take(longer)
    };
    let pairs = padded(one).zip(padded(other)).enumerate();
    let differ = pairs.filter(|(_, (a, b))| a != b);
    differ
        .take(20)
        .map(|(n, (a, b))| format!("line {}: {a} | {b}", n + 1))
        .collect()
}
