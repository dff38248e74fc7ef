//! Connecting to a unix socket within a time, and who is at its other end.

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with, sockopt,
};
use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// Pause before a socket whose queue is full is tried again.
const PAUSE: Duration = Duration::from_millis(20);

/// Connect, or fail with [`io::ErrorKind::TimedOut`] when the socket's queue stays full for `limit`: whoever serves it
/// does not accept. Without a limit of time (zero) it is tried once.
pub(crate) fn connect_within(path: &Path, limit: Duration) -> io::Result<UnixStream> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    let address = SocketAddrUnix::new(path)?;
    let until = Instant::now() + limit;
    loop {
        match connect(&socket, &address) {
            Ok(()) => break,
            // A unix socket does not connect later by itself.
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

/// The number of the user whose program serves a connection's other end.
pub(crate) fn peer(stream: &UnixStream) -> io::Result<u32> {
    Ok(sockopt::socket_peercred(stream)?.uid.as_raw())
}

/// The number of this process's user.
pub(crate) fn own_user() -> u32 {
    rustix::process::geteuid().as_raw()
}
