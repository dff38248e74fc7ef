//! `cargo xtask show NAME [--long] [--only ITEM]...`.
#![forbid(unsafe_code)]

use pico_args::Arguments;
use std::process::ExitCode;
use xtask::command::{self, finish, values};
use xtask::error::Error;
use xtask::home::Home;

fn main() -> ExitCode {
    command::main(run)
}

fn run(home: &Home, arguments: &mut Arguments) -> Result<bool, Error> {
    let long = arguments.contains("--long");
    let only = values(arguments, "--only")?;
    let name: String = arguments.free_from_str().map_err(Error::usage)?;
    finish(arguments)?;
    house_show::run(home, &name, long, &only)
}
