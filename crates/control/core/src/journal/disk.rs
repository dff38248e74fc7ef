//! The operations of a file system that the journal uses.

use super::error::JournalError;
use std::fs::{DirBuilder, File, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Largest file that is read, in bytes.
const MAX_FILE: u64 = 4 << 30;

/// Permission bits of users other than the owner.
const OTHERS: u32 = 0o077;

/// One folder of files.
pub trait Disk {
    /// Path of the folder, for messages.
    fn place(&self) -> PathBuf;
    /// Names of the files of the folder.
    fn list(&self) -> io::Result<Vec<String>>;
    /// Reads a whole file.
    fn read(&self, name: &str) -> io::Result<Vec<u8>>;
    /// Reads the first bytes of a file, at most `most`.
    fn read_start(&self, name: &str, most: usize) -> io::Result<Vec<u8>> {
        let mut bytes = self.read(name)?;
        bytes.truncate(most);
        Ok(bytes)
    }
    /// Creates a file with this content; the content is durable on return.
    fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()>;
    /// Renames a file atomically; a file that has the new name is replaced.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Makes the names of files durable (`fsync` of the folder).
    fn sync(&self) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Sentences for the operator about what opening the folder found.
    fn notes(&self) -> &[String] {
        &[]
    }
}

/// A folder of the file system, locked while it is used, that other users can neither read nor write.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    /// `None` on a read-only disk: there, a second daemon cannot damage anything.
    _lock: Option<File>,
    notes: Vec<String>,
}

impl Folder {
    /// Opens a folder for this daemon alone, and creates the folder if it does not exist. A folder that cannot be written can
    /// still be read.
    pub fn open(path: PathBuf) -> Result<Folder, JournalError> {
        let failed = |step| {
            let place = path.clone();
            move |source| JournalError::Disk {
                place,
                step,
                source,
            }
        };
        let mut builder = DirBuilder::new();
        let made = builder.recursive(true).mode(0o700).create(&path);
        made.map_err(failed("cannot be made"))?;
        let mut notes = Vec::new();
        let lock = path.join("lock");
        let opened = match volley_file::append(&lock) {
            Ok(file) => Some(file),
            Err(e) if is_read_only(&e) => {
                let place = path.display();
                notes.push(format!(
                    "{place}: cannot be written: {e}; nothing can be committed"
                ));
                volley_file::open(&lock).ok()
            }
            Err(e) => return Err(failed("cannot be written")(e)),
        };
        match opened.as_ref().map_or(Ok(()), File::try_lock) {
            Ok(()) => {}
            Err(std::fs::TryLockError::WouldBlock) => return Err(JournalError::Taken(path)),
            Err(std::fs::TryLockError::Error(e)) => return Err(failed("cannot be locked")(e)),
        }
        let closed = close(&path);
        notes.extend(closed.err().map(|e| {
            let place = path.display();
            format!("{place}: other users may read or change commits: {e}; make it private by `chmod -R go-rwx`")
        }));
        Ok(Folder {
            path,
            _lock: opened,
            notes,
        })
    }
}

/// Whether a start can continue without writing: the commits can be read.
fn is_read_only(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied | ErrorKind::StorageFull
    )
}

/// Removes access of other users: commits contain secrets.
fn close(folder: &Path) -> io::Result<()> {
    private(folder, 0o700)?;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            private(&entry.path(), 0o600)?;
        }
    }
    Ok(())
}

fn private(path: &Path, mode: u32) -> io::Result<()> {
    match std::fs::symlink_metadata(path)?.mode() & OTHERS {
        0 => Ok(()),
        _ => std::fs::set_permissions(path, Permissions::from_mode(mode)),
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
        volley_file::read(&self.path.join(name), MAX_FILE)
    }

    fn read_start(&self, name: &str, most: usize) -> io::Result<Vec<u8>> {
        let file = volley_file::open(&self.path.join(name))?;
        let mut bytes = Vec::new();
        file.take(most as u64).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let mut file = volley_file::create(&self.path.join(name))?;
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

    fn notes(&self) -> &[String] {
        &self.notes
    }
}
