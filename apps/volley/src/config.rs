//! `volley config ...`: check a file without a daemon; show, compare, commit and roll back with a daemon.

use clap::{Subcommand, ValueEnum};
use std::io::Write;
use std::path::{Path, PathBuf};
use volley_cli::client::{ClientError, one_shot};
use volley_config::ConfigErrors;
use volley_control::{Core, TransactionError};
use volley_daemon::check::{self, Scope};
use volley_daemon::run::commits::parted;
use volley_model::quote;

/// `volley config ...`
#[derive(Subcommand)]
pub enum Command {
    /// Report every error of a file, and what a start with it would refuse. Needs no daemon.
    Check {
        /// The configuration file.
        file: PathBuf,
        /// Check this machine, too: devices, files, cores, sockets, addresses.
        #[arg(long)]
        here: bool,
    },
    /// The running configuration as a file, or that of a commit.
    Show {
        /// Number of the commit.
        #[arg(long)]
        commit: Option<u64>,
        #[command(flatten)]
        daemon: DaemonArgs,
    },
    /// The difference from the active commit to the running configuration, from the running configuration to a file, or from
    /// one commit to another.
    Diff {
        /// The configuration file, or the number of the first commit.
        #[arg(conflicts_with = "commit", value_name = "FILE|COMMIT")]
        file: Option<PathBuf>,
        /// The number of the second commit.
        to: Option<u64>,
        /// From this commit to the running configuration.
        #[arg(long)]
        commit: Option<u64>,
        #[command(flatten)]
        daemon: DaemonArgs,
    },
    /// Apply a file, completely or not at all, and keep it; without a file, keep the running configuration.
    Commit {
        /// The configuration file.
        file: Option<PathBuf>,
        /// Roll the commit back unless it is confirmed within this time: 90s, 5m, 2h; a number alone is seconds.
        #[arg(long, value_name = "TIME")]
        confirm: Option<String>,
        /// Why.
        #[arg(long, value_name = "TEXT")]
        comment: Option<String>,
        #[command(flatten)]
        daemon: DaemonArgs,
    },
    /// Confirm the pending commit.
    Confirm {
        #[command(flatten)]
        daemon: DaemonArgs,
    },
    /// Apply an earlier commit again, as a new one.
    Rollback {
        /// Number of the commit, as `history` lists it.
        number: u64,
        #[command(flatten)]
        daemon: DaemonArgs,
    },
    /// The commits, newest first.
    History {
        #[command(flatten)]
        daemon: DaemonArgs,
    },
    /// The running configuration as a file, as commands or as requests in JSON.
    Export {
        /// How.
        #[arg(value_enum, default_value_t = Form::Toml)]
        form: Form,
        #[command(flatten)]
        daemon: DaemonArgs,
    },
}

/// The format of a configuration that is written out.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Form {
    /// A volley.toml.
    Toml,
    /// Commands, one a line.
    Commands,
    /// Requests in JSON, one a line.
    Json,
}

/// The daemon to talk to.
#[derive(clap::Args)]
pub struct DaemonArgs {
    /// Unix socket of the daemon.
    #[arg(long, default_value_os_t = crate::ctl::usual_socket())]
    socket: PathBuf,
    /// Answer in JSON.
    #[arg(long)]
    json: bool,
}

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file has errors.
    #[error(transparent)]
    File(#[from] ConfigErrors),
    /// Parts of the file contradict each other.
    #[error("{}: {error}", .file.display())]
    Whole {
        /// The file.
        file: PathBuf,
        /// The contradiction.
        error: TransactionError,
    },
    /// A start with the file would fail.
    #[error("{}", each(.file, .errors))]
    Start {
        /// The file.
        file: PathBuf,
        /// Why, one sentence each.
        errors: Vec<String>,
    },
    /// Two commits are compared by their numbers.
    #[error(
        "'{0}' is not the number of a commit: `volley config diff 3 5` compares commits 3 and 5, and `volley config history` lists them"
    )]
    Number(String),
    /// The daemon refused, or is not running.
    #[error(transparent)]
    Client(#[from] ClientError),
}

/// Errors of a file, one a line.
fn each(file: &Path, errors: &[String]) -> String {
    let lines = errors.iter().map(|e| format!("{}: {e}", file.display()));
    lines.collect::<Vec<_>>().join("\n")
}

/// A word in quotes, so that it is not read as a keyword.
fn apart(word: &str) -> String {
    match quote(word) {
        plain if plain == word => format!("\"{word}\""),
        quoted => quoted,
    }
}

fn check(file: &Path, scope: Scope) -> Result<(), ConfigError> {
    let config = volley_config::load(file)?;
    let (requests, _) = parted(config.requests.clone());
    Core::state_of(&requests).map_err(|error| ConfigError::Whole {
        file: file.to_owned(),
        error,
    })?;
    let found = check::check(&config, scope);
    if !found.errors.is_empty() {
        return Err(ConfigError::Start {
            file: file.to_owned(),
            errors: found.errors,
        });
    }
    for warning in found.warnings {
        let _ = writeln!(
            std::io::stderr(),
            "volley: {}: warning: {warning}",
            file.display()
        );
    }
    // A closed output is not an error here.
    let _ = writeln!(
        std::io::stdout(),
        "{}: fine, {} requests",
        file.display(),
        config.requests.len()
    );
    Ok(())
}

/// Carries the command out.
pub fn main(command: Command) -> Result<(), ConfigError> {
    let (line, daemon) = match command {
        Command::Check { file, here } => {
            let scope = if here { Scope::Here } else { Scope::File };
            return check(&file, scope);
        }
        Command::Show { commit, daemon } => {
            let commit = commit.map_or(String::new(), |n| format!(" commit {n}"));
            (format!("config show{commit}"), daemon)
        }
        Command::Diff {
            file,
            to,
            commit,
            daemon,
        } => {
            let with = match (file, to, commit) {
                (Some(from), Some(to), _) => {
                    let from = from.display().to_string();
                    let number: Result<u64, _> = from.parse();
                    format!(" {} {to}", number.map_err(|_| ConfigError::Number(from))?)
                }
                (Some(file), None, _) => format!(" {}", apart(&file.display().to_string())),
                (None, _, Some(number)) => format!(" commit {number}"),
                (None, _, None) => String::new(),
            };
            (format!("config diff{with}"), daemon)
        }
        Command::Commit {
            file,
            confirm,
            comment,
            daemon,
        } => {
            let mut line = "config commit".to_owned();
            if let Some(file) = file {
                line += &format!(" file {}", apart(&file.display().to_string()));
            }
            if let Some(span) = confirm {
                line += &format!(" confirm {}", apart(&span));
            }
            if let Some(text) = comment {
                line += &format!(" comment {}", apart(&text));
            }
            (line, daemon)
        }
        Command::Confirm { daemon } => ("config confirm".into(), daemon),
        Command::Rollback { number, daemon } => (format!("config rollback {number}"), daemon),
        Command::History { daemon } => ("config history".into(), daemon),
        Command::Export { form, daemon } => {
            let form = match form {
                Form::Toml => "toml",
                Form::Commands => "commands",
                Form::Json => "json",
            };
            (format!("config export {form}"), daemon)
        }
    };
    let mut out = std::io::stdout();
    one_shot(&daemon.socket, &line, daemon.json, &mut out)?;
    let _ = out.flush();
    Ok(())
}
