//! What goes wrong for a client.

use std::path::PathBuf;

/// Why the daemon could not be asked, or what it refused.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// No program serves the socket, or it may not be opened.
    #[error("{path}: cannot reach the daemon: {source}; {hint}")]
    Connect {
        /// The socket.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
        /// What to do.
        hint: String,
    },
    /// Another user's program serves the socket.
    #[error(
        "{path}: {user}'s program serves this socket, not yours, root's or the service's: its answers are not to be trusted; \
         name the daemon's socket by --socket, or run the client as {user}"
    )]
    Foreign {
        /// The socket.
        path: PathBuf,
        /// The user.
        user: String,
    },
    /// The connection broke.
    #[error("the connection to the daemon broke: {0}")]
    Broken(std::io::Error),
    /// The daemon does not speak this protocol.
    #[error("the daemon's answer is not understood: {0}")]
    Answer(serde_json::Error),
    /// The daemon refused the line.
    #[error("{}{message}", .column.map(|c| format!("column {c}: ")).unwrap_or_default())]
    Refused {
        /// Character of the line, from 1.
        column: Option<usize>,
        /// One sentence.
        message: String,
    },
    /// A file of commands went wrong.
    #[error("{place}: {why}")]
    Batch {
        /// File, and line.
        place: String,
        /// What.
        why: String,
    },
    /// Commands of a script failed, each of which was reported.
    #[error("{failed} of {all} commands failed")]
    Script {
        /// How many failed.
        failed: usize,
        /// How many there were.
        all: usize,
    },
    /// The terminal failed.
    #[error("the terminal cannot be used: {0}")]
    Terminal(String),
    /// The output cannot be written.
    #[error("the output cannot be written: {0}")]
    Output(std::io::Error),
}
