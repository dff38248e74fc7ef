//! `volley-lab`: reproduces the experiments of the source papers on this code, and compares runs.
//!
//! Exit status: 0 done; 1 a folder or an argument cannot be used; 2 a point could not be measured; 3 `compare` found a slower
//! point; 130 interrupted.
#![forbid(unsafe_code)]

mod allocation;
mod args;
mod clock;
pub mod compare;
mod environment;
mod error;
mod events;
pub mod figure;
mod interrupt;
mod latency;
pub mod level;
mod markdown;
pub mod meter;
mod method;
mod plan;
mod plot;
mod plugin;
mod points;
pub mod report;
pub mod run;
pub mod samples;
pub mod search;
pub mod series;
pub mod stats;
pub mod switch;
mod tables;
pub mod traffic;
mod use_cases;
mod wake;

pub use args::Args;
pub use environment::Environment;
pub use error::LabError;

use args::{Command, PointArgs};
use interrupt::{end_at_once, on_interrupt, stop_at_interrupt};
use meter::{Meter, Options};
use run::Run;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Run the command of the command line.
pub fn main(args: Args) -> ExitCode {
    match perform(args.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("volley-lab: {error}");
            ExitCode::from(error.status())
        }
    }
}

fn perform(command: Command) -> Result<(), LabError> {
    match command {
        Command::List => {
            for figure in figure::FIGURES {
                println!("{:<14} {}", figure.name, figure.title);
            }
            Ok(())
        }
        Command::Run {
            figures,
            extent,
            plugin,
            fresh,
            burn,
            out,
        } => {
            let plugin = plugin.map(|file| existing(&file)).transpose()?;
            let options = Options {
                plugin,
                fresh,
                burn,
            };
            measure(Run::create(&out, &figures, extent.level(), options)?)
        }
        Command::Plan { figures, extent } => {
            figure::known(&figures)?;
            print!("{}", plan::text(&figures, extent.level()));
            Ok(())
        }
        Command::Resume { dir } => measure(Run::read_in(&dir, &Environment::now())?),
        Command::Report { dir, markdown } => match markdown {
            None => write(&Run::read(&dir)?),
            Some(to) => {
                let page = markdown::write(&Run::read(&dir)?, &to)?;
                println!("{}", page.display());
                Ok(())
            }
        },
        Command::Generate(args) => traffic::generate(&args),
        Command::Sink(args) => traffic::sink(&args),
        Command::Router(args) => switch::router(&args),
        Command::Bench(args) => match volley_bench::main(*args) == ExitCode::SUCCESS {
            true => Ok(()),
            false => Err(LabError::Argument("the benchmark failed".to_owned())),
        },
        Command::SelfTest { json } => self_test(json),
        Command::Point(args) => point(&args),
        Command::Tables {
            ip4,
            ip4_prefixes,
            ip6,
            ip6_prefixes,
        } => tables::write(&ip4, ip4_prefixes.v4, &ip6, ip6_prefixes.v6),
        Command::Compare { first, second } => {
            let compared = compare::compare(&Run::read(&first)?, &Run::read(&second)?);
            if compared.lines.is_empty() {
                let why = "the runs have no point with cycles in common: choose two runs of the same figures";
                return Err(LabError::Argument(why.to_owned()));
            }
            print!("{}", compared.text());
            match compared.count(stats::Verdict::Larger) {
                0 => Ok(()),
                count => Err(LabError::Slower { count }),
            }
        }
    }
}

/// Measure one point, and print its samples by metric as JSON.
fn point(args: &PointArgs) -> Result<(), LabError> {
    let length = samples::Length {
        seconds: args.seconds,
        repetitions: args.repetitions,
        ..level::Level::Quick.length()
    };
    let point = args.args.join(" ");
    meter::Task::of(&point).map_err(LabError::Argument)?;
    on_interrupt(|| end_at_once())?;
    let measured = meter::Bench::default().measure(&point, length);
    let samples = measured.map_err(LabError::Point)?;
    println!("{}", serde_json::to_string(&samples).unwrap_or_default());
    Ok(())
}

/// Check the generator and the sink.
fn self_test(json: bool) -> Result<(), LabError> {
    let test = traffic::self_test()?;
    match json {
        true => println!(
            "{}",
            serde_json::to_string_pretty(&test).unwrap_or_default()
        ),
        false => print!("{}", test.text()),
    }
    let why = match test.is_passed() {
        Some(true) => return Ok(()),
        Some(false) => "the self-test of the generator has failed",
        None => "the machine is too busy for the self-test: repeat it without other load",
    };
    Err(LabError::SelfTest(why.to_owned()))
}

/// Measure what is missing. The first Ctrl-C or SIGTERM ends the run after the present point, the second one ends the process.
fn measure(mut run: Run) -> Result<(), LabError> {
    let stop = stop_at_interrupt()?;
    let mut bench = meter::Bench::new(run.plan.options.clone(), run.plan.level);
    let measured = run.measure(&mut bench, &stop);
    // Switches end before the report is written.
    drop(bench);
    if matches!(measured, Err(LabError::File { .. })) {
        // A report has no place either.
        return measured;
    }
    write(&run)?;
    measured
}

/// The path of a file, seen from any folder.
fn existing(file: &Path) -> Result<PathBuf, LabError> {
    file.canonicalize().map_err(|e| LabError::file(file, e))
}

fn write(run: &Run) -> Result<(), LabError> {
    report::write(run)?;
    println!("{}", run.dir.join("report.html").display());
    Ok(())
}
