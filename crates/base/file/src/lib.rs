//! Opens the files that operators name.
//!
//! Contract:
//! - Only regular files: a FIFO, device, socket or directory is an error, and is not opened (opening a device can have
//!   effects).
//! - Opening and reading do not wait for another program (`O_NONBLOCK`).
//! - Reading ends at a limit, whatever size the file claims.
//! - Writing does not follow a symbolic link at the end of the path (`O_NOFOLLOW`); a new file has mode 0600.
//! - Errors are clauses that follow "FILE: " in a sentence.
//!
//! Also makes private folders for the temporary files of a process.
#![forbid(unsafe_code)]

mod folders;
mod scratch;

pub use folders::{FileUse, Folders, explained, limited_to, limits};
pub use scratch::{Scratch, remove_scratch};

use rustix::fs::{FileType, Mode, OFlags};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

/// Flags of every file.
const ALWAYS: OFlags = OFlags::NONBLOCK
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// Access of the owner alone.
const PRIVATE: Mode = Mode::RUSR.union(Mode::WUSR);

fn refused(why: impl Into<String>) -> io::Error {
    io::Error::other(why.into())
}

fn odd(kind: &str) -> io::Error {
    refused(format!("is a {kind}; give a regular file"))
}

/// The type of a file that is not a regular file.
fn kind(of: std::fs::FileType) -> Option<&'static str> {
    match of {
        _ if of.is_file() => None,
        _ if of.is_dir() => Some("directory"),
        _ if of.is_fifo() => Some("FIFO"),
        _ if of.is_socket() => Some("socket"),
        _ if of.is_char_device() || of.is_block_device() => Some("device"),
        _ if of.is_symlink() => Some("symbolic link"),
        _ => Some("special file"),
    }
}

/// Open a regular file.
fn opened(path: &Path, flags: OFlags) -> io::Result<File> {
    let used = match flags.contains(OFlags::WRONLY) {
        true => FileUse::Write,
        false => FileUse::Read,
    };
    regular(path, flags).map_err(|error| explained(path, used, error))
}

/// Check the path before the file is opened, and the file afterwards: the path may name another file by then.
fn regular(path: &Path, flags: OFlags) -> io::Result<File> {
    let follows = !flags.contains(OFlags::NOFOLLOW);
    let there = match follows {
        true => std::fs::metadata(path),
        false => std::fs::symlink_metadata(path),
    };
    match there {
        Ok(there) => {
            if let Some(kind) = kind(there.file_type()) {
                return Err(odd(kind));
            }
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound && flags.contains(OFlags::CREATE) => {}
        Err(e) => return Err(e),
    }
    let file = rustix::fs::open(path, flags | ALWAYS, PRIVATE)?;
    match FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode) {
        FileType::RegularFile => Ok(file.into()),
        _ => Err(refused("is not a regular file; give one")),
    }
}

/// Open a file to be read.
pub fn open(path: &Path) -> io::Result<File> {
    opened(path, OFlags::RDONLY)
}

/// Open a file to be written from its start; old contents are removed, and a missing file is created.
pub fn create(path: &Path) -> io::Result<File> {
    let file = opened(path, OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW)?;
    // Only once the file is known to be a regular file.
    file.set_len(0)?;
    Ok(file)
}

/// Create a file that must not exist.
pub fn create_new(path: &Path) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
    opened(path, flags)
}

/// Open a file to be written at its end; a missing file is created.
pub fn append(path: &Path) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND | OFlags::NOFOLLOW;
    opened(path, flags)
}

fn whole(file: File, most: u64) -> io::Result<Vec<u8>> {
    let size = file.metadata()?.len();
    let too_long = |size: String| refused(format!("has {size} bytes, the limit is {most}"));
    if size > most {
        return Err(too_long(size.to_string()));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > most {
        true => Err(too_long(format!("more than {most}"))),
        false => Ok(bytes),
    }
}

fn text(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|e| {
        let at = e.utf8_error().valid_up_to();
        refused(format!(
            "is not UTF-8 text: byte {at} does not belong there"
        ))
    })
}

/// The contents of a file of at most `most` bytes.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    whole(open(path)?, most)
}

/// The contents of a text file of at most `most` bytes.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    text(read(path, most)?)
}

/// A text of at most `most` bytes from this process's standard input, which may be a pipe or a terminal: the user who started
/// the process chooses it, and can end it. Not for a daemon.
pub fn read_stdin(most: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    let mut input = io::stdin().lock().take(most.saturating_add(1));
    input.read_to_end(&mut bytes)?;
    match bytes.len() as u64 > most {
        true => Err(refused(format!("has more than {most} bytes, the limit"))),
        false => text(bytes),
    }
}

/// The contents of a file with a secret. The file's owner must be this process's user or root. Only the owner and, for files
/// of root, the group may read it; no other user may write it.
pub fn read_private(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = open(path)?;
    let there = file.metadata()?;
    let (mode, owner) = (there.mode() & 0o7777, there.uid());
    let me = rustix::process::geteuid().as_raw();
    if owner != me && owner != 0 {
        let why = format!(
            "belongs to user {owner}, who could change it; `chown` it to the daemon's user or root"
        );
        return Err(refused(why));
    }
    // A file of root may be readable by a group, through which a daemon of another user reads it.
    let allowed = if owner == 0 { 0o740 } else { 0o700 };
    if mode & 0o777 & !allowed != 0 {
        let why = format!(
            "has mode {mode:04o}: other users can read or write it; make it private by `chmod 600`"
        );
        return Err(refused(why));
    }
    whole(file, most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::time::{Duration, Instant};

    fn why<T>(done: io::Result<T>) -> String {
        done.err().expect("an error").to_string()
    }

    /// An operation on a path.
    type Attempt = fn(&Path) -> io::Result<()>;

    const READS: [Attempt; 2] = [
        |path| open(path).map(drop),
        |path| read_private(path, 9).map(drop),
    ];
    const WRITES: [Attempt; 2] = [|path| create(path).map(drop), |path| append(path).map(drop)];

    #[test]
    fn what_is_no_regular_file_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        let made = std::process::Command::new("mkfifo").arg(&fifo).status();
        assert!(made.unwrap().success());
        let socket = folder.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        let cases: [(&Path, &str); 5] = [
            (&fifo, "FIFO"),
            (&socket, "socket"),
            (folder.path(), "directory"),
            ("/dev/zero".as_ref(), "device"),
            ("/dev/null".as_ref(), "device"),
        ];
        for (path, kind) in cases {
            for attempt in READS.iter().chain(&WRITES) {
                let begun = Instant::now();
                assert_eq!(
                    why(attempt(path)),
                    format!("is a {kind}; give a regular file")
                );
                assert!(begun.elapsed() < Duration::from_secs(1));
            }
        }
    }

    #[test]
    fn links_are_followed_for_reading_only() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        std::fs::write(&file, "precious").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert_eq!(read_text(&link, 100).unwrap(), "precious");
        for attempt in WRITES {
            assert!(why(attempt(&link)).contains("symbolic link"));
        }
        assert!(why(create_new(&link)).contains("symbolic link"));
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "precious");
        // A link to a device counts as a device.
        let null = folder.path().join("null");
        std::os::unix::fs::symlink("/dev/zero", &null).unwrap();
        assert!(why(read(&null, 100)).contains("device"));
    }

    #[test]
    fn reading_ends_at_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, [b'x'; 10]).unwrap();
        assert_eq!(read(&file, 10).unwrap().len(), 10);
        assert_eq!(why(read(&file, 9)), "has 10 bytes, the limit is 9");
        // Files of the kernel have no size until they are read.
        let limited = why(read("/proc/self/maps".as_ref(), 64));
        assert_eq!(limited, "has more than 64 bytes, the limit is 64");
        let large = std::fs::File::create(&file).unwrap();
        large.set_len(1 << 40).unwrap();
        assert!(why(read(&file, 1 << 20)).contains("1099511627776"));
        std::fs::write(&file, [b'a', 0xff]).unwrap();
        assert!(why(read_text(&file, 9)).contains("byte 1"));
    }

    #[test]
    fn files_are_replaced_or_continued_and_private() {
        use std::io::Write;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        let mode = || std::fs::metadata(&file).unwrap().permissions().mode() & 0o777;
        create(&file).unwrap().write_all(b"one").unwrap();
        assert_eq!(mode(), 0o600);
        append(&file).unwrap().write_all(b"two").unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "onetwo");
        create(&file).unwrap().write_all(b"3").unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "3");
        assert_eq!(
            create_new(&file).unwrap_err().kind(),
            io::ErrorKind::AlreadyExists
        );
        assert_eq!(read_private(&file, 9).unwrap(), b"3");
        for open in [0o644, 0o606, 0o620] {
            std::fs::set_permissions(&file, PermissionsExt::from_mode(open)).unwrap();
            let why = why(read_private(&file, 9));
            assert!(why.contains("chmod 600"), "{open:o}: {why}");
        }
    }
}
