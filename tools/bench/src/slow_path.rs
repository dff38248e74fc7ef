//! `volley bench slow-path`: one worker, packets of the slow path.
//!
//! First, the number of replies per second of a worker without other work and without limits: packets with an expired hop
//! limit, echo requests, datagrams to a closed port, hosts that cannot be resolved. The figure includes the generator's
//! work.
//!
//! Then transit beside a flood of such packets, with default limits. The question is whether the flood takes more from
//! transit than its share of the core: transit is offered at a fixed load that leaves this share, and must arrive; and
//! the cost per packet of its nodes is compared with and without the flood. The rate of transit at saturation is
//! reported, not judged, because the flood takes its share then. Runs with and without the flood alternate.
//!
//! The router's clock excludes time in which the machine gave the core to another program: the benchmark provides the
//! clock, and a gap between two readings counts for at most [`LONGEST`].

use super::BenchError;
use super::args::SlowPathArgs;
use super::measure::{costs, pin};
use super::pauses::change;
use super::report::{NodeCost, Spread, print_json};
use serde::Serialize;
use std::time::{Duration, Instant};
use volley_daemon::EngineSettings;
use volley_daemon::stack::Stack;
use volley_graph::{Clock, Worker};

/// Transit passes from pg0 to pg1; the flood arrives on x0, and its replies leave there.
const ROUTER: &str = "\
create packet-generator interface pg0 mac 02:00:00:00:00:01
create packet-generator interface pg1 mac 02:00:00:00:00:02
create packet-generator interface x0 mac 02:00:00:00:00:03
set interface state pg0 up
set interface state pg1 up
set interface state x0 up
set interface ip address pg1 198.18.0.1/24
set interface ip address x0 198.18.1.1/24
set ip neighbor pg1 198.18.0.10 02:aa:00:00:00:0a
set ip neighbor x0 198.18.1.10 02:aa:00:00:00:0b
ip route add 20.0.0.0/8 via 198.18.0.10 pg1
ip route add 198.19.0.0/16 via 198.18.1.10 x0";

/// Packets of the slow path: name, destination and upper layers.
const KINDS: [(&str, &str); 4] = [
    ("hops used up", "dst 20.0.0.1 ttl 1 / udp sport 1 dport 2"),
    ("echo request", "dst 198.18.1.1 ttl 64 / icmp id 1 seq 1"),
    ("closed port", "dst 198.18.1.1 ttl 64 / udp sport 1 dport 2"),
    ("unresolved", "dst 198.18.1.77 ttl 64 / udp sport 1 dport 2"),
];
/// The packets of the flood.
const FLOOD: [usize; 3] = [0, 1, 3];
/// Maximum gap between two clock readings that the benchmark itself causes: a round of full vectors takes less.
const LONGEST: Duration = Duration::from_millis(1);
/// Nodes of transit after its source.
const FAST: [&str; 7] = [
    "ethernet-input",
    "ip4-input",
    "ip4-lookup",
    "ip4-rewrite",
    "interface-output",
    "interface-tx",
    "pg1-tx",
];

#[derive(Serialize)]
struct Answers {
    kind: &'static str,
    /// Packets replied to, and received packets, per second.
    answered: Spread,
    came: Spread,
}

#[derive(Serialize)]
struct Report {
    answers: Vec<Answers>,
    /// Packets per second that a worker forwards without other work.
    capacity: Spread,
    /// Offered packets per second, and those of the flood.
    offered: f64,
    flood: f64,
    /// Fraction of the offered packets that arrived, without and with the flood; and the ratio of both, pair by pair.
    alone: Spread,
    beside: Spread,
    kept: Spread,
    /// Cost per packet in the nodes of transit: ratio with to without the flood.
    fast_cost: Spread,
    /// Fraction of the flood that arrived.
    flood_arrived: Spread,
    /// Cost of each node at the offered load.
    nodes: Vec<Both>,
    /// At saturation: ratio of forwarded packets with to without the flood.
    saturated: Spread,
}

/// Cost of a node without and with the flood.
#[derive(Serialize)]
struct Both {
    name: String,
    alone: Share,
    beside: Share,
}

/// Cost of a node over all runs.
#[derive(Clone, Copy, Default, Serialize)]
struct Share {
    cycles_per_packet: f64,
    packets_per_call: f64,
    /// Fraction of all cycles of all nodes.
    part: f64,
}

struct Bench {
    stack: Stack,
    worker: Worker,
    clock: Clock,
    seconds: f64,
    repetitions: usize,
}

/// Results of a run.
struct Run {
    seconds: f64,
    /// Packets transmitted on pg1 and x0.
    transit: u64,
    answers: u64,
    /// Packets received on x0.
    flood: u64,
    fast: f64,
    costs: Vec<NodeCost>,
}

/// Run the benchmark of the command line.
pub fn run(args: &SlowPathArgs) -> Result<(), BenchError> {
    pin(args.core);
    let mut bench = Bench::new(args)?;
    let report = bench.measure(args)?;
    print(args, &report)
}

impl Bench {
    fn new(args: &SlowPathArgs) -> Result<Bench, BenchError> {
        let clock = Clock::manual();
        let (stack, mut workers) = Stack::new(&EngineSettings::default(), clock.clone())?;
        let worker = workers
            .pop()
            .ok_or_else(|| BenchError::Args("no worker".into()))?;
        let (seconds, repetitions) = (args.seconds, args.repetitions.max(1));
        let mut bench = Bench {
            stack,
            worker,
            clock,
            seconds,
            repetitions,
        };
        for line in ROUTER.lines() {
            bench.set(line)?;
        }
        Ok(bench)
    }

    fn set(&mut self, line: &str) -> Result<(), BenchError> {
        let worker = &mut self.worker;
        change(&self.stack, line, || _ = worker.step())
    }

    /// A stream of slow-path packets from a hundred hosts, or of transit (`None`). So few hosts fit the cache: the
    /// generator's memory accesses should not be measured.
    fn stream(&mut self, kind: Option<usize>, rate: Option<f64>) -> Result<String, BenchError> {
        let rate = rate.map_or(String::new(), |r| format!("rate {} ", r as u64));
        let (name, interface, mac, edit, rest) = match kind {
            None => (
                "transit".to_owned(),
                "pg0",
                1,
                "ip4.dst increment 20.0.0.1 20.99.0.1 step 65536",
                "dst 20.0.0.1 ttl 64 / udp sport 1 dport 2",
            ),
            Some(kind) => (
                format!("flood{kind}"),
                "x0",
                3,
                "ip4.src increment 198.19.0.1 198.19.0.100",
                KINDS[kind].1,
            ),
        };
        self.set(&format!(
            "packet-generator new name {name} interface {interface} {rate}size 64 edit {edit} \
             template {{ eth src 02:00:00:00:00:99 dst 02:00:00:00:00:0{mac} / ip4 src 198.19.0.1 {rest} }}"
        ))?;
        Ok(name)
    }

    /// Packets transmitted on pg1 and x0, and received on x0.
    fn counts(&self) -> [u64; 3] {
        let interfaces = self.stack.interfaces.borrow();
        let of = |name: &str| interfaces.by_name(name).map(|i| interfaces.counts(i));
        let (out, flood) = (of("pg1"), of("x0"));
        [
            out.map_or(0, |c| c.tx_packets),
            flood.as_ref().map_or(0, |c| c.tx_packets),
            flood.as_ref().map_or(0, |c| c.rx_packets),
        ]
    }

    /// Start or stop streams.
    fn switch(&mut self, names: &[&str], on: bool) -> Result<(), BenchError> {
        for name in names {
            self.stack.pg.switch(Some(name), on)?;
        }
        while !self.stack.settled() {
            self.worker.step();
        }
        Ok(())
    }

    /// Run streams for a time. Packets sent while they are started and stopped are not counted.
    fn streams(&mut self, names: &[&str]) -> Result<Run, BenchError> {
        self.switch(names, true)?;
        let (before, nodes) = (self.counts(), self.stack.engine.borrow().runtime(0));
        let seconds = self.work();
        let (after, later) = (self.counts(), self.stack.engine.borrow().runtime(0));
        self.switch(names, false)?;
        let [transit, answers, flood] = [0, 1, 2].map(|n| after[n] - before[n]);
        let costs = costs(&nodes, &later);
        Ok(Run {
            seconds,
            transit,
            answers,
            flood,
            fast: fast(&costs),
            costs,
        })
    }

    fn repeat(&mut self, names: &[&str]) -> Result<Vec<Run>, BenchError> {
        let times = 0..self.repetitions;
        times.map(|_| self.streams(names)).collect()
    }

    /// Alternate runs without and with the flood.
    fn pairs(&mut self, flood: &[&str]) -> Result<Vec<(Run, Run)>, BenchError> {
        let both = [&["transit"], flood].concat();
        let times = 0..self.repetitions;
        let pair = |_| Ok((self.streams(&["transit"])?, self.streams(&both)?));
        times.map(pair).collect()
    }

    /// Run for a time by the benchmark's clock; returns the actual time.
    fn work(&mut self) -> f64 {
        let limit = Duration::from_secs_f64(self.seconds);
        let (mut spent, mut last) = (Duration::ZERO, Instant::now());
        while spent < limit {
            self.worker.step();
            let now = Instant::now();
            let gap = (now - last).min(LONGEST);
            self.clock.advance(gap.as_nanos() as u64);
            (spent, last) = (spent + gap, now);
        }
        spent.as_secs_f64()
    }

    fn answers(&mut self, kind: usize) -> Result<Answers, BenchError> {
        let name = self.stream(Some(kind), None)?;
        let runs = self.repeat(&[&name])?;
        self.set(&format!("packet-generator delete {name}"))?;
        Ok(Answers {
            kind: KINDS[kind].0,
            answered: Spread::of(runs.iter().map(|r| r.answers as f64 / r.seconds)),
            came: Spread::of(runs.iter().map(|r| r.flood as f64 / r.seconds)),
        })
    }

    fn measure(&mut self, args: &SlowPathArgs) -> Result<Report, BenchError> {
        self.set("set ip icmp rate 0 receiver-rate 0")?;
        let answers = (0..KINDS.len())
            .map(|kind| self.answers(kind))
            .collect::<Result<Vec<_>, _>>()?;
        self.set("set ip icmp")?;
        let each = args.flood as f64 / FLOOD.len() as f64;
        let flood: Vec<String> = FLOOD
            .iter()
            .map(|kind| self.stream(Some(*kind), Some(each)))
            .collect::<Result<_, _>>()?;
        let flood: Vec<&str> = flood.iter().map(String::as_str).collect();
        self.stream(None, None)?;
        let full = self.pairs(&flood)?;
        let capacity = Spread::of(full.iter().map(|(alone, _)| rate(alone)));
        self.set("packet-generator delete transit")?;
        let offered = capacity.median * args.load / 100.0;
        self.stream(None, Some(offered))?;
        let pairs = self.pairs(&flood)?;
        let part = |run: &Run| rate(run) / offered;
        Ok(Report {
            answers,
            capacity,
            offered,
            flood: args.flood as f64,
            alone: Spread::of(pairs.iter().map(|(alone, _)| part(alone))),
            beside: Spread::of(pairs.iter().map(|(_, beside)| part(beside))),
            kept: over(&pairs, rate),
            fast_cost: over(&pairs, |run| run.fast),
            flood_arrived: Spread::of(
                pairs
                    .iter()
                    .map(|(_, r)| r.flood as f64 / r.seconds / args.flood as f64),
            ),
            nodes: nodes(&pairs),
            saturated: over(&full, rate),
        })
    }
}

/// Packets of transit per second.
fn rate(run: &Run) -> f64 {
    run.transit as f64 / run.seconds
}

/// Ratio of a figure with the flood to the one without, pair by pair.
fn over(pairs: &[(Run, Run)], figure: impl Fn(&Run) -> f64) -> Spread {
    let ratio = |(alone, beside): &(Run, Run)| figure(beside) / figure(alone);
    Spread::of(pairs.iter().map(ratio))
}

/// Cycles per packet in the nodes of transit.
fn fast(costs: &[NodeCost]) -> f64 {
    let mine = costs.iter().filter(|c| FAST.contains(&c.name.as_str()));
    mine.map(|c| c.clocks as f64 / c.vectors as f64).sum()
}

/// Every node that had packets during the flood.
fn nodes(pairs: &[(Run, Run)]) -> Vec<Both> {
    let alone: Vec<_> = pairs.iter().flat_map(|(alone, _)| &alone.costs).collect();
    let beside: Vec<_> = pairs.iter().flat_map(|(_, beside)| &beside.costs).collect();
    let mut names: Vec<&str> = beside
        .iter()
        .filter(|c| c.vectors > 0)
        .map(|c| c.name.as_str())
        .collect();
    names.sort_unstable();
    names.dedup();
    names
        .into_iter()
        .map(|name| Both {
            name: name.to_owned(),
            alone: share(&alone, name),
            beside: share(&beside, name),
        })
        .collect()
}

fn share(costs: &[&NodeCost], name: &str) -> Share {
    let all: u64 = costs.iter().map(|c| c.clocks).sum();
    let mine = || costs.iter().filter(|c| c.name == name);
    let sum = |of: fn(&NodeCost) -> u64| mine().map(|c| of(c)).sum::<u64>() as f64;
    let (clocks, packets, calls) = (sum(|c| c.clocks), sum(|c| c.vectors), sum(|c| c.calls));
    Share {
        cycles_per_packet: clocks / packets.max(1.0),
        packets_per_call: packets / calls.max(1.0),
        part: clocks / all.max(1) as f64,
    }
}

fn print(args: &SlowPathArgs, report: &Report) -> Result<(), BenchError> {
    if args.json {
        print_json(report);
        return Ok(());
    }
    let millions = |s: &Spread| {
        format!(
            "{:.2} ({:.2} to {:.2})",
            s.median / 1e6,
            s.min / 1e6,
            s.max / 1e6
        )
    };
    for answers in &report.answers {
        println!(
            "{:14} {} million answered a second, of {} that came",
            answers.kind,
            millions(&answers.answered),
            millions(&answers.came)
        );
    }
    println!(
        "transit alone {} Mpps; offered {:.2} Mpps, the flood {:.2} Mpps, {} of which came",
        millions(&report.capacity),
        report.offered / 1e6,
        report.flood / 1e6,
        report.flood_arrived
    );
    println!(
        "arrived: {} alone, {} beside the flood; kept {}; cost in the nodes of transit {} times; with no time left kept {}",
        report.alone, report.beside, report.kept, report.fast_cost, report.saturated
    );
    println!("alone, beside: part of the nodes' cycles, cycles per packet, packets per call");
    for Both {
        name,
        alone,
        beside,
    } in &report.nodes
    {
        let text = |s: &Share| {
            format!(
                "{:5.1} % {:7.1} {:6.1}",
                s.part * 100.0,
                s.cycles_per_packet,
                s.packets_per_call
            )
        };
        println!("{name:24} {}   {}", text(alone), text(beside));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_answered_and_transit_arrives() {
        let args = SlowPathArgs {
            flood: 10_000,
            load: 1.0,
            seconds: 0.02,
            repetitions: 1,
            core: None,
            json: false,
        };
        let mut bench = Bench::new(&args).unwrap();
        let report = bench.measure(&args).unwrap();
        for answers in &report.answers {
            let part = answers.answered.median / answers.came.median;
            assert!(part > 0.9, "{}: {part}", answers.kind);
        }
        assert!(report.kept.median > 0.1 && report.fast_cost.median > 0.0);
        assert!(report.flood_arrived.median > 0.0);
    }
}
