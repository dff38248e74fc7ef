//! Errors of a client.

use std::path::PathBuf;

/// An error of the connection, or a refusal by the daemon.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// No program serves the socket, or access is denied.
    #[error("{path}: cannot reach the daemon: {source}; {hint}")]
    Connect {
        /// The socket.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
        /// Advice for the user.
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
        /// The user who runs the program.
        user: String,
    },
    /// The connection failed.
    #[error("the connection to the daemon broke: {0}")]
    Broken(std::io::Error),
    /// The answer does not follow the protocol.
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
    /// A command of a file failed.
    #[error("{place}: {why}")]
    Batch {
        /// File and line.
        place: String,
        /// Reason.
        why: String,
    },
    /// Commands of a script failed, each of which was reported.
    #[error("{failed} of {all} commands failed")]
    Script {
        /// Number of failed commands.
        failed: usize,
        /// Number of commands.
        all: usize,
    },
    /// The terminal failed.
    #[error("the terminal cannot be used: {0}")]
    Terminal(String),
    /// The output could not be written.
    #[error("the output cannot be written: {0}")]
    Output(std::io::Error),
}
