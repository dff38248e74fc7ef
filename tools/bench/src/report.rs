//! The result: a table for people, JSON for programs.

use super::counted::{Counted, PerUnit};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Prints a report as one JSON object. A report consists of texts, numbers and lists, so serialisation cannot fail.
pub fn print_json(report: &impl Serialize) {
    println!(
        "{}",
        serde_json::to_string_pretty(report).unwrap_or_default()
    );
}

/// Minimum, median and maximum of the repetitions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Minimum.
    pub min: f64,
    /// Median.
    pub median: f64,
    /// Maximum.
    pub max: f64,
}

impl Spread {
    /// Spread of some values; all zero if there are none.
    pub fn of(values: impl Iterator<Item = f64>) -> Spread {
        let mut all: Vec<f64> = values.collect();
        all.sort_by(f64::total_cmp);
        let Some((&min, &max)) = all.first().zip(all.last()) else {
            return Spread::default();
        };
        Spread {
            min,
            median: all[all.len() / 2],
            max,
        }
    }
}

impl std::fmt::Display for Spread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.2} ({:.2} to {:.2})", self.median, self.min, self.max)
    }
}

/// Counters of one node.
#[derive(Clone, Debug)]
pub struct NodeCost {
    /// Name of the node.
    pub name: String,
    /// Number of calls.
    pub calls: u64,
    /// Number of packets.
    pub vectors: u64,
    /// TSC cycles of the node.
    pub clocks: u64,
    /// Component of the cost to which the cycles belong.
    pub kind: CostKind,
}

/// The three components of a packet's cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CostKind {
    /// A source of packets.
    Source,
    /// A node after the source.
    Node,
    /// The rounds' cost outside nodes; its calls are rounds.
    Loop,
}

#[derive(Serialize)]
struct NodeLine<'a> {
    name: &'a str,
    calls: u64,
    vectors: u64,
    cycles_per_packet: f64,
    vectors_per_call: f64,
    kind: CostKind,
}

impl NodeCost {
    /// Whether the node is a source.
    pub fn is_source(&self) -> bool {
        self.kind == CostKind::Source
    }

    /// Cycles per packet of the node.
    pub fn cycles_per_packet(&self) -> f64 {
        self.clocks as f64 / self.vectors.max(1) as f64
    }

    fn line(&self) -> NodeLine<'_> {
        NodeLine {
            name: &self.name,
            calls: self.calls,
            vectors: self.vectors,
            cycles_per_packet: self.cycles_per_packet(),
            vectors_per_call: self.vectors as f64 / self.calls.max(1) as f64,
            kind: self.kind,
        }
    }
}

fn lines<S: serde::Serializer>(nodes: &[NodeCost], out: S) -> Result<S::Ok, S::Error> {
    out.collect_seq(shown(nodes))
}

/// Sources without packets have no cycles per packet and appear only in the sums.
fn shown(nodes: &[NodeCost]) -> impl Iterator<Item = NodeLine<'_>> {
    nodes.iter().filter(|c| c.vectors > 0).map(NodeCost::line)
}

/// The result of one benchmark.
#[derive(Serialize)]
#[allow(missing_docs)] // The names are those of the output and are explained in docs/bench.md.
pub struct Report {
    pub scenario: &'static str,
    pub destinations: &'static str,
    pub distinct: usize,
    pub prefixes: usize,
    pub size: u32,
    pub vector_size: u32,
    pub maxframe: u32,
    pub buffers: usize,
    pub isa: String,
    pub style: &'static str,
    pub packets: u64,
    pub seconds: f64,
    pub repetitions: usize,
    /// Fraction of the time in which no other program used the core's units; only this time counts.
    pub undisturbed: f64,
    /// Packets per second without the source's cost, as peers are measured.
    pub mpps: Spread,
    /// Packets per second including the source's cost.
    pub mpps_with_source: Spread,
    pub cycles_per_packet: Spread,
    /// Cycles per packet including disturbed time.
    pub cycles_per_packet_disturbed: Spread,
    /// Speed of the core: core cycles per TSC cycle.
    pub core_cycles_per_tsc: Spread,
    /// Cycles per packet of everything: nodes, all sources, and the rounds' cost outside them.
    pub together_cycles_per_packet: Spread,
    /// Cycles per packet of all sources, including those without packets.
    pub source_cycles_per_packet: Spread,
    /// Cycles per packet of the rounds outside nodes and sources.
    pub loop_cycles_per_packet: f64,
    pub loop_cycles_per_round: Spread,
    #[serde(serialize_with = "lines")]
    pub nodes: Vec<NodeCost>,
    /// Events of each node.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counters: Option<Counted>,
    pub lpm_bytes: u64,
    pub table_load_seconds: f64,
    pub drops: BTreeMap<String, u64>,
    pub verified: bool,
    /// The repetitions one by one, for programs that link this crate.
    #[serde(skip)]
    pub samples: Vec<Sample>,
}

/// One repetition.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Cycles per packet of all nodes but the source.
    pub cycles_per_packet: f64,
    /// Cycles per packet of the complete rounds.
    pub together_cycles_per_packet: f64,
    /// Packets per second of wall-clock time, in millions.
    pub mpps_with_source: f64,
    /// Speed of the core: core cycles per TSC cycle.
    pub core_cycles_per_tsc: f64,
    /// Packets per call, over all nodes but the source.
    pub vectors_per_call: f64,
}

impl Report {
    /// A table on standard output.
    pub fn print_table(&self) {
        let (scenario, style, to) = (self.scenario, self.style, self.destinations);
        println!(
            "{scenario}, {style}, destinations {to} ({} distinct), {} prefixes",
            self.distinct, self.prefixes
        );
        println!(
            "{} B packets, vectors of {}, {}, {} buffers",
            self.size, self.vector_size, self.isa, self.buffers
        );
        println!(
            "  Mpps                    {}   (without the source's cost; with it {:.2})",
            self.mpps, self.mpps_with_source.median
        );
        println!(
            "  cycles per packet       {}   (graph: all nodes but the source)",
            self.cycles_per_packet
        );
        println!(
            "  with disturbed time     {}   ({:.0} of 100 slices were undisturbed: the others count here only)",
            self.cycles_per_packet_disturbed,
            self.undisturbed * 100.0
        );
        println!(
            "  core cycles per TSC     {}   (the speed of the core in this sitting)",
            self.core_cycles_per_tsc
        );
        println!(
            "  together                {}   (with source {:.2} and loop {:.2}; the loop's cycles per round {})",
            self.together_cycles_per_packet,
            self.source_cycles_per_packet.median,
            self.loop_cycles_per_packet,
            self.loop_cycles_per_round
        );
        println!(
            "  LPM                     {:.2} MiB, loaded in {:.3} s",
            self.lpm_bytes as f64 / 1048576.0,
            self.table_load_seconds
        );
        self.print_nodes();
        for (reason, count) in &self.drops {
            println!("  dropped {count:>12}  {reason}");
        }
        println!(
            "  outputs {}",
            if self.verified {
                "verified against the reference model"
            } else {
                "NOT verified"
            }
        );
    }
}

/// Events of the table, by their names in `show perfmon`, and the heads of their columns.
const EVENTS: [(&str, &str); 8] = [
    ("instructions", "instr"),
    ("cycles", "core cyc"),
    ("l1d-misses", "L1D"),
    ("l1i-misses", "L1I"),
    ("l2-misses", "L2"),
    ("llc-misses", "LLC"),
    ("branches", "branches"),
    ("branch-misses", "mispred"),
];

impl Report {
    /// The lines of the nodes, with the events of each.
    fn print_nodes(&self) {
        let counted = self.counters.as_ref().filter(|it| it.source.is_some());
        let units: &[&str] = if counted.is_some() {
            &["p", "call"]
        } else {
            &[]
        };
        let heads = units.iter().flat_map(|unit| {
            EVENTS.iter().map(move |(_, head)| {
                let head = format!("{head}/{unit}");
                format!(" {head:>14}")
            })
        });
        println!(
            "  {:<22} {:>12} {:>14} {:>10} {:>12}{}",
            "node",
            "calls",
            "packets",
            "cycles/p",
            "packets/call",
            heads.collect::<String>()
        );
        for n in shown(&self.nodes) {
            let (cycles, size) = (n.cycles_per_packet, n.vectors_per_call);
            let events = counted.map(|it| events(it, n.name)).unwrap_or_default();
            println!(
                "  {:<22} {:>12} {:>14} {cycles:>10.2} {size:>12.1}{events}",
                n.name, n.calls, n.vectors
            );
        }
        match &self.counters {
            Some(it) if it.source.is_some() => {
                println!("  events by {}: {}", it.source.unwrap_or_default(), it.text)
            }
            Some(it) => println!("  events are not counted: {}", it.text),
            None => {}
        }
    }
}

/// The events of a node: for each packet, then for each call.
fn events(counted: &Counted, node: &str) -> String {
    let node = counted.nodes.get(node);
    let figure = |event: &str, unit: fn(&PerUnit) -> f64, digits: usize| {
        let value = node.and_then(|it| it.get(event)).map(unit);
        let text = value.map_or_else(|| "-".to_owned(), |it| format!("{it:.digits$}"));
        format!(" {text:>14}")
    };
    let of_packet = EVENTS.iter().map(|it| figure(it.0, |it| it.per_packet, 3));
    let of_call = EVENTS.iter().map(|it| figure(it.0, |it| it.per_call, 1));
    of_packet.chain(of_call).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_a_node_are_beside_its_cycles() {
        let figures = PerUnit {
            per_packet: 29.5,
            per_call: 7552.0,
        };
        let counted = Counted {
            source: Some("PMU"),
            text: String::new(),
            nodes: [("a".to_owned(), [("instructions", figures)].into())].into(),
        };
        let words = |node| {
            let line = events(&counted, node);
            line.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        let dashes = ["-"; 7].join(" ");
        assert_eq!(
            words("a").join(" "),
            format!("29.500 {dashes} 7552.0 {dashes}")
        );
        assert_eq!(words("b"), ["-"; 16]);
    }

    #[test]
    fn the_middle_of_values() {
        let spread = Spread::of([3.0, 1.0, 2.0].into_iter());
        assert_eq!((spread.min, spread.median, spread.max), (1.0, 2.0, 3.0));
        assert_eq!(Spread::of(std::iter::empty()), Spread::default());
    }
}
