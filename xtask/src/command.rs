//! Command lines of the tools: remaining words, repeated flags, exit codes.

use crate::error::Error;
use crate::home::Home;
use crate::run::cargo;
use pico_args::Arguments;
use std::ffi::OsString;
use std::process::{Command, ExitCode};

/// Runs a tool with its command line. Exit code: 0 if nothing failed, 1 if something did (`Ok(false)`), 2 for an error in
/// the command line or the machine.
pub fn main(run: impl FnOnce(&Home, &mut Arguments) -> Result<bool, Error>) -> ExitCode {
    let run = || Home::find().and_then(|home| run(&home, &mut Arguments::from_env()));
    exit_code(run().map(|fine| u8::from(!fine)))
}

/// The exit code of a tool; an error is printed.
pub fn exit_code(code: Result<u8, Error>) -> ExitCode {
    match code {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::from(2)
        }
    }
}

/// The values of a flag that may occur more than once.
pub fn values(arguments: &mut Arguments, flag: &'static str) -> Result<Vec<String>, Error> {
    arguments.values_from_str(flag).map_err(Error::usage)
}

/// Takes the remaining words of the command line.
pub fn rest(arguments: &mut Arguments) -> Vec<OsString> {
    std::mem::replace(arguments, Arguments::from_vec(Vec::new())).finish()
}

/// Returns an error if words remain on the command line.
pub fn finish(arguments: &mut Arguments) -> Result<(), Error> {
    match rest(arguments).first() {
        None => Ok(()),
        Some(word) => Err(Error::Usage(format!(
            "`{}` was not understood; see `cargo xtask help`",
            word.to_string_lossy()
        ))),
    }
}

/// The package of `cargo xtask show`.
pub const SHOW: &str = "house-show";

/// Builds and runs a tool of the folder `dev` with the remaining words. Returns its exit code.
///
/// # Errors
/// Cargo cannot be started.
pub fn tool(home: &Home, package: &str, words: &[OsString]) -> Result<u8, Error> {
    let status = Command::new(cargo())
        .current_dir(&home.root)
        .args(["run", "--quiet", "--locked", "--package", package, "--"])
        .args(words)
        .status()
        .map_err(|error| Error::Command {
            command: format!("cargo run --package {package}"),
            reason: error.to_string(),
        })?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.unwrap_or(2))
}
