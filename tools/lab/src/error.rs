//! Errors of the lab.

use std::path::{Path, PathBuf};

/// Exit status after Ctrl-C or SIGTERM.
pub(crate) const INTERRUPTED: u8 = 130;

/// Errors of the lab.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// A name that no figure has.
    #[error("no figure is named {name}: choose from {known}")]
    Figure {
        /// The name.
        name: String,
        /// All names.
        known: String,
    },
    /// A file of a run could not be used.
    #[error("{}: {why}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Reason.
        why: String,
    },
    /// A plot could not be drawn.
    #[error("the plot of {figure} cannot be drawn: {why}")]
    Plot {
        /// Figure.
        figure: String,
        /// Reason.
        why: String,
    },
    /// A port of the generator or of the sink cannot be used.
    #[error("{what}: {why}")]
    Port {
        /// Port or command.
        what: String,
        /// Reason.
        why: String,
    },
    /// An argument cannot be used.
    #[error("{0}")]
    Argument(String),
    /// A point could not be measured.
    #[error("{0}")]
    Point(String),
    /// A check of the self-test failed.
    #[error("{0}")]
    SelfTest(String),
    /// The run ended early.
    #[error("the run was interrupted with {left} points left: `volley-lab resume {}` continues it", dir.display())]
    Interrupted {
        /// Points that are not measured yet.
        left: usize,
        /// Folder of the run.
        dir: PathBuf,
    },
    /// Points could not be measured.
    #[error("{count} of the points could not be measured, the first: {first}")]
    Points {
        /// Number of points.
        count: usize,
        /// Name and reason of the first.
        first: String,
    },
    /// The second run is worse.
    #[error("{count} of the points are slower in the second run")]
    Slower {
        /// Number of points.
        count: usize,
    },
}

impl LabError {
    /// An error of a file.
    pub fn file(path: &Path, why: impl std::fmt::Display) -> LabError {
        LabError::File {
            path: path.to_owned(),
            why: why.to_string(),
        }
    }

    /// Exit status of the process.
    pub fn status(&self) -> u8 {
        match self {
            LabError::Points { .. } | LabError::Point(_) | LabError::SelfTest(_) => 2,
            LabError::Slower { .. } => 3,
            LabError::Interrupted { .. } => INTERRUPTED,
            _ => 1,
        }
    }
}
