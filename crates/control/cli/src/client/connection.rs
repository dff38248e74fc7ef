//! The client's side of the socket.

use super::error::ClientError;
use super::files::OwnFiles;
use crate::server::{Answer, Ask, Op};
use crate::socket::{connect_within, peer};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Maximum size of an answer in bytes.
const MAX_ANSWER: u64 = 1 << 30;

/// Time within which a daemon must accept the connection.
const PATIENCE: Duration = Duration::from_secs(5);

/// The user that the package's service runs as.
const SERVICE: &str = "volley";

/// Advice for an error of the connection.
fn hint(socket: &Path, error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::PermissionDenied => rights_hint(socket),
        ErrorKind::ConnectionRefused => {
            "the daemon that made this socket has ended: start it by `systemctl start volley`, or `volley run`".to_owned()
        }
        _ => "is 'volley run' running, and is this its socket?".to_owned(),
    }
}

/// How a user gets access to a socket. If a folder hides the socket, the advice names the default group.
fn rights_hint(socket: &Path) -> String {
    let meta = std::fs::symlink_metadata(socket).ok();
    let user = volley_rights::user_name(volley_rights::own_user());
    if let Some(meta) = meta.as_ref().filter(|meta| meta.mode() & 0o060 == 0) {
        let owner = match meta.uid() {
            0 => "root".to_owned(),
            uid => format!("root or {}", volley_rights::user_name(uid)),
        };
        return format!(
            "only {owner} can open this socket: run the client as root, or have the daemon open the socket to a group by `set access socket-group GROUP`"
        );
    }
    let group = meta.and_then(|meta| volley_rights::group_name(meta.gid()));
    let group = group.unwrap_or_else(|| volley_rights::USUAL_GROUP.to_owned());
    format!(
        "run the client as root, or join group {group}: `usermod -aG {group} {user}` as root, then log in again"
    )
}

/// A connection to the daemon.
#[derive(Debug)]
pub struct Connection {
    stream: BufReader<UnixStream>,
    socket: PathBuf,
}

impl Connection {
    /// Connects to the socket.
    pub fn open(socket: &Path) -> Result<Connection, ClientError> {
        let connect = |source| ClientError::Connect {
            path: socket.to_path_buf(),
            hint: hint(socket, &source),
            source,
        };
        let stream = connect_within(socket, PATIENCE).map_err(connect)?;
        let server = peer(&stream).map_err(connect)?;
        let user = volley_rights::user_name(server);
        if ![0, volley_rights::own_user()].contains(&server) && user != SERVICE {
            let path = socket.to_path_buf();
            return Err(ClientError::Foreign { path, user });
        }
        stream
            .set_write_timeout(Some(Duration::from_secs(30)))
            .map_err(connect)?;
        Ok(Connection {
            stream: BufReader::new(stream),
            socket: socket.to_path_buf(),
        })
    }

    /// Whether the daemon has closed its side, for example because it was restarted.
    fn is_closed(&mut self) -> bool {
        let stream = self.stream.get_ref();
        if stream.set_nonblocking(true).is_err() {
            return true;
        }
        let closed = match self.stream.fill_buf() {
            Ok(bytes) => bytes.is_empty(),
            Err(e) => e.kind() != std::io::ErrorKind::WouldBlock,
        };
        self.stream.get_ref().set_nonblocking(false).is_err() || closed
    }

    /// Sends a request and waits for the answer, which may be a refusal. If the daemon has closed the connection, opens it
    /// again first.
    pub fn ask(&mut self, ask: &Ask) -> Result<Answer, ClientError> {
        self.begin(ask)?;
        let mut answer = Vec::new();
        self.read(&mut answer).map_err(ClientError::Broken)?;
        Self::understood(&answer)
    }

    /// Sends a request without waiting for the answer.
    pub(super) fn begin(&mut self, ask: &Ask) -> Result<(), ClientError> {
        if self.is_closed() {
            *self = Connection::open(&self.socket)?;
        }
        self.send(ask)
    }

    pub(super) fn send(&mut self, ask: &Ask) -> Result<(), ClientError> {
        let mut line = serde_json::to_vec(ask).map_err(ClientError::Answer)?;
        line.push(b'\n');
        let stream = self.stream.get_mut();
        stream.write_all(&line).map_err(ClientError::Broken)
    }

    fn read(&mut self, answer: &mut Vec<u8>) -> std::io::Result<usize> {
        let mut limited = (&mut self.stream).take(MAX_ANSWER);
        limited.read_until(b'\n', answer)
    }

    /// The next answer to the request that was begun, if it arrives within a time; `held` keeps the bytes received so far.
    pub(super) fn next_within(
        &mut self,
        held: &mut Vec<u8>,
        time: Duration,
    ) -> Result<Option<Answer>, ClientError> {
        let set = |it: &Connection, time| it.stream.get_ref().set_read_timeout(time);
        set(self, Some(time)).map_err(ClientError::Broken)?;
        let read = self.read(held);
        set(self, None).map_err(ClientError::Broken)?;
        match read {
            Ok(_) => Self::understood(&std::mem::take(held)).map(Some),
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => Ok(None),
            Err(e) => Err(ClientError::Broken(e)),
        }
    }

    /// Closes the connection: the next request opens another one.
    pub(super) fn close(&self) {
        // An error means that the connection is closed already.
        let _ = self.stream.get_ref().shutdown(std::net::Shutdown::Both);
    }

    fn understood(answer: &[u8]) -> Result<Answer, ClientError> {
        if answer.is_empty() {
            let end = std::io::ErrorKind::UnexpectedEof;
            return Err(ClientError::Broken(end.into()));
        }
        let answer: Answer = serde_json::from_slice(answer).map_err(ClientError::Answer)?;
        Ok(answer.harmless())
    }

    /// Runs a line; a refusal is an error. File names in the line are relative to this process.
    pub fn exec(&mut self, line: &str, json: bool) -> Result<Answer, ClientError> {
        self.answer(line, json)?.accepted()
    }

    /// Runs a line like [`Connection::exec`], but returns a refusal as an answer.
    pub(super) fn answer(&mut self, line: &str, json: bool) -> Result<Answer, ClientError> {
        let own = OwnFiles::of(line)?;
        let mut answer = self.ask(&Ask {
            json,
            text: own.text,
            ..Ask::new(Op::Exec, own.line)
        })?;
        answer.text += &own.note;
        Ok(answer)
    }
}

impl Answer {
    /// The answer, or the daemon's reason for refusing the line.
    pub(super) fn accepted(self) -> Result<Answer, ClientError> {
        match self.error {
            Some(e) => Err(ClientError::Refused {
                column: e.column,
                message: e.message,
            }),
            None => Ok(self),
        }
    }
}
