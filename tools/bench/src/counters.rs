//! `volley bench --counters`: events of each node for each packet and each call, beside its cycles.
//!
//! The processor's counters (PMU) count them in this process. Without a PMU callgrind simulates them, in another process with fewer
//! packets: two runs with different numbers of packets are made, as their common part cancels out in the difference.

use super::BenchError;
use super::args::Args;
use super::counted::{Counted, PerUnit};
use super::process::program;
use super::report::{CostKind, NodeCost};
use super::scenario::Bench;
use super::simulated::{self, Events};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::time::Duration;
use volley_daemon::stack::StackError;
use volley_graph::CounterGroup;
use volley_perfmon::{BUNDLES, Bundle, CounterError, Figures, Group, Source, this_thread};

/// Packets of the two runs that are simulated.
const SIMULATED: [u64; 2] = [51_200, 153_600];

type Nodes = BTreeMap<String, BTreeMap<&'static str, PerUnit>>;

/// Count the events of the nodes that have had packets. The streams are enabled.
pub fn count(args: &Args, bench: &mut Bench, costs: &[NodeCost]) -> Result<Counted, BenchError> {
    let no_pmu = match hardware(args, bench)? {
        Ok(nodes) => {
            return Ok(Counted {
                source: Some("PMU"),
                text:
                    "counters of the processor, in user mode; what reading them costs is subtracted"
                        .into(),
                nodes,
            });
        }
        Err(why) => why,
    };
    if args.rate.is_some() {
        return Ok(Counted {
            source: None,
            text: format!("{no_pmu}; or leave out --rate: callgrind simulates full vectors only"),
            nodes: Nodes::new(),
        });
    }
    if !simulated::is_installed() {
        return Ok(Counted {
            source: None,
            text: format!(
                "{no_pmu}; or install valgrind, whose tool callgrind simulates the events"
            ),
            nodes: Nodes::new(),
        });
    }
    let names = simulated_nodes(costs);
    let mut text = format!(
        "simulated at {}: two levels of caches, which ignore prefetches, and a branch predictor, because {no_pmu}",
        simulated::level(&args.level.isa)
    );
    let marks = marks().len();
    if names.len() > marks {
        text += &format!(
            "; {} nodes have no events, because callgrind tells only {marks} apart",
            names.len() - marks
        );
    }
    Ok(Counted {
        source: Some("callgrind"),
        text,
        nodes: callgrind(args, &names)?,
    })
}

/// Count with the PMU, one bundle after the other. Returns the reason if there is none.
fn hardware(args: &Args, bench: &mut Bench) -> Result<Result<Nodes, CounterError>, BenchError> {
    let mut nodes = Nodes::new();
    for bundle in BUNDLES.iter().filter(|it| it.source == Source::Processor) {
        let group = match Group::open(bundle, this_thread()) {
            Ok(group) => group,
            // Another bundle may have events that this processor counts.
            Err(CounterError::NoEvent(_)) => continue,
            Err(error) => return Ok(Err(error)),
        };
        add(&mut nodes, bundle, group, args, bench)?;
    }
    Ok(Ok(nodes))
}

fn add(
    nodes: &mut Nodes,
    bundle: &'static Bundle,
    group: Group,
    args: &Args,
    bench: &mut Bench,
) -> Result<(), BenchError> {
    let has = group.events();
    let engine = bench.stack.engine.clone();
    let group: Box<dyn CounterGroup> = Box::new(group);
    let started = engine.borrow_mut().count_events(vec![(0, group)]);
    started.map_err(StackError::from)?;
    bench.settle();
    bench.run_for(Duration::from_secs_f64(args.seconds));
    engine
        .borrow_mut()
        .stop_events()
        .map_err(StackError::from)?;
    bench.settle();
    for report in engine.borrow().event_reports() {
        let figures = Figures::of(bundle, &report, has);
        let events = nodes.entry(report.node.clone()).or_default();
        for (at, event) in bundle.events.iter().enumerate() {
            if let Some((per_packet, per_call)) = figures.per_packet[at].zip(figures.per_call[at]) {
                let figures = PerUnit {
                    per_packet,
                    per_call,
                };
                events.insert(event.name, figures);
            }
        }
    }
    Ok(())
}

/// The names of the nodes that have had packets.
fn simulated_nodes(costs: &[NodeCost]) -> Vec<&str> {
    let ran = costs
        .iter()
        .filter(|it| it.kind != CostKind::Loop && it.vectors > 0);
    ran.map(|it| it.name.as_str()).collect()
}

/// The functions by which nodes can be called, as callgrind names them.
fn marks() -> Vec<&'static str> {
    (0..).map_while(volley_graph::mark_name).collect()
}

/// Simulate the scenario in other processes.
fn callgrind(args: &Args, names: &[&str]) -> Result<Nodes, BenchError> {
    let [few, many] = SIMULATED.map(|packets| run(args, names, packets));
    let (few, many) = (few?, many?);
    let mut nodes = Nodes::new();
    for (at, name) in names.iter().enumerate() {
        let (Some(few), Some(many)) = (few.get(at), many.get(at)) else {
            continue;
        };
        let packets = many.vectors.saturating_sub(few.vectors) as f64;
        let calls = many.calls.saturating_sub(few.calls) as f64;
        if packets == 0.0 || calls == 0.0 {
            continue;
        }
        let events = simulated::NAMES
            .into_iter()
            .zip(few.events)
            .zip(many.events);
        let figures = events.filter_map(|((name, few), many)| {
            let events = many? as f64 - few? as f64;
            let figures = PerUnit {
                per_packet: events / packets,
                per_call: events / calls,
            };
            Some((name, figures))
        });
        nodes.insert((*name).to_owned(), figures.collect());
    }
    Ok(nodes)
}

/// A node in one simulated run.
struct Simulated {
    calls: u64,
    vectors: u64,
    events: Events,
}

fn run(args: &Args, names: &[&str], packets: u64) -> Result<Vec<Simulated>, BenchError> {
    let mut words = words(args);
    words.push("--callgrind".into());
    words.extend(["--packets".into(), packets.to_string().into()]);
    words.extend(["--mark".into(), names.join(",").into()]);
    words.push("--json".into());
    let (output, file) = simulated::run(&program()?, &words)?;
    let wrong = |why: String| BenchError::Wrong(format!("the simulated run: {why}"));
    let report: serde_json::Value =
        serde_json::from_str(&output).map_err(|why| wrong(why.to_string()))?;
    let events = simulated::callees(&file, &marks());
    if events.iter().all(|it| it[0].unwrap_or(0) == 0) {
        let why = "callgrind shows no functions of nodes: use a program whose names of functions are not stripped";
        return Err(wrong(why.into()));
    }
    let of = |(name, events): (&&str, Events)| {
        let all = report["nodes"].as_array().into_iter().flatten();
        let mut ours = all.filter(|it| it["name"] == *name);
        let node = ours
            .next()
            .ok_or_else(|| wrong(format!("no node {name}")))?;
        let number = |key: &str| node[key].as_u64().unwrap_or(0);
        Ok(Simulated {
            calls: number("calls"),
            vectors: number("vectors"),
            events,
        })
    };
    names.iter().zip(events).map(of).collect()
}

/// The arguments of a process that runs the same scenario.
fn words(args: &Args) -> Vec<OsString> {
    let mut words: Vec<OsString> = vec!["bench".into()];
    let mut option = |name: &str, value: OsString| words.extend([name.into(), value]);
    option("--scenario", args.scenario.name().into());
    option("--destinations", args.destinations.name().into());
    option("--stations", args.stations.name().into());
    option("--style", args.style.name().into());
    option("--isa", simulated::level(&args.level.isa).into());
    for (name, value) in [
        ("--distinct", args.distinct as u64),
        ("--macs", args.macs.into()),
        ("--size", args.size.into()),
        ("--vector-size", args.vector_size.into()),
        ("--buffers", args.buffers as u64),
        ("--seed", args.seed),
    ] {
        option(name, value.to_string().into());
    }
    for (name, value) in [
        ("--maxframe", args.maxframe.map(|it| it.to_string())),
        ("--prefixes", args.prefixes.map(|it| it.to_string())),
        ("--core", args.core.map(|it| it.to_string())),
    ] {
        if let Some(value) = value {
            option(name, value.into());
        }
    }
    for (name, path) in [("--table", &args.table), ("--table6", &args.table6)] {
        if let Some(path) = path {
            option(name, path.into());
        }
    }
    if args.route_counters {
        words.push("--route-counters".into());
    }
    words
}
