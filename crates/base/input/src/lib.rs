//! Files that may be compressed, as one bounded stream of bytes.
//!
//! Contract:
//! - Only regular files are opened (`volley_file`).
//! - The format is told by the first bytes, never by the file's name; what is no known format is passed through as it
//!   is.
//! - Several compressed members one after the other are one stream (`cat a.gz b.gz`).
//! - A cut or damaged file ends in an `io::Error` that names the file and the place; it never ends as if it were complete.
//! - Memory is bounded whatever the file claims ([`Limits::memory`]), and so is the length of what comes out ([`Limits::output`]).
//! - Nothing here panics on any input.
#![forbid(unsafe_code)]

mod bounded;
mod format;

use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use bounded::Bounded;
pub use format::Format;

/// How a file reaches its reader. `Send`, so a loader can live on its own thread.
pub type Input = Box<dyn BufRead + Send>;

/// What a decompressor may use and give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of decompressed data after which reading fails.
    pub output: u64,
    /// Bytes of memory a decompressor may ask for because the file says so (xz dictionary, zstd window).
    pub memory: u64,
}

impl Default for Limits {
    /// 16 GiB out, 256 MiB of memory: a full MRT dump or a long capture fits; `xz -9` needs 65 MiB and `zstd --long=27` 128 MiB.
    fn default() -> Self {
        Limits {
            output: 16 << 30,
            memory: 256 << 20,
        }
    }
}

/// Why a file could not be opened or read in one go.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// The operating system refused to open it.
    #[error("cannot open {}: {source}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Its first bytes could not be read, or its decompressor not be started.
    #[error("cannot read the start of {}: {source}", path.display())]
    Start {
        /// The file.
        path: PathBuf,
        /// What the system or the decompressor said.
        source: io::Error,
    },
    /// Reading failed later on.
    #[error("{source}")]
    Read {
        /// Its text names file and place.
        source: io::Error,
    },
}

/// Opens `path` with the default [`Limits`].
pub fn open(path: impl AsRef<Path>) -> Result<Input, InputError> {
    open_limited(path, Limits::default())
}

/// Opens `path`; reading fails once `limits` are passed.
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

/// The same over bytes that are already there or come from elsewhere; `name` is what errors call them.
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
