//! Errors of interface operations.

/// A failed interface operation.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum IfError {
    /// The name is in use.
    #[error("interface `{0}` exists already: choose another name")]
    Exists(String),
    /// No interface has the name.
    #[error("no interface `{0}`: `show interfaces` lists them")]
    Missing(String),
    /// The table is full.
    #[error("there are {0} interfaces of the sort already, which is the limit: delete one first")]
    Full(usize),
}
