//! Counters of a node, as an enum beside its code.

/// The severity of an increase of a counter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Severity {
    /// Normal operation.
    Info,
    /// Unusual, may need attention.
    Warn,
    /// Packets are lost.
    Error,
}

impl Severity {
    /// Lower-case name.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Info => "info",
            Severity::Warn => "warn",
            Severity::Error => "error",
        }
    }
}

/// A counter's description for operators. The unit is packets unless the text states another one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CounterInfo {
    /// Kebab-case name, public interface.
    pub name: &'static str,
    /// The severity of an increase.
    pub severity: Severity,
    /// One sentence.
    pub text: &'static str,
}

/// An enum of counters. Made by [`crate::counters!`].
pub trait Counters: Copy + 'static {
    /// One entry for each variant.
    const INFO: &'static [CounterInfo];
    /// Position of a variant.
    fn index(self) -> usize;
    /// The variant behind a verdict `code`; an unknown code is mapped to the first variant.
    fn from_code(code: u32) -> Self;
    /// The verdict code of a variant; 0 is reserved for "no verdict".
    #[inline(always)]
    fn code(self) -> u32 {
        self.index() as u32 + 1
    }
}

/// A node that counts nothing.
#[derive(Clone, Copy)]
pub struct NoCounters;

impl Counters for NoCounters {
    const INFO: &'static [CounterInfo] = &[];
    fn index(self) -> usize {
        0
    }
    fn from_code(_: u32) -> Self {
        NoCounters
    }
}
