//! What is asked of a file system.

use super::JournalError;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::PathBuf;

/// Largest file that is read, in bytes.
const MAX_FILE: u64 = 4 << 30;

/// One folder of files.
pub trait Disk {
    /// Where it is, in words.
    fn place(&self) -> PathBuf;
    /// Names of its files.
    fn list(&self) -> io::Result<Vec<String>>;
    /// All of a file.
    fn read(&self, name: &str) -> io::Result<Vec<u8>>;
    /// Makes a file with this content, durable when it returns.
    fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()>;
    /// Gives a file another name, in one step, in the place of one that has it.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Makes names durable.
    fn sync(&self) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, name: &str) -> io::Result<()>;
}

/// A folder of the file system, locked while it is used.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    _lock: File,
}

impl Folder {
    /// Opens a folder, which is made when it is not there, for this daemon alone.
    pub fn open(path: PathBuf) -> Result<Folder, JournalError> {
        let failed = |step| {
            let place = path.clone();
            move |source| JournalError::Disk {
                place,
                step,
                source,
            }
        };
        std::fs::create_dir_all(&path).map_err(failed("cannot be made"))?;
        let mut options = OpenOptions::new();
        let lock = options
            .create(true)
            .truncate(false)
            .write(true)
            .open(path.join("lock"))
            .map_err(failed("cannot be written"))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(std::fs::TryLockError::WouldBlock) => return Err(JournalError::Taken(path)),
            Err(std::fs::TryLockError::Error(e)) => return Err(failed("cannot be locked")(e)),
        }
        Ok(Folder { path, _lock: lock })
    }
}

impl Disk for Folder {
    fn place(&self) -> PathBuf {
        self.path.clone()
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let name = |entry: io::Result<std::fs::DirEntry>| {
            entry.map(|e| e.file_name().to_string_lossy().into_owned())
        };
        std::fs::read_dir(&self.path)?.map(name).collect()
    }

    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let file = File::open(self.path.join(name))?;
        file.take(MAX_FILE).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let mut file = File::create(self.path.join(name))?;
        file.write_all(bytes)?;
        file.sync_all()
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        std::fs::rename(self.path.join(from), self.path.join(to))
    }

    fn sync(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        std::fs::remove_file(self.path.join(name))
    }
}
