//! What every measurement has: length, arguments of the benchmark, samples.

use clap::Parser;
use std::collections::BTreeMap;
use std::path::PathBuf;
use volley_bench::Args;

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

/// Folder for files of a measurement, which removes it.
pub fn scratch() -> PathBuf {
    std::env::temp_dir().join(format!("volley-lab-{}", std::process::id()))
}

/// Make that folder. One that an earlier process of the same number has left is removed, and one that another user has made is not used.
///
/// # Errors
/// If the folder cannot be made.
pub fn make_scratch() -> Result<PathBuf, String> {
    let path = scratch();
    // There is none in most cases. If one stays, the next line fails.
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(path)
}
