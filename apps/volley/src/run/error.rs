//! Why the daemon does not start, or ends by itself.

use std::path::PathBuf;
use volley_model::{ModelError, Request};

/// One sentence each.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The configuration file has errors.
    #[error(transparent)]
    Config(#[from] volley_config::ConfigErrors),
    /// The stack cannot be put together.
    #[error(transparent)]
    Stack(#[from] crate::stack::StackError),
    /// A request of the configuration file was refused.
    #[error("{}: `{request}` was refused: {error}", .file.display())]
    Refused {
        /// The file.
        file: PathBuf,
        /// The request, as a command.
        request: Box<Request>,
        /// Why.
        error: Box<ModelError>,
    },
    /// The socket cannot be served.
    #[error(transparent)]
    Server(#[from] volley_cli::server::ServerError),
    /// The control thread's machinery cannot be set up.
    #[error("the control thread cannot be set up: {0}")]
    Runtime(std::io::Error),
    /// A worker ended without having been told to.
    #[error("the worker has died; what it said stands above, packets no longer flow")]
    WorkerDied,
}
