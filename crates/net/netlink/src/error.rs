//! Errors of the synchronisation with the kernel.

/// One sentence each: what failed, where, and how to correct it.
#[derive(Debug, thiserror::Error)]
pub enum LcpSyncError {
    /// A netlink socket, or a request over it, failed.
    #[error("the kernel refuses {0}: {1}; run Volley with CAP_NET_ADMIN")]
    Kernel(&'static str, std::io::Error),
    /// The kernel refused a route of Volley.
    #[error("the kernel refuses Volley's route {0}: {1}")]
    Route(String, std::io::Error),
    /// The network namespace of the LCP taps cannot be opened.
    #[error("network namespace {0} cannot be entered: {1}; see `ip netns list`")]
    Namespace(String, std::io::Error),
}
