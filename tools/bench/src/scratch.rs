//! Temporary folders of this process.

use super::BenchError;
use super::process::file_error;
use std::fs::{DirBuilder, remove_dir_all};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Maximum size of a file that is read, in bytes.
const MAX_FILE: u64 = 1 << 30;

/// The number of the next folder.
static NEXT: AtomicUsize = AtomicUsize::new(0);

fn path(number: usize) -> PathBuf {
    std::env::temp_dir().join(format!("volley-bench-{}-{number}", std::process::id()))
}

/// Remove all temporary folders of this process: for a process that ends before its destructors run.
pub fn remove_scratch() {
    for number in 0..NEXT.load(Relaxed) {
        // What cannot be removed is in the folder of temporary files.
        let _ = remove_dir_all(path(number));
    }
}

/// A folder that only this user may open, and that is removed when dropped.
pub struct Scratch(PathBuf);

impl Scratch {
    /// A new folder. One that an earlier process of the same number has left is removed, and one that another user has made is not used.
    pub fn new() -> Result<Self, BenchError> {
        let path = path(NEXT.fetch_add(1, Relaxed));
        // There is none in most cases. If one stays, the next line fails.
        let _ = remove_dir_all(&path);
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|why| error_of(&path, &why))?;
        Ok(Scratch(path))
    }

    /// The path of a file in the folder.
    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The contents of a file in the folder.
    pub fn read(&self, name: &str) -> Result<String, BenchError> {
        let path = self.file(name);
        volley_file::read_text(&path, MAX_FILE).map_err(|why| error_of(&path, &why))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = remove_dir_all(&self.0);
    }
}

fn error_of(path: &Path, why: &std::io::Error) -> BenchError {
    file_error(&path.display().to_string(), why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn folders_are_private_and_go_with_their_owner() {
        let (one, other) = (Scratch::new().unwrap(), Scratch::new().unwrap());
        std::fs::write(one.file("text"), "events").unwrap();
        assert_eq!(one.read("text").unwrap(), "events");
        assert!(other.read("text").is_err());
        let mode = one.0.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        let path = one.0.clone();
        drop(one);
        assert!(!path.exists() && other.0.exists());
        remove_scratch();
        assert!(!other.0.exists());
    }
}
