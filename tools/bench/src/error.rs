//! Errors of benchmarks.

/// Errors of a benchmark.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// Volley could not be set up.
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
    /// The arguments contradict each other.
    #[error("{0}")]
    Args(String),
    /// The output differs from the reference model.
    #[error("the outputs are wrong: {0}")]
    Wrong(String),
    /// A file could not be used.
    #[error("{path}: {why}")]
    File {
        /// The file.
        path: String,
        /// Error of the system.
        why: String,
    },
}
