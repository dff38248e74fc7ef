//! Errors that stop a command before it has a result.

use std::path::PathBuf;

/// An error, printed as one sentence: what, where, how to correct it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Bad command line.
    #[error("{0}")]
    Usage(String),
    /// A file could not be read or written.
    #[error("{path}: {source}")]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Reason.
        source: std::io::Error,
    },
    /// A program could not be started or failed.
    #[error("`{command}`: {reason}")]
    Command {
        /// The command line.
        command: String,
        /// Reason.
        reason: String,
    },
    /// A file or an output has an invalid format.
    #[error("{what}: {reason}")]
    Format {
        /// The file or output.
        what: String,
        /// The fault.
        reason: String,
    },
}

impl Error {
    /// A command line that was not understood.
    pub fn usage(error: pico_args::Error) -> Self {
        Self::Usage(error.to_string())
    }

    /// An error of the file at `path`.
    pub fn file(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { path, source }
    }

    /// An error: the format of `what` differs from the expected one.
    pub fn format(what: impl Into<String>, reason: impl ToString) -> Self {
        Self::Format {
            what: what.into(),
            reason: reason.to_string(),
        }
    }
}
