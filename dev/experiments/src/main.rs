//! Runs an experiment by name; `cargo xtask` calls this program.
#![forbid(unsafe_code)]

use house_experiments::{paths, scaling};
use pico_args::Arguments;
use std::process::ExitCode;
use xtask::command::{self, finish};
use xtask::error::Error;
use xtask::home::Home;
use xtask::report;

fn main() -> ExitCode {
    command::main(run)
}

fn run(home: &Home, arguments: &mut Arguments) -> Result<bool, Error> {
    let name = arguments.subcommand().map_err(Error::usage)?;
    let outcome = match name.as_deref() {
        Some("path-curves") => finish(arguments).map(|()| paths::curves(home)),
        Some("scaling") => finish(arguments).map(|()| scaling::run(home)),
        Some("contended") => contended(home, arguments),
        _ => Err(Error::Usage(
            "name an experiment: contended, scaling or path-curves".into(),
        )),
    }?;
    Ok(report::single(name.as_deref().unwrap_or_default(), outcome))
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn contended(home: &Home, arguments: &mut Arguments) -> Result<report::Outcome, Error> {
    use house_experiments::contended::{Options, run};
    let options = Options {
        only: command::values(arguments, "--only")?,
        steps: arguments
            .opt_value_from_str("--steps")
            .map_err(Error::usage)?,
        binary: arguments
            .opt_value_from_str("--binary")
            .map_err(Error::usage)?,
        update: arguments.contains("--update"),
    };
    finish(arguments).map(|()| run(home, &options))
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
fn contended(_: &Home, _: &mut Arguments) -> Result<report::Outcome, Error> {
    let why = "instructions are decoded for x86-64 Linux only";
    Ok(report::Skip(why.into()))
}
