//! Errors that prevent the HTTP interface from being served.

use std::net::SocketAddr;
use std::path::PathBuf;
use volley_cli::server::ServerError;

/// An error that prevents the HTTP interface from being served.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// The unix socket cannot be served.
    #[error(transparent)]
    Socket(#[from] ServerError),
    /// A file in the `[api]` table cannot be used.
    #[error("{}: {why}", .file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// The error.
        why: String,
    },
    /// The TCP address cannot be bound.
    #[error("api.{setting} {address}: {source}")]
    Listen {
        /// The setting.
        setting: &'static str,
        /// The address.
        address: SocketAddr,
        /// The error of the operating system.
        source: std::io::Error,
    },
}
