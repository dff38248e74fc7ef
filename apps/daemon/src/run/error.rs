//! Why the daemon does not start, or ends without a request.

use std::path::PathBuf;
use volley_control::TransactionError;
use volley_control::journal::{JournalError, correction};
use volley_model::ModelError;

/// One sentence each.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The configuration file has errors.
    #[error(transparent)]
    Config(#[from] volley_config::ConfigErrors),
    /// The graph of the command line cannot be used.
    #[error(transparent)]
    Graph(Box<TransactionError>),
    /// The name of the graph's file is wrong.
    #[error("{}: {why}", .file.display())]
    GraphName {
        /// The file.
        file: PathBuf,
        /// Why.
        why: String,
    },
    /// The stack cannot be created.
    #[error(transparent)]
    Stack(#[from] crate::stack::StackError),
    /// The configuration file was refused as a whole.
    #[error("{}: {error}", .file.display())]
    Refused {
        /// The file.
        file: PathBuf,
        /// Why.
        error: Box<TransactionError>,
    },
    /// The last commit cannot be applied at start.
    #[error("{}: commit {number} cannot be applied: {error}; remove the cause, or {}", .place.display(), instead(.earlier))]
    Restore {
        /// The state directory.
        place: PathBuf,
        /// The newest commit.
        number: u64,
        /// Why it cannot be applied.
        error: Box<ModelError>,
        /// The commit before it, if it was not tried.
        earlier: Option<u64>,
    },
    /// The file of the active commit cannot be used.
    #[error(
        "the active commit {number} cannot be applied: {error}; {}",
        correction(place, earlier)
    )]
    Damaged {
        /// The state directory.
        place: PathBuf,
        /// The active commit.
        number: u64,
        /// The fault of its file.
        error: JournalError,
        /// An earlier commit that can be applied instead.
        earlier: Option<u64>,
    },
    /// The state directory cannot be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The log cannot begin.
    #[error(transparent)]
    Log(#[from] volley_log::LogError),
    /// There is no configuration.
    #[error(
        "there is no configuration: give a file with -c, a graph with --graph, or a state directory that has a commit with --state-dir"
    )]
    Nothing,
    /// The socket cannot be served.
    #[error(transparent)]
    Server(#[from] volley_cli::server::ServerError),
    /// Capabilities cannot be dropped.
    #[error(transparent)]
    Privileges(#[from] super::privileges::CapabilitiesError),
    /// Workers cannot be started.
    #[error(transparent)]
    Start(#[from] super::privileges::StartError),
    /// System calls cannot be filtered.
    #[error("system calls cannot be filtered: {0}; set seccomp = \"auto\" in [process]")]
    Seccomp(#[from] seccompiler::Error),
    /// Files cannot be limited to folders.
    #[error(transparent)]
    Folders(#[from] super::folders::FoldersError),
    /// The HTTP interface cannot be served.
    #[error(transparent)]
    Http(#[from] volley_http::HttpError),
    /// The async runtime of the control thread cannot be set up.
    #[error("the control thread cannot be set up: {0}")]
    Runtime(std::io::Error),
    /// A worker ended without a request.
    #[error("the worker has died; the log says more, packets no longer flow")]
    WorkerDied,
}

/// How to start without the last commit.
fn instead(earlier: &Option<u64>) -> String {
    match earlier {
        Some(number) => {
            format!(
                "start with `volley run --fallback` to apply commit {number} instead and make it the active one by \
                 `volley config rollback {number}`"
            )
        }
        None => "start with another --state-dir".into(),
    }
}
