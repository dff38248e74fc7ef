//! Which records a reader of the memory wants.

use crate::record::LogLevel;

/// Which records are read.
#[derive(Clone, Copy, Debug, Default)]
pub struct Select<'a> {
    /// At most this many, the newest.
    pub max: Option<u64>,
    /// Of this level and of more serious ones.
    pub level: Option<LogLevel>,
    /// Of this module.
    pub module: Option<&'a str>,
    /// Behind this number.
    pub after: Option<u64>,
}
