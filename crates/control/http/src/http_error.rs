//! Why the HTTP interface cannot be served.

use std::net::SocketAddr;
use std::path::PathBuf;
use volley_cli::server::ServerError;

/// Why the HTTP interface cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// Its unix socket cannot.
    #[error(transparent)]
    Socket(#[from] ServerError),
    /// A file of the `[api]` table cannot be used.
    #[error("{}: {why}", .file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The TCP address cannot be listened on.
    #[error("api.{setting} {address}: {source}")]
    Listen {
        /// The setting.
        setting: &'static str,
        /// The address.
        address: SocketAddr,
        /// Why not.
        source: std::io::Error,
    },
}
