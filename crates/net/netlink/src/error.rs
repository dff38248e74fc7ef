//! Why the mirror cannot do something.

/// One sentence each: what, where, how to mend it.
#[derive(Debug, thiserror::Error)]
pub enum LcpSyncError {
    /// A socket, or what was asked over it.
    #[error("the kernel refuses {0}: {1}; run Volley with CAP_NET_ADMIN")]
    Kernel(&'static str, std::io::Error),
    /// A route of Volley's.
    #[error("the kernel refuses Volley's route {0}: {1}")]
    Route(String, std::io::Error),
    /// The namespace of the twins.
    #[error("network namespace {0} cannot be entered: {1}; see `ip netns list`")]
    Namespace(String, std::io::Error),
}
