//! `volley bench`: what forwarding costs, by scenario, table, vector size and instruction-set level.
#![forbid(unsafe_code)]

mod args;
mod lpm;
mod measure;
mod pace;
mod path_batcher;
mod path_traffic;
mod pauses;
mod report;
mod rtc;
mod scaling;
mod scenario;
mod slow_path;
mod tables;
mod updates;
mod verify;

pub use args::Args;

use args::Command;
use std::process::ExitCode;

/// What can go wrong in a benchmark.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// Volley could not be put together.
    #[error(transparent)]
    Stack(#[from] volley_daemon::stack::StackError),
    /// The scenario's configuration was refused.
    #[error("the scenario cannot be set up: {0}")]
    Model(#[from] volley_model::ModelError),
    /// A table could not be read.
    #[error("{0}")]
    Fib(#[from] volley_fib::FibError),
    /// A capture could not be written.
    #[error(transparent)]
    Pcap(#[from] volley_pcap::PcapError),
    /// The arguments do not fit each other.
    #[error("{0}")]
    Args(String),
    /// What came out is not what the reference model says.
    #[error("the outputs are wrong: {0}")]
    Wrong(String),
    /// A file could not be used.
    #[error("{path}: {why}")]
    File {
        /// The file.
        path: String,
        /// What the system said.
        why: String,
    },
}

/// Run what the command line asks for.
pub fn main(args: Args) -> ExitCode {
    let done = match &args.command {
        Some(Command::Lpm(lpm)) => lpm::run(lpm),
        Some(Command::PathBatcher(paths)) => path_batcher::run(paths),
        Some(Command::Pauses(pauses)) => pauses::run(pauses),
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
