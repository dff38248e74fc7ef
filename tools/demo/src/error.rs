//! Why the demo fails.

use std::path::PathBuf;

/// One sentence each.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// Volley cannot be put together.
    #[error(transparent)]
    Stack(#[from] volley_daemon::stack::StackError),
    /// Interfaces between namespaces.
    #[error(transparent)]
    Net(#[from] super::net::NetError),
    /// A command was refused.
    #[error("`{line}` was refused: {why}")]
    Refused {
        /// The command.
        line: String,
        /// Why.
        why: String,
    },
    /// A route file cannot be read.
    #[error(transparent)]
    Routes(#[from] volley_fib::FibError),
    /// A capture cannot be read or written.
    #[error(transparent)]
    Capture(#[from] volley_pcap::PcapError),
    /// A file or folder of the demo's own.
    #[error("{}: {source}", .path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Packets do not come to an end.
    #[error("packets still flow after {0} s, although every stream is limited")]
    Endless(u64),
    /// A table without routes or a capture without packets.
    #[error("{}: {why}", .path.display())]
    Useless {
        /// The file.
        path: PathBuf,
        /// What is missing.
        why: &'static str,
    },
    /// The worker's thread ended or did not start.
    #[error("the worker did not come back from its thread")]
    Worker,
    /// What came out is not what had to.
    #[error("NOT verified: {0}")]
    Wrong(String),
}
