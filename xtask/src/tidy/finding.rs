//! What a rule finds.

use std::fmt;

/// One breach of one rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Path in the checkout.
    pub path: String,
    /// Line, from 1; 0 when it is the whole file.
    pub line: usize,
    /// What is wrong and what to do.
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
