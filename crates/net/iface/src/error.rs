//! What can be wrong with an interface.

/// An interface operation that cannot be done.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum IfError {
    /// The name is taken.
    #[error("interface `{0}` exists already: choose another name")]
    Exists(String),
    /// Nobody has the name.
    #[error("no interface `{0}`: `show interfaces` lists them")]
    Missing(String),
    /// The table is full.
    #[error("there are {0} interfaces of the sort already, which is the limit: delete one first")]
    Full(usize),
}
