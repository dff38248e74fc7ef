//! A selection of the records in memory.

use crate::record::LogLevel;

/// The selected records.
#[derive(Clone, Copy, Debug, Default)]
pub struct Select<'a> {
    /// At most this many, the newest.
    pub max: Option<u64>,
    /// Records of this level and of more serious ones.
    pub level: Option<LogLevel>,
    /// Records of this module.
    pub module: Option<&'a str>,
    /// Records after this number.
    pub after: Option<u64>,
}
