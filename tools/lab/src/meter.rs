//! Measures one point: the benchmark in this process, on a pinned thread.

use clap::Parser;
use std::collections::BTreeMap;
use volley_bench::{Args, CostKind, Report};

/// Samples by metric: `mpps`, `cycles`, `core_cycles`, and `node NAME` for each node.
pub type Samples = BTreeMap<String, Vec<f64>>;

/// Prefix of the metrics of nodes.
pub const NODE: &str = "node ";

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
        // The benchmark pins its thread.
        let run = move || {
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
    let mut all = Samples::from([
        ("mpps".to_owned(), of(&|s| s.mpps_with_source)),
        ("cycles".to_owned(), of(&|s| s.cycles_per_packet)),
        (
            "core_cycles".to_owned(),
            of(&|s| s.cycles_per_packet * s.core_cycles_per_tsc),
        ),
    ]);
    let nodes = report.nodes.iter().filter(|n| n.kind == CostKind::Node);
    for node in nodes {
        all.insert(
            format!("{NODE}{}", node.name),
            vec![node.cycles_per_packet()],
        );
    }
    all
}
