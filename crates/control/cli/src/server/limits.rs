//! Bounds that clients meet.

use std::time::Duration;

/// Bounds that clients meet.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Longest request line in bytes.
    pub line: usize,
    /// Clients at once; the server refuses further ones and closes their connections.
    pub clients: usize,
    /// Time to send the rest of a line that was begun.
    pub finish_line: Duration,
    /// Time to read an answer.
    pub read_answer: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            // A file of commands that are one transaction comes as one line.
            line: 16 * crate::MAX_LINE,
            clients: 64,
            finish_line: Duration::from_secs(10),
            read_answer: Duration::from_secs(10),
        }
    }
}
