//! Why the demo of interfaces fails.

use std::path::PathBuf;

/// One sentence each.
#[derive(Debug, thiserror::Error)]
pub enum NetError {
    /// Not root.
    #[error("network namespaces can be made by root only: run `sudo {0} demo --net`")]
    NotRoot(String),
    /// A program is not there.
    #[error("`{program}` is not installed: `apt-get install {package}` brings it")]
    Missing {
        /// The program.
        program: &'static str,
        /// Debian's package.
        package: &'static str,
    },
    /// SIGINT, SIGTERM or SIGHUP.
    #[error("interrupted; the namespaces and everything in them are removed")]
    Interrupted,
    /// A program did not do what it had to.
    #[error("`{line}` failed: {why}")]
    Failed {
        /// The command.
        line: String,
        /// The last that it said.
        why: String,
    },
    /// A program took too long.
    #[error("`{line}` was not done after {seconds} s")]
    Late {
        /// The command.
        line: String,
        /// How long it had.
        seconds: u64,
    },
    /// A program said something that cannot be understood.
    #[error("`{line}` answered without {what}")]
    Answer {
        /// The command.
        line: String,
        /// What was looked for.
        what: &'static str,
    },
    /// A Volley of the demo ended, or never came up.
    #[error("the Volley between the namespaces does not run: {0}")]
    Volley(String),
    /// A Volley of the demo refused a command.
    #[error(transparent)]
    Control(#[from] volley_cli::client::ClientError),
    /// An interface that cannot pass packets.
    #[error("interface {name} of Volley has no link after {seconds} s: {why}")]
    NoLink {
        /// The interface.
        name: String,
        /// How long it had.
        seconds: u64,
        /// What Volley says.
        why: String,
    },
    /// Packets do not arrive.
    #[error("no answer to pings of {0} bytes")]
    NoAnswer(usize),
    /// A file of the demo's own.
    #[error("{}: {source}", .path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Signals cannot be watched.
    #[error("signals cannot be watched: {0}")]
    Signals(std::io::Error),
    /// Some ways were not measured.
    #[error("no packets through {0}; the reasons stand above")]
    Incomplete(String),
}
