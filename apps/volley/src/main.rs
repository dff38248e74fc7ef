//! `volley`: the daemon, its command line, the check of configuration files, the demo, the benchmark, the doctor, and the start of the lab.
//!
//! Every error is one sentence on standard error (a configuration file: one per error) and exit code 1.
#![forbid(unsafe_code)]

mod config;
mod ctl;
mod doc;
mod doctor;
mod lab;
mod plugin;

use clap::{CommandFactory, Parser, Subcommand};
use std::ffi::OsString;
use std::fmt::Display;
use std::io::Write;
use std::process::ExitCode;
use volley_bench as bench;
use volley_daemon::{objects, run};
use volley_demo as demo;

/// Cache lines that workers write are not shared with data of other threads.
#[global_allocator]
static HEAP: volley_heap::LineHeap = volley_heap::LineHeap;

/// A vector packet processor.
#[derive(Parser)]
#[command(name = "volley", version, about, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the daemon with a configuration file.
    Run(run::Args),
    /// Talk to a running daemon: one command, or interactively.
    Ctl(ctl::Args),
    /// Check configuration files; compare, commit, confirm and roll back with a running daemon.
    Config {
        #[command(subcommand)]
        command: config::Command,
    },
    /// Forward packets over a full-size table, show the cost, and check the result.
    Demo(demo::Args),
    /// Measure the forwarding speed.
    Bench(Box<bench::Args>),
    /// Measure figures of papers, write a report, and compare runs.
    Lab(lab::Args),
    /// Send packets at a rate, and measure latency and loss of what comes back.
    Generate(lab::Args),
    /// Receive the packets of `volley generate` on another port.
    Sink(lab::Args),
    /// What this machine can do for Volley, what is missing, and the command that fixes it.
    Doctor(doctor::Args),
    /// Write the project of a plugin.
    Plugin {
        #[command(subcommand)]
        command: plugin::Command,
    },
    /// Print completions for a shell.
    Completions {
        /// Which shell.
        shell: clap_complete::Shell,
    },
    /// Print a page of the documentation that is generated from the program.
    Doc {
        /// Which page.
        page: doc::Page,
    },
}

fn main() -> ExitCode {
    let command = Cli::parse_from(in_order(std::env::args_os())).command;
    if let Err(error) = objects::register() {
        return exit(Err(error));
    }
    match command {
        Command::Run(args) => exit(run::main(args)),
        Command::Ctl(args) => exit(ctl::main(args)),
        Command::Config { command } => exit(config::main(command)),
        Command::Demo(args) => {
            run::logging::warnings();
            exit(demo::main(args))
        }
        Command::Bench(args) => {
            run::logging::warnings();
            bench::main(*args)
        }
        Command::Lab(args) => exit(lab::main(&[], &args)),
        Command::Generate(args) => exit(lab::main(&["generate"], &args)),
        Command::Sink(args) => exit(lab::main(&["sink"], &args)),
        Command::Doctor(args) => exit(doctor::main(&args)),
        Command::Plugin { command } => exit(plugin::main(command)),
        Command::Completions { shell } => {
            let mut text = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "volley", &mut text);
            // A closed output is not an error.
            let _ = std::io::stdout().write_all(&text);
            ExitCode::SUCCESS
        }
        Command::Doc { page } => exit(doc::page(page).map(|text| {
            let _ = std::io::stdout().write_all(text.as_bytes());
        })),
    }
}

/// Moves `--socket PATH` from before the subcommand, whose option it is, to behind it.
fn in_order(args: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut all: Vec<OsString> = args.collect();
    let first = all.get(1).and_then(|a| a.to_str()).unwrap_or_default();
    let options = match first {
        "--socket" => 2,
        _ if first.starts_with("--socket=") => 1,
        _ => 0,
    };
    // `config` has subcommands.
    let behind = match all.get(1 + options).and_then(|a| a.to_str()) {
        Some("config") => 2,
        _ => 1,
    };
    if options > 0 && all.len() >= 1 + options + behind {
        all[1..1 + options + behind].rotate_left(options);
    }
    all
}

/// Reports an error; a closed output is none.
fn exit<E: Display>(done: Result<(), E>) -> ExitCode {
    let Err(error) = done else {
        return ExitCode::SUCCESS;
    };
    let _ = writeln!(std::io::stderr(), "volley: {error}");
    ExitCode::FAILURE
}
