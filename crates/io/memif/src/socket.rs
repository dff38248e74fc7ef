//! Sockets of the control channel: listening, and messages with at most one file each. `watch`, `send` and `receive` fail
//! where a simulation makes them fail.

use crate::wire::{Message, SIZE, WireError};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags,
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::path::{Path, PathBuf};
use volley_file::FileUse;
use volley_shm::calls::{Call, Calls};

/// Maximum number of connections that wait to be accepted.
const BACKLOG: i32 = 64;
/// Maximum number of files received with a message: one is allowed, more are a fault.
const FILES: usize = 4;

/// Address of a socket: a path, or `@name` for an abstract one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address(pub PathBuf);

/// Reason for the end of a connection.
#[derive(Debug, thiserror::Error)]
pub enum ChannelError {
    /// The peer closed the connection or died.
    #[error("the peer has gone")]
    Gone,
    /// The peer sent bytes that are not a message.
    #[error("the peer sent {0}")]
    Wire(#[from] WireError),
    /// The peer sent more than one file.
    #[error("the peer sent several file descriptors with one message")]
    Files,
    /// The peer does not read its socket.
    #[error("the peer does not read its messages")]
    Deaf,
    /// A system call failed.
    #[error("{0}")]
    System(Errno),
}

/// Reason why listening failed.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// A program listens at the address.
    #[error("a running program listens there already: stop it or choose another filename")]
    Alive,
    /// The path exists and is no socket.
    #[error("it exists and is no socket: remove it or choose another filename")]
    NoSocket,
    /// A system call failed.
    #[error("{0}")]
    System(#[from] io::Error),
}

impl From<Errno> for ListenError {
    fn from(error: Errno) -> Self {
        ListenError::System(error.into())
    }
}

impl From<Errno> for ChannelError {
    fn from(error: Errno) -> Self {
        match error {
            Errno::AGAIN => ChannelError::Deaf,
            Errno::PIPE | Errno::CONNRESET => ChannelError::Gone,
            error => ChannelError::System(error),
        }
    }
}

impl Address {
    /// The name of an abstract socket.
    fn abstract_name(&self) -> Option<&str> {
        let text = self.0.to_str()?;
        text.strip_prefix('@')
            .or_else(|| text.strip_prefix("abstract:"))
    }

    fn system(&self) -> Result<SocketAddrUnix, Errno> {
        match self.abstract_name() {
            Some(name) => SocketAddrUnix::new_abstract_name(name.as_bytes()),
            None => SocketAddrUnix::new(&self.0),
        }
    }

    /// The socket's path, unless it is abstract.
    pub fn file(&self) -> Option<&Path> {
        self.abstract_name().is_none().then_some(self.0.as_path())
    }
}

fn socket() -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
}

/// A listening socket. Dropping it removes its file.
pub struct Listener {
    fd: OwnedFd,
    /// The file and its inode, so that only this listener's file is removed.
    file: Option<(PathBuf, u64)>,
}

impl Listener {
    /// Listen at `address`. A stale socket file is removed.
    pub fn bind(address: &Address) -> Result<Listener, ListenError> {
        Listener::listening(address).map_err(|error| match error {
            ListenError::System(error) => {
                let path = &address.0;
                ListenError::System(volley_file::explained(path, FileUse::Socket, error))
            }
            other => other,
        })
    }

    fn listening(address: &Address) -> Result<Listener, ListenError> {
        let fd = socket()?;
        let system = address.system()?;
        match (rustix::net::bind(&fd, &system), address.file()) {
            (Ok(()), _) => {}
            (Err(Errno::ADDRINUSE), Some(file)) => {
                remove_stale(file, &system)?;
                rustix::net::bind(&fd, &system)?;
            }
            (Err(Errno::ADDRINUSE), None) => return Err(ListenError::Alive),
            (Err(error), _) => return Err(error.into()),
        }
        rustix::net::listen(&fd, BACKLOG)?;
        let file = address
            .file()
            .and_then(|file| Some((file.to_owned(), inode(file)?)));
        Ok(Listener { fd, file })
    }

    /// Accept the next waiting connection. An error, such as no free file descriptor, leaves it waiting.
    pub fn next(&self) -> Result<Option<Channel>, Errno> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        match rustix::net::accept_with(&self.fd, flags) {
            Ok(fd) => Ok(Some(Channel { fd })),
            Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// As [`Listener::next`]; none also after an error.
    pub fn accept(&self) -> Option<Channel> {
        self.next().ok().flatten()
    }
}

fn inode(file: &Path) -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    std::fs::symlink_metadata(file).ok().map(|m| m.ino())
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Some((file, number)) = &self.file
            && inode(file) == Some(*number)
        {
            let _ = std::fs::remove_file(file);
        }
    }
}

fn remove_stale(file: &Path, system: &SocketAddrUnix) -> Result<(), ListenError> {
    use std::os::unix::fs::FileTypeExt;
    let kind = std::fs::symlink_metadata(file)?.file_type();
    if !kind.is_socket() {
        return Err(ListenError::NoSocket);
    }
    match rustix::net::connect(socket()?, system) {
        // No process listens: the file is stale.
        Err(Errno::CONNREFUSED) => Ok(std::fs::remove_file(file)?),
        Err(Errno::NOENT) => Ok(()),
        _ => Err(ListenError::Alive),
    }
}

/// A connection. Its functions do not block.
pub struct Channel {
    fd: OwnedFd,
}

impl Channel {
    /// Connect to a server.
    pub fn connect(address: &Address) -> Result<Channel, Errno> {
        let fd = socket()?;
        rustix::net::connect(&fd, &address.system()?)?;
        Ok(Channel { fd })
    }

    /// Two connected channels.
    #[cfg(test)]
    pub fn pair() -> Result<(Channel, Channel), Errno> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (a, b) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        Ok((Channel { fd: a }, Channel { fd: b }))
    }

    /// Send a message with an optional file.
    pub fn send(
        &self,
        message: &Message,
        file: Option<BorrowedFd<'_>>,
    ) -> Result<(), ChannelError> {
        let bytes = message.encode();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let files = file.map(|file| [file]);
        if let Some(files) = &files {
            ancillary.push(SendAncillaryMessage::ScmRights(files));
        }
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        rustix::net::sendmsg(&self.fd, &[IoSlice::new(&bytes)], &mut ancillary, flags)?;
        Ok(())
    }

    /// Receive the next message, if there is one.
    pub fn receive(&self) -> Result<Option<(Message, Option<OwnedFd>)>, ChannelError> {
        let mut bytes = [0; SIZE + 1];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
        let received = {
            let mut into = [IoSliceMut::new(&mut bytes)];
            rustix::net::recvmsg(&self.fd, &mut into, &mut ancillary, flags)
        };
        let received = match received {
            Ok(received) => received,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        // Take all files out, so that unwanted ones are closed when dropped.
        let mut files = Vec::new();
        for part in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(some) = part {
                files.extend(some);
            }
        }
        if received.bytes == 0 && files.is_empty() {
            return Err(ChannelError::Gone);
        }
        let message = Message::decode(&bytes[..received.bytes])?;
        let file = files.pop();
        if !files.is_empty() || received.flags.contains(ReturnFlags::CTRUNC) {
            return Err(ChannelError::Files);
        }
        Ok(Some((message, file)))
    }
}

/// Let an epoll file report that a file is readable or closed.
pub(crate) fn watch(
    calls: &dyn Calls,
    events: &OwnedFd,
    file: BorrowedFd<'_>,
    number: u64,
) -> Result<(), Errno> {
    calls.before(Call::Watch)?;
    let flags = EventFlags::IN | EventFlags::RDHUP;
    epoll::add(events, file, EventData::new_u64(number), flags)
}

/// Send a message with an optional file.
pub(crate) fn send(
    calls: &dyn Calls,
    channel: &Channel,
    message: &Message,
    file: Option<BorrowedFd<'_>>,
) -> Result<(), ChannelError> {
    calls.before(Call::Send)?;
    channel.send(message, file)
}

/// Receive the next message, if there is one.
pub(crate) fn receive(
    calls: &dyn Calls,
    channel: &Channel,
) -> Result<Option<(Message, Option<OwnedFd>)>, ChannelError> {
    if !calls.before_receive()? {
        return Ok(None);
    }
    let received = channel.receive()?;
    if let Some((_, Some(_))) = &received {
        // Without a descriptor the message arrives without its file.
        calls
            .before(Call::ReceiveFile)
            .map_err(|_| ChannelError::Files)?;
    }
    Ok(received)
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stale_socket_is_replaced_and_a_live_one_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let address = Address(folder.path().join("memif.sock"));
        let mut first = Listener::bind(&address).unwrap();
        let error = Listener::bind(&address).err().unwrap();
        assert!(matches!(error, ListenError::Alive), "{error}");
        assert!(Channel::connect(&address).is_ok());
        // A program that dies leaves its socket file.
        let file = address.0.clone();
        first.file = None;
        drop(first);
        assert!(file.exists());
        let second = Listener::bind(&address);
        assert!(second.is_ok(), "{:?}", second.err());
        drop(second);
        assert!(!file.exists(), "the file goes with its listener");
        std::fs::write(&file, "mine").unwrap();
        let error = Listener::bind(&address).err().unwrap();
        assert!(matches!(error, ListenError::NoSocket), "{error}");
        assert_eq!(std::fs::read(&file).unwrap(), b"mine");
    }

    #[test]
    fn abstract_sockets_have_no_file() {
        let address = Address(format!("@volley-test-{}", std::process::id()).into());
        let listener = Listener::bind(&address).unwrap();
        assert!(matches!(Listener::bind(&address), Err(ListenError::Alive)));
        let client = Channel::connect(&address).unwrap();
        let server = listener.accept().unwrap();
        client.send(&Message::Ack, None).unwrap();
        assert_eq!(server.receive().unwrap().unwrap().0, Message::Ack);
        assert!(server.receive().unwrap().is_none());
        drop(client);
        assert!(matches!(server.receive(), Err(ChannelError::Gone)));
    }

    #[test]
    fn files_travel_and_too_many_are_a_fault() {
        let (a, b) = Channel::pair().unwrap();
        a.send(&Message::Ack, Some(a.as_fd())).unwrap();
        assert!(b.receive().unwrap().unwrap().1.is_some());
        for count in [2, 3, 9] {
            let files = vec![a.as_fd(); count];
            let mut space = vec![MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(9))];
            let mut ancillary = SendAncillaryBuffer::new(&mut space);
            ancillary.push(SendAncillaryMessage::ScmRights(&files));
            let bytes = Message::Ack.encode();
            let part = [IoSlice::new(&bytes)];
            rustix::net::sendmsg(&a.fd, &part, &mut ancillary, SendFlags::empty()).unwrap();
            assert!(matches!(b.receive(), Err(ChannelError::Files)));
        }
        rustix::net::send(&a.fd, &[1; 5], SendFlags::empty()).unwrap();
        assert!(matches!(
            b.receive(),
            Err(ChannelError::Wire(WireError::Length(5)))
        ));
        rustix::net::send(&a.fd, &[1; 500], SendFlags::empty()).unwrap();
        assert!(matches!(
            b.receive(),
            Err(ChannelError::Wire(WireError::Length(_)))
        ));
    }

    #[test]
    fn a_peer_that_does_not_read_is_noticed() {
        let (a, _b) = Channel::pair().unwrap();
        let deaf = (0..10_000).find_map(|_| a.send(&Message::Ack, None).err());
        assert!(matches!(deaf, Some(ChannelError::Deaf)));
    }
}
