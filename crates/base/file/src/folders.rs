//! The folders to which the process has limited itself (Landlock). The kernel answers "permission denied" for a file outside,
//! which says nothing about the cause, so the errors of such files name the setting that allows them.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The folders that this process may use; each one with all folders in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Folders {
    /// Files in them can be read.
    pub read: Vec<PathBuf>,
    /// Files in them can be created, written and removed.
    pub write: Vec<PathBuf>,
    /// Sockets can be created in them.
    pub sockets: Vec<PathBuf>,
    /// Whether the kernel, an old one, enforces only a part of the limits.
    pub partly: bool,
}

/// What a file is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileUse {
    /// Reading.
    Read,
    /// Writing.
    Write,
    /// Listening at a socket.
    Socket,
}

static LIMITED: OnceLock<Folders> = OnceLock::new();

/// Records that the kernel limits this process to folders, whose paths have no symbolic links. The first call counts.
pub fn limited_to(folders: Folders) {
    let _ = LIMITED.set(folders);
}

/// The folders that this process is limited to, if it is.
pub fn limits() -> Option<&'static Folders> {
    LIMITED.get()
}

/// The error of an attempt to use a file: if the file is outside the folders of the process, the error says so, and names the
/// setting that allows the file.
pub fn explained(path: &Path, used: FileUse, error: io::Error) -> io::Error {
    let outside = |folders: &Folders| folders.why_not(path, used);
    let is_refused = error.kind() == io::ErrorKind::PermissionDenied;
    let why = LIMITED.get().filter(|_| is_refused).and_then(outside);
    why.map_or(error, |why| {
        io::Error::new(io::ErrorKind::PermissionDenied, why)
    })
}

/// The namespace of another process, such as `/proc/7/ns/net`.
fn is_namespace_of_process(path: &Path) -> bool {
    path.starts_with("/proc") && path.parent().is_some_and(|it| it.ends_with("ns"))
}

/// The folder of a file, without symbolic links.
fn folder(path: &Path) -> Option<PathBuf> {
    let parent = path.parent()?;
    let named = match parent.as_os_str().is_empty() {
        true => Path::new("."),
        false => parent,
    };
    named.canonicalize().ok()
}

impl Folders {
    /// Why a file cannot be used, if the reason is that it is outside.
    fn why_not(&self, path: &Path, used: FileUse) -> Option<String> {
        if is_namespace_of_process(path) {
            let why = "Landlock protects the namespaces of other processes; give the path of a namespace, such as \
                       /run/netns/NAME, or set landlock = \"off\" in [process] and restart the daemon";
            return Some(why.into());
        }
        let (place, allowed, setting) = match used {
            FileUse::Read => (
                path.canonicalize().ok()?,
                vec![&self.read, &self.write],
                "read",
            ),
            FileUse::Write => (folder(path)?, vec![&self.write], "write"),
            FileUse::Socket => (folder(path)?, vec![&self.write, &self.sockets], "write"),
        };
        let mut allowed = allowed.into_iter().flatten();
        if allowed.any(|folder| place.starts_with(folder)) {
            return None;
        }
        let place = match used {
            FileUse::Read => folder(&place)?,
            _ => place,
        };
        Some(format!(
            "the daemon may not {setting} in {}; name this folder in {setting}_folders of [process] and restart the daemon",
            place.display()
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folders() -> Folders {
        Folders {
            read: vec!["/usr".into()],
            write: vec!["/tmp".into()],
            sockets: vec!["/var".into()],
            partly: false,
        }
    }

    #[test]
    fn the_reason_names_folder_and_setting() {
        let folders = folders();
        let why = |path: &str, used| folders.why_not(path.as_ref(), used).unwrap_or_default();
        let read = "the daemon may not read in /etc; name this folder in read_folders of [process] and restart the daemon";
        assert_eq!(why("/etc/passwd", FileUse::Read), read);
        let write = "the daemon may not write in /usr; name this folder in write_folders of [process] and restart the daemon";
        assert_eq!(why("/usr/x", FileUse::Write), write);
        assert_eq!(why("/usr/x", FileUse::Socket), write);
        assert!(why("/proc/1/ns/net", FileUse::Read).contains("/run/netns/NAME"));
        for (path, used) in [
            ("/usr/bin/env", FileUse::Read),
            ("/tmp/new", FileUse::Write),
            ("/tmp/s", FileUse::Socket),
            ("/var/s", FileUse::Socket),
            // Without its folder a file is missing whatever the process may do.
            ("/missing/new", FileUse::Write),
        ] {
            assert_eq!(why(path, used), "", "{path}");
        }
    }

    #[test]
    fn other_errors_stay() {
        let absent = io::Error::from(io::ErrorKind::NotFound);
        let same = explained("/etc/x".as_ref(), FileUse::Write, absent);
        assert_eq!(same.kind(), io::ErrorKind::NotFound);
    }
}
