//! The systemd journal by its native protocol ("Native Journal Protocol"): a datagram per record, a line per field.

use crate::record::{LogLevel, LogRecord};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use volley_model::escape;

const SOCKET: &str = "/run/systemd/journal/socket";

pub(crate) struct Journald {
    socket: UnixDatagram,
    path: PathBuf,
}

/// Whether systemd connected standard error to the journal: `$JOURNAL_STREAM` contains its device and inode.
pub(crate) fn is_stderr() -> bool {
    let stream = std::env::var("JOURNAL_STREAM").unwrap_or_default();
    let stderr = io::stderr().as_fd().try_clone_to_owned();
    let found = stderr.and_then(|fd| std::fs::File::from(fd).metadata());
    found.is_ok_and(|m| is_stream(&stream, m.dev(), m.ino()))
}

fn is_stream(stream: &str, device: u64, inode: u64) -> bool {
    let numbers = stream.split_once(':');
    numbers.is_some_and(|(d, i)| d.parse() == Ok(device) && i.parse() == Ok(inode))
}

impl Journald {
    pub fn open() -> io::Result<Journald> {
        Journald::at(SOCKET.into())
    }

    pub fn at(path: PathBuf) -> io::Result<Journald> {
        let socket = UnixDatagram::unbound()?;
        Ok(Journald { socket, path })
    }

    /// Looks up the socket for each record, so that a restarted journal is found.
    pub fn write(&self, record: &LogRecord) -> io::Result<()> {
        self.socket.send_to(&datagram(record), &self.path).map(drop)
    }
}

fn priority(level: LogLevel) -> u8 {
    match level {
        LogLevel::Off | LogLevel::Error => 3,
        LogLevel::Warn => 4,
        LogLevel::Info => 6,
        LogLevel::Debug | LogLevel::Trace => 7,
    }
}

/// Values are escaped and have no newline: each field is one line.
fn datagram(record: &LogRecord) -> Vec<u8> {
    let mut out = format!(
        "MESSAGE={}: {}\nPRIORITY={}\nSYSLOG_IDENTIFIER=volley\nVOLLEY_MODULE={}\nVOLLEY_SEQUENCE={}\n",
        record.module,
        record.text(),
        priority(record.level),
        record.module,
        record.sequence
    );
    for (name, value) in &record.fields {
        let letter = |c: char| match c.is_ascii_alphanumeric() {
            true => c.to_ascii_uppercase(),
            false => '_',
        };
        let name: String = name.chars().map(letter).collect();
        out += &format!("VOLLEY_{name}={}\n", escape(value));
    }
    out.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_journal_gets_fields_that_nothing_forges() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let journal = UnixDatagram::bind(&path).unwrap();
        let journald = Journald::at(path.clone()).unwrap();
        let record = LogRecord {
            sequence: 7,
            level: LogLevel::Warn,
            module: "memif".into(),
            message: "peer connected\nPRIORITY=0".into(),
            fields: [("peer-name".to_owned(), "x\nMESSAGE=forged".to_owned())].into(),
            ..LogRecord::default()
        };
        journald.write(&record).unwrap();
        let mut bytes = [0; 1024];
        let n = journal.recv(&mut bytes).unwrap();
        assert_eq!(
            std::str::from_utf8(&bytes[..n]).unwrap(),
            "MESSAGE=memif: peer connected\\nPRIORITY=0 peer-name=\"x\\nMESSAGE=forged\"\nPRIORITY=4\n\
             SYSLOG_IDENTIFIER=volley\nVOLLEY_MODULE=memif\nVOLLEY_SEQUENCE=7\nVOLLEY_PEER_NAME=x\\nMESSAGE=forged\n"
        );
        // Without a journal, writing is an error; with a new journal it works again.
        drop(journal);
        std::fs::remove_file(&path).unwrap();
        assert!(journald.write(&record).is_err());
        let journal = UnixDatagram::bind(&path).unwrap();
        journald.write(&record).unwrap();
        assert!(journal.recv(&mut bytes).is_ok());
    }

    #[test]
    fn the_stream_is_told_by_its_numbers() {
        assert!(is_stream("9:1234", 9, 1234));
        for other in ["9:1235", "8:1234", "", ":", "9", "x:y"] {
            assert!(!is_stream(other, 9, 1234), "{other}");
        }
    }
}
