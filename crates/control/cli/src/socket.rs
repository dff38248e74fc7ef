//! Connecting to a unix socket with a time limit, and the credentials of the peer.

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with, sockopt,
};
use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// Pause before the next connect to a socket whose queue is full.
const PAUSE: Duration = Duration::from_millis(20);

/// Connect, or fail with [`io::ErrorKind::TimedOut`] when the socket's queue stays full for `limit`, because the
/// serving program does not accept. With a `limit` of zero, connect once.
pub(crate) fn connect_within(path: &Path, limit: Duration) -> io::Result<UnixStream> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    let address = SocketAddrUnix::new(path)?;
    let until = Instant::now() + limit;
    loop {
        match connect(&socket, &address) {
            Ok(()) => break,
            // A unix socket that was not connected does not connect later: try again.
            Err(Errno::AGAIN) if Instant::now() < until => std::thread::sleep(PAUSE),
            Err(Errno::AGAIN) => {
                let why =
                    "its queue is full: the program that serves it does not accept connections";
                return Err(io::Error::new(io::ErrorKind::TimedOut, why));
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let stream = UnixStream::from(socket);
    stream.set_nonblocking(false)?;
    Ok(stream)
}

/// The user ID of the process at the other end of a connection.
pub(crate) fn peer(stream: &UnixStream) -> io::Result<u32> {
    Ok(sockopt::socket_peercred(stream)?.uid.as_raw())
}
