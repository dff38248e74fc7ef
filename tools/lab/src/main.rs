//! `volley-lab`: the program of the lab, separate from `volley`, whose dependencies it would enlarge.
#![forbid(unsafe_code)]

use clap::Parser;
use std::process::ExitCode;

/// The allocator of `volley`, so that the benchmark measures the same memory layout.
#[global_allocator]
static HEAP: volley_heap::LineHeap = volley_heap::LineHeap;

#[derive(Parser)]
#[command(name = "volley-lab", version, arg_required_else_help = true)]
struct Cli {
    #[command(flatten)]
    args: volley_lab::Args,
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // The parser would end with 2, which is the status of points that could not be measured.
            let _ = error.print();
            return match error.use_stderr() {
                true => ExitCode::FAILURE,
                false => ExitCode::SUCCESS,
            };
        }
    };
    if let Err(error) = volley_daemon::objects::register() {
        eprintln!("volley-lab: {error}");
        return ExitCode::FAILURE;
    }
    volley_daemon::run::logging::warnings();
    volley_lab::main(cli.args)
}
