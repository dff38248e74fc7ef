//! What can stop a command before it has a result.

use std::path::PathBuf;

/// One sentence: what, where, how to mend.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Bad command line.
    #[error("{0}")]
    Usage(String),
    /// A file could not be read or written.
    #[error("{path}: {source}")]
    File {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A program could not be started or failed.
    #[error("`{command}`: {reason}")]
    Command {
        /// The command line.
        command: String,
        /// What went wrong.
        reason: String,
    },
    /// A file or an output does not have the shape it must have.
    #[error("{what}: {reason}")]
    Format {
        /// Which file or output.
        what: String,
        /// What is wrong with it.
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

    /// Text of `what` that has another format than expected.
    pub fn format(what: impl Into<String>, reason: impl ToString) -> Self {
        Self::Format {
            what: what.into(),
            reason: reason.to_string(),
        }
    }
}
