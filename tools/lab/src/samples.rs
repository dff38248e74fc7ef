//! What every measurement has: length, arguments of the benchmark, samples.

use clap::Parser;
use std::collections::BTreeMap;
use volley_bench::Args;
use volley_file::Scratch;

pub use crate::level::Length;

/// Samples by metric, of the benchmark: `mpps`, `cycles`, `core_cycles`, `core_speed`, `vector_size`, `speedup`, `undisturbed`, `per_ghz`, and
/// `node NAME` and `share NAME` for each node. Several workers have `speedup` only,
/// and the path batcher `path_cycles` only. The modules `events` and `latency` name theirs.
pub type Samples = BTreeMap<String, Vec<f64>>;

/// Prefix of the metrics of nodes: cycles per packet.
pub const NODE: &str = "node ";
/// Prefix of the metrics of nodes, sources and the loop: percent of all cycles.
pub const SHARE: &str = "share ";
/// Prefix of the metrics of a distribution of times: microseconds by the part of the packets that took no longer.
pub const TIME: &str = "time ";

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

/// A folder for the files of a measurement.
///
/// # Errors
/// If the folder cannot be made.
pub fn scratch() -> Result<Scratch, String> {
    Scratch::new("volley-lab").map_err(|e| format!("{}: {e}", std::env::temp_dir().display()))
}
