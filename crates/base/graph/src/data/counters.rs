//! Counters of a node, as an enum beside its code.

/// How bad it is that a counter moves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Severity {
    /// Normal operation.
    Info,
    /// Worth a look.
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

/// What an operator is told about a counter. The unit is packets unless the text says otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CounterInfo {
    /// Kebab-case name, public interface.
    pub name: &'static str,
    /// How bad it is.
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
    /// The variant behind a verdict `code`; a code nobody made falls back to the first variant.
    fn from_code(code: u32) -> Self;
    /// The verdict code of a variant: 0 is kept for "nothing to say".
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
