//! The UNIX socket: listens, connects, and assembles messages. Never blocks.

use super::{HEAD, Message, payload_len};
use crate::fault::Fault;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use volley_file::FileUse;

/// Maximum number of file descriptors of a message.
const FILES: usize = crate::memory::MAX_REGIONS;

/// Reason why a socket cannot be bound.
#[derive(Debug, thiserror::Error)]
pub enum Bind {
    /// Another program listens at the path.
    #[error("another program serves it already: stop it, or choose another path")]
    Served,
    /// The path exists and is no socket.
    #[error("there is a file that is no socket: remove it, or choose another path")]
    NoSocket,
    /// A system call failed.
    #[error("{0}")]
    System(#[from] io::Error),
}

fn socket() -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    Ok(rustix::net::socket_with(
        AddressFamily::UNIX,
        SocketType::STREAM,
        flags,
        None,
    )?)
}

/// Connect to a server, or fail at once.
pub fn connect(path: &Path) -> io::Result<Link> {
    let fd = socket()?;
    rustix::net::connect(&fd, &SocketAddrUnix::new(path)?)?;
    Ok(Link::new(fd))
}

/// A listening socket. Dropping it removes the path.
pub struct Listener {
    fd: OwnedFd,
    path: PathBuf,
}

impl Listener {
    /// Listen at `path`. A stale socket file is replaced; a socket that a program serves is not.
    pub fn bind(path: &Path) -> Result<Listener, Bind> {
        Listener::listening(path).map_err(|why| match why {
            Bind::System(error) => {
                Bind::System(volley_file::explained(path, FileUse::Socket, error))
            }
            other => other,
        })
    }

    fn listening(path: &Path) -> Result<Listener, Bind> {
        use std::os::unix::fs::FileTypeExt;
        match std::fs::symlink_metadata(path) {
            Ok(file) if !file.file_type().is_socket() => return Err(Bind::NoSocket),
            Ok(_) => match connect(path) {
                Err(e) if e.kind() == io::ErrorKind::ConnectionRefused => {
                    std::fs::remove_file(path)?
                }
                Err(e) if e.kind() != io::ErrorKind::WouldBlock => return Err(e.into()),
                _ => return Err(Bind::Served),
            },
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(e.into()),
        }
        let fd = socket()?;
        rustix::net::bind(&fd, &SocketAddrUnix::new(path).map_err(io::Error::from)?)
            .map_err(io::Error::from)?;
        let listener = Listener {
            fd,
            path: path.to_owned(),
        };
        rustix::net::listen(&listener.fd, 1).map_err(io::Error::from)?;
        Ok(listener)
    }

    /// Accept the next peer, if one is waiting.
    pub fn accept(&self) -> io::Result<Option<Link>> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        match rustix::net::accept_with(&self.fd, flags) {
            Ok(fd) => Ok(Some(Link::new(fd))),
            Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => Ok(None),
            Err(e) => Err(e.into()),
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Result of reading from the socket.
#[derive(Debug)]
pub enum Arrived {
    /// A complete message.
    Message(Message),
    /// No complete message yet.
    Nothing,
    /// The peer closed the connection.
    Closed,
}

/// A connection.
pub struct Link {
    fd: OwnedFd,
    head: [u8; HEAD],
    payload: Vec<u8>,
    have: usize,
    files: Vec<OwnedFd>,
}

impl AsFd for Link {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Link {
    /// Wrap a connected non-blocking socket.
    pub fn new(fd: OwnedFd) -> Self {
        Link {
            fd,
            head: [0; HEAD],
            payload: Vec::new(),
            have: 0,
            files: Vec::new(),
        }
    }

    /// Return the next message if it is complete.
    pub fn receive(&mut self) -> Result<Arrived, Fault> {
        loop {
            if self.have >= HEAD {
                let want = payload_len(&self.head)?;
                self.payload.resize(want, 0);
                if self.have == HEAD + want {
                    return Ok(Arrived::Message(self.whole()));
                }
            }
            match self.read()? {
                Some(0) => return Ok(Arrived::Closed),
                Some(n) => self.have += n,
                None => return Ok(Arrived::Nothing),
            }
        }
    }

    fn whole(&mut self) -> Message {
        self.have = 0;
        let payload = std::mem::take(&mut self.payload);
        Message::new(&self.head, payload, std::mem::take(&mut self.files))
    }

    /// Read missing bytes; `None` if nothing has arrived, 0 at the end of the stream.
    fn read(&mut self) -> Result<Option<usize>, Fault> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let into = match self.have.checked_sub(HEAD) {
            Some(at) => &mut self.payload[at..],
            None => &mut self.head[self.have..],
        };
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
        let got = rustix::net::recvmsg(&self.fd, &mut [IoSliceMut::new(into)], &mut control, flags);
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(files) = message {
                self.files.extend(files);
            }
        }
        let too_many = || {
            Fault::new(
                "too-many-files",
                format!("more than {FILES} files in a message"),
            )
        };
        match got {
            Ok(got) if got.flags.contains(ReturnFlags::CTRUNC) || self.files.len() > FILES => {
                Err(too_many())
            }
            Ok(got) => Ok(Some(got.bytes)),
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(Errno::CONNRESET | Errno::PIPE) => Ok(Some(0)),
            Err(e) => Err(Fault::of_socket(e)),
        }
    }

    /// Send a message. If the peer does not read its socket, this is a fault of the peer.
    pub fn send(&self, bytes: &[u8], files: &[BorrowedFd<'_>]) -> Result<(), Fault> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !files.is_empty() {
            control.push(SendAncillaryMessage::ScmRights(files));
        }
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        match rustix::net::sendmsg(&self.fd, &[IoSlice::new(bytes)], &mut control, flags) {
            Ok(n) if n == bytes.len() => Ok(()),
            Ok(_) => Err(Fault::of_socket(Errno::AGAIN)),
            Err(e) => Err(Fault::of_socket(e)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{code, encode};

    fn pair() -> (Link, Link) {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (a, b) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap();
        (Link::new(a), Link::new(b))
    }

    #[test]
    fn messages_are_put_together_from_pieces() {
        let (mut a, b) = pair();
        let bytes = encode(code::SET_FEATURES, 0, &7u64.to_le_bytes());
        let twice = [bytes.clone(), bytes.clone()].concat();
        for piece in twice.chunks(7) {
            b.send(piece, &[]).unwrap();
        }
        for _ in 0..2 {
            let Ok(Arrived::Message(m)) = a.receive() else {
                panic!("no message")
            };
            assert_eq!((m.code, m.number()), (code::SET_FEATURES, Ok(7)));
        }
        assert!(matches!(a.receive(), Ok(Arrived::Nothing)));
        b.send(&bytes[..5], &[]).unwrap();
        assert!(matches!(a.receive(), Ok(Arrived::Nothing)));
        drop(b);
        assert!(matches!(a.receive(), Ok(Arrived::Closed)));
    }

    #[test]
    fn files_come_with_their_message() {
        let (mut a, b) = pair();
        let event = volley_shm::Event::new().unwrap();
        let kick = encode(code::SET_VRING_KICK, 0, &1u64.to_le_bytes());
        b.send(&kick, &[event.as_fd()]).unwrap();
        let Ok(Arrived::Message(mut m)) = a.receive() else {
            panic!("no message")
        };
        let (ring, file) = m.ring_file().unwrap();
        assert!(ring == 1 && volley_shm::Event::of_peer(file.unwrap()).is_ok());
    }

    #[test]
    fn a_peer_that_does_not_read_is_not_waited_for() {
        let (a, _b) = pair();
        let bytes = encode(1, 0, &[0; 200]);
        let fault = (0..100_000).find_map(|_| a.send(&bytes, &[]).err());
        assert_eq!(fault.unwrap().name, "peer-does-not-read");
    }

    #[test]
    fn sockets_in_use_and_other_files_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s");
        let first = Listener::bind(&path).unwrap();
        assert!(matches!(Listener::bind(&path), Err(Bind::Served)));
        let link = connect(&path).unwrap();
        assert!(first.accept().unwrap().is_some());
        drop((first, link));
        assert!(!path.exists());
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(Listener::bind(&path).is_ok(), "a stale socket is replaced");
        std::fs::write(&path, "x").unwrap();
        assert!(matches!(Listener::bind(&path), Err(Bind::NoSocket)));
        assert!(connect(&dir.path().join("none")).is_err());
    }
}
