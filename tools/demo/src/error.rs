//! Errors of the demo.

use std::path::PathBuf;

/// An error, printed as one sentence.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// Volley could not be set up.
    #[error(transparent)]
    Stack(#[from] volley_daemon::stack::StackError),
    /// An error of the demo between namespaces.
    #[error(transparent)]
    Net(#[from] super::net::NetError),
    /// A command was refused.
    #[error("`{line}` was refused: {why}")]
    Refused {
        /// The command.
        line: String,
        /// Reason.
        why: String,
    },
    /// A route file cannot be read.
    #[error(transparent)]
    Routes(#[from] volley_fib::FibError),
    /// A capture cannot be read or written.
    #[error(transparent)]
    Capture(#[from] volley_pcap::PcapError),
    /// A file or folder of the demo could not be used.
    #[error("{}: {source}", .path.display())]
    Io {
        /// Path.
        path: PathBuf,
        /// Error of the system.
        source: std::io::Error,
    },
    /// Packets keep circulating.
    #[error("packets still flow after {0} s, although every stream is limited")]
    Endless(u64),
    /// A table without routes or a capture without packets.
    #[error("{}: {why}", .path.display())]
    Useless {
        /// The file.
        path: PathBuf,
        /// The missing part.
        why: &'static str,
    },
    /// The worker's thread ended or did not start.
    #[error("the worker did not come back from its thread")]
    Worker,
    /// The output differs from the expected one.
    #[error("NOT verified: {0}")]
    Wrong(String),
}
