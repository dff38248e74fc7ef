//! What can go wrong between Volley and the kernel, each as one sentence that says how to mend it.

use std::io;
use volley_model::ModelError;

/// An operation on a Linux interface that cannot be done.
#[derive(Debug, thiserror::Error)]
pub enum LinuxError {
    /// The namespace is not there.
    #[error(
        "network namespace `{0}` cannot be entered: {1}; `ip netns list` shows those that have names"
    )]
    Namespace(String, io::Error),
    /// The interface is not there.
    #[error("the kernel has no interface `{0}`{1}; `ip link` lists them")]
    NoLink(String, String),
    /// The interface carries no Ethernet.
    #[error("`{0}` is not an Ethernet interface, and only those can be used")]
    NotEthernet(String),
    /// The kernel says no for want of a privilege.
    #[error("{0} needs {1}: run volley as root, or `setcap {1}+ep` on its binary")]
    Privilege(&'static str, &'static str),
    /// The kernel says no.
    #[error("{0}: {1}")]
    System(String, io::Error),
    /// Something asked for does not exist here.
    #[error("{0}")]
    Unsupported(String),
}

impl LinuxError {
    /// What the kernel said of `what`, which takes the capabilities `needs`.
    pub fn of(what: &'static str, needs: &'static str, error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::PermissionDenied => LinuxError::Privilege(what, needs),
            _ => LinuxError::System(what.to_owned(), error),
        }
    }

    /// The same for the operator, about interface `name`.
    pub fn about(self, name: &str) -> ModelError {
        ModelError::invalid(format!("interface {name}"), self)
    }
}
