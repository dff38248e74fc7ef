//! The benchmarks, which `volley bench plugin` runs: each stage with one pair, and with 10,000 destinations, half of which have a pair.

use std::net::Ipv4Addr;
use volley_sdk::prelude::*;

/// The stages, and the vectors that they are measured with.
const STAGES: [(&str, usize); 6] = [
    ("one", 1),
    ("vector", 256),
    ("prefetch", 256),
    ("unroll", 256),
    ("split", 256),
    ("columns", 256),
];

/// The first destination.
const FIRST: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 0);
/// The number of destinations of a scenario with many.
const MANY: u32 = 10_000;
/// Packets in circulation: too many for the caches of a core, as when a network card has just written them.
const PACKETS: usize = 16_384;

/// Figures of the talk: scenario, clocks, misses of the first-level cache, mispredicted branches in percent.
const TALK: [(&str, f64, Option<f64>, Option<f64>); 5] = [
    ("one", 305.0, None, Some(6.76)),
    ("vector", 71.5, Some(1.98), None),
    ("prefetch", 41.9, Some(0.11), None),
    ("prefetch-10k", 71.4, None, None),
    ("unroll-10k", 55.3, None, None),
];

/// All scenarios.
pub fn all() -> impl Iterator<Item = Scenario> {
    let one = STAGES.iter().map(|stage| scenario(stage, "", 1));
    one.chain(STAGES.iter().map(|stage| scenario(stage, "-10k", MANY)))
}

// ANCHOR: scenario
fn scenario(&(stage, vector_size): &(&str, usize), suffix: &str, many: u32) -> Scenario {
    let name = format!("{stage}{suffix}");
    let node = format!("ip-in-ip-{stage}");
    let mut scenario = Scenario::new(&name, node).commands(move || commands(many));
    scenario.vector_size = vector_size;
    scenario.packets = PACKETS;
    scenario.template = format!(
        "eth src 02:00:00:00:00:99 dst 02:00:00:00:00:01 / ip4 src 10.0.0.9 dst {FIRST} ttl 64 / udp sport 1234 dport 80 / payload 22"
    );
    if many > 1 {
        let last = Ipv4Addr::from_bits(FIRST.to_bits() + many - 1);
        scenario.edits = vec![format!("ip4.dst random {FIRST} {last}")];
    }
    let talk = TALK.iter().filter(|it| it.0 == name);
    scenario.published = talk.map(published).collect();
    scenario
}
// ANCHOR_END: scenario

fn published(
    &(_, clocks, l1_misses, mispredicted): &(&str, f64, Option<f64>, Option<f64>),
) -> Published {
    Published {
        source: "talk".to_owned(),
        clocks: Some(clocks),
        l1_misses,
        mispredicted,
    }
}

/// A pair for every second destination.
fn commands(many: u32) -> Vec<String> {
    let command = |n| {
        let destination = Ipv4Addr::from_bits(FIRST.to_bits() + n);
        let remote = Ipv4Addr::from_bits(Ipv4Addr::new(198, 18, 0, 0).to_bits() + n);
        format!("set ip-in-ip pair {destination} local 192.0.2.1 remote {remote}")
    };
    (0..many).step_by(2).map(command).collect()
}
