//! Errors of the demo of interfaces.

use std::path::PathBuf;

/// An error, printed as one sentence.
#[derive(Debug, thiserror::Error)]
pub enum NetError {
    /// Not root.
    #[error("network namespaces can be made by root only: run `sudo {0} demo --net`")]
    NotRoot(String),
    /// A program is not installed.
    #[error("`{program}` is not installed: `apt-get install {package}` brings it")]
    Missing {
        /// The program.
        program: &'static str,
        /// Debian's package of the program.
        package: &'static str,
    },
    /// SIGINT, SIGTERM or SIGHUP.
    #[error("interrupted; the namespaces and everything in them are removed")]
    Interrupted,
    /// A program failed.
    #[error("`{line}` failed: {why}")]
    Failed {
        /// The command.
        line: String,
        /// Last line of its output.
        why: String,
    },
    /// A program took too long.
    #[error("`{line}` was not done after {seconds} s")]
    Late {
        /// The command.
        line: String,
        /// Time limit in seconds.
        seconds: u64,
    },
    /// The output of a program could not be parsed.
    #[error("`{line}` answered without {what}")]
    Answer {
        /// The command.
        line: String,
        /// The missing part.
        what: &'static str,
    },
    /// A Volley of the demo ended, or did not start.
    #[error("the Volley between the namespaces does not run: {0}")]
    Volley(String),
    /// A Volley of the demo refused a command.
    #[error(transparent)]
    Control(#[from] volley_cli::client::ClientError),
    /// An interface without a link.
    #[error("interface {name} of Volley has no link after {seconds} s: {why}")]
    NoLink {
        /// The interface.
        name: String,
        /// Time limit in seconds.
        seconds: u64,
        /// Reason from Volley.
        why: String,
    },
    /// Packets do not arrive.
    #[error("no answer to pings of {0} bytes")]
    NoAnswer(usize),
    /// A file of the demo could not be used.
    #[error("{}: {source}", .path.display())]
    Io {
        /// Path.
        path: PathBuf,
        /// Error of the system.
        source: std::io::Error,
    },
    /// Signals cannot be watched.
    #[error("signals cannot be watched: {0}")]
    Signals(std::io::Error),
    /// Some connections were not measured.
    #[error("no packets through {0}; the reasons stand above")]
    Incomplete(String),
}
