//! Errors at the start of the log.

use std::path::PathBuf;

/// Why the log cannot start.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The file cannot be opened.
    #[error("log.file {}: {source}; name a file that can be written, or set destination to journald or stderr", .file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The journal's socket cannot be made.
    #[error("log.destination journald: {0}; set destination to file or stderr")]
    Journald(std::io::Error),
    /// The writer's thread cannot be started.
    #[error("the log's thread cannot be started: {0}")]
    Thread(std::io::Error),
}
