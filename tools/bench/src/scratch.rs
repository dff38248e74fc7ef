//! Temporary folders of the benchmark.

use super::BenchError;
use super::process::file_error;
use std::path::{Path, PathBuf};

/// Maximum size of a file that is read, in bytes.
const MAX_FILE: u64 = 1 << 30;

/// A folder that is removed when dropped.
pub struct Scratch(volley_file::Scratch);

impl Scratch {
    /// A new folder.
    pub fn new() -> Result<Self, BenchError> {
        let made = volley_file::Scratch::new("volley-bench");
        made.map(Scratch)
            .map_err(|why| error_of(&std::env::temp_dir(), &why))
    }

    /// The path of a file in the folder.
    pub fn file(&self, name: &str) -> PathBuf {
        self.0.file(name)
    }

    /// The contents of a file in the folder.
    pub fn read(&self, name: &str) -> Result<String, BenchError> {
        let path = self.file(name);
        volley_file::read_text(&path, MAX_FILE).map_err(|why| error_of(&path, &why))
    }
}

fn error_of(path: &Path, why: &std::io::Error) -> BenchError {
    file_error(&path.display().to_string(), why)
}
