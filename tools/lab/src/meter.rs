//! Measures one point: the benchmark in this process, on a pinned thread.

use clap::Parser;
use std::collections::BTreeMap;
use volley_bench::{Args, Command, CostKind, Report};

/// Samples by metric: `mpps`, `cycles`, `core_cycles`, `core_speed`, `vector_size`, `speedup`, `undisturbed`, and
/// `node NAME` and `share NAME` for each node. Several workers have `speedup` only,
/// and the path batcher `path_cycles` only.
pub type Samples = BTreeMap<String, Vec<f64>>;

/// Prefix of the metrics of nodes: cycles per packet.
pub const NODE: &str = "node ";
/// Prefix of the metrics of nodes, sources and the loop: percent of all cycles.
pub const SHARE: &str = "share ";

/// Length of the measurement of a point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Length {
    /// Seconds of a repetition.
    pub seconds: f64,
    /// Number of repetitions.
    pub repetitions: usize,
}

impl Length {
    /// Of a quick or a whole run.
    pub fn of(quick: bool) -> Length {
        let (seconds, repetitions) = if quick { (0.1, 7) } else { (0.5, 10) };
        Length {
            seconds,
            repetitions,
        }
    }
}

/// Something that measures points.
pub trait Meter {
    /// Samples of one point.
    ///
    /// # Errors
    /// A sentence, if the point could not be measured.
    fn measure(&mut self, args: &str, length: Length) -> Result<Samples, String>;
}

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    args: Args,
}

/// Arguments of the benchmark from a text.
///
/// # Errors
/// The message of the parser.
pub fn parse(args: &str) -> Result<Args, String> {
    let words = std::iter::once("bench").chain(args.split_whitespace());
    let line = Line::try_parse_from(words).map_err(|e| e.to_string())?;
    Ok(line.args)
}

/// `volley-bench` in this process.
pub struct Bench;

impl Meter for Bench {
    fn measure(&mut self, args: &str, length: Length) -> Result<Samples, String> {
        let mut args = parse(args)?;
        args.seconds = length.seconds;
        args.repetitions = length.repetitions;
        if let Some(Command::PathBatcher(paths)) = &mut args.command {
            paths.seconds = length.seconds;
            paths.repetitions = length.repetitions;
        }
        // The benchmark pins its thread.
        let run = move || {
            if let Some(Command::PathBatcher(paths)) = &args.command {
                let cycles = volley_bench::path_cycles(paths).map_err(|e| e.to_string())?;
                return Ok(Samples::from([("path_cycles".to_owned(), cycles)]));
            }
            if args.workers > 1 {
                let samples = volley_bench::speedup(&args).map_err(|e| e.to_string())?;
                return match samples.is_empty() {
                    true => Err("other programs used the cores all the time".to_owned()),
                    false => Ok(Samples::from([("speedup".to_owned(), samples)])),
                };
            }
            let report = volley_bench::measure(&args).map_err(|e| e.to_string())?;
            Ok(samples(&report))
        };
        match std::thread::spawn(run).join() {
            Ok(samples) => samples,
            Err(_) => Err("the benchmark panicked".to_owned()),
        }
    }
}

fn samples(report: &Report) -> Samples {
    let of =
        |what: &dyn Fn(&volley_bench::Sample) -> f64| report.samples.iter().map(what).collect();
    let metrics: [(&str, Vec<f64>); 7] = [
        ("mpps", of(&|s| s.mpps_with_source)),
        ("cycles", of(&|s| s.cycles_per_packet)),
        (
            "core_cycles",
            of(&|s| s.cycles_per_packet * s.core_cycles_per_tsc),
        ),
        ("core_speed", of(&|s| s.core_cycles_per_tsc)),
        ("vector_size", of(&|s| s.vectors_per_call)),
        ("speedup", of(&|_| 1.0)),
        ("undisturbed", vec![report.undisturbed]),
    ];
    let mut all: Samples = metrics
        .into_iter()
        .map(|(name, samples)| (name.to_owned(), samples))
        .collect();
    let whole: u64 = report.nodes.iter().map(|n| n.clocks).sum();
    for node in &report.nodes {
        let share = node.clocks as f64 * 100.0 / whole.max(1) as f64;
        // Sources that sent nothing have shares near 0.
        if share >= 0.5 {
            all.insert(format!("{SHARE}{}", node.name), vec![share]);
        }
        if node.kind == CostKind::Node {
            all.insert(
                format!("{NODE}{}", node.name),
                vec![node.cycles_per_packet()],
            );
        }
    }
    all
}
