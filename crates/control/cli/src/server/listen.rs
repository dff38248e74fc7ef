//! The listening socket.

use super::backend::Backend;
use super::limits::Limits;
use super::session;
use crate::socket::connect_within;
use std::cell::Cell;
use std::io::ErrorKind;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;
use tokio::net::{UnixListener, UnixStream};

/// Why the socket cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// A running daemon serves the socket.
    #[error(
        "{0}: another program serves this socket; stop it or choose another path with engine.socket or api.socket"
    )]
    Taken(PathBuf),
    /// The path exists and is not a socket.
    #[error(
        "{0}: is not a socket; remove it or choose another path with engine.socket or api.socket"
    )]
    NotASocket(PathBuf),
    /// An operation of the operating system failed.
    #[error("{path}: {step}: {source}")]
    Io {
        /// The socket.
        path: PathBuf,
        /// The operation that failed.
        step: &'static str,
        /// The error of the operating system.
        source: std::io::Error,
    },
}

/// A bound unix socket. Dropping the value removes the socket's file.
#[derive(Debug)]
pub struct Socket {
    listener: UnixListener,
    path: PathBuf,
}

impl Socket {
    /// Listens on a unix socket, which only root and its owner can open until the mode is changed; replaces a socket that no
    /// program serves. Must be called inside a tokio runtime.
    pub fn bind(path: &Path) -> Result<Socket, ServerError> {
        let io = |step| {
            let path = path.to_path_buf();
            move |source| ServerError::Io { path, step, source }
        };
        if let Ok(meta) = std::fs::symlink_metadata(path) {
            if !meta.file_type().is_socket() {
                return Err(ServerError::NotASocket(path.to_path_buf()));
            }
            // A socket whose program does not accept is in use nevertheless.
            match connect_within(path, Duration::ZERO) {
                Ok(_) => return Err(ServerError::Taken(path.to_path_buf())),
                Err(e) if e.kind() == ErrorKind::TimedOut => {
                    return Err(ServerError::Taken(path.to_path_buf()));
                }
                Err(_) => {}
            }
            std::fs::remove_file(path).map_err(io("cannot remove the old socket"))?;
        }
        let listener = UnixListener::bind(path).map_err(io("cannot bind"))?;
        let mode = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(path, mode).map_err(io("cannot set permissions"))?;
        let path = path.to_path_buf();
        Ok(Socket { listener, path })
    }

    /// Path of the socket.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Waits for the next connection.
    pub async fn accept(&self) -> UnixStream {
        loop {
            match self.listener.accept().await {
                Ok((stream, _)) => return stream,
                // Probably out of file descriptors: wait until some are closed.
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// The command line on a bound socket.
#[derive(Debug)]
pub struct Server {
    socket: Socket,
    limits: Limits,
}

impl Server {
    /// Binds the socket, see [`Socket::bind`]. Must be called inside a tokio runtime.
    pub fn bind(path: &Path, limits: Limits) -> Result<Server, ServerError> {
        let socket = Socket::bind(path)?;
        Ok(Server { socket, limits })
    }

    /// Serves until `stop` is done. Must run inside a `LocalSet`.
    pub async fn run(self, backend: Rc<dyn Backend>, stop: impl Future<Output = ()>) {
        let clients = Rc::new(Cell::new(0usize));
        let mut stop = std::pin::pin!(stop);
        loop {
            let stream = tokio::select! {
                () = &mut stop => return,
                stream = self.socket.accept() => stream,
            };
            let (backend, limits) = (Rc::clone(&backend), self.limits);
            let place = Place::take(&clients, limits.clients);
            tokio::task::spawn_local(session::serve(stream, backend, limits, place));
        }
    }
}

/// One client's slot among those allowed; dropping the value releases it.
pub struct Place(Rc<Cell<usize>>);

impl Place {
    /// Takes one of `limit` slots; `None` when all are taken.
    pub fn take(clients: &Rc<Cell<usize>>, limit: usize) -> Option<Place> {
        if clients.get() >= limit {
            return None;
        }
        clients.set(clients.get() + 1);
        Some(Place(Rc::clone(clients)))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.set(self.0.get().saturating_sub(1));
    }
}
