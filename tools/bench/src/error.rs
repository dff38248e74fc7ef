//! Errors of benchmarks.

/// What can go wrong in a benchmark.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// Volley could not be put together.
    #[error(transparent)]
    Stack(#[from] volley_daemon::stack::StackError),
    /// The scenario's configuration was refused.
    #[error("the scenario cannot be set up: {0}")]
    Model(#[from] volley_model::ModelError),
    /// A table could not be read.
    #[error("{0}")]
    Fib(#[from] volley_fib::FibError),
    /// A capture could not be written.
    #[error(transparent)]
    Pcap(#[from] volley_pcap::PcapError),
    /// The arguments do not fit each other.
    #[error("{0}")]
    Args(String),
    /// What came out is not what the reference model says.
    #[error("the outputs are wrong: {0}")]
    Wrong(String),
    /// A file could not be used.
    #[error("{path}: {why}")]
    File {
        /// The file.
        path: String,
        /// What the system said.
        why: String,
    },
}
