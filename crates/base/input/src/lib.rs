//! Files that may be compressed, as one bounded stream of bytes.
//!
//! Contract:
//! - Only regular files are opened (`volley_file`).
//! - The first bytes determine the format, never the file's name; a file in an unknown format is passed through unchanged.
//! - Several compressed members one after the other are one stream (`cat a.gz b.gz`).
//! - A truncated or damaged file ends in an `io::Error` that names the file and the position; it never ends as if it were
//!   complete.
//! - Memory is bounded whatever the file claims ([`Limits::memory`]), and so is the length of the output ([`Limits::output`]).
//! - No input causes a panic.
#![forbid(unsafe_code)]

mod bounded;
mod format;

use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use bounded::Bounded;
pub use format::Format;

/// A reader of a file. `Send`, so that a loader can run on its own thread.
pub type Input = Box<dyn BufRead + Send>;

/// Limits of a decompressor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of decompressed data after which reading fails.
    pub output: u64,
    /// Bytes of memory that a decompressor may allocate because of the file's header (xz dictionary, zstd window).
    pub memory: u64,
}

impl Default for Limits {
    /// 16 GiB of output, 256 MiB of memory: a full MRT dump or a long capture fits; `xz -9` needs 65 MiB of memory and
    /// `zstd --long=27` 128 MiB.
    fn default() -> Self {
        Limits {
            output: 16 << 30,
            memory: 256 << 20,
        }
    }
}

/// Why a file could not be opened or read completely.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// The operating system refused to open it.
    #[error("cannot open {}: {source}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The first bytes could not be read, or the decompressor could not be started.
    #[error("cannot read the start of {}: {source}", path.display())]
    Start {
        /// The file.
        path: PathBuf,
        /// The error of the system or the decompressor.
        source: io::Error,
    },
    /// Reading failed after the start.
    #[error("{source}")]
    Read {
        /// The error; its text names file and position.
        source: io::Error,
    },
}

/// Opens `path` with the default [`Limits`].
pub fn open(path: impl AsRef<Path>) -> Result<Input, InputError> {
    open_limited(path, Limits::default())
}

/// Opens `path`; reading fails once `limits` are exceeded.
pub fn open_limited(path: impl AsRef<Path>, limits: Limits) -> Result<Input, InputError> {
    let path = path.as_ref();
    let file = volley_file::open(path).map_err(|source| InputError::Open {
        path: path.to_owned(),
        source,
    })?;
    wrap(file, path, limits).map_err(|source| InputError::Start {
        path: path.to_owned(),
        source,
    })
}

/// Like [`open_limited`], over bytes in memory or from another source; errors call the source `name`.
pub fn wrap(
    source: impl Read + Send + 'static,
    name: impl AsRef<Path>,
    limits: Limits,
) -> io::Result<Input> {
    let mut raw = BufReader::with_capacity(64 << 10, source);
    let format = Format::detect(&mut raw)?;
    let plain = format.decoder(raw, limits)?;
    let bounded = Bounded::new(plain, name.as_ref().to_owned(), format, limits.output);
    Ok(Box::new(BufReader::with_capacity(64 << 10, bounded)))
}

/// Reads a whole file into memory; at most `limits.output` bytes.
pub fn read_all(path: impl AsRef<Path>, limits: Limits) -> Result<Vec<u8>, InputError> {
    let mut bytes = Vec::new();
    let mut input = open_limited(path, limits)?;
    input
        .read_to_end(&mut bytes)
        .map_err(|source| InputError::Read { source })?;
    Ok(bytes)
}

#[cfg(test)]
mod tests;
