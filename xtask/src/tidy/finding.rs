//! A violation of a rule.

use std::fmt;

/// A violation of one rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Path in the checkout.
    pub path: String,
    /// Line, from 1; 0 for the whole file.
    pub line: usize,
    /// The fault and its correction.
    pub text: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.text),
            line => write!(f, "{}:{line}: {}", self.path, self.text),
        }
    }
}
