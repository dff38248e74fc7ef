//! Errors of operations on the kernel's interfaces, each as one sentence that says how to correct it.

use std::io;
use volley_model::ModelError;

/// An operation on a Linux interface that failed.
#[derive(Debug, thiserror::Error)]
pub enum LinuxError {
    /// The namespace does not exist.
    #[error(
        "network namespace `{0}` cannot be entered: {1}; `ip netns list` shows those that have names"
    )]
    Namespace(String, io::Error),
    /// The interface does not exist.
    #[error("the kernel has no interface `{0}`{1}; `ip link` lists them")]
    NoLink(String, String),
    /// The interface is not Ethernet.
    #[error("`{0}` is not an Ethernet interface, and only those can be used")]
    NotEthernet(String),
    /// A privilege is missing.
    #[error("{0} needs {1}: run volley as root, or `setcap {1}+ep` on its binary")]
    Privilege(&'static str, &'static str),
    /// The kernel refused the operation.
    #[error("{0}: {1}")]
    System(String, io::Error),
    /// A requested feature does not exist here.
    #[error("{0}")]
    Unsupported(String),
}

impl LinuxError {
    /// The kernel's error for `what`, an operation that requires the capabilities `needs`.
    pub fn of(what: &'static str, needs: &'static str, error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::PermissionDenied => LinuxError::Privilege(what, needs),
            _ => LinuxError::System(what.to_owned(), error),
        }
    }

    /// The error for the operator, about interface `name`.
    pub fn about(self, name: &str) -> ModelError {
        ModelError::invalid(format!("interface {name}"), self)
    }
}
