//! Limits for clients.

use std::time::Duration;

/// Limits for clients.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum length of a request line in bytes.
    pub line: usize,
    /// Maximum number of clients; the server refuses further ones and closes their connections.
    pub clients: usize,
    /// Time within which a client must complete a line that it began.
    pub finish_line: Duration,
    /// Time within which a client must read an answer.
    pub read_answer: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            // A file of commands that form one transaction is sent as one line.
            line: 16 * crate::MAX_LINE,
            clients: 64,
            finish_line: Duration::from_secs(10),
            read_answer: Duration::from_secs(10),
        }
    }
}
