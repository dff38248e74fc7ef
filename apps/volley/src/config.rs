//! `volley config check`: read a configuration file without a daemon.

use clap::Subcommand;
use std::io::Write;
use std::path::PathBuf;
use volley_config::ConfigErrors;

/// `volley config ...`
#[derive(Subcommand)]
pub enum Command {
    /// Read a file and tell every error with its place.
    Check {
        /// The configuration file.
        file: PathBuf,
    },
}

/// Carry it out.
pub fn main(command: Command) -> Result<(), ConfigErrors> {
    let Command::Check { file } = command;
    let config = volley_config::load(&file)?;
    // Nobody reads: nothing to tell.
    let _ = writeln!(
        std::io::stdout(),
        "{}: fine, {} requests",
        file.display(),
        config.requests.len()
    );
    Ok(())
}
