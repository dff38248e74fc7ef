//! `volley bench --counters`: the events of each node by the PMU or by callgrind, and a sentence where neither is there.

mod support;

use serde_json::Value;
use std::process::Command;
use support::{has_pmu, text};

/// `volley bench` with these arguments, and with this search path for other programs.
fn bench(arguments: &str, path: &str) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_volley"));
    command
        .args(["bench", "--counters", "--json"])
        .args(arguments.split(' '));
    let output = command.env("PATH", path).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_benchmark_says_how_to_get_events_where_nothing_counts_them() {
    let report = bench("--scenario xc --seconds 0.02 --repetitions 1", "/nowhere");
    let counters = &report["counters"];
    if has_pmu() && counters["source"] == "PMU" {
        return;
    }
    assert_eq!(counters["source"], Value::Null);
    let sentence = counters["text"].as_str().unwrap();
    assert!(
        sentence.contains("hardware performance counters (PMU)"),
        "{sentence}"
    );
    assert!(sentence.ends_with("or install valgrind, whose tool callgrind simulates the events"));
    assert!(
        report["nodes"].as_array().unwrap().len() > 2,
        "cycles are measured all the same"
    );
}

#[test]
fn the_benchmark_has_the_events_of_each_node() {
    let path = std::env::var("PATH").unwrap();
    let report = bench("--scenario ip4 --seconds 0.02 --repetitions 1", &path);
    let counters = &report["counters"];
    println!("{counters:#}");
    let source = counters["source"].as_str();
    let Some(source) = source else {
        println!("SKIP: there is neither a PMU nor valgrind");
        return;
    };
    // A user without rights has no counters of a PMU that is there.
    assert!(source == "callgrind" || has_pmu());
    for node in [
        "pg-input",
        "ethernet-input",
        "ip4-input",
        "ip4-lookup",
        "ip4-rewrite",
        "interface-tx",
    ] {
        let events = &counters["nodes"][node];
        let of = |event: &str| {
            let of = |unit: &str| events[event][unit].as_f64();
            of("per_packet")
                .zip(of("per_call"))
                .unwrap_or_else(|| panic!("{node} {event}"))
        };
        let (per_packet, per_call) = of("instructions");
        assert!(per_packet > 0.5 && per_packet < 1e5, "{node}: {per_packet}");
        // Vectors have 256 packets; those of a PMU are of another time than the cycles.
        assert!(
            (per_call / per_packet - 256.0).abs() < 1.0,
            "{node}: {per_call} {per_packet}"
        );
        assert!(of("branches").0 < per_packet, "{node}");
        assert!(of("branch-misses").0 <= of("branches").0, "{node}");
        assert!(of("l1d-misses").0 < per_packet, "{node}");
        assert_eq!(events["cycles"].is_null(), source == "callgrind", "{node}");
    }
}
