//! Errors of the journal, and the command that repairs it.

use super::record::Fault;
use std::io;
use std::path::PathBuf;

/// An error of the journal, as one sentence.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// An operation of the file system failed.
    #[error("{}: {step}: {source}; the commits there are as before", place.display())]
    Disk {
        /// Folder of the journal.
        place: PathBuf,
        /// The operation that failed.
        step: &'static str,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The commit does not exist.
    #[error("there is no commit {number}{}", there_are(.known))]
    NoCommit {
        /// The requested number.
        number: u64,
        /// Numbers of the existing commits.
        known: Vec<u64>,
    },
    /// The file of a commit cannot be used.
    #[error("{} {fault}", file.display())]
    Commit {
        /// The file.
        file: PathBuf,
        /// What is wrong with the file.
        fault: Fault,
    },
    /// Neither copy of the head can be used.
    #[error("{}: it is not known which commit is active: {why}; {}", place.display(), correction(place, .instead))]
    Head {
        /// Folder of the journal.
        place: PathBuf,
        /// What is wrong with the copies.
        why: String,
        /// The newest commit that was not rolled back and can be read.
        instead: Option<u64>,
    },
    /// An older version of Volley wrote the folder.
    #[error(
        "{}: an older version of Volley wrote these commits, and this one does not read them: write the configuration to a \
         file with the older version (`volley config show > FILE`), rename the directory (`mv {} {}.old`) and start with \
         `volley run -c FILE`",
        .0.display(), .0.display(), .0.display()
    )]
    Older(PathBuf),
    /// Another daemon uses the folder.
    #[error("{}: another daemon keeps its commits here; stop it or choose another --state-dir", .0.display())]
    Taken(PathBuf),
}

fn there_are(all: &[u64]) -> String {
    match (all.first(), all.last()) {
        (Some(first), Some(last)) => format!("; there are {first} to {last}"),
        _ => "; there are none yet".into(),
    }
}

/// The command that repairs a journal whose active commit cannot be applied; `instead` is a commit that can be applied.
pub fn correction(place: &std::path::Path, instead: &Option<u64>) -> String {
    let place = place.display();
    match instead {
        Some(number) => format!(
            "restore the directory from a backup, or start with `volley run --fallback` to apply commit {number} instead and \
             make it the active one by `volley config rollback {number}`"
        ),
        None => format!(
            "restore the directory from a backup, or rename it (`mv {place} {place}.damaged`) and start with \
             `volley run -c FILE`"
        ),
    }
}
