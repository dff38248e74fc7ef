//! `volley lab`, `volley generate` and `volley sink`: start `volley-lab`, a separate program: a router needs none of its dependencies.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Name of the program.
const PROGRAM: &str = "volley-lab";

#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub struct Args {
    /// Arguments of `volley-lab`; `--help` lists them.
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "ARGS"
    )]
    words: Vec<OsString>,
}

/// Why the program was not started: one sentence.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "this is a command of the program `volley-lab`, which is neither beside this program nor in PATH: build it with `cargo build --release -p volley-lab`"
    )]
    Missing,
    #[error("{}: cannot be started: {why}", path.display())]
    Start { path: PathBuf, why: io::Error },
}

/// Replaces this process by the program, so its exit status and its Ctrl-C are those of `volley lab`. `first` are words before the arguments.
pub fn main(first: &[&str], args: &Args) -> Result<(), Error> {
    let own = std::env::current_exe().unwrap_or_default();
    let path = program(&own);
    let why = Command::new(&path).args(first).args(&args.words).exec();
    match why.kind() {
        io::ErrorKind::NotFound => Err(Error::Missing),
        _ => Err(Error::Start { path, why }),
    }
}

/// The program beside this one if it exists, else its name, which is searched in PATH.
fn program(own: &Path) -> PathBuf {
    let beside = own.with_file_name(PROGRAM);
    match beside.is_file() {
        true => beside,
        false => PathBuf::from(PROGRAM),
    }
}
