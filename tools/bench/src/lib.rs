//! `volley bench`: the cost of forwarding, by scenario, table, vector size and instruction-set level.
#![forbid(unsafe_code)]

mod args;
mod burn;
mod counted;
mod counters;
mod error;
mod lpm;
mod measure;
mod pace;
mod path_batcher;
mod path_traffic;
mod pauses;
mod plugin;
mod process;
mod report;
mod rtc;
mod scaling;
mod scatter;
mod scenario;
mod scratch;
mod simulated;
mod slow_path;
mod tables;
mod updates;
mod verify;

pub use args::{Args, Command, PathArgs, Prefixes, Scenario};
pub use error::BenchError;
pub use measure::{measure, measure_with, pin, speedup};
pub use path_batcher::cycles as path_cycles;
pub use report::{CostKind, NodeCost, Report, Sample, Spread};
pub use scenario::{Bench as Setup, Entry, TX};

use std::process::ExitCode;

/// Run the benchmark of the command line.
pub fn main(args: Args) -> ExitCode {
    let done = match &args.command {
        Some(Command::Lpm(lpm)) => lpm::run(lpm),
        Some(Command::PathBatcher(paths)) => path_batcher::run(paths),
        Some(Command::Pauses(pauses)) => pauses::run(pauses),
        Some(Command::Plugin(args)) => plugin::run(args),
        Some(Command::Scatter(args)) => scatter::run(args),
        Some(Command::SlowPath(slow)) => slow_path::run(slow),
        Some(Command::Updates(updates)) => updates::run(updates),
        None => measure::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("volley bench: {error}");
            ExitCode::FAILURE
        }
    }
}
