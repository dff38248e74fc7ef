//! Folders for the temporary files of this process.

use super::refused;
use std::fs::{DirBuilder, remove_dir_all};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// The number of the next folder.
static NEXT: AtomicUsize = AtomicUsize::new(0);
/// The folders that were not removed.
// tidy: allow(Mutex) tools lock it when they make and remove folders; no worker does
static LIVE: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn live<T>(of: impl FnOnce(&mut Vec<PathBuf>) -> T) -> T {
    of(&mut LIVE.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Remove the folders of every [`Scratch`] of this process: for a process that ends before its destructors run.
pub fn remove_scratch() {
    for path in live(std::mem::take) {
        // What cannot be removed stays among the system's temporary files.
        let _ = remove_dir_all(path);
    }
}

/// A folder that only this user may open, and that is removed when dropped.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// A new folder among the system's temporary files ([`std::env::temp_dir`]), whose name begins with that of the program. One that an
    /// earlier process of the same number has left is removed, and one that another user has made is not used.
    ///
    /// # Errors
    /// If the folder cannot be made: a clause that follows the name of the folder of temporary files.
    pub fn new(program: &str) -> io::Result<Self> {
        let number = NEXT.fetch_add(1, Relaxed);
        let name = format!("{program}-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(&name);
        // There is none in most cases. If one stays, the next line fails.
        let _ = remove_dir_all(&path);
        DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .map_err(|e| refused(format!("the folder {name} cannot be made in it: {e}")))?;
        live(|all| all.push(path.clone()));
        Ok(Scratch(path))
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The path of a file in the folder.
    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed stays among the system's temporary files.
        let _ = remove_dir_all(&self.0);
        live(|all| all.retain(|path| *path != self.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn folders_are_private_and_go_with_their_owner() {
        let make = || Scratch::new("volley-file-test").unwrap();
        let (one, other) = (make(), make());
        std::fs::write(one.file("text"), "events").unwrap();
        assert!(one.file("text").exists() && !other.file("text").exists());
        let mode = one.path().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        let path = one.path().to_owned();
        drop(one);
        assert!(!path.exists() && other.path().exists());
        remove_scratch();
        assert!(!other.path().exists());
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named() {
        let error = Scratch::new("no/such/folder").unwrap_err().to_string();
        assert!(error.starts_with("the folder no/such/folder-"), "{error}");
    }
}
