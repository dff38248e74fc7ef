//! What packets cost a switch: the cycles of the rounds in which it received packets, as the switch itself measures them. They do not
//! depend on whether the generator can keep the switch busy.

use super::process::Process;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use volley_graph::Engine;

/// Line that asks a router of this program for its cost, and the first word of the answer.
pub const QUESTION: &str = "cost";

/// Cycles of the time stamp counter since the start.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// Cycles of rounds that received packets.
    pub cycles: f64,
    /// Packets received.
    pub packets: f64,
    /// Cycles of each node and its packets, if the switch has nodes.
    pub nodes: BTreeMap<String, (f64, f64)>,
}

impl Cost {
    /// The cost of a router of this program, all workers together.
    pub fn of_engine(engine: &Engine) -> Cost {
        let mut cost = Cost::default();
        for worker in engine.worker_set().iter() {
            cost.cycles += engine.busy_seconds(worker) * volley_simd::cycles_per_second();
            cost.packets += engine.load(worker).map_or(0, |load| load.2) as f64;
            // A line has a largest length: nodes without packets are left out.
            let nodes = engine.runtime(worker).into_iter();
            for node in nodes.filter(|node| node.vectors > 0) {
                let sum = cost.nodes.entry(node.name).or_default();
                sum.0 += node.clocks as f64;
                sum.1 += node.vectors as f64;
            }
        }
        cost
    }

    /// Cycles per packet since an earlier reading; none without packets.
    pub fn since(&self, before: &Cost) -> Option<f64> {
        per(self.cycles - before.cycles, self.packets - before.packets)
    }

    /// Cycles per packet of each node since an earlier reading.
    pub fn nodes_since(&self, before: &Cost) -> BTreeMap<String, f64> {
        let each = self.nodes.iter().filter_map(|(name, (cycles, packets))| {
            let old = before.nodes.get(name).copied().unwrap_or_default();
            Some((name.clone(), per(cycles - old.0, packets - old.1)?))
        });
        each.collect()
    }
}

fn per(cycles: f64, packets: f64) -> Option<f64> {
    (packets > 0.0).then(|| cycles / packets)
}

/// Ask a router of this program.
///
/// # Errors
/// If it does not answer.
pub fn of_volley(process: &mut Process) -> Result<Cost, String> {
    let line = process.ask(QUESTION, QUESTION)?;
    let answer = line.strip_prefix(QUESTION).unwrap_or_default();
    serde_json::from_str(answer).map_err(|e| format!("{line}: {e}"))
}

/// Ask testpmd, which was started with `--record-core-cycles` and prompts for commands.
///
/// # Errors
/// If it does not answer.
pub fn of_testpmd(process: &mut Process) -> Result<Cost, String> {
    let line = process.ask("show fwd stats all", "CPU cycles/packet")?;
    testpmd(&line).ok_or_else(|| format!("not readable: {line}"))
}

/// `CPU cycles/packet=30.16 (total cycles=301600 / total RX packets=10000) at 2600 MHz Clock`.
fn testpmd(line: &str) -> Option<Cost> {
    let number = |label: &str| {
        let (_, rest) = line.split_once(label)?;
        let end = rest.find(|c: char| !c.is_ascii_digit());
        rest[..end.unwrap_or(rest.len())].parse().ok()
    };
    Some(Cost {
        cycles: number("total cycles=")?,
        packets: number("packets=")?,
        nodes: BTreeMap::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_testpmd() {
        let line = "  CPU cycles/packet=30.16 (total cycles=301600 / total RX packets=10000) at 2600 MHz Clock";
        let cost = testpmd(line).unwrap();
        assert_eq!((cost.cycles, cost.packets), (301_600.0, 10_000.0));
        assert_eq!(testpmd("CPU cycles/packet=nan"), None);
    }

    #[test]
    fn only_what_came_since_counts() {
        let of = |cycles, packets, node| Cost {
            cycles,
            packets,
            nodes: BTreeMap::from([("memif-tx".to_owned(), node)]),
        };
        let (before, after) = (
            of(500.0, 10.0, (90.0, 10.0)),
            of(2_500.0, 30.0, (490.0, 30.0)),
        );
        assert_eq!(after.since(&before), Some(100.0));
        assert_eq!(after.nodes_since(&before)["memif-tx"], 20.0);
        assert_eq!(before.since(&before), None);
        assert!(before.nodes_since(&before).is_empty());
    }
}
