//! The fields of `volley bench --json` that the tools read. A missing field is an error that names it.

use crate::home::Home;
use crate::run::Program;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Minimum, median and maximum of the repetitions.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq)]
pub struct Spread {
    /// Smallest figure.
    pub min: f64,
    /// Median.
    pub median: f64,
    /// Largest figure.
    pub max: f64,
}

/// One run of `volley bench --scenario ... --json`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Bench {
    /// Name of the scenario.
    pub scenario: String,
    /// Distribution of the destinations.
    pub destinations: String,
    /// Number of prefixes in the table.
    pub prefixes: u64,
    /// Maximum number of packets in a vector.
    pub vector_size: u32,
    /// Instruction-set level.
    pub isa: String,
    /// `graph`, or `rtc` for packet by packet.
    pub style: String,
    /// Number of packets in all repetitions.
    pub packets: u64,
    /// Seconds of one repetition.
    pub seconds: f64,
    /// Million packets per second.
    pub mpps: Spread,
    /// TSC cycles per packet in the graph, after the source.
    pub cycles_per_packet: Spread,
    /// Cycles per packet including time in which another process used the core's units.
    pub cycles_per_packet_disturbed: Spread,
    /// Fraction of the time without such a disturbance.
    pub undisturbed: f64,
    /// Speed of the core: core cycles per TSC cycle.
    pub core_cycles_per_tsc: Spread,
    /// The cost of each node.
    #[serde(default)]
    pub nodes: Vec<NodeCost>,
    /// Cycles per packet including the source and the rounds' cost outside nodes.
    pub together_cycles_per_packet: Spread,
    /// Cycles per packet of all sources, including those without packets.
    pub source_cycles_per_packet: Spread,
    /// TSC cycles per packet of the main loop itself.
    pub loop_cycles_per_packet: f64,
    /// TSC cycles per round of the main loop itself.
    pub loop_cycles_per_round: Spread,
    /// Bytes of the longest-prefix-match table.
    #[serde(default)]
    pub lpm_bytes: Option<u64>,
    /// Load time of the routing table in seconds.
    #[serde(default)]
    pub table_load_seconds: Option<f64>,
    /// Dropped packets by reason.
    #[serde(default)]
    pub drops: BTreeMap<String, u64>,
    /// True only after a sample of outputs was checked against a plain model.
    pub verified: bool,
}

/// Cost of one node.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct NodeCost {
    /// Name of the node.
    pub name: String,
    /// Calls.
    pub calls: u64,
    /// Packets.
    pub vectors: u64,
    /// TSC cycles per packet.
    pub cycles_per_packet: f64,
    /// Packets per call.
    pub vectors_per_call: f64,
}

/// One run of `volley bench lpm --json`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct LpmBench {
    /// Number of prefixes in the table.
    pub prefixes: u64,
    /// Bytes of the table.
    pub bytes: u64,
    /// Build time of the table in seconds.
    pub build_seconds: f64,
    /// TSC cycles per lookup, batched.
    pub batched_cycles_per_lookup: Spread,
    /// Lookups per second, batched.
    pub batched_lookups_per_second: f64,
    /// TSC cycles per lookup, one at a time.
    #[serde(default)]
    pub single_cycles_per_lookup: Option<Spread>,
    /// Routes changed per second.
    #[serde(default)]
    pub updates_per_second: Option<f64>,
    /// Every lookup of the sample agreed with the linear reference.
    pub verified: bool,
}

/// Runs `volley ARGS --json` and parses its output.
pub fn json<T: for<'de> Deserialize<'de>>(
    home: &Home,
    args: &[&str],
    limit_seconds: u64,
) -> Result<T, String> {
    let volley = home.volley();
    if !volley.is_file() {
        return Err(format!(
            "{} is not built (cargo build --release)",
            volley.display()
        ));
    }
    let output = Program::new(home, &volley)
        .args(args)
        .arg("--json")
        .limit_seconds(limit_seconds)
        .require()?;
    parse(&output.stdout).map_err(|reason| format!("`volley {} --json`: {reason}", args.join(" ")))
}

fn parse<T: for<'de> Deserialize<'de>>(text: &str) -> Result<T, String> {
    // Skips a notice before the object (for example the name of the loaded table).
    let start = text.find('{').ok_or("no JSON object in its output")?;
    serde_json::from_str(text[start..].trim_end()).map_err(|error| error.to_string())
}

/// Runs a benchmark and requires that its outputs were verified.
pub fn bench(home: &Home, args: &[&str], seconds: u64) -> Result<Bench, String> {
    let full: Vec<&str> = ["bench"].iter().chain(args).copied().collect();
    let run: Bench = json(home, &full, 120 + 25 * seconds)?;
    if run.verified {
        Ok(run)
    } else {
        Err(format!(
            "`volley {}`: its outputs were not verified",
            full.join(" ")
        ))
    }
}

/// Tests, and a sample of the output of `volley bench`.
#[cfg(test)]
pub mod tests {
    use super::*;

    /// Output of `volley bench --json`.
    pub const SAMPLE: &str = r#"loading...
        {"scenario":"ip4","destinations":"uniform","prefixes":1042325,"vector_size":256,"isa":"x86-64-v3","style":"graph",
         "packets":1000,"seconds":1.0,"mpps":{"min":50.0,"median":55.5,"max":60.0},
         "cycles_per_packet":{"min":30.0,"median":33.25,"max":40.0},
         "cycles_per_packet_disturbed":{"min":31.0,"median":36.5,"max":48.0},"undisturbed":0.9,
         "core_cycles_per_tsc":{"min":1.0,"median":1.1,"max":1.2},
         "nodes":[{"name":"ip4-lookup","calls":4,"vectors":1000,"cycles_per_packet":7.5,"vectors_per_call":250.0}],
         "source_cycles_per_packet":{"min":8.5,"median":9.0,"max":9.5},"together_cycles_per_packet":{"min":43.0,"median":44.0,"max":50.0},
         "loop_cycles_per_packet":0.5,"loop_cycles_per_round":{"min":60.0,"median":64.0,"max":90.0},"lpm_bytes":7000000,"table_load_seconds":0.4,"drops":{"ip4-lookup: no-route":3},
         "verified":true,"something_new":1}"#;

    #[test]
    fn the_schema_of_the_issue_is_read() {
        let run: Bench = parse(SAMPLE).unwrap();
        assert_eq!(run.cycles_per_packet.median, 33.25);
        assert_eq!(run.nodes[0].name, "ip4-lookup");
        assert_eq!(run.drops["ip4-lookup: no-route"], 3);
    }

    #[test]
    fn what_is_missing_is_named() {
        let error = parse::<Bench>(&SAMPLE.replace("\"verified\":true,", "")).unwrap_err();
        assert!(error.contains("verified"), "{error}");
        assert!(parse::<Bench>("nothing").is_err());
    }
}
